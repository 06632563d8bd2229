//! Notes in the directory on streams whose transactions have all ended: the end of their records.
//!
//! Only the last page of a stream says whether one of its transactions is active or prepared. With this note in the
//! directory an opening does not need that page: it skips the stream if the page is damaged, or is an old version of
//! itself.
//!
//! Rules
//! 1. A note is written while no transaction has the stream, and removed before a transaction binds it. Both are
//!    logged, the removal before the header of the transaction: so after a crash a stream with an unended transaction
//!    has no note.
//! 2. Of the streams that can be bound, only those in the free list have notes, so a transaction that binds its
//!    thread's stream need not check. A skipped stream keeps its note.
//! 3. A close writes the notes. A note that cannot be written is missing; that is harmless.
//! 4. The directory's mutex is never taken under the latch of one of its pages: a new stream takes them in this order.
//!
//! If note and last page contradict each other, the page with the smaller LSN is the old one: the note is newer than
//! the records before it, and older than those after it.

use super::page::{StreamEntry, stream_ended_at, streams_per_page, write};
use super::space::{Stream, UndoSpace};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::page::{check_not_lost, header};
use crate::types::PageNo;

/// Notes of a mini-transaction.
const BATCH: usize = 64;

impl UndoSpace {
    /// Writes the notes of all streams that no transaction has.
    ///
    /// # Errors
    /// A damaged directory page, I/O; the rest of the streams have no notes then.
    pub(crate) fn note_ended_streams(&self) -> Result<()> {
        let mut streams: Vec<Stream> = self.near.iter().filter_map(|near| near.lock().stream.take()).collect();
        {
            let mut free = self.free.lock();
            streams.append(&mut free.streams);
            free.low_water = 0;
        }
        let noted = self.note(&mut streams);
        self.keep_idle(streams);
        let mut unusable: Vec<Stream> = self.unusable.lock().values_mut().filter_map(Option::take).collect();
        let noted = noted.and_then(|()| self.note(&mut unusable));
        unusable.into_iter().for_each(|stream| self.keep_unusable(Some(stream)));
        noted
    }

    /// Writes the notes of streams, which the caller has.
    pub(super) fn note(&self, streams: &mut [Stream]) -> Result<()> {
        let per_page = streams_per_page(self.ctx.pool.page_bytes());
        let mut missing: Vec<&mut Stream> = streams.iter_mut().filter(|stream| !stream.is_noted).collect();
        missing.sort_by_key(|stream| stream.number);
        for of_page in missing.chunk_by_mut(|a, b| a.number / per_page == b.number / per_page) {
            for batch in of_page.chunks_mut(BATCH) {
                self.write_notes(batch, |stream| stream.tail.offset)?;
                batch.iter_mut().for_each(|stream| stream.is_noted = true);
            }
        }
        Ok(())
    }

    /// Makes a stream free that an opening has found without a transaction.
    pub(super) fn add_free(&self, stream: Stream) {
        if !stream.is_noted {
            return self.release(stream);
        }
        let mut free = self.free.lock();
        match self.is_unusable(stream.number) {
            true => self.keep_unusable(Some(stream)),
            false => free.streams.push(stream),
        }
    }

    /// A stream of the list of free ones, to be bound.
    pub(super) fn without_note(&self, mut stream: Stream) -> Result<Stream> {
        if stream.is_noted {
            if let Err(error) = self.write_notes(&mut [&mut stream], |_| 0) {
                self.keep_idle(vec![stream]);
                return Err(error);
            }
            stream.is_noted = false;
        }
        Ok(stream)
    }

    /// In one mini-transaction; the streams' entries are on one page.
    fn write_notes(&self, streams: &mut [&mut Stream], ended_at: impl Fn(&Stream) -> usize) -> Result<()> {
        let Some(first) = streams.first() else { return Ok(()) };
        let (page, _) = self.directory_place(first.number);
        let per_page = streams_per_page(self.ctx.pool.page_bytes());
        let is_of_page = |stream: &&mut Stream| stream.number / per_page == first.number / per_page;
        debug_assert!(streams.iter().all(is_of_page), "streams of two directory pages are noted at once");
        let mut mtr = self.ctx.mtr()?;
        let directory = mtr.fix_x(page)?;
        for stream in streams {
            let i = stream.number % per_page;
            // Offsets in a page of at most 16 KiB fit 16 bits.
            write(&mut mtr, directory, stream_ended_at(i), &(ended_at(stream) as u16).to_le_bytes());
        }
        mtr.commit();
        Ok(())
    }
}

/// Refuses the last page of a stream, on which records end at `end`, if it does not fit its entry in the directory.
pub(super) fn check_note(entry: &StreamEntry, end: usize, next: PageNo) -> Result<()> {
    if next != PageNo(0) {
        return Err(Error::corrupt_page(entry.last, "the undo stream continues after its last page"));
    }
    if entry.ended_at != 0 && entry.ended_at != end {
        let text = format!("records of the undo stream end at {end}, not at {}: an old version", entry.ended_at);
        return Err(Error::corrupt_page(entry.last, text));
    }
    Ok(())
}

/// Whether the note of a stream counts, whose last page cannot be read or does not fit. It does not if the directory is
/// the older one of the two pages.
pub(super) fn is_ended(ctx: &Context, entry: &StreamEntry, directory: PageNo) -> Result<bool> {
    if entry.ended_at == 0 {
        return Ok(false);
    }
    let lsn_of_last = match ctx.pool.fix_s(entry.last) {
        Ok(page) if check_not_lost(&page, entry.last).is_err() => return Ok(true),
        Ok(page) => header::lsn(&page),
        Err(error) if error.is_damage() => return Ok(true),
        Err(error) => return Err(error),
    };
    Ok(lsn_of_last < header::lsn(&ctx.pool.fix_s(directory)?))
}
