//! Power cuts. A seed chooses one of the outcomes that the device's [`Promises`] allow.
//!
//! Terms
//! - The *store* always holds what reads should see: the newest data.
//! - The *log* holds, for each write that a power cut may still undo, what was there before, oldest first.
//! - Which writes and which pieces of them survive is chosen by [`choose_fates`].
//!
//! Rules
//! 1. A cut undoes the log from the newest write to the oldest, so that the store holds what is certainly durable; then
//!    the writes that survive are applied again, oldest first. Any subset of pieces is a possible outcome of a device
//!    that promises no order.
//! 2. A flush makes durable what had completed when it began, once it has completed itself, unless the device ignores
//!    flushes. What is durable leaves the log, unless the device loses flushed writes. Without a volatile cache a write
//!    is durable when it completes.
//! 3. When the log is full its oldest write becomes durable, as when a cache frees space.

use crate::error::Result;
use crate::promises::Promises;
use crate::store::Store;
use fastrand::Rng;
use highwater_storage::power_cut::{PendingWrite, WriteOutcome, choose_fates};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeSet, VecDeque};
use std::ops::Range;

/// Default bytes of undo data the log keeps.
pub const LOG_BYTES: usize = 64 << 20;
/// The completion time of a write that does not complete, and the durable time of a write that is not durable.
pub const NEVER: u64 = u64::MAX;
const BLOCK: u64 = 4096;

/// A write a power cut may undo.
struct Entry {
    offset: u64,
    old: Box<[u8]>,
    /// Time at which the write completes.
    done_ns: u64,
    /// Time from which the write is durable: [`NEVER`] until a flush.
    durable_ns: u64,
}

impl Entry {
    fn pending(&self, now_ns: u64) -> PendingWrite {
        let (flushed, under_way) = (self.durable_ns <= now_ns, self.done_ns > now_ns);
        let range = self.offset..self.offset + self.old.len() as u64;
        PendingWrite { range, flushed, under_way, done_ns: self.done_ns }
    }
}

/// The effect of a power cut.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutReport {
    /// The seed that chose the outcome.
    pub seed: u64,
    /// Writes that could have been lost.
    pub pending_writes: u64,
    /// Of those, lost as a whole.
    pub lost_writes: u64,
    /// Of those, lost in part.
    pub torn_writes: u64,
    /// Of the writes lost as a whole or in part, those that had been flushed: broken promises.
    pub flushed_writes_lost: u64,
    /// Bits flipped.
    pub flipped_bits: u64,
    /// 4 KiB blocks that cannot be read any more.
    pub unreadable_blocks: u64,
    /// The device did not come back.
    pub dead: bool,
}

/// Damage beyond lost writes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Damage {
    /// Blocks that cannot be read until written again.
    pub unreadable: BTreeSet<u32>,
    /// The device does not come back.
    pub dead: bool,
}

/// Remembers what a power cut may undo.
pub struct CrashLog {
    promises: Promises,
    entries: VecDeque<Entry>,
    bytes: usize,
    limit_bytes: usize,
}

impl CrashLog {
    /// An empty log that keeps up to `limit_bytes` of undo data.
    pub fn new(promises: Promises, limit_bytes: usize) -> CrashLog {
        CrashLog { promises, entries: VecDeque::new(), bytes: 0, limit_bytes }
    }

    /// Changes the promises; pending writes stay pending.
    pub fn set_promises(&mut self, promises: Promises) {
        self.promises = promises;
    }

    /// Saves the present contents of a range before a write at `now_ns` that completes at `done_ns`.
    pub fn before_write(&mut self, store: &dyn Store, range: Range<u64>, done_ns: u64, now_ns: u64) -> Result<()> {
        self.keep(store, range, done_ns, now_ns, |_| true)
    }

    /// As [`before_write`](Self::before_write), before a write of zeros: parts that are zeros already need no undo.
    pub fn before_discard(&mut self, store: &dyn Store, range: Range<u64>, done_ns: u64, now_ns: u64) -> Result<()> {
        self.keep(store, range, done_ns, now_ns, |old| old.iter().any(|byte| *byte != 0))
    }

    fn keep(
        &mut self,
        store: &dyn Store,
        range: Range<u64>,
        done_ns: u64,
        now_ns: u64,
        is_worth_it: impl FnOnce(&[u8]) -> bool,
    ) -> Result<()> {
        self.drop_durable(now_ns);
        let durable_ns = if self.promises.volatile_cache { NEVER } else { done_ns };
        if durable_ns <= now_ns && !self.keeps_flushed() {
            return Ok(());
        }
        let mut old = vec![0; (range.end - range.start) as usize].into_boxed_slice();
        store.read(range.start, &mut old)?;
        if !is_worth_it(&old) {
            return Ok(());
        }
        self.bytes += old.len();
        self.entries.push_back(Entry { offset: range.start, old, done_ns, durable_ns });
        while self.bytes > self.limit_bytes && self.entries.len() > 1 {
            self.drop_oldest();
        }
        Ok(())
    }

