//! The log as a whole, over devices that lose power, fail, and count.
//!
//! The payload of a group follows from its number, so that what a scan finds can be checked byte by byte.

mod failures;
mod group_commit;
#[cfg(target_pointer_width = "64")]
mod group_model;
mod growth;
mod headers;
mod model;
mod reservations;
mod ring;
mod shrinking;
mod write_back;

use super::*;
use crate::config::FlushLog;
use crate::error::{Error, Result};
use crate::stats::Stats;
use crate::testing::preferring_discards;
use crate::types::Lsn;
use highwater_storage::{Counted, Device, FaultKind, Faults, MemoryDevice, Operation};
use proptest::prelude::*;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

pub(super) const ID: u64 = 0xDB;
pub(super) const SMALL: u64 = 18 * format::BLOCK_BYTES;
pub(super) const CAPACITY: u64 = 14 * format::DATA_BYTES;

/// What a scan found, with every group's end LSN and payload.
pub(super) struct Found {
    pub checkpoint_lsn: Lsn,
    pub end_lsn: Lsn,
    pub groups: Vec<(Lsn, Vec<u8>)>,
}

pub(super) fn found(log: &Log, scan: &RecoveryScan) -> Found {
    let (mut windows, mut window, mut groups) = (log.windows(scan), Window::default(), Vec::new());
    while windows.read(3000, &mut window).unwrap() {
        groups.extend(window.groups().map(|(end, bytes)| (end, bytes.to_vec())));
    }
    assert_eq!(groups.len() as u64, scan.groups);
    Found { checkpoint_lsn: scan.checkpoint_lsn, end_lsn: scan.end_lsn, groups }
}

pub(super) fn open_as(device: Arc<dyn Device>, mode: FlushLog) -> Result<(Arc<Log>, Found)> {
    open_sized(device, mode, None)
}

/// As `open_as`; the ring may grow to this many bytes, or shrinks to them.
pub(super) fn open_growing(device: Arc<dyn Device>, mode: FlushLog, max_bytes: u64) -> Result<(Arc<Log>, Found)> {
    open_sized(device, mode, Some(max_bytes))
}

fn open_sized(device: Arc<dyn Device>, mode: FlushLog, max_bytes: Option<u64>) -> Result<(Arc<Log>, Found)> {
    let (log, scan) = Log::open(device, 1 << 20, mode, ID, max_bytes, Arc::default(), Arc::default())?;
    let found = found(&log, &scan);
    Ok((log, found))
}

pub(super) fn open(device: &MemoryDevice) -> (Arc<Log>, Found) {
    open_as(Arc::new(device.clone()), FlushLog::Sync).unwrap()
}

/// As `open`, on a device that prefers discards.
pub(super) fn open_preferring_discards(device: &MemoryDevice) -> (Arc<Log>, Found) {
    open_as(preferring_discards(Arc::new(device.clone())), FlushLog::Sync).unwrap()
}

pub(super) fn new_device() -> MemoryDevice {
    let device = MemoryDevice::named("redo", format::BLOCK_BYTES as usize);
    Log::create(Arc::new(device.clone()), SMALL, ID).unwrap();
    device
}

pub(super) fn started(device: &MemoryDevice) -> Arc<Log> {
    let (log, scan) = open(device);
    log.start(scan.end_lsn).unwrap();
    log
}

pub(super) fn payload(number: u64, len: usize) -> Vec<u8> {
    (0..len).map(|i| (number as u8).wrapping_mul(31).wrapping_add(i as u8)).collect()
}

pub(super) fn append(log: &Log, number: u64, len: usize) -> Lsn {
    let reservation = log.reserve(len as u64).unwrap();
    log.append(reservation, &payload(number, len), |_, _| {})
}

pub(super) fn payloads(scan: &Found) -> Vec<Vec<u8>> {
    scan.groups.iter().map(|(_, bytes)| bytes.clone()).collect()
}

pub(super) fn is_poisoned<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Poisoned(_)))
}

impl Log {
    fn space_waiting(&self) -> usize {
        self.ring().space().waiting()
    }
}
