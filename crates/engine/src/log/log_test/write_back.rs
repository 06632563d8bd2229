//! What commits leave in the page cache goes to the device before the sync that comes once a second.

use super::*;
use highwater_storage::{Request, TestDevice};
use parking_lot::Mutex;
use std::ops::Range;

const SIZE: u64 = 4 << 20;

/// The ranges whose write-back has begun.
type WriteBacks = Arc<Mutex<Vec<Range<u64>>>>;

/// A log, and the ranges that its device is to begin with, which it may refuse.
fn started_on(mode: FlushLog, refuses: bool) -> (Arc<Log>, WriteBacks) {
    let begun = Arc::new(Mutex::new(Vec::new()));
    let noted = begun.clone();
    let device = TestDevice::over(Arc::new(MemoryDevice::new())).before(move |request| match request {
        Request::WriteBack(_) if refuses => Err(std::io::Error::other("the cache is broken")),
        Request::WriteBack(range) => {
            noted.lock().push(range);
            Ok(())
        }
        _ => Ok(()),
    });
    let device = Arc::new(device);
    Log::create(device.clone(), SIZE, ID).unwrap();
    let (log, scan) = open_as(device, mode).unwrap();
    log.start(scan.end_lsn).unwrap();
    (log, begun)
}

/// Commits until the ring has been gone through twice.
#[test]
fn the_device_begins_with_whole_blocks_of_the_ring() {
    let (log, begun) = started_on(FlushLog::Write, false);
    let mut newest = log.end_lsn();
    while newest.0 < 2 * SIZE {
        newest = append(&log, 5, 50_000);
        log.commit(newest, None).unwrap();
        if newest.0.saturating_sub(log.durable_lsn().0) > 5 << 19 {
            log.flush_to(newest).unwrap();
            log.checkpoint(newest).unwrap();
        }
    }
    let begun = begun.lock();
    let bytes: u64 = begun.iter().map(|range| range.end - range.start).sum();
    assert!((SIZE..3 * SIZE).contains(&bytes), "{begun:?}");
    for range in begun.iter() {
        let is_in_ring = range.start >= format::RING_START && range.end <= SIZE;
        let is_whole = [range.start, range.end].iter().all(|at| at % format::BLOCK_BYTES == 0);
        assert!(is_in_ring && is_whole, "{range:?}");
    }
}

#[test]
fn commits_that_wait_for_their_sync_need_none() {
    let (log, begun) = started_on(FlushLog::Sync, false);
    for _ in 0..30 {
        let newest = append(&log, 5, 50_000);
        log.commit(newest, None).unwrap();
    }
    assert!(begun.lock().is_empty());
}

#[test]
fn a_failure_stops_the_database() {
    let (log, _) = started_on(FlushLog::Write, true);
    let failed = (0..60).find_map(|_| log.commit(append(&log, 5, 50_000), None).err());
    assert!(failed.is_some() && log.ring().poison().is_set());
}
