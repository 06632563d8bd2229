//! `page-store`: what a page store that never overwrites saves of the flash, and what compression, placement and slack
//! each add.
//!
//! Source: Lee, Ziegler, Leis, "How to Write to SSDs" (PVLDB 19, 2026): LeanStore with out-of-place writes, pages
//! compressed one by one, grouped by their estimated time of death. TPC-C with 15,000 warehouses: flash writes divided
//! by 7.2, throughput times 2.45. The claims here are Highwater's own aims; published figures are in their details.
//!
//! Choices
//! 1. One thing is varied at a time, from a base: pages of 8 KiB, fill 0.8, 15 % spare flash, streams. The store is
//!    varied at each page size.
//! 2. Every store of a page size is measured on the same device: its size follows from what the pages in use take in
//!    place, uncompressed, at the end of the run. What a store saves of that room is its own slack, as it would be on a
//!    drive that was bought.
//! 3. The device is aged and then discarded as a whole, and discards stay on, for all alike. `atomic` has no other
//!    protection than the device, which writes 16 KiB atomically.
//! 4. The work is fixed: every cell runs the same number of transactions, and before them as many to come into a steady
//!    state. Of a run that did not write half of the device's capacity nothing is claimed about its flash.
//! 5. Bytes are measured on the virtual clock, on which they do not depend on what else the machine does. Throughput is
//!    measured again on the machine's clock, in the base setting.
//! 6. Servers run on a mounted device of the same kind, filled as much, without streams and in real time. What of their
//!    writes is whose is known as far as they count it; the device counts all. Highwater in MariaDB has the stores that
//!    need no promise of the device.
//! 7. The write amplification that is claimed of the device is that of the streams of pages: the redo log, a ring, is
//!    no part of the page store.

mod claims;
mod figures;
mod notes;
mod plan;
mod values;

use super::{About, Cell, CellResult, Claim, Experiment, Figure, Plan, Row, SubjectKind, Workspace, metric};
use highwater_bench::Result;

/// The experiment.
#[derive(Debug)]
pub(super) struct PageStores;

const ABOUT: About = About {
    name: "page-store",
    summary: "Flash bytes per transaction at each level, write amplification, throughput and processor time with \
              doublewrite, atomic and out-of-place page stores, by compression, page size, fill, spare flash and \
              streams",
    source: "Lee, Ziegler, Leis: How to Write to SSDs, PVLDB 19 (2026)",
    subjects: &SubjectKind::WITH_PLUGIN,
    devices: &["samsung-pm953-960gb", "datacenter-nvme", "simple-2gb"],
    repetitions: [1, 1, 2, 3],
    server_repetitions: Some([1; 4]),
    required: &[metric::TPS, metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION],
};

impl Experiment for PageStores {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn default_subjects(&self) -> &'static [SubjectKind] {
        &SubjectKind::OF_LAB
    }

    fn cells(&self, plan: &Plan) -> Vec<Cell> {
        plan::cells(plan)
    }

    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<CellResult> {
        plan::measure(plan, cell, workspace)
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
mod page_store_test;
