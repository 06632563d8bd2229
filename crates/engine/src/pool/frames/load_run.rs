//! Bringing in pages whose numbers follow each other with one read of the store. A device answers it in little more
//! than the time of one page, and the system is asked once.
//!
//! Rules
//! 1. Those of [`super::load`]: every page is entered in the page table, in a frame latched exclusively, before the
//!    store is read. So no thread changes a page between the read and its arrival.
//! 2. All frames are taken before the first page is entered. From then on this thread waits for nothing but the store.
//! 3. The pages of a run are tree pages, since only those are named: a thread that holds what a page needs on its
//!    arrival (a shard lock of the change buffer) waits for the latch of an extent map at most.
//! 4. Pages that are resident by then are read beside the others, and what was read of them is not used.

use super::FrameNo;
use super::frame::Content;
use crate::error::Result;
use crate::pool::Pool;
use crate::types::PageNo;
use std::ops::Range;
use std::time::Instant;

/// A page of a run that was not resident, and the frame that it has now.
type Entered = (PageNo, FrameNo);

impl Pool {
    /// Reads those of the pages into the pool that are not there, with one read into `buffer`, which has their size.
    /// Says how many came. The caller holds no latch and no redo space.
    ///
    /// # Errors
    /// An I/O error, [`PoolExhausted`](crate::Error::PoolExhausted), a stopped database. A page that is damaged is left
    /// out.
    pub(in crate::pool) fn load_run(&self, pages: Range<u32>, buffer: &mut [u8]) -> Result<usize> {
        self.log.expect_nothing_reserved();
        self.poison.check()?;
        let missed = Instant::now();
        let entered = self.enter_run(pages.clone())?;
        if entered.is_empty() {
            return Ok(0);
        }
        if let Err(error) = self.store.read(PageNo(pages.start), buffer) {
            entered.iter().for_each(|(_, frame)| self.drop_unread(*frame));
            return Err(error);
        }
        let (mut came, mut unmerged) = (0, Vec::new());
        for (page, frame) in entered {
            let page_bytes = self.frames.page_bytes();
            let at = (page.0 - pages.start) as usize * page_bytes;
            // SAFETY: the frame came from the free list, so this thread holds its latch exclusively.
            unsafe { self.frames.bytes_mut(frame) }.copy_from_slice(&buffer[at..][..page_bytes]);
            match self.arrive(page, frame, Ok(()), missed) {
                Ok(Content::Whole) => came += 1,
                Ok(_) => unmerged.push(page),
                Err(_) => {}
            }
        }
        came += unmerged.len();
        unmerged.into_iter().try_for_each(|page| self.merge_waiting(page))?;
        Ok(came)
    }

    /// Enters those of the pages that are not resident (rule 2).
    fn enter_run(&self, pages: Range<u32>) -> Result<Vec<Entered>> {
        let missing: Vec<PageNo> = pages.map(PageNo).filter(|page| !self.is_resident(*page)).collect();
        let mut frames = Vec::with_capacity(missing.len());
        self.take_frames(missing.len(), &mut frames)?;
        let pages = missing.into_iter().zip(frames);
        Ok(pages.filter(|(page, frame)| self.enter_to_read(*page, *frame).is_none()).collect())
    }
}
