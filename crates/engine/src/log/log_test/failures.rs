//! Failed writes and syncs, and calls that are mistakes.

use super::group_commit::slow;
use super::*;

#[test]
fn calls_in_the_wrong_order_are_errors() {
    let device = new_device();
    let (log, scan) = open(&device);
    assert!(matches!(log.reserve(10), Err(Error::Usage(_))));
    assert!(matches!(log.start(Lsn(scan.end_lsn.0 - 1)), Err(Error::Usage(_))));
    log.start(scan.end_lsn).unwrap();
    assert!(matches!(log.start(scan.end_lsn), Err(Error::Usage(_))));
    let beyond = Lsn(log.end_lsn().0 + 1);
    assert!(matches!(log.flush_to(beyond), Err(Error::Usage(_))));
    assert!(matches!(log.write_to(beyond), Err(Error::Usage(_))));
    assert!(matches!(log.checkpoint(beyond), Err(Error::Usage(_))));
    log.checkpoint(Lsn(1)).unwrap();
    assert!(log.checkpoint_lsn() >= scan.end_lsn);
}

#[test]
fn a_payload_longer_than_reserved_stops_the_log() {
    for (reserved, len) in [(10, 11), (10, 0)] {
        let log = started(&new_device());
        let reservation = log.reserve(reserved).unwrap();
        let lsn = log.append(reservation, &payload(1, len), |_, _| {});
        assert!(is_poisoned(log.flush_to(lsn)));
    }
}

#[test]
fn a_failed_write_or_sync_poisons_for_good() {
    for (operation, kind) in [(Operation::Sync, FaultKind::ErrorOnce), (Operation::Write, FaultKind::DiskFull)] {
        let (device, faults) = (new_device(), Faults::new());
        let (log, scan) = open_as(faults.wrap(Arc::new(device.clone())), FlushLog::Sync).unwrap();
        log.start(scan.end_lsn).unwrap();
        let before = append(&log, 1, 100);
        log.commit(before, None).unwrap();
        let held = log.reserve(100).unwrap();
        let lsn = append(&log, 2, 100);
        faults.fail(operation, 1, kind);
        assert!(matches!(log.commit(lsn, None), Err(Error::Storage(_))));
        let changes = faults.changes();
        faults.clear();
        assert!(
            is_poisoned(log.commit(lsn, None)) && is_poisoned(log.commit(before, None)) && is_poisoned(log.sync_step())
        );
        assert!(is_poisoned(log.reserve(1).map(drop)) && is_poisoned(log.checkpoint(before)));
        // A mini-transaction in its last step ends, and leaves no trace.
        assert!(log.append(held, &payload(3, 50), |_, _| {}) > lsn);
        assert!(log.durable_lsn() < lsn);
        assert_eq!(faults.changes(), changes, "nothing is written after a failure");
    }
}

#[test]
fn everyone_who_waits_hears_of_a_failed_sync() {
    let faults = Faults::new();
    let memory = new_device();
    let (log, scan) = open_as(slow(faults.wrap(Arc::new(memory))), FlushLog::Sync).unwrap();
    log.start(scan.end_lsn).unwrap();
    faults.fail(Operation::Sync, 1, FaultKind::ErrorForGood);
    std::thread::scope(|scope| {
        let commit = |n| append(&log, n, 50);
        let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || commit(n))).collect();
        let ends: Vec<Lsn> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        let log = &log;
        let waiters: Vec<_> = ends.into_iter().map(|lsn| scope.spawn(move || log.commit(lsn, None))).collect();
        assert!(waiters.into_iter().all(|w| w.join().unwrap().is_err()));
    });
}

#[test]
fn a_full_buffer_on_a_failed_device_does_not_hang_the_appender() {
    let faults = Faults::new();
    let device = MemoryDevice::new();
    Log::create(Arc::new(device.clone()), 16 << 20, ID).unwrap();
    let (log, scan) = open_as(faults.wrap(Arc::new(device)), FlushLog::Sync).unwrap();
    log.start(scan.end_lsn).unwrap();
    faults.fail(Operation::Write, 1, FaultKind::ErrorForGood);
    let mut ends = Vec::new();
    while let Ok(reservation) = log.reserve(1 << 16) {
        ends.push(log.append(reservation, &payload(1, 1 << 16), |_, _| {}));
    }
    assert!(ends.len() >= 16 && ends.is_sorted());
}
