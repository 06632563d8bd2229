//! `page-store`: the flash writes that a page store without overwrites saves, and the contributions of compression,
//! placement and slack.
//!
//! Source: Lee, Ziegler, Leis, "How to Write to SSDs" (PVLDB 19, 2026): LeanStore with out-of-place writes, pages
//! compressed one by one, grouped by their estimated time of death. TPC-C with 15,000 warehouses: flash writes divided
//! by 7.2, throughput times 2.45. The claims here are Highwater's own aims; published figures are in their details.
//!
//! Choices
//! 1. One thing is varied at a time, from a base: pages of 8 KiB, fill 0.8, 15 % spare flash, streams. The store is
//!    varied at each page size.
//! 2. Every store of a page size is measured on the same device: its size follows from the bytes of the used pages in
//!    place, uncompressed, at the end of the run. Space that a store saves is slack for it, as on a real drive.
//! 3. The device is aged and then discarded as a whole, and discards stay on, for all alike. `atomic` has no other
//!    protection than the device, which writes 16 KiB atomically.
//! 4. The work is fixed: every cell runs the same number of transactions, and before them as many to come into a steady
//!    state. For a run that did not write half of the device's capacity there is no claim about its flash.
//! 5. Bytes are measured on the virtual clock, on which they do not depend on the machine's load. Throughput is
//!    measured again on the machine's clock, in the base setting.
//! 6. Servers run on a mounted device of the same kind, filled as much, without streams and in real time. The purposes
//!    of their writes are known only as far as they count them; the device counts all writes. Highwater in MariaDB is
//!    measured with the stores that need no promise of the device.
//! 7. Claims about the device's write amplification are about the streams of pages, because the redo log, a ring, is
//!    not part of the page store.

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
