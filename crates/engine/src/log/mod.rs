//! Redo log: ring, buffer, group commit, checkpoint headers, scan. Knows bytes and LSNs, never frames. SKELETON

use crate::error::Result;
use crate::stats::Stats;
use crate::types::Lsn;
use highwater_storage::Device;
use std::sync::Arc;

/// The redo log of one database.
pub struct Log {
    _p: (),
}

/// What a scan from the last checkpoint found.
pub struct Scan {
    /// LSN of the checkpoint recovery starts from.
    pub checkpoint_lsn: Lsn,
    /// End of the last whole mini-transaction.
    pub end_lsn: Lsn,
    /// Every mini-transaction's payload after the checkpoint, back to back, in LSN order:
    /// (end LSN of the mini-transaction, range of its payload in `bytes`).
    pub groups: Vec<(Lsn, std::ops::Range<usize>)>,
    /// The log bytes the ranges point into.
    pub bytes: Vec<u8>,
}

/// Redo space reserved before a mini-transaction starts; given back on drop or used by `append`.
pub struct Reservation<'l> {
    _log: &'l Log,
}

impl Log {
    /// Lays an empty log of `size_bytes` onto the device (header + ring), durable on return.
    pub fn create(_device: Arc<dyn Device>, _size_bytes: u64, _database_id: u64) -> Result<()> {
        unimplemented!()
    }
    /// Opens an existing log and scans it from its last checkpoint; refuses a foreign or newer log.
    /// Nothing may be appended before `start`.
    pub fn open(
        _device: Arc<dyn Device>,
        _buffer_bytes: usize,
        _flush_log_at_trx_commit: u64,
        _database_id: u64,
        _stats: Arc<Stats>,
    ) -> Result<(Log, Scan)> {
        unimplemented!()
    }
    /// Begins a new generation at `end_lsn` (all pages up to it are durable): a checkpoint there, and appending allowed.
    pub fn start(&self, _end_lsn: Lsn) -> Result<()> {
        unimplemented!()
    }

    /// Waits until `bytes` of redo fit without overwriting what the last checkpoint needs. Caller holds no latch.
    /// Signals the checkpointer (via `on_pressure`) and errors if the log was poisoned or the size can never fit.
    pub fn reserve(&self, _bytes: u64) -> Result<Reservation<'_>> {
        unimplemented!()
    }
    /// Appends one mini-transaction atomically; runs `in_order(start_lsn, end_lsn)` before the next append may get its LSN
    /// (the flush list is kept in LSN order there). Copies into the log buffer only; no I/O unless the buffer is full.
    pub fn append(&self, _reservation: Reservation<'_>, _payload: &[u8], _in_order: impl FnOnce(Lsn, Lsn)) -> Lsn {
        unimplemented!()
    }
    /// End of the last append.
    pub fn end_lsn(&self) -> Lsn {
        unimplemented!()
    }
    /// Everything before this is durable.
    pub fn durable_lsn(&self) -> Lsn {
        unimplemented!()
    }
    /// Returns when everything before `lsn` is written and synced (group commit: one leader syncs for all who wait).
    pub fn flush_to(&self, _lsn: Lsn) -> Result<()> {
        unimplemented!()
    }
    /// What a commit at `lsn` must wait for, by `flush_log_at_trx_commit`.
    pub fn commit(&self, _lsn: Lsn) -> Result<()> {
        unimplemented!()
    }
    /// Background step, once a second for modes 0 and 2: write and sync what there is.
    pub fn sync_step(&self) -> Result<()> {
        unimplemented!()
    }
    /// Makes `lsn` the place recovery starts from (all older changes are durable in the data file). Frees ring space, wakes waiters.
    pub fn checkpoint(&self, _lsn: Lsn) -> Result<()> {
        unimplemented!()
    }
    /// LSN of the last checkpoint.
    pub fn checkpoint_lsn(&self) -> Lsn {
        unimplemented!()
    }
    /// Bytes the ring can hold.
    pub fn capacity_bytes(&self) -> u64 {
        unimplemented!()
    }
    /// Stops the log for good: every later call errors, every waiter wakes with an error.
    pub fn poison(&self, _reason: &str) {
        unimplemented!()
    }
    /// Called (from `reserve`, without locks held) whenever a caller has to wait for a checkpoint.
    pub fn on_pressure(&self, _wake: Box<dyn Fn() + Send + Sync>) {
        unimplemented!()
    }
}
