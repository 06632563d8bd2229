//! Freeing the pages and records of dropped tables and indexes, in the background.
//!
//! Rules
//! 1. Each removal is durably in the catalog, as an object that is being built or dropped, and no thread uses the
//!    object any more. So a crash or a close loses no removal: the next opening finds it in the catalog and queues it
//!    again.
//! 2. A removal first discards the pending changes of its indexes, then frees its pages, then removes its records: a
//!    record exists until its segment owns nothing (rule 2 of `table/catalog.rs`).
//! 3. A step frees a bounded number of extents. One runs at a time and holds no other lock, so tables are created and
//!    dropped meanwhile. It waits for a check, and for a switch of the change buffering.
//! 4. A failed removal is retried at the next opening; it stops no other work.
//! 5. A close completes the waiting removals, unless a check is running. When no removal waits, the thread truncates
//!    the file.

use crate::change_buffer::ChangeBuffer;
use crate::context::Context;
use crate::error::Result;
use crate::space::reserve::{self, SpacePriority};
use crate::space::{Cut, Space};
use crate::sync::notify::Notify;
use crate::sync::{Mutex, MutexGuard};
use crate::table::catalog::Catalog;
use crate::table::catalog_entry::Leftover;
use crate::table::record::{ObjectState, RecordKey};
use crate::types::{IndexId, SegmentId};
use std::collections::VecDeque;
use std::sync::Arc;

/// Extents that a step frees.
const STEP_EXTENTS: usize = 16;

/// The parts of a dropped table or index that remain, in the order in which they are removed.
#[derive(Debug, Default)]
struct Removal {
    indexes: VecDeque<IndexId>,
    segments: VecDeque<SegmentId>,
    keys: VecDeque<RecordKey>,
}

impl Removal {
    fn of(leftover: Leftover) -> Removal {
        match leftover {
            Leftover::Table(remains) => {
                let index = |key: &RecordKey| match key {
                    RecordKey::Index(_, index) => Some(*index),
                    _ => None,
                };
                let indexes = remains.keys.iter().filter_map(index).collect();
                Removal { indexes, segments: remains.segments.into(), keys: remains.keys.into() }
            }
            Leftover::Index(table, index) => Removal {
                indexes: [index.tree.id].into(),
                segments: [index.tree.segment].into(),
                keys: [RecordKey::Statistics(table, Some(index.tree.id)), RecordKey::Index(table, index.tree.id)]
                    .into(),
            },
            Leftover::Records(keys) => Removal { keys: keys.into(), ..Removal::default() },
        }
    }
}

/// Dropped objects that wait to be freed; see the file's head.
pub(super) struct Dropping {
    ctx: Arc<Context>,
    space: Arc<Space>,
    catalog: Arc<Catalog>,
    changes: Arc<ChangeBuffer>,
    waiting: Mutex<VecDeque<Removal>>,
    /// Held by a step (rule 3).
    at_work: Mutex<()>,
    notify: Notify,
}

impl Dropping {
    pub(super) fn new(
        ctx: &Arc<Context>,
        space: &Arc<Space>,
        catalog: &Arc<Catalog>,
        changes: &Arc<ChangeBuffer>,
    ) -> Arc<Dropping> {
        let (ctx, space, catalog, changes) = (ctx.clone(), space.clone(), catalog.clone(), changes.clone());
        let (waiting, at_work, notify) = (Mutex::default(), Mutex::default(), Notify::default());
        Arc::new(Dropping { ctx, space, catalog, changes, waiting, at_work, notify })
    }

    /// Takes over what is left of a table or an index (rule 1).
    pub(super) fn add(&self, leftover: Leftover) {
        let is_in_use = matches!(&leftover, Leftover::Index(_, index) if index.state == ObjectState::Ready);
        debug_assert!(!is_in_use || self.ctx.poison.is_set(), "rule 1: an index in use is freed: {leftover:?}");
        self.waiting.lock().push_back(Removal::of(leftover));
        self.notify.wake();
    }

