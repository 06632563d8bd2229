//! Pages read and written, by type: index pages and pages of the change buffer.
//!
//! Rules
//! 1. Highwater counts its own pages. InnoDB's are counted by the mounted device, so pages that the server writes
//!    elsewhere are not counted.
//! 2. Copies in a doublewrite buffer or in a file system's journal do not count.

use highwater_bench::counter;
use highwater_bench::result::RunResult;
use highwater_device::mount::pages::PageKind;
use highwater_device::mount::traffic::{PageCount, Region};

/// Counts of pages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct PageTypes {
    pub index_reads: u64,
    pub index_writes: u64,
    pub change_buffer_reads: u64,
    pub change_buffer_writes: u64,
}

impl PageTypes {
    /// The pages that Highwater counted.
    pub(super) fn counted(result: &RunResult) -> PageTypes {
        let count = |name: &str| result.counters.get(name).copied().unwrap_or(0);
        PageTypes {
            index_reads: count(counter!(index_pages_read)),
            index_writes: count(counter!(index_pages_written)),
            change_buffer_reads: count(counter!(change_buffer_pages_read)),
            change_buffer_writes: count(counter!(change_buffer_pages_written)),
        }
    }

    /// The pages that a mounted device recognised.
    pub(super) fn of_device(pages: &[PageCount]) -> PageTypes {
        let main = || pages.iter().filter(|row| row.region == Region::Main.name());
        let of =
            |kind: PageKind| main().find(|row| row.kind == kind.name()).map_or((0, 0), |row| (row.reads, row.writes));
        let (index, change_buffer) = (of(PageKind::Index), of(PageKind::IbufIndex));
        PageTypes {
            index_reads: index.0,
            index_writes: index.1,
            change_buffer_reads: change_buffer.0,
            change_buffer_writes: change_buffer.1,
        }
    }

    /// The counts since `earlier`.
    pub(super) fn since(&self, earlier: &PageTypes) -> PageTypes {
        PageTypes {
            index_reads: self.index_reads - earlier.index_reads,
            index_writes: self.index_writes - earlier.index_writes,
            change_buffer_reads: self.change_buffer_reads - earlier.change_buffer_reads,
            change_buffer_writes: self.change_buffer_writes - earlier.change_buffer_writes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(region: &str, kind: &str, reads: u64, writes: u64) -> PageCount {
        PageCount { region: region.into(), kind: kind.into(), reads, read_bytes: 0, writes, written_bytes: 0 }
    }

    #[test]
    fn only_pages_at_their_places_count() {
        let before = [row("main", "INDEX", 1, 2)];
        let after = [
            row("main", "INDEX", 11, 7),
            row("main", "IBUF_INDEX", 3, 4),
            row("main", "DOUBLEWRITE", 0, 90),
            row("journal", "INDEX", 0, 50),
        ];
        let found = PageTypes::of_device(&after).since(&PageTypes::of_device(&before));
        assert_eq!((found.index_reads, found.index_writes), (10, 5));
        assert_eq!((found.change_buffer_reads, found.change_buffer_writes), (3, 4));
    }

    #[test]
    fn highwater_counts_its_own() {
        let counters = [("index_pages_read", 5), ("change_buffer_pages_written", 2)];
        let counters = counters.into_iter().map(|(name, value)| (name.to_string(), value)).collect();
        let found = PageTypes::counted(&RunResult { counters, ..RunResult::default() });
        assert_eq!(found, PageTypes { index_reads: 5, change_buffer_writes: 2, ..PageTypes::default() });
    }
}
