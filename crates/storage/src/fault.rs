//! Devices that fail on purpose.
//!
//! Rules
//! 1. One [`Faults`] may wrap several devices; operations are counted over all of them, in the order they arrive, so
//!    that a crash point is one number for a whole database.
//! 2. A failed operation has not changed the device below, except a failed sync, which loses the unsynced writes.
//! 3. After the power cut every operation fails without reaching the devices, so the engine cannot acknowledge
//!    unwritten data. Each write of a batch is a separate crash point.

use crate::{Device, MemoryDevice, Placement, Result, StorageError, Write};
use parking_lot::Mutex;
use std::io::{Error, ErrorKind};
use std::sync::Arc;

/// Kinds of operation that can be counted and made to fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// `read_at`.
    Read,
    /// `write_at`, and each write of a batch.
    Write,
    /// `sync`.
    Sync,
    /// `set_len_bytes`.
    SetLen,
    /// `discard`.
    Discard,
    /// `reserve`.
    Reserve,
}

/// The way in which a chosen operation fails.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FaultKind {
    /// An I/O error, once.
    ErrorOnce,
    /// An I/O error, this time and every time after.
    ErrorForGood,
    /// The disk is full, this time and every time after until [`Faults::clear`].
    DiskFull,
    /// Of a sync of a [device in memory](Faults::wrap_memory): an I/O error, once, and what had been written since the
    /// last sync is lost, as on an operating system that marks pages as clean although their writeback failed. A later
    /// sync succeeds and does not bring it back. For any other operation the same as `ErrorOnce`.
    LostSync,
}

#[derive(Clone, Copy, Debug)]
struct Fault {
    operation: Operation,
    at: u64,
    kind: FaultKind,
}

#[derive(Debug, Default)]
struct Plan {
    /// Operations of each kind so far.
    seen: [u64; 6],
    /// Changes (everything but reads) so far.
    changes: u64,
    /// Operations that a fault made fail so far.
    failures: u64,
    faults: Vec<Fault>,
    power_off_after: Option<u64>,
}

/// A plan of failures, shared by the devices it wraps; clones are handles to the same plan.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    plan: Arc<Mutex<Plan>>,
}

impl Faults {
    /// No faults yet.
    pub fn new() -> Faults {
        Faults::default()
    }

    /// The device, failing by this plan.
    pub fn wrap(&self, inner: Arc<dyn Device>) -> Arc<dyn Device> {
        Arc::new(FaultDevice { inner, faults: self.clone(), memory: None })
    }

    /// As [`wrap`](Faults::wrap), for a device that can lose unsynced writes.
    pub fn wrap_memory(&self, memory: MemoryDevice) -> Arc<dyn Device> {
        Arc::new(FaultDevice { inner: Arc::new(memory.clone()), faults: self.clone(), memory: Some(memory) })
    }

    /// Lets the `nth` operation of its kind from now on fail (1 = the next).
    pub fn fail(&self, operation: Operation, nth: u64, kind: FaultKind) {
        let mut plan = self.plan.lock();
        let at = plan.seen[operation as usize] + nth;
        plan.faults.push(Fault { operation, at, kind });
    }

    /// Lets `changes` more writes, length changes, syncs, discards and reservations through, then cuts the power.
    pub fn power_off_after(&self, changes: u64) {
        let mut plan = self.plan.lock();
        plan.power_off_after = Some(plan.changes + changes);
    }

    /// Whether the power was cut.
    pub fn is_power_off(&self) -> bool {
        let plan = self.plan.lock();
        plan.power_off_after.is_some_and(|limit| plan.changes >= limit)
    }

    /// Removes every fault; counts continue.
    pub fn clear(&self) {
        let mut plan = self.plan.lock();
        plan.faults.clear();
        plan.power_off_after = None;
    }

    /// Operations of a kind so far, those that failed included.
    pub fn count(&self, operation: Operation) -> u64 {
        self.plan.lock().seen[operation as usize]
    }

    /// Writes, length changes, syncs, discards and reservations so far: the number of crash points.
    pub fn changes(&self) -> u64 {
        self.plan.lock().changes
    }

    /// Operations that failed so far because of a fault, not of a power cut.
    pub fn failures(&self) -> u64 {
        self.plan.lock().failures
    }

    /// Counts one operation; returns its failure, if a fault or power cut is due.
    fn next(&self, operation: Operation) -> Option<Failure> {
        let mut plan = self.plan.lock();
        if plan.power_off_after.is_some_and(|limit| plan.changes >= limit) {
            return Some(Failure::PowerIsOff);
        }
        plan.seen[operation as usize] += 1;
        if operation != Operation::Read {
            plan.changes += 1;
        }
        let now = plan.seen[operation as usize];
        let due = |f: &&Fault| f.operation == operation && f.hits(now);
        let failure = plan.faults.iter().find(due).map(|f| Failure::Fault(f.kind));
        plan.failures += u64::from(failure.is_some());
        failure
    }
}

impl Fault {
    fn hits(&self, now: u64) -> bool {
        match self.kind {
            FaultKind::ErrorOnce | FaultKind::LostSync => now == self.at,
            FaultKind::ErrorForGood | FaultKind::DiskFull => now >= self.at,
        }
    }
}

/// The failure of an operation.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Failure {
    PowerIsOff,
    Fault(FaultKind),
}

