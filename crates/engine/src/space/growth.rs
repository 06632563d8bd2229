//! Making extents ready for allocation: reserving discarded extents again, growing the file.

use super::extent_map::format_map_ops;
use super::layout::{CHUNKS, MAX_EXTENTS, pages_of};
use super::reserve::{self, SpacePriority};
use super::state::SpaceState;
use super::{Space, header};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::MTR_REDO_BYTES;
use crate::pool::held_latches;
use crate::types::PageNo;
use highwater_storage::StorageError;
use std::io::ErrorKind;
use std::ops::Range;
use std::time::{Duration, Instant};

/// Free extents `prepare` keeps ready in addition to the reserve.
pub(super) const READY_EXTENTS: u32 = 4;
/// Discarded extents that are tried on a full disk before it counts as full for users.
const RESERVE_TRIES: usize = 16;
/// Pause after the device refused space, before the next attempt.
pub(super) const FULL_FOR: Duration = Duration::from_millis(100);
/// Most bytes the file grows by at once.
const GROW_LIMIT_BYTES: u64 = 64 << 20;
/// Time for which the device's last refusal is given as the reason that no page is free: the refused thread may try to
/// take a page only later.
pub(super) const FULL_KNOWN_FOR: Duration = FULL_FOR.saturating_mul(10);

impl Space {
    /// Makes sure that free extents are ready, growing the file if they are not. A full disk is not an error here:
    /// pages that are free in the file may suffice, and [`Space::allocate`] fails if they do not. The caller holds no
    /// latch; called before an mtr that may allocate.
    pub(crate) fn prepare(&self, ctx: &Context) -> Result<()> {
        held_latches::expect_none("room is made");
        let missed = std::mem::take(&mut *self.missed_maps.lock());
        missed.into_iter().try_for_each(|map| self.load_map(ctx, map))?;
        let is_settled = |state: &SpaceState| self.is_ready(state) || state.is_full(reserve::purpose(), FULL_FOR);
        if is_settled(&self.state.lock()) {
            return Ok(());
        }
        let mut tries = self.reserve_tries();
        loop {
            // Again for each batch of tries: other threads that need space are not kept until all are done.
            let _one_at_a_time = self.growing.lock();
            if is_settled(&self.state.lock()) {
                return Ok(());
            }
            let made = self.make_ready(ctx, &mut tries);
            let full_since = (Instant::now(), reserve::purpose());
            match made {
                Err(Error::DiskFull { .. }) if !tries.is_empty() => continue,
                Err(Error::DiskFull { source, .. }) => self.state.lock().note_full(full_since, &source),
                made => {
                    self.state.lock().full_since = None;
                    made?;
                }
            }
            tries = self.reserve_tries();
        }
    }

    /// A map of a group that was cut off meanwhile is not loaded: the allocation takes another page.
    fn load_map(&self, ctx: &Context, map: PageNo) -> Result<()> {
        match ctx.pool.load(map) {
            Err(_) if map.0 >= self.page_count() => Ok(()),
            loaded => loaded,
        }
    }

    /// Runs a mini-transaction that allocates, and runs it again if [`Space::allocate`] asks for it. The caller holds
    /// no latch.
    ///
    /// # Errors
    /// Those of [`Space::prepare`] and of `run`.
    pub(crate) fn with_room<R>(&self, ctx: &Context, mut run: impl FnMut() -> Result<R>) -> Result<R> {
        loop {
            self.prepare(ctx)?;
            match run() {
                Err(Error::Usage(_)) => {}
                result => return result,
            }
        }
    }

    /// Whether there is free space for an mtr of this thread in addition to the reserve.
    fn is_ready(&self, state: &SpaceState) -> bool {
        state.unowned_chunks() >= self.kept_chunks(state) + READY_EXTENTS * CHUNKS
    }

    /// Unowned chunks that this thread must leave.
    pub(super) fn kept_chunks(&self, state: &SpaceState) -> u32 {
        reserve::kept_chunks(reserve::purpose(), state.extents())
    }

    /// Number of extents with possibly discarded blocks that are tried before the disk counts as full.
    fn reserve_tries(&self) -> Range<usize> {
        match reserve::purpose() {
            // The reserve may be after any number of holes and must be found: every extent is tried once.
            SpacePriority::Cleaning => 0..self.state.lock().untouched_extents().max(RESERVE_TRIES),
            SpacePriority::Users | SpacePriority::Undo | SpacePriority::Deletes => 0..RESERVE_TRIES,
        }
    }

