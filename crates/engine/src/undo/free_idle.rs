//! Freeing pages of the undo log: purged pages, and idle streams.

use super::page::{StreamEntry, stream_entry_at, write};
use super::space::{Stream, StreamFront, UndoSpace};
use crate::error::{Error, Result};
use crate::sync::atomic::Ordering::Acquire;
use crate::types::PageNo;

/// Pages freed per mini-transaction.
const FREE_BATCH: usize = 32;

/// Free streams that are kept however long they are unused, while the database is used.
const KEPT_FREE: usize = 8;

impl UndoSpace {
    /// As [`free_idle_but`](Self::free_idle_but), a few streams are kept.
    pub(crate) fn free_idle(&self, damaged: impl FnMut(&Error)) -> Result<usize> {
        self.free_idle_but(KEPT_FREE, damaged)
    }

    /// Frees the pages of streams that were unused since the last call and are purged, but for `keep` streams; their
    /// places in the directory are used again. Streams whose pages are damaged are skipped, and `damaged` is called
    /// with the error. Returns how many were freed.
    pub(crate) fn free_idle_but(&self, keep: usize, mut damaged: impl FnMut(&Error)) -> Result<usize> {
        self.gather_unused();
        let idle: Vec<Stream> = {
            let mut free = self.free.lock();
            let surplus = free.low_water.saturating_sub(keep);
            let idle = free.streams.drain(..surplus).collect();
            free.low_water = free.streams.len();
            free.check();
            idle
        };
        let (mut released, mut kept) = (0, Vec::new());
        let mut failed = Ok(());
        for stream in idle {
            // Purge puts the front back before the last transaction counts as purged. It is taken only to be used: a
            // free stream without one cannot be purged once it is bound again.
            let is_done = failed.is_ok() && stream.pending.load(Acquire) == 0;
            let Some(mut front) = is_done.then(|| self.take_front(stream.number)).flatten() else {
                kept.push(stream);
                continue;
            };
            match self.free_pages_of(&stream, &mut front) {
                Ok(()) => {
                    self.vacant.lock().push(stream.number);
                    released += 1;
                }
                Err(error) if error.is_damage() => {
                    self.mark_unusable(stream.number);
                    self.keep_unusable(Some(stream));
                    damaged(&error);
                }
                Err(error) => {
                    self.put_front(front);
                    kept.push(stream);
                    failed = Err(error);
                }
            }
        }
        self.keep_idle(kept);
        failed.map(|()| released)
    }

    /// Puts the streams of places whose threads have bound none since the last call to the others, as unused ones.
    fn gather_unused(&self) {
        for near in self.near.iter() {
            let mut near = near.lock();
            if !std::mem::take(&mut near.was_used) {
                self.keep_idle(near.stream.take().into_iter().collect());
            }
        }
    }

    /// Puts streams back below those that are bound sooner, as if they had not been taken.
    pub(super) fn keep_idle(&self, mut idle: Vec<Stream>) {
        let mut free = self.free.lock();
        idle.extract_if(.., |stream| self.is_unusable(stream.number))
            .for_each(|stream| self.keep_unusable(Some(stream)));
        free.low_water += idle.len();
        free.streams.splice(..0, idle);
        free.check();
    }

    /// Frees the pages in front of `front.at`, whose transactions are purged. Returns their number.
    pub(crate) fn free_front(&self, front: &mut StreamFront) -> Result<usize> {
        let mut freed = 0;
        while front.first != front.at.page {
            let mut pages = vec![front.first];
            let mut next = self.page_behind(&pages)?;
            while next != front.at.page && pages.len() < FREE_BATCH && self.space.fits_batch(&pages, next) {
                pages.push(next);
                next = self.page_behind(&pages)?;
            }
            self.free_pages(front, &pages, next)?;
            front.first = next;
            freed += pages.len();
        }
        Ok(freed)
    }

    /// The page that the last one of some pages of a stream names as the next.
    fn page_behind(&self, pages: &[PageNo]) -> Result<PageNo> {
        let last = pages[pages.len() - 1];
        let next = self.next_page(last)?;
        match pages.contains(&next) {
            true => Err(Error::corrupt_page(last, format!("the undo stream goes back from it to page {next}"))),
            false => Ok(next),
        }
    }

    fn free_pages(&self, front: &StreamFront, pages: &[PageNo], first: PageNo) -> Result<()> {
        pages.iter().try_for_each(|page| self.space.expect_used(*page))?;
        let (directory_page, i) = self.directory_place(front.number);
        let mut mtr = self.ctx.mtr()?;
        pages.iter().try_for_each(|page| self.space.keep_map(&mut mtr, *page))?;
        let directory = mtr.fix_x(directory_page)?;
        let entry = StreamEntry::read(mtr.page(directory), i);
        if entry.first != front.first {
            let (number, found, is) = (front.number, entry.first, front.first);
            let text = format!("undo stream {number} begins with page {found} there, not with {is}: an old version");
            return Err(Error::corrupt_page(directory_page, text));
        }
        let entry = StreamEntry { first, purged: front.purged, ..entry };
        write(&mut mtr, directory, stream_entry_at(i), &entry.encode());
        for page in pages {
            self.space.free(&mut mtr, *page);
        }
        mtr.commit();
        Ok(())
    }

    /// Frees the pages of a stream that is free and purged. No other thread has it or its front, which stays valid
    /// when this fails.
    fn free_pages_of(&self, stream: &Stream, front: &mut StreamFront) -> Result<()> {
        debug_assert_eq!(stream.number, front.number, "the front of another stream is freed");
        debug_assert_eq!(stream.pending.load(Acquire), 0, "rule 4: a stream is freed that is not purged");
        front.at = stream.tail;
        self.free_front(front)?;
        let (directory_page, i) = self.directory_place(stream.number);
        let mut mtr = self.ctx.mtr()?;
        self.space.keep_map(&mut mtr, stream.tail.page)?;
        let directory = mtr.fix_x(directory_page)?;
        write(&mut mtr, directory, stream_entry_at(i), &StreamEntry::VACANT.encode());
        self.space.free(&mut mtr, stream.tail.page);
        mtr.commit();
        Ok(())
    }
}
