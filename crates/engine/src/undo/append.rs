//! Appending to a stream: the undo state of a writing transaction.

use super::new_record::{put_header, put_xid};
use super::page::{RECORDS_AT, UndoPlace, write};
use super::read::pointer_to;
use super::record::{
    DEAD, FREEING, HEADER_RECORD_BYTES, HEADER_STATE_AT, HEADER_TRX_NO_AT, KIND_AT, PreparedMark, TxnState, UndoRecord,
};
use super::space::{Stream, UndoSpace};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::log::EndRedo;
use crate::mtr::{END_REDO_BYTES, Mtr, PageHandle};
use crate::types::{Lsn, PageNo, RollPtr, TxnId};

/// The undo log of one transaction: its undo stream, and the start of its records in the stream.
#[derive(Debug)]
pub(crate) struct UndoLog {
    stream: Stream,
    /// The header record, once written.
    header: Option<UndoPlace>,
    /// Ranges of records that are already undone, oldest first: the end and the start of each.
    pub(crate) undone: Vec<(UndoPlace, UndoPlace)>,
    /// Records written after the header.
    pub(crate) records: u64,
    /// Of a prepared transaction: redo space for its end.
    kept_redo: Option<EndRedo>,
    /// Scratch for the header and the first record together.
    joined: Vec<u8>,
}

/// Whether a record can be appended now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bound {
    /// Yes: the stream's last page, latched.
    Ready(PageHandle),
    /// Its last page is not in the pool: load it and start again.
    Absent(PageNo),
    /// Its last page is full: [`UndoLog::extend`] and start again.
    Full,
}

impl UndoLog {
    /// The undo log of a transaction that has written nothing yet.
    pub(crate) fn new(stream: Stream) -> UndoLog {
        UndoLog { stream, header: None, undone: Vec::new(), records: 0, kept_redo: None, joined: Vec::new() }
    }

    /// The undo log of a transaction found active after a crash.
    pub(crate) fn recovered(stream: Stream, header: UndoPlace) -> UndoLog {
        UndoLog { header: Some(header), ..UndoLog::new(stream) }
    }

    /// Latches the page a record of `bytes` will go to.
    #[inline]
    pub(crate) fn latch(&self, mtr: &mut Mtr<'_>, bytes: usize) -> Bound {
        let header_bytes = if self.header.is_none() { HEADER_RECORD_BYTES } else { 0 };
        debug_assert!(self.stream.tail.offset >= RECORDS_AT, "the records end at {:?}", self.stream.tail);
        if self.stream.tail.offset + header_bytes + bytes > self.stream.page_bytes {
            return Bound::Full;
        }
        mtr.try_fix_x(self.stream.tail.page).map_or(Bound::Absent(self.stream.tail.page), Bound::Ready)
    }

    /// Appends `bytes`, a whole record, to the page that [`UndoLog::latch`] latched for its length.
    pub(crate) fn append(&mut self, mtr: &mut Mtr<'_>, latched: PageHandle, trx_id: TxnId, bytes: &[u8]) -> RollPtr {
        let mut place = self.stream.tail;
        debug_assert_eq!(mtr.page_no(latched), place.page, "a record goes to the stream's last page");
        debug_assert!(!self.stream.is_noted, "the directory says that all transactions of the stream have ended");
        let read = UndoRecord::parse(bytes).ok().flatten().map(|record| record.bytes);
        debug_assert_eq!(read, Some(bytes.len()), "an undo record is not read as it is written");
        if self.header.is_none() {
            self.joined.clear();
            self.joined.reserve(HEADER_RECORD_BYTES + bytes.len());
            put_header(&mut self.joined, trx_id);
            self.joined.extend_from_slice(bytes);
            write(mtr, latched, place.offset, &self.joined);
            self.header = Some(place);
            self.stream.begun += 1;
            place.offset += HEADER_RECORD_BYTES;
        } else {
            write(mtr, latched, place.offset, bytes);
        }
        self.stream.tail.offset = place.offset + bytes.len();
        debug_assert!(self.stream.tail.offset <= self.stream.page_bytes, "an undo record leaves its page");
        debug_assert_ne!(trx_id, TxnId(0), "an undo record of no transaction");
        self.records += 1;
        pointer_to(place)
    }

    /// Adds a page to the stream, in a mini-transaction of its own. The caller holds no latch.
    ///
    /// # Errors
    /// A record of `bytes` would not fit an empty page; the data file is full; I/O.
    pub(crate) fn extend(&mut self, undo: &UndoSpace, bytes: usize) -> Result<()> {
        if super::page::RECORDS_AT + HEADER_RECORD_BYTES + bytes > self.stream.page_bytes {
            return Err(Error::Corrupt(format!("an undo record of {bytes} bytes does not fit a page")));
        }
        undo.extend(&mut self.stream, self.header)
    }

    /// Records that wait for purge from the transaction's end on, its header included. Those of a transaction found
    /// active after a crash, which appends none, are not counted.
    pub(crate) fn purge_pending_records(&self) -> u64 {
        if self.records > 0 { self.records + 1 } else { 0 }
    }

    /// The position of the next record; a savepoint.
    pub(crate) fn tail(&self) -> UndoPlace {
        self.stream.tail
    }

    /// The position of the first record after the header; `None` while nothing is written.
    pub(crate) fn start(&self) -> Option<UndoPlace> {
        self.header.map(|header| UndoPlace { offset: header.offset + HEADER_RECORD_BYTES, ..header })
    }

