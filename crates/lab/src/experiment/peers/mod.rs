//! `peers`: Highwater compared with engines that a user could choose instead.
//!
//! Choices
//! 1. Every embedded engine is measured by the program `highwater-peers`, Highwater too: a process for each
//!    measurement, in a memory group that counts the operating system's page cache. A server is in such a group too,
//!    its clients in this process. Servers are measured only on request.
//! 2. In memory all get the same cache; beyond memory their processes get the same memory, which each uses in its best
//!    way. All have the same durability and the same workload code. `docs/results/peers/settings.md` has a section on
//!    each engine: its settings and differences.
//! 3. Subjects take turns within a setting, repetition after repetition; settings on the same data follow each other,
//!    so that the loaded data of one kind and size are on the disk at a time.
//! 4. The claims are Highwater's aim: no cell is lost. A claim compares Highwater with the peer that was fastest in
//!    that cell, by runs directly after one another; on an emulated SSD with the peer that wrote the fewest flash
//!    bytes.
//! 5. An engine that exceeds its memory limit has no result in that cell, which the report notes; the run continues.
//! 6. The contents of an engine after a run are verified by reads; loaded rows must be the same on every engine.
//! 7. The device is this machine's disk, or an emulated SSD under ext4 ([`flash`]), whose bytes of flash are counted.

mod claims;
mod figures;
mod flash;
mod notes;
mod plan;
mod run;

use super::{
    About, Cell, CellResult, Claim, DeviceChoice, Experiment, Figure, Plan, Row, SubjectKind, Workspace, metric,
};
use crate::subject::peer;
use highwater_bench::Result;
use highwater_bench::peers::PeerWorkload;
use std::path::PathBuf;

/// The experiment.
#[derive(Debug)]
pub(super) struct Peers;

const ABOUT: About = About {
    name: "peers",
    summary: "Throughput, latency, device bytes (on an emulated SSD bytes of flash), space, memory and processor time \
              compared with RocksDB, WiredTiger, LMDB, SQLite, redb and fjall, and on request MySQL, MariaDB and \
              MyRocks: TPC-C, YCSB, write-only, point reads, index scans, bulk load, redb's \
              benchmark",
    source: "no document: the engines themselves",
    subjects: &SubjectKind::ALL,
    devices: &["local", "samsung-pm953-960gb", "datacenter-nvme", "simple-2gb"],
    repetitions: [1, 1, 5, 5],
    server_repetitions: None,
    required: &[metric::ENDED_BY_MEMORY_LIMIT],
};

impl Experiment for Peers {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn default_subjects(&self) -> &'static [SubjectKind] {
        &SubjectKind::OF_COMPARE
    }

    fn programs(&self) -> Vec<PathBuf> {
        peer::program().into_iter().collect()
    }

    fn mounts(&self, plan: &Plan) -> bool {
        plan.device != DeviceChoice::Local
    }

    fn workloads(&self) -> Vec<&'static str> {
        PeerWorkload::ALL.map(PeerWorkload::name).to_vec()
    }

    fn lets_settings_be_chosen(&self) -> bool {
        true
    }
    fn lets_clients_be_chosen(&self) -> bool {
        true
    }

    fn is_of_all(&self) -> bool {
        false
    }

    fn cells(&self, plan: &Plan) -> Vec<Cell> {
        plan::cells(plan)
    }

    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
        run::measure(plan, cell, workspace)
    }

    fn claims(&self, _: &Plan, rows: &[Row]) -> Vec<Claim> {
        claims::claims(rows)
    }

    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        figures::figures(rows)
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        notes::notes(plan)
    }
}

#[cfg(test)]
mod peers_test;
