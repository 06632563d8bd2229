//! Pages in file order; the extent maps; claims against the maps.
//!
//! Rules
//! 1. Used pages are read from the store, an extent at a time, not through the pool, to check the contents of the disk.
//! 2. A free page may have any contents and is not checked.
//! 3. A page may be written during its read: readers merge buffered changes of a leaf, and the cleaner flushes earlier
//!    changes. So a page that does not verify is read again, after a pause while it is dirty.

use super::checker::{Checker, FindingPlace, Owner, OwnerKind};
use crate::error::Result;
use crate::page::{self, PageType, header};
use crate::pool::Pool;
use crate::space::layout::{CHUNK_PAGES, EXTENT_PAGES, chunk_mask};
use crate::space::{Extent, SEGMENT_SYSTEM, read_entry};
use crate::types::{PageNo, SegmentId};
use highwater_storage::AlignedBuf;
use std::time::Duration;

/// Reads of a page that does not verify.
const READS: u32 = 5;
/// Pause between two of them.
const PAUSE: Duration = Duration::from_millis(5);

/// Reads a page again while it does not verify: rule 3.
fn read_until_sound(pool: &Pool, page_no: PageNo, page: &mut [u8]) -> Result<()> {
    for _ in 1..READS {
        if header::verify(page, page_no).is_ok() {
            return Ok(());
        }
        // Else the write is over, if there was one.
        if pool.is_dirty(page_no) {
            crate::sync::thread::sleep(PAUSE);
        }
        pool.store().read(page_no, page)?;
    }
    Ok(())
}

