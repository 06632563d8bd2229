//! Bringing one page in: from the store, or as a frame for a new page.
//!
//! Rules
//! 1. The reader enters the page in the page table with its frame latched exclusively and marked as being read, then
//!    reads. A thread that finds the page meanwhile waits for the latch in `load`, so a page is read once. A thread
//!    that must not wait for I/O checks the mark instead.
//! 2. A tree page that verifies is also checked as a tree page, whole, so that later users can rely on its bytes.
//! 3. A page newer than the log is an error: the log has lost its end, and with it changes of other pages.
//! 4. Before another thread sees the page, its pending changes are applied, or a leaf with buffered operations is
//!    marked as unmerged; it is merged before `load` returns ([`crate::pool::pending`]).
//! 5. A page that does not verify leaves the table before the latch is released; each waiter then reads it itself and
//!    gets the error.

use super::loader::PageLoader;
use crate::error::{Error, PageDamage, Result};
use crate::page;
use crate::pool::frames::{Content, FrameNo, NO_PAGE, held_latches};
use crate::store::placement_of;
use crate::types::PageNo;
use std::time::Instant;

impl PageLoader {
    /// Reads the page into the pool if it is not there, or waits while another thread does; merges its pending changes.
    /// The caller holds no latch and no redo space.
    ///
    /// # Errors
    /// [`Error::CorruptPage`], an I/O error, [`Error::PoolExhausted`].
    pub(crate) fn load(&self, page: PageNo) -> Result<()> {
        self.log.expect_nothing_reserved();
        held_latches::expect_none("a page is read");
        if let Some(frame) = self.pages().find(page) {
            return self.await_whole(page, frame);
        }
        let missed = Instant::now();
        self.poison.check()?;
        let mut taken = Vec::with_capacity(1);
        self.supply.take_frames(1, &mut taken)?;
        let frame = taken[0];
        if let Some(other) = self.enter_to_read(page, frame) {
            return self.await_whole(page, other);
        }
        // SAFETY: the frame came from the free list, so this thread holds its latch exclusively.
        let read = self.store.read(page, unsafe { self.pages().frames().bytes_mut(frame) });
        match self.arrive(page, frame, read, missed)? {
            Content::Whole => Ok(()),
            _ => self.merge_waiting(page),
        }
    }

    /// Lets everybody see the page, whose bytes were read into the frame, and says what there is of it. The frame is
    /// held exclusively, and no longer on return; on an error the page is not resident any more.
    pub(super) fn arrive(&self, page: PageNo, frame: FrameNo, read: Result<()>, missed: Instant) -> Result<Content> {
        let content = self.take_in(page, frame, read);
        self.end_arrival(frame, content, missed)
    }

    /// Verifies what was read into the frame, and applies what is pending for the page.
    pub(super) fn take_in(&self, page: PageNo, frame: FrameNo, read: Result<()>) -> Result<Content> {
        self.check_arriving(frame);
        debug_assert_eq!(self.pages().get(frame).page_no(), page, "another page was entered in frame {frame}");
        read.and_then(|()| self.verify(page, frame)).and_then(|()| self.apply_pending(page, frame))
    }

    /// Lets everybody see the page in the frame, or takes the frame back.
    pub(super) fn end_arrival(&self, frame: FrameNo, content: Result<Content>, missed: Instant) -> Result<Content> {
        self.check_arriving(frame);
        match content {
            Ok(content) => {
                debug_assert_ne!(content, Content::Reading, "a page that was read is whole or unmerged");
                self.cache().lru().insert_old(self.pages(), frame);
                self.pages().get(frame).set_content(content);
                self.pages().get(frame).latch.unlock_exclusive(true);
                self.page_read.record(missed.elapsed());
            }
            Err(_) => self.drop_unread(frame),
        }
        content
    }

    /// Rule 1: a page that is being read is in a frame that no other thread can latch, and is marked.
    fn check_arriving(&self, frame: FrameNo) {
        let state = self.pages().get(frame);
        debug_assert!(state.latch.is_held_exclusively(), "frame {frame} can be latched while its page is read");
        debug_assert!(state.has_only(state.page_no(), Content::Reading), "frame {frame} is not marked as being read");
    }

    /// Waits until the page in this frame, found a moment ago, is whole, or does what is left to do for that.
    pub(super) fn await_whole(&self, page: PageNo, frame: FrameNo) -> Result<()> {
        self.await_read(page, frame);
        if self.pages().get(frame).has_only(page, Content::Unmerged) { self.merge_waiting(page) } else { Ok(()) }
    }

    /// Waits until the thread that reads the page into this frame is done.
    fn await_read(&self, page: PageNo, frame: FrameNo) {
        let state = self.pages().get(frame);
        let is_coming = || state.has_only(page, Content::Reading);
        if is_coming() && state.latch.lock_shared_while(is_coming) {
            state.latch.unlock_shared();
        }
    }

    /// Enters `page`, which will be read into `frame` (held exclusively), into the page table. If another frame has it
    /// already, that is returned, and `frame` is released.
    pub(super) fn enter_to_read(&self, page: PageNo, frame: FrameNo) -> Option<FrameNo> {
        self.pages().frames().check_free(frame);
        self.pages().get(frame).set_content(Content::Reading);
        let other = self.pages().enter(page, frame);
        if other.is_some() {
            self.pages().get(frame).set_content(Content::Whole);
            self.pages().release_frames([frame]);
        } else {
            self.pages().note_arrival(frame, true);
        }
        other
    }

    /// Whether what was read into the frame is this page, and whole.
    fn verify(&self, page: PageNo, frame: FrameNo) -> Result<()> {
        // SAFETY: the frame came from the free list for this read, so this thread holds its latch exclusively.
        let bytes = unsafe { self.pages().frames().bytes(frame) };
        self.stats.pages_read.inc();
        page::header::verify(bytes, page)?;
        if let Some(reason) = page::header::beyond_log(bytes, self.log.written_lsn()) {
            return Err(Error::damaged_page(page, PageDamage::BeyondLog, reason));
        }
        self.stats.count_page_read(placement_of(bytes));
        page::check_contents(bytes, page)
    }

    pub(super) fn drop_unread(&self, frame: FrameNo) {
        let state = self.pages().get(frame);
        self.pages().unmap(frame);
        // Let the waiters see that the page is gone, then take the frame back.
        state.latch.unlock_exclusive(true);
        state.latch.lock_exclusive();
        debug_assert_eq!(state.page_no(), NO_PAGE);
        self.pages().release_frames([frame]);
    }

    /// A frame for a page just allocated, latched exclusively, contents undefined. `spare` (held exclusively) is used
    /// unless the page is still resident from an earlier life; returns which frame it is.
    pub(crate) fn install(&self, page: PageNo, spare: FrameNo) -> FrameNo {
        debug_assert_ne!(page, NO_PAGE, "a page number that no page has");
        self.pages().frames().check_free(spare);
        loop {
            let Some(other) = self.pages().enter(page, spare) else {
                self.pages().note_arrival(spare, false);
                self.cache().lru().insert_old(self.pages(), spare);
                return spare;
            };
            if let Some(frame) = self.cache().latch_x(page) {
                return frame;
            }
            // What waited for the page in its earlier life was discarded.
            if let Some(frame) = self.pages().latch_unmerged(page) {
                self.pages().get(frame).set_content(Content::Whole);
                return frame;
            }
            // A descent that is late reads the page as it was before it was released. This is the one read that is
            // waited for with latches held: the page number is allocated, and no other may be taken instead.
            self.await_read(page, other);
        }
    }
}