    /// Ends its thread's pause.
    pub(super) fn notify(&self) -> &Notify {
        &self.notify
    }

    /// Keeps steps from running while the guard lives. No change of an index that is gone is pending then. The caller
    /// keeps schema changes out.
    ///
    /// # Errors
    /// A damaged page, an I/O error.
    pub(super) fn hold(&self) -> Result<MutexGuard<'_, ()>> {
        let at_work = self.at_work.lock();
        for removal in &mut *self.waiting.lock() {
            while let Some(index) = removal.indexes.front() {
                self.changes.discard(*index)?;
                removal.indexes.pop_front();
            }
        }
        Ok(at_work)
    }

    /// One step; false if nothing waits. Waits for a check.
    ///
    /// # Errors
    /// A damaged page, an I/O error (rule 4).
    pub(super) fn step(&self) -> Result<bool> {
        let _at_work = self.at_work.lock();
        self.step_alone()
    }

    /// A step of its thread: frees something, or cuts the end of the file off when nothing waits. True if there may be
    /// more. Nothing while a check runs: a closing, for which its caller may wait, ends the thread. If page 0 cannot be
    /// read the end stays.
    ///
    /// # Errors
    /// As [`step`](Self::step); the database has stopped.
    pub(super) fn background_step(&self) -> Result<bool> {
        let Some(_at_work) = self.at_work.try_lock() else { return Ok(false) };
        if self.step_alone()? {
            return Ok(true);
        }
        match self.space.cut_step(&self.ctx, Cut::InUse) {
            Err(_) if !self.ctx.poison.is_set() => Ok(false),
            cut => cut,
        }
    }

    fn step_alone(&self) -> Result<bool> {
        debug_assert!(self.at_work.try_lock().is_none(), "rule 3: a removal advances concurrently with another step");
        let Some(mut removal) = self.waiting.lock().pop_front() else { return Ok(false) };
        let _entitled = reserve::entitle(SpacePriority::Cleaning);
        if !self.advance(&mut removal)? {
            self.waiting.lock().push_front(removal);
        }
        Ok(true)
    }

    /// Rule 2. True when nothing is left.
    fn advance(&self, removal: &mut Removal) -> Result<bool> {
        if let Some(index) = removal.indexes.front() {
            self.changes.discard(*index)?;
            removal.indexes.pop_front();
        } else if let Some(segment) = removal.segments.front() {
            if self.space.drop_segment_step(&self.ctx, *segment, STEP_EXTENTS)? {
                debug_assert_eq!(self.space.pages_in(*segment), 0, "rule 2: segment {segment} owns pages still");
                removal.segments.pop_front();
            }
        } else if let Some(key) = removal.keys.front() {
            self.catalog.remove(*key)?;
            removal.keys.pop_front();
        }
        Ok(removal.indexes.is_empty() && removal.segments.is_empty() && removal.keys.is_empty())
    }

    /// Releases the end of the file that is not needed (`space/truncation.rs`), a bounded amount at a time; true if
    /// there may be more.
    ///
    /// # Errors
    /// An I/O error.
    pub(super) fn cut_step(&self, cut: Cut) -> Result<bool> {
        let _at_work = self.at_work.lock();
        self.space.cut_step(&self.ctx, cut)
    }

    /// Steps until nothing waits.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub(super) fn finish(&self) -> Result<()> {
        while self.step()? {}
        Ok(())
    }

    /// As [`finish`](Self::finish), at a closing. It does not wait for a check, which ends when it finds the database
    /// closed, and whose caller may wait for the closing: what waits then is freed after the next opening.
    ///
    /// # Errors
    /// As [`step`](Self::step).
    pub(super) fn finish_at_closing(&self) -> Result<()> {
        let Some(_at_work) = self.at_work.try_lock() else { return Ok(()) };
        while self.step_alone()? {}
        Ok(())
    }
}

#[cfg(test)]
#[path = "dropping_test.rs"]
mod tests;
