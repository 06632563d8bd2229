//! Opening the undo log: begin and end of each stream, and the transaction in it that a crash interrupted.

use super::ended_streams::{check_note, is_ended};
use super::page::{RECORDS_AT, StreamEntry, UndoFields, UndoPlace};
use super::read::{read_directories, record_before, scan_page, with_record};
use super::record::{PreparedMark, TxnState, UndoKind};
use super::space::{Stream, StreamFront, UndoDirectory, UndoSpace};
use crate::context::Context;
use crate::error::{Error, PageDamage, Result};
use crate::space::Space;
use crate::sync::Mutex;
use crate::sync::atomic::AtomicBool;
use crate::sync::atomic::{AtomicU64, Ordering::Relaxed};
use crate::sync::sharded::{CachePadded, Sharded};
use crate::types::{PageNo, TxnId};
use std::sync::Arc;

/// A transaction that was active when the database went down.
#[derive(Debug)]
pub(crate) struct Recovered {
    pub(crate) id: TxnId,
    pub(crate) header: UndoPlace,
    pub(crate) stream: Stream,
    /// Set if it was prepared.
    pub(crate) prepared: Option<PreparedMark>,
}

/// The result of [`UndoSpace::open`].
pub(crate) struct OpenedUndo {
    pub(crate) undo: UndoSpace,
    /// Every transaction id and number in use is below this.
    pub(crate) id_limit: u64,
    pub(crate) recovered: Vec<Recovered>,
    /// Ended transactions that are not purged.
    pub(crate) history: u64,
    /// For each stream with something to purge, the number of its oldest ended transaction.
    pub(crate) ended: Vec<(u64, usize)>,
    /// The damage because of which streams are skipped.
    pub(crate) damage: Vec<Error>,
}

impl OpenedUndo {
    /// A stream of the directory: free, or with a transaction that has not ended.
    fn add(&mut self, number: usize, entry: &StreamEntry) -> Result<()> {
        let ctx = &self.undo.ctx;
        let (stream, active) = match read_end(ctx, number, entry) {
            Err(error) if error.is_damage() => {
                if !is_ended(ctx, entry, self.undo.directory_place(number).0)? {
                    return Err(of_unknown_end(number, entry, error));
                }
                self.skip(number, error);
                return Ok(());
            }
            end => end?,
        };
        self.meet(number, entry, &stream.pending, active.is_some())?;
        match active {
            Some(Unended { id, header, prepared }) => self.recovered.push(Recovered { id, header, stream, prepared }),
            None => self.undo.add_free(stream),
        }
        Ok(())
    }

    /// Sorts the transactions that have not ended by their ids, which are distinct and below the durable limit.
    fn check_recovered(&mut self) -> Result<()> {
        self.recovered.sort_by_key(|txn| txn.id);
        let limit = self.id_limit.max(1);
        if let Some(txn) = self.recovered.last().filter(|txn| txn.id.0 >= limit) {
            let text = format!("transaction {} has begun there, and the undo directory has ids below {limit}", txn.id);
            return Err(Error::corrupt_page(txn.header.page, format!("{text}: one of them is an old version")));
        }
        match self.recovered.windows(2).find(|two| two[0].id == two[1].id) {
            Some(two) => {
                let (id, other) = (two[0].id, two[1].header.page);
                let text =
                    format!("transaction {id} has begun there and on page {other}: one of them is an old version");
                Err(Error::corrupt_page(two[0].header.page, text))
            }
            None => Ok(()),
        }
    }

    fn skip(&mut self, number: usize, error: Error) {
        self.undo.mark_unusable(number);
        self.damage.push(error);
    }

    /// Finds where purge has to continue in a stream. With damage there the stream is skipped.
    fn meet(
        &mut self,
        number: usize,
        entry: &StreamEntry,
        pending: &Arc<CachePadded<AtomicU64>>,
        is_active: bool,
    ) -> Result<()> {
        let waiting = pending.load(Relaxed);
        let found = front_of(&self.undo.ctx, number, entry, pending).and_then(|mut front| {
            let first = (waiting > 0).then(|| number_at(&self.undo.ctx, &mut front)).transpose()?;
            front.uncounted = waiting + u64::from(is_active);
            Ok((front, first))
        });
        match found {
            Ok((front, first)) => {
                self.history += waiting;
                self.ended.extend(first.map(|first| (first, number)));
                self.undo.put_front(front);
                Ok(())
            }
            Err(error) if error.is_damage() => {
                self.skip(number, error);
                Ok(())
            }
            Err(error) => Err(error),
        }
    }
}

impl UndoSpace {
    /// Reads the directory and the end of every stream.
    pub(crate) fn open(ctx: Arc<Context>, space: Arc<Space>) -> Result<OpenedUndo> {
        let (entries, pages, id_limit) = read_directories(&ctx, &space)?;
        let directory = Mutex::new(UndoDirectory { pages, streams: entries.len() });
        let undo = UndoSpace {
            ctx,
            space,
            directory,
            near: Sharded::default(),
            free: Mutex::default(),
            vacant: Mutex::default(),
            fronts: Mutex::default(),
            unusable: Mutex::default(),
            has_unusable: AtomicBool::new(false),
        };
        let mut opened =
            OpenedUndo { undo, id_limit, recovered: Vec::new(), history: 0, ended: Vec::new(), damage: Vec::new() };
        for (number, entry) in entries.iter().enumerate() {
            if *entry == StreamEntry::VACANT {
                opened.undo.vacant.lock().push(number);
                continue;
            }
            opened.add(number, entry)?;
        }
        opened.check_recovered()?;
        Ok(opened)
    }
}