impl Failure {
    fn error(self) -> Error {
        match self {
            Failure::PowerIsOff => Error::new(ErrorKind::BrokenPipe, "the power is off"),
            Failure::Fault(FaultKind::DiskFull) => Error::from(ErrorKind::StorageFull),
            Failure::Fault(_) => Error::other("an injected failure"),
        }
    }
}

struct FaultDevice {
    inner: Arc<dyn Device>,
    faults: Faults,
    /// The device below, if it can lose unsynced writes.
    memory: Option<MemoryDevice>,
}

impl FaultDevice {
    fn pass(&self, operation: Operation, name: &'static str, offset: u64, len: u64) -> Result<()> {
        match self.faults.next(operation) {
            None => Ok(()),
            Some(failure) => {
                if let (Operation::Sync, Failure::Fault(FaultKind::LostSync)) = (operation, failure) {
                    self.memory.iter().for_each(MemoryDevice::lose_unsynced);
                }
                Err(StorageError { operation: name, device: self.name(), offset, len, source: failure.error() })
            }
        }
    }
}

impl Device for FaultDevice {
    crate::pass_on!();

    fn set_len_bytes(&self, len: u64) -> Result<()> {
        self.pass(Operation::SetLen, "set length", 0, len)?;
        self.inner.set_len_bytes(len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.pass(Operation::Read, "read", offset, buf.len() as u64)?;
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> Result<()> {
        self.pass(Operation::Write, "write", offset, data.len() as u64)?;
        self.inner.write_at(offset, data, placement)
    }

    /// One write after the other, so that the power can go off between them.
    fn write_batch(&self, writes: &[Write<'_>]) -> Result<()> {
        writes.iter().try_for_each(|w| self.write_at(w.offset, w.data, w.placement))
    }

    fn sync(&self) -> Result<()> {
        self.pass(Operation::Sync, "sync", 0, 0)?;
        self.inner.sync()
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.pass(Operation::Reserve, "reserve", offset, len)?;
        self.inner.reserve(offset, len)
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.pass(Operation::Discard, "discard", offset, len)?;
        self.inner.discard(offset, len)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MemoryDevice;

    fn wrapped() -> (MemoryDevice, Faults, Arc<dyn Device>) {
        let memory = MemoryDevice::new();
        let faults = Faults::new();
        let device = faults.wrap(Arc::new(memory.clone()));
        device.set_len_bytes(1024).unwrap();
        (memory, faults, device)
    }

    #[test]
    fn the_chosen_operation_fails_once() {
        let (_, faults, device) = wrapped();
        faults.fail(Operation::Write, 2, FaultKind::ErrorOnce);
        faults.fail(Operation::Sync, 1, FaultKind::ErrorForGood);
        device.write_at(0, &[1], Placement::Other).unwrap();
        assert!(device.write_at(0, &[2], Placement::Other).is_err());
        device.write_at(0, &[3], Placement::Other).unwrap();
        assert!(device.sync().is_err());
        assert!(device.sync().is_err());
        device.read_at(0, &mut [0]).unwrap();
        let counts = [Operation::Write, Operation::Sync, Operation::Read, Operation::SetLen].map(|o| faults.count(o));
        assert_eq!(counts, [3, 2, 1, 1]);
    }

    #[test]
    fn a_full_disk_stays_full_until_cleared() {
        let (memory, faults, device) = wrapped();
        faults.fail(Operation::SetLen, 1, FaultKind::DiskFull);
        assert!(device.set_len_bytes(2048).unwrap_err().is_full());
        assert!(device.set_len_bytes(4096).unwrap_err().is_full());
        assert_eq!(memory.len_bytes().unwrap(), 1024);
        faults.clear();
        device.set_len_bytes(2048).unwrap();
    }

    #[test]
    fn a_lost_sync_loses_what_was_written_since_the_last_one_but_no_length() {
        let (memory, faults) = (MemoryDevice::new(), Faults::new());
        let device = faults.wrap_memory(memory.clone());
        device.write_at(0, &[1; 8], Placement::Other).unwrap();
        device.sync().unwrap();
        device.write_at(4, &[2; 8], Placement::Other).unwrap();
        faults.fail(Operation::Sync, 1, FaultKind::LostSync);
        device.sync().unwrap_err();
        device.sync().unwrap();
        device.write_at(7, &[3], Placement::Other).unwrap();
        device.sync().unwrap();
        let expected = [1, 1, 1, 1, 1, 1, 1, 3, 0, 0, 0, 0];
        assert_eq!((memory.image(), memory.power_cut(1)), (expected.to_vec(), expected.to_vec()));
    }

    #[test]
    fn after_power_off_nothing_reaches_any_device() {
        let (first, faults, device) = wrapped();
        let second = MemoryDevice::new();
        let other = faults.wrap(Arc::new(second.clone()));
        faults.power_off_after(3);
        let batch = |offset: u64| Write { offset, data: &[7], placement: Placement::Other };
        device.sync().unwrap();
        assert!(device.write_batch(&[batch(0), batch(1), batch(2)]).is_err());
        assert!(other.set_len_bytes(10).is_err());
        assert!(device.sync().is_err() && device.read_at(0, &mut [0]).is_err());
        assert_eq!(first.image()[..3], [7, 7, 0]);
        assert_eq!(second.len_bytes().unwrap(), 0);
        assert!(faults.is_power_off());
        assert_eq!(faults.changes(), 4);
    }
}