impl Checker<'_> {
    /// Verifies every used page where it is in the file, and the extent maps.
    pub(super) fn check_file(&mut self) -> Result<()> {
        let space = self.subject.space;
        let extents = space.page_count() / EXTENT_PAGES;
        let in_use = |n: u32| space.extent(n).unwrap_or_default().used.count_ones();
        self.report.counts.pages_used = (0..extents).map(|n| u64::from(in_use(n))).sum();
        self.progress.total = self.report.counts.pages + self.report.counts.pages_used;
        let mut bytes = AlignedBuf::zeroed(space.layout().extent_bytes() as usize);
        for number in 0..extents {
            (self.subject.goes_on)()?;
            let extent = space.extent(number).unwrap_or_default();
            self.check_owners(number, &extent);
            if extent.used != 0 {
                self.check_extent(number, &extent, &mut bytes);
            }
            self.progress.advance(u64::from(EXTENT_PAGES));
        }
        for group in 0..space.layout().groups(extents) {
            self.check_map(group, extents)?;
        }
        for problem in self.subject.ctx.pool.store().problems() {
            self.find(None, &FindingPlace::default(), problem);
        }
        Ok(())
    }

    /// Every chunk's owner is known, and a chunk without one has no used page.
    fn check_owners(&mut self, number: u32, extent: &Extent) {
        for (chunk, &owner) in extent.owners.iter().enumerate() {
            let first = PageNo(number * EXTENT_PAGES + chunk as u32 * CHUNK_PAGES);
            let used = (extent.used & chunk_mask(1 << chunk)).count_ones();
            if owner == 0 && used != 0 {
                let text = format!("{used} of the 8 pages from here are marked as used, but belong to no segment");
                self.find(Some(first), &FindingPlace::default(), text);
            } else if owner != 0 && !self.owners.contains_key(&owner) {
                let text = format!("the 8 pages from here belong to segment {owner}, which is not in the catalog");
                self.find(Some(first), &FindingPlace::default(), text);
            }
        }
    }

    fn check_extent(&mut self, number: u32, extent: &Extent, bytes: &mut AlignedBuf) {
        let pool = &self.subject.ctx.pool;
        let (page_bytes, store) = (pool.page_bytes(), pool.store());
        let whole = store.read(PageNo(number * EXTENT_PAGES), bytes).is_ok();
        for at in (0..EXTENT_PAGES).filter(|at| extent.used >> at & 1 == 1) {
            let page_no = PageNo(number * EXTENT_PAGES + at);
            let range = at as usize * page_bytes..(at as usize + 1) * page_bytes;
            let owner = extent.owners[(at / CHUNK_PAGES) as usize];
            let read = if whole { Ok(()) } else { store.read(page_no, &mut bytes[range.clone()]) };
            let read = read.and_then(|()| read_until_sound(pool, page_no, &mut bytes[range.clone()]));
            match read {
                Ok(()) => self.check_page(page_no, owner, &bytes[range]),
                Err(error) => self.unreadable_page(page_no, owner, error.into_reason()),
            }
        }
    }

    fn unreadable_page(&mut self, page_no: PageNo, owner: u32, reason: String) {
        if self.owners.get(&owner).is_some_and(|owner| matches!(owner.kind, OwnerKind::Unfinished)) {
            // It waits to be freed; nothing reads it before.
            self.report.counts.unfinished_pages += 1;
            return;
        }
        let place = self.owners.get(&owner).map(|owner| owner.place.clone()).unwrap_or_default();
        self.damaged.insert(SegmentId(owner));
        self.find(Some(page_no), &place, reason);
        self.unreadable.insert(page_no);
    }

    fn check_page(&mut self, page_no: PageNo, owner: u32, page: &[u8]) {
        let verified = header::verify(page, page_no)
            .and_then(|()| page::check_not_lost(page, page_no))
            .and_then(|()| header::page_type(page));
        let found = match verified {
            Ok(found) => found,
            Err(error) => return self.unreadable_page(page_no, owner, error.into_reason()),
        };
        if let Some(Owner { kind, place }) = self.owners.get(&owner).cloned()
            && let Some(reason) = self.misfit(page_no, page, found, owner, kind)
        {
            self.find_on_page(page_no, SegmentId(owner), &place, reason);
        }
        if let Some(text) = header::beyond_log(page, self.subject.ctx.log.end_lsn()) {
            self.find(Some(page_no), &FindingPlace::default(), text);
        }
        self.count(found, self.owners.get(&owner).map(|owner| owner.kind));
    }

    /// The reason why a page cannot belong to its segment.
    fn misfit(&self, page_no: PageNo, page: &[u8], found: PageType, segment: u32, kind: OwnerKind) -> Option<String> {
        let (expected, owner): (&[PageType], u32) = match kind {
            OwnerKind::Unfinished => return None,
            OwnerKind::System => match self.system_page(page_no) {
                Some(PageType::Free) => return None,
                Some(PageType::FileHeader) => (&[PageType::FileHeader], segment),
                _ => (&[PageType::ExtentMap], segment),
            },
            OwnerKind::Undo => (&[PageType::Undo, PageType::UndoDirectory], segment),
            OwnerKind::Tree(index) => (&[PageType::Inner, PageType::Leaf], index),
            OwnerKind::Overflow => (&[PageType::Overflow], segment),
        };
        if !expected.contains(&found) {
            return Some(format!("its type is {found:?}, but its segment holds {:?} pages", expected[0]));
        }
        (header::owner(page) != owner).then(|| format!("it belongs to {}, not to {owner}", header::owner(page)))
    }

    /// The type of a page of the system segment; `Free`: reserved before an extent map, never written.
    fn system_page(&self, page_no: PageNo) -> Option<PageType> {
        let group_pages = self.subject.space.layout().group_extents() * EXTENT_PAGES;
        match page_no.0 % group_pages {
            0 if page_no.0 == 0 => Some(PageType::FileHeader),
            0 => Some(PageType::Free),
            1 => Some(PageType::ExtentMap),
            _ => None,
        }
    }

    fn count(&mut self, found: PageType, kind: Option<OwnerKind>) {
        let counts = &mut self.report.counts;
        counts.pages_verified += 1;
        *match kind {
            Some(OwnerKind::Unfinished) => &mut counts.unfinished_pages,
            _ => counts.pages_of(found),
        } += 1;
        debug_assert!(counts.pages_verified <= counts.pages_used, "a page is counted twice: {counts:?}");
    }

    /// Compares an extent map with the one in memory, and claims the group's system pages.
    fn check_map(&mut self, group: u32, extents: u32) -> Result<()> {
        let space = self.subject.space;
        let layout = space.layout();
        let map = layout.map_page(group);
        self.claim(PageNo(map.0 - 1), SEGMENT_SYSTEM, &FindingPlace::default());
        self.claim(map, SEGMENT_SYSTEM, &FindingPlace::default());
        let page = self.subject.ctx.pool.fix_s(map)?.to_vec();
        for index in 0..layout.group_extents() {
            let number = group * layout.group_extents() + index;
            let known = if number < extents { space.extent(number).unwrap_or_default() } else { Extent::default() };
            if !is_same(&read_entry(&page, index as usize), &known) {
                let text = format!("its entry for extent {number} differs from the extent map in memory");
                self.find(Some(map), &FindingPlace::default(), text);
            }
        }
        Ok(())
    }

    /// Every used page is claimed. (A claimed page that is not used was found when it was claimed.)
    pub(super) fn compare_claims(&mut self) {
        let (pages, before) = (self.subject.space.page_count(), self.report.counts.pages);
        debug_assert_eq!(u64::from(pages), before, "rule 1: the data file changes its length during a check");
        let mut lost = Lost::default();
        for number in 0..self.subject.space.page_count() / EXTENT_PAGES {
            let extent = self.subject.space.extent(number).unwrap_or_default();
            let unclaimed = extent.used & !self.claimed.extent(number);
            for at in (0..EXTENT_PAGES).filter(|at| unclaimed >> at & 1 == 1) {
                let owner = extent.owners[(at / CHUNK_PAGES) as usize];
                lost = self.lose(lost, owner, PageNo(number * EXTENT_PAGES + at));
            }
        }
        self.report_lost(&lost);
        let mut behind: Vec<_> = self.behind_damage.drain().collect();
        behind.sort_unstable();
        for (owner, (pages, first)) in behind {
            let place = self.owners.get(&owner).map(|owner| owner.place.clone()).unwrap_or_default();
            let text = format!(
                "{pages} used pages of segment {owner}, this one first, are below the damaged page and were not reached"
            );
            self.find(Some(first), &place, text);
        }
    }

    /// Notes a used page that nothing leads to; continues with the range or begins another one.
    fn lose(&mut self, mut lost: Lost, owner: u32, page: PageNo) -> Lost {
        let kind = self.owners.get(&owner).map(|owner| owner.kind);
        // Reported already: unknown owners in `check_owners`, others with the damage.
        if matches!(kind, None | Some(OwnerKind::Unfinished)) {
            return lost;
        }
        if self.damaged.contains(&SegmentId(owner)) {
            self.behind_damage.entry(owner).or_insert((0, page)).0 += 1;
            return lost;
        }
        if lost.pages != 0 && lost.owner == owner && lost.first.0 + lost.pages == page.0 {
            lost.pages += 1;
            return lost;
        }
        self.report_lost(&lost);
        Lost { owner, first: page, pages: 1 }
    }

    fn report_lost(&mut self, lost: &Lost) {
        let Lost { owner, first, pages } = *lost;
        if pages == 0 {
            return;
        }
        let place = self.owners.get(&owner).map(|owner| owner.place.clone()).unwrap_or_default();
        let text = match pages {
            1 => format!("it is marked as used by segment {owner}, but nothing refers to it"),
            n => format!("{n} pages from here are marked as used by segment {owner}, but nothing leads to them"),
        };
        self.find(Some(first), &place, text);
    }
}

/// Whether an entry of the map equals the one in memory. The owner of a chunk without used pages has no meaning in the
/// map.
fn is_same(on_disk: &Extent, known: &Extent) -> bool {
    let same_owner = |chunk: usize| {
        let unused = known.used & chunk_mask(1 << chunk) == 0;
        unused || on_disk.owners[chunk] == known.owners[chunk]
    };
    on_disk.used == known.used && (0..known.owners.len()).all(same_owner)
}

/// A range of used pages that nothing leads to.
#[derive(Default)]
struct Lost {
    owner: u32,
    first: PageNo,
    pages: u32,
}