/// The name of the prepared transaction whose last record ends here: it is on the stream's last page.
fn mark_at_end(ctx: &Context, end: UndoPlace) -> Result<PreparedMark> {
    let last = record_before(ctx, end)?;
    let mark = last.map(|place| with_record(ctx, place, |record| record.xid()));
    let missing = |_| Err(Error::Corrupt("a prepared transaction has no name".to_string()));
    mark.unwrap_or_else(missing).map_err(|error| match error {
        Error::Corrupt(reason) => Error::corrupt_page(end.page, reason),
        other => other,
    })
}

/// A transaction at the end of a stream that is active, or prepared under this name.
struct Unended {
    id: TxnId,
    header: UndoPlace,
    prepared: Option<PreparedMark>,
}

/// Finds a stream's end, and the transaction there that has not ended. If the directory says that all have, no other
/// page is needed.
fn read_end(ctx: &Context, number: usize, entry: &StreamEntry) -> Result<(Stream, Option<Unended>)> {
    let fields = UndoFields::read(&ctx.pool.fix_s(entry.last)?, entry.last)?;
    let (mut header, mut begun) = (fields.header, fields.begun_before);
    let (end, next) = scan_page(ctx, UndoPlace { page: entry.last, offset: RECORDS_AT }, |offset, record, _| {
        if record.kind == UndoKind::Header {
            header = Some(UndoPlace { page: entry.last, offset });
            begun += 1;
        }
        Ok(true)
    })?;
    check_note(entry, end, next)?;
    let (tail, is_noted) = (UndoPlace { page: entry.last, offset: end }, entry.ended_at != 0);
    let mut active = None;
    if !is_noted
        && begun > entry.purged
        && let Some(header) = header
        && let (id, state @ (TxnState::Active | TxnState::Prepared), _) =
            with_record(ctx, header, |record| record.header())?
    {
        let prepared = (state == TxnState::Prepared).then(|| mark_at_end(ctx, tail)).transpose()?;
        active = Some(Unended { id, header, prepared });
    }
    let pending = begun.saturating_sub(entry.purged).saturating_sub(active.is_some().into());
    let (pending, page_bytes) = (Arc::new(CachePadded(AtomicU64::new(pending))), ctx.pool.page_bytes());
    Ok((Stream { number, tail, begun, page_bytes, is_noted, pending }, active))
}

/// The error of an opening that cannot know whether a stream has a transaction to be rolled back.
fn of_unknown_end(number: usize, entry: &StreamEntry, error: Error) -> Error {
    let (page, kind) = (error.page().unwrap_or(entry.last), error.page_damage().unwrap_or(PageDamage::Contents));
    let text = format!(
        "{}; it is needed to know whether a transaction of undo stream {number} has to be rolled back: put back a \
         backup, or save the rows with `highwater check --salvage`",
        error.into_reason()
    );
    Error::damaged_page(page, kind, text)
}

/// The first record of the first transaction that is not purged.
fn front_of(
    ctx: &Context,
    number: usize,
    entry: &StreamEntry,
    pending: &Arc<CachePadded<AtomicU64>>,
) -> Result<StreamFront> {
    let mut begun = UndoFields::read(&ctx.pool.fix_s(entry.first)?, entry.first)?.begun_before;
    let mut at = UndoPlace { page: entry.first, offset: RECORDS_AT };
    loop {
        let (offset, next) = scan_page(ctx, at, |_, record, _| {
            begun += u64::from(record.kind == UndoKind::Header);
            Ok(begun <= entry.purged)
        })?;
        at.offset = offset;
        if begun > entry.purged || next == PageNo(0) {
            let (first, purged, pending) = (entry.first, entry.purged, Arc::clone(pending));
            return Ok(StreamFront { number, first, at, purged, pending, uncounted: 0, inside: false });
        }
        at = UndoPlace { page: next, offset: RECORDS_AT };
    }
}

/// Moves `front` to the next transaction header and reads its number.
pub(crate) fn number_at(ctx: &Context, front: &mut StreamFront) -> Result<u64> {
    loop {
        let mut found = None;
        let (offset, next) = scan_page(ctx, front.at, |_, record, _| {
            if record.kind == UndoKind::Header {
                found = Some(record.header()?);
            }
            Ok(found.is_none())
        })?;
        front.at.offset = offset;
        match found {
            Some((_, TxnState::Active | TxnState::Prepared, _)) => {
                return Err(Error::corrupt_page(front.at.page, "a transaction is to be purged that has not ended"));
            }
            Some((_, _, number)) => return Ok(number),
            None if next == PageNo(0) => {
                return Err(Error::corrupt_page(front.at.page, "an undo stream lacks a transaction to purge"));
            }
            None => front.at = UndoPlace { page: next, offset: RECORDS_AT },
        }
    }
}
