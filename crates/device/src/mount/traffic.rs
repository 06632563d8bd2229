//! Counts requests: by region of the device (journal or not) and by kind of page.

use super::pages::{self, PageKind};
use parking_lot::RwLock;
use serde::{Deserialize, Serialize};
use std::ops::Range;
use std::sync::atomic::{AtomicU64, Ordering};

/// A region of the device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Region {
    /// Not the file system's journal.
    Main,
    /// The file system's journal.
    Journal,
}

highwater_storage::names!(Region { Main => "main", Journal => "journal" });

/// Counts of one region and kind. Blocks are 4 KiB.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PageCount {
    /// `main` or `journal`.
    pub region: String,
    /// Kind of page.
    pub kind: String,
    /// Requests or pages read.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Requests or pages written.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

#[derive(Default)]
struct Cell {
    reads: AtomicU64,
    read_blocks: AtomicU64,
    writes: AtomicU64,
    written_blocks: AtomicU64,
}

const KINDS: usize = PageKind::ALL.len();

/// The counters.
#[derive(Default)]
pub struct Traffic {
    cells: [[Cell; KINDS]; 2],
    doublewrite: RwLock<Vec<Range<u64>>>,
}

impl Traffic {
    /// Counts a write of `data` at block `lba`, all in one region.
    pub fn written(&self, region: Region, lba: u64, data: &[u8]) {
        pages::split(lba, data, |kind, lba, blocks, page| {
            if kind == PageKind::System && region == Region::Main {
                self.learn(page, lba);
            }
            let cell = self.cell(region, kind, lba);
            cell.writes.fetch_add(1, Ordering::Relaxed);
            cell.written_blocks.fetch_add(blocks, Ordering::Relaxed);
        });
    }

    /// Counts a read of `data` at block `lba`, all in one region.
    pub fn read(&self, region: Region, lba: u64, data: &[u8]) {
        pages::split(lba, data, |kind, lba, blocks, _| {
            let cell = self.cell(region, kind, lba);
            cell.reads.fetch_add(1, Ordering::Relaxed);
            cell.read_blocks.fetch_add(blocks, Ordering::Relaxed);
        });
    }

    /// All counts that are not zero.
    pub fn counts(&self) -> Vec<PageCount> {
        let mut rows = Vec::new();
        for region in Region::ALL {
            for kind in PageKind::ALL {
                let cell = &self.cells[region as usize][kind as usize];
                let get = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
                rows.push(PageCount {
                    region: region.name().into(),
                    kind: kind.name().into(),
                    reads: get(&cell.reads),
                    read_bytes: get(&cell.read_blocks) * 4096,
                    writes: get(&cell.writes),
                    written_bytes: get(&cell.written_blocks) * 4096,
                });
            }
        }
        rows.retain(|r| r.reads + r.writes > 0);
        rows
    }

    fn cell(&self, region: Region, kind: PageKind, lba: u64) -> &Cell {
        let copy = region == Region::Main
            && kind != PageKind::Other
            && self.doublewrite.read().iter().any(|range| range.contains(&lba));
        &self.cells[region as usize][if copy { PageKind::Doublewrite } else { kind } as usize]
    }

    /// Notes the ranges of the doublewrite buffer if `page` is the transaction system page. A copy of that page in the
    /// buffer is ignored.
    fn learn(&self, page: &[u8], lba: u64) {
        let inside = self.doublewrite.read().iter().any(|range| range.contains(&lba));
        if let (false, Some(place)) = (inside, pages::doublewrite_place(page, lba)) {
            *self.doublewrite.write() = place.to_vec();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::pages::tests::{page, trx_sys};
    use super::*;

    fn count<'a>(counts: &'a [PageCount], region: &str, kind: &str) -> &'a PageCount {
        counts.iter().find(|c| c.region == region && c.kind == kind).unwrap_or_else(|| panic!("{counts:?}"))
    }

    #[test]
    fn pages_are_counted_by_region_and_kind() {
        let traffic = Traffic::default();
        traffic.written(Region::Main, 100, &page(17855, 3, 1, 9));
        traffic.written(Region::Journal, 900, &[vec![0xC0; 4096], page(17855, 3, 1, 9)].concat());
        traffic.read(Region::Main, 100, &page(17855, 3, 1, 9));
        traffic.read(Region::Main, 300, &[7; 512]);
        let counts = traffic.counts();
        assert_eq!(counts.len(), 4);
        assert_eq!(count(&counts, "main", "INDEX").writes, 1);
        assert_eq!(count(&counts, "main", "INDEX").read_bytes, 16384);
        assert_eq!(count(&counts, "journal", "OTHER").written_bytes, 4096);
        assert_eq!(count(&counts, "main", "OTHER").read_bytes, 4096);
    }

    #[test]
    fn copies_in_the_doublewrite_buffer_are_told_apart_once_its_place_is_known() {
        let traffic = Traffic::default();
        let copy = page(17855, 3, 1, 9);
        traffic.written(Region::Main, 1256, &copy);
        traffic.written(Region::Main, 1020, &trx_sys(9));
        traffic.written(Region::Main, 1256, &copy);
        traffic.written(Region::Main, 1260, &trx_sys(10));
        traffic.written(Region::Main, 1256, &copy);
        let counts = traffic.counts();
        assert_eq!(count(&counts, "main", "INDEX").writes, 1);
        assert_eq!(count(&counts, "main", "DOUBLEWRITE").writes, 3);
        assert_eq!(count(&counts, "main", "SYSTEM").writes, 1);
    }
}