    /// Writes that the transaction, whose id this is, is prepared: the record with its name, and the state. Returns the
    /// LSN up to which the log has both. The caller holds no latch.
    ///
    /// # Errors
    /// As [`extend`](Self::extend); the transaction is not prepared then.
    pub(crate) fn prepare(&mut self, undo: &UndoSpace, id: TxnId, mark: &PreparedMark) -> Result<Lsn> {
        let mut record = Vec::new();
        put_xid(&mut record, mark);
        let header = self.header.ok_or_else(|| Error::Usage("the transaction has changed nothing".to_string()))?;
        self.keep_redo(&undo.ctx)?;
        loop {
            let mut mtr = undo.ctx.mtr()?;
            match self.latch(&mut mtr, record.len()) {
                Bound::Ready(latched) => {
                    self.append(&mut mtr, latched, id, &record);
                    if mtr.page_no(latched) == header.page {
                        write_state(&mut mtr, latched, header, TxnState::Prepared);
                        return Ok(mtr.commit());
                    }
                    // The record is in the log before the state (rule 6).
                    mtr.commit();
                    return self.set_state(&undo.ctx, TxnState::Prepared);
                }
                Bound::Absent(page) => {
                    mtr.abandon();
                    undo.ctx.pool.load(page)?;
                }
                Bound::Full => {
                    mtr.abandon();
                    self.extend(undo, record.len())?;
                }
            }
        }
    }

    /// Keeps redo space for the end of a transaction that is prepared, or about to be.
    pub(crate) fn keep_redo(&mut self, ctx: &Context) -> Result<()> {
        if self.kept_redo.is_none() {
            self.kept_redo = ctx.log.keep_for_end(END_REDO_BYTES as u64)?;
        }
        Ok(())
    }

    /// A mini-transaction that has a page latched: in the redo space that was kept, if there is some. Then it waits for
    /// no other thread, but for the page.
    fn mtr_of_end<'c>(&mut self, ctx: &'c Context, page: PageNo) -> Result<(Mtr<'c>, PageHandle)> {
        while let Some(kept) = self.kept_redo.take() {
            let mut mtr = ctx.mtr_of_end(kept)?;
            if let Some(latched) = mtr.try_fix_x(page) {
                return Ok((mtr, latched));
            }
            self.kept_redo = mtr.keep_for_next_try();
            ctx.pool.load(page)?;
        }
        let mut mtr = ctx.mtr()?;
        let latched = mtr.fix_x(page)?;
        Ok((mtr, latched))
    }

    /// Writes the state of a transaction that has not ended. Returns the LSN up to which the log has it.
    pub(crate) fn set_state(&self, ctx: &Context, state: TxnState) -> Result<Lsn> {
        let Some(header) = self.header else { return Ok(ctx.log.end_lsn()) };
        let mut mtr = ctx.mtr()?;
        let latched = mtr.fix_x(header.page)?;
        write_state(&mut mtr, latched, header, state);
        Ok(mtr.commit())
    }

    /// Writes the outcome of the transaction. `None` if it has written nothing.
    pub(crate) fn finish(&mut self, ctx: &Context, id: TxnId, state: TxnState, trx_no: u64) -> Result<Option<Lsn>> {
        let Some(header) = self.header else { return Ok(None) };
        debug_assert!(trx_no > id.0, "the transaction {id} ends with an earlier number, {trx_no}");
        debug_assert!(!matches!(state, TxnState::Active | TxnState::Prepared), "{state:?} is no end");
        let (mut mtr, latched) = self.mtr_of_end(ctx, header.page)?;
        debug_assert_eq!(mtr.page_no(latched), header.page, "the header is on another page");
        let mut bytes = [0; HEADER_TRX_NO_AT + 8 - HEADER_STATE_AT];
        let old = mtr.page(latched).get(header.offset + HEADER_STATE_AT..).and_then(|tail| tail.get(..bytes.len()));
        bytes.copy_from_slice(old.ok_or_else(|| Error::corrupt_page(header.page, "no transaction header"))?);
        bytes[0] = state as u8;
        bytes[HEADER_TRX_NO_AT - HEADER_STATE_AT..].copy_from_slice(&trx_no.to_le_bytes());
        write(&mut mtr, latched, header.offset + HEADER_STATE_AT, &bytes);
        if state == TxnState::Committed {
            mtr.log_commit_time(latched, id);
        }
        Ok(Some(mtr.commit()))
    }

    /// The stream, at the transaction's end.
    pub(crate) fn into_stream(self) -> Stream {
        self.stream
    }
}

/// Writes the state into a header record, whose page is latched.
fn write_state(mtr: &mut Mtr<'_>, latched: PageHandle, header: UndoPlace, state: TxnState) {
    debug_assert_eq!(mtr.page_no(latched), header.page, "the header is on another page");
    write(mtr, latched, header.offset + HEADER_STATE_AT, &[state as u8]);
}

/// Sets bits of the kind byte of the record at `place`, whose page is latched.
pub(crate) fn mark(mtr: &mut Mtr<'_>, latched: PageHandle, place: UndoPlace, bits: u8) {
    debug_assert_eq!(mtr.page_no(latched), place.page, "the record is on another page");
    debug_assert_eq!(bits & !(DEAD | FREEING), 0, "the bits {bits:#x} are not to be set later");
    let at = place.offset + KIND_AT;
    let kind = mtr.page(latched).get(at).copied().unwrap_or(0) | bits;
    write(mtr, latched, at, &[kind]);
}