    /// Notes a flush of the host at `now_ns` that completes at `done_ns`.
    pub fn flush(&mut self, now_ns: u64, done_ns: u64) {
        if self.promises.faults.lying_flush {
            return;
        }
        for entry in self.entries.iter_mut().filter(|e| e.done_ns <= now_ns) {
            entry.durable_ns = entry.durable_ns.min(done_ns);
        }
        self.drop_durable(now_ns);
    }

    /// Drops the oldest writes that nothing can undo any more.
    fn drop_durable(&mut self, now_ns: u64) {
        while !self.keeps_flushed() && self.entries.front().is_some_and(|e| e.durable_ns <= now_ns) {
            self.drop_oldest();
        }
    }

    fn drop_oldest(&mut self) {
        self.bytes -= self.entries.pop_front().map_or(0, |e| e.old.len());
    }

    /// Empties the log: every write so far is durable.
    pub fn forget(&mut self) {
        self.entries.clear();
        self.bytes = 0;
    }

    /// Whether flushed writes stay in the log, because a fault may still lose them.
    fn keeps_flushed(&self) -> bool {
        let faults = &self.promises.faults;
        faults.unserializable_writes || faults.bit_corruption || faults.metadata_corruption
    }

    /// Cuts the power at `now_ns`: `store` keeps the writes that survive, and the log is emptied.
    pub fn cut(
        &mut self,
        store: &dyn Store,
        seed: u64,
        capacity_blocks: u32,
        now_ns: u64,
    ) -> Result<(CutReport, Damage)> {
        self.drop_durable(now_ns);
        let mut rng = Rng::with_seed(seed);
        let pending: Vec<PendingWrite> = self.entries.iter().map(|e| e.pending(now_ns)).collect();
        let fates = choose_fates(&self.promises.guarantees(), &pending, &mut rng);
        let new = self.undo(store)?;
        for ((entry, new), fate) in self.entries.iter().zip(&new).zip(&fates) {
            for kept in fate {
                let part = (kept.start - entry.offset) as usize..(kept.end - entry.offset) as usize;
                store.write(kept.start, &new[part])?;
            }
        }
        let mut report = summarise(&pending, &fates, seed);
        if !self.keeps_flushed() {
            // Flushed, but after one that was not: these could not be lost.
            report.pending_writes -= pending.iter().filter(|p| p.flushed).count() as u64;
        }
        report.flipped_bits = self.flip_bits(store, &pending, &mut rng)?;
        let damage = self.damage(&pending, capacity_blocks, &mut rng);
        report.unreadable_blocks = damage.unreadable.len() as u64;
        report.dead = damage.dead;
        self.entries.clear();
        self.bytes = 0;
        Ok((report, damage))
    }

    /// Undoes all writes, newest first; returns what each had written, oldest first.
    fn undo(&self, store: &dyn Store) -> Result<Vec<Box<[u8]>>> {
        let mut new = Vec::with_capacity(self.entries.len());
        for entry in self.entries.iter().rev() {
            let mut bytes = vec![0; entry.old.len()].into_boxed_slice();
            store.read(entry.offset, &mut bytes)?;
            store.write(entry.offset, &entry.old)?;
            new.push(bytes);
        }
        new.reverse();
        Ok(new)
    }

    fn flip_bits(&self, store: &dyn Store, pending: &[PendingWrite], rng: &mut Rng) -> Result<u64> {
        if !self.promises.faults.bit_corruption || pending.is_empty() {
            return Ok(0);
        }
        let flips = rng.u64(1..=8);
        for _ in 0..flips {
            let range = &pending[rng.usize(..pending.len())].range;
            let (offset, bit) = (rng.u64(range.clone()), rng.u32(..8));
            let mut byte = [0];
            store.read(offset, &mut byte)?;
            store.write(offset, &[byte[0] ^ 1 << bit])?;
        }
        Ok(flips)
    }

    fn damage(&self, pending: &[PendingWrite], capacity_blocks: u32, rng: &mut Rng) -> Damage {
        let faults = &self.promises.faults;
        let dead = faults.dead_device && rng.u32(..4) == 0;
        let mut unreadable = BTreeSet::new();
        if faults.metadata_corruption && !pending.is_empty() {
            // A page of the map covers 1,024 neighbouring blocks; one of those updated last is lost.
            let near = pending[rng.usize(..pending.len())].range.start / BLOCK;
            let first = near as u32 / 1024 * 1024;
            unreadable.extend(first..(first + 1024).min(capacity_blocks));
        }
        Damage { unreadable, dead }
    }
}

fn summarise(pending: &[PendingWrite], fates: &[WriteOutcome], seed: u64) -> CutReport {
    let mut report = CutReport { seed, pending_writes: pending.len() as u64, ..CutReport::default() };
    for (write, fate) in pending.iter().zip(fates) {
        let kept: u64 = fate.iter().map(|r| r.end - r.start).sum();
        let lost = kept < write.range.end - write.range.start;
        report.lost_writes += u64::from(kept == 0);
        report.torn_writes += u64::from(lost && kept > 0);
        report.flushed_writes_lost += u64::from(lost && write.flushed);
    }
    report
}

#[cfg(test)]
#[path = "crash_test.rs"]
mod tests;
