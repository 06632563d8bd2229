//! Loading many pages at once: runs of consecutive page numbers, one read of the store each, all in flight together. A
//! device completes them in little more time than one page needs, with one system call.
//!
//! Rules
//! 1. Those of `load_page`: every page is entered in the page table, in a frame latched exclusively, before the
//!    store is read. So no thread changes a page between the read and its arrival.
//! 2. All frames are taken before the first page is entered. After that this thread waits only for the store.
//! 3. The pages of a run are tree pages, since only those are requested. So a thread that holds a lock which the
//!    arrival of a page needs (a shard lock of the change buffer) waits at most for the latch of an extent map.
//! 4. Pages of a run that are already resident are read with the others, and their bytes are discarded.
//! 5. A page becomes resident as soon as its run is read. Buffered operations are merged when all pages are resident.

use super::loader::PageLoader;
use crate::error::Result;
use crate::pool::frames::{Content, FrameNo, held_latches};
use crate::store::PageRead;
use crate::types::PageNo;
use std::ops::Range;
use std::time::Instant;

/// A run, and those of its pages that were not resident with the frames that they have now.
struct Entered {
    run: Range<u32>,
    pages: Vec<(PageNo, FrameNo)>,
}

impl PageLoader {
    /// Reads the pages that are not resident into the pool, through `buffer`, which has space for all. Returns the
    /// number of pages read. The caller holds no latch and no redo space.
    ///
    /// # Errors
    /// [`PoolExhausted`](crate::Error::PoolExhausted), a stopped database. A page that cannot be read, or is damaged,
    /// is left out.
    pub(crate) fn load_runs(&self, runs: &[Range<u32>], buffer: &mut [u8]) -> Result<usize> {
        self.log.expect_nothing_reserved();
        held_latches::expect_none("pages are read");
        self.poison.check()?;
        let missed = Instant::now();
        let entered = self.enter_runs(runs)?;
        let mut reads = self.reads_of(&entered, buffer);
        let (mut came, mut unmerged) = (0, Vec::new());
        self.store.read_many(&mut reads, &mut |n, read| {
            for (page, content) in self.arrive_all(&entered[n], read, missed) {
                came += 1;
                if content != Content::Whole {
                    unmerged.push(page);
                }
            }
        });
        unmerged.into_iter().try_for_each(|page| self.merge_waiting(page))?;
        Ok(came)
    }

    /// Enters those of the pages that are not resident (rule 2). Runs that have none are left out.
    fn enter_runs(&self, runs: &[Range<u32>]) -> Result<Vec<Entered>> {
        let missing = |run: &Range<u32>| -> Vec<PageNo> {
            run.clone().map(PageNo).filter(|page| self.pages().find(*page).is_none()).collect()
        };
        let missing: Vec<Vec<PageNo>> = runs.iter().map(missing).collect();
        let mut frames = Vec::new();
        self.supply.take_frames(missing.iter().map(Vec::len).sum(), &mut frames)?;
        let mut enter = |page: PageNo| {
            let frame = frames.pop()?;
            self.enter_to_read(page, frame).is_none().then_some((page, frame))
        };
        let entered = runs.iter().zip(missing).map(|(run, missing)| {
            let pages = missing.into_iter().filter_map(&mut enter).collect();
            Entered { run: run.clone(), pages }
        });
        Ok(entered.filter(|entered| !entered.pages.is_empty()).collect())
    }

    fn reads_of<'b>(&self, entered: &[Entered], buffer: &'b mut [u8]) -> Vec<PageRead<'b>> {
        let mut rest = buffer;
        let read = |entered: &Entered| {
            let (buf, behind) =
                std::mem::take(&mut rest).split_at_mut(entered.run.len() * self.pages().frames().page_bytes());
            rest = behind;
            PageRead { first: PageNo(entered.run.start), buf }
        };
        entered.iter().map(read).collect()
    }

    /// Lets everybody see the pages of a run that was read, and says which there are now.
    fn arrive_all(&self, entered: &Entered, read: Result<&[u8]>, missed: Instant) -> Vec<(PageNo, Content)> {
        let Ok(bytes) = read else {
            entered.pages.iter().for_each(|(_, frame)| self.drop_unread(*frame));
            return Vec::new();
        };
        let arrive = |(page, frame): &(PageNo, FrameNo)| {
            let page_bytes = self.pages().frames().page_bytes();
            let at = (page.0 - entered.run.start) as usize * page_bytes;
            // SAFETY: the frame came from the free list, so this thread holds its latch exclusively.
            unsafe { self.pages().frames().bytes_mut(*frame) }.copy_from_slice(&bytes[at..][..page_bytes]);
            Some((*page, self.arrive(*page, *frame, Ok(()), missed).ok()?))
        };
        entered.pages.iter().filter_map(arrive).collect()
    }
}