    /// Reserves extents that may have been discarded or, if there are none, grows the file. Uses up a few of `tries`.
    ///
    /// # Errors
    /// [`Error::DiskFull`]; while tries are left, other extents may still have their place.
    pub(super) fn make_ready(&self, ctx: &Context, tries: &mut Range<usize>) -> Result<()> {
        let max = ((GROW_LIMIT_BYTES / self.layout.extent_bytes()) as u32).max(1);
        let mut refused = None;
        for attempt in tries.by_ref().take(RESERVE_TRIES) {
            // After some refusals, one extent at a time: a longer run is asked for several times, each time half as
            // long.
            let max = if attempt < RESERVE_TRIES { max } else { 1 };
            match self.reserve_bare(ctx, max) {
                Ok(true) => return Ok(()),
                Ok(false) => {
                    tries.start = tries.end;
                    return self.grow(ctx);
                }
                // The discards of an earlier process are not known.
                Err(error @ Error::DiskFull { .. }) => refused = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(refused.unwrap_or_else(|| self.full("no extent can be reserved")))
    }

    /// Reserves some of the next extents whose space may have been discarded, `max` at most; false if there are none.
    /// The caller has the growing mutex.
    ///
    /// # Errors
    /// [`Error::DiskFull`], after which the next call tries others; an I/O error.
    pub(super) fn reserve_bare(&self, ctx: &Context, max: u32) -> Result<bool> {
        let untouched = self.state.lock().untouched_run(max);
        if untouched.is_empty() {
            return Ok(false);
        }
        match self.try_smaller(untouched.end - untouched.start, |extents| {
            self.reserve(untouched.start..untouched.start + extents)
        }) {
            Ok(reserved) => {
                self.sync(ctx)?;
                self.state.lock().note_reserved(reserved);
                Ok(true)
            }
            Err(error) => {
                self.state.lock().skip_untouched(untouched.start);
                Err(error)
            }
        }
    }

    pub(super) fn grow(&self, ctx: &Context) -> Result<()> {
        let have = self.state.lock().extents();
        let step = (u64::from(have) / 4 * self.layout.extent_bytes()).min(GROW_LIMIT_BYTES);
        let step = ((step / self.layout.extent_bytes()) as u32).max(READY_EXTENTS * 2).min(MAX_EXTENTS - have);
        if step == 0 {
            return Err(self.full("it has the largest size a data file can have"));
        }
        let want = self.try_smaller(step, |extents| {
            self.store.reserve(pages_of(have..have + extents))?;
            Ok(have + extents)
        })?;
        self.sync(ctx)?;
        self.count_extents(ctx, have, want)?;
        let mut state = self.state.lock();
        debug_assert_eq!(state.extents(), have, "two threads grow the file");
        state.add_free(&self.layout, want);
        let with_new_maps = (have..want).filter(|extent| self.layout.begins_group(*extent));
        with_new_maps.for_each(|extent| state.note_freed(extent, self.log.end_lsn()));
        Ok(())
    }

    /// Runs `take` for `extents`, and for half as many each time the disk is too full for it.
    fn try_smaller<R>(&self, extents: u32, mut take: impl FnMut(u32) -> highwater_storage::Result<R>) -> Result<R> {
        let mut extents = extents;
        loop {
            match take(extents) {
                Err(error) if error.is_full() && extents > 1 => extents /= 2,
                Err(source) if source.is_full() => return Err(Error::DiskFull { file: self.store.name(), source }),
                result => return Ok(result?),
            }
        }
    }

    fn reserve(&self, extents: Range<u32>) -> highwater_storage::Result<Range<u32>> {
        self.store.reserve(pages_of(extents.clone()))?;
        Ok(extents)
    }

    pub(super) fn sync(&self, ctx: &Context) -> Result<()> {
        self.store.sync().inspect_err(|error| ctx.poison.set(&error.to_string()))
    }

    /// Formats the maps of the groups that begin after the first `have` extents and makes `want` the number of extents.
    fn count_extents(&self, ctx: &Context, have: u32, want: u32) -> Result<()> {
        let maps: Vec<PageNo> =
            (self.layout.groups(have)..self.layout.groups(want)).map(|group| self.layout.map_page(group)).collect();
        let mut mtr = ctx.mtr_with(MTR_REDO_BYTES, maps.len())?;
        let first = mtr.fix_x(PageNo(0))?;
        for map in &maps {
            let page = mtr.new_page(*map);
            format_map_ops(|op| mtr.apply(page, op));
        }
        mtr.apply(first, &header::set_extents(&want.to_le_bytes()));
        mtr.commit();
        Ok(())
    }

    pub(super) fn full(&self, why: &str) -> Error {
        let (file, bytes) = (self.store.name(), self.layout.extent_bytes());
        let (operation, device, source) = ("growth", file.clone(), std::io::Error::new(ErrorKind::StorageFull, why));
        let offset = u64::from(self.state.lock().extents()) * bytes;
        Error::DiskFull { file, source: StorageError { operation, device, offset, len: bytes, source } }
    }
}
