//! The log as a whole, over devices that lose power, fail, and count.
//!
//! A group's payload is made from its number, so that what a scan finds can be checked byte by byte.

use super::*;
use crate::error::Error;
use highwater_storage::{Counted, FaultKind, Faults, MemoryDevice, Operation, Placement};
use proptest::prelude::*;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

pub(super) const ID: u64 = 0xDB;
const SMALL: u64 = 18 * format::BLOCK_BYTES;
const CAPACITY: u64 = 14 * format::DATA_BYTES;

/// What a scan found, with every group's end LSN and payload.
pub(super) struct Found {
    pub(super) checkpoint_lsn: Lsn,
    pub(super) end_lsn: Lsn,
    pub(super) groups: Vec<(Lsn, Vec<u8>)>,
}

pub(super) fn found(log: &Log, scan: &Scan) -> Found {
    let (mut windows, mut window, mut groups) = (log.windows(scan), Window::default(), Vec::new());
    while windows.read(3000, &mut window).unwrap() {
        groups.extend(window.groups().map(|(end, bytes)| (end, bytes.to_vec())));
    }
    assert_eq!(groups.len() as u64, scan.groups);
    Found { checkpoint_lsn: scan.checkpoint_lsn, end_lsn: scan.end_lsn, groups }
}

pub(super) fn open_as(device: Arc<dyn Device>, mode: u64) -> Result<(Arc<Log>, Found)> {
    let (log, scan) = Log::open(device, 1 << 20, mode, ID, Arc::default(), Arc::default())?;
    let found = found(&log, &scan);
    Ok((log, found))
}

fn open(device: &MemoryDevice) -> (Arc<Log>, Found) {
    open_as(Arc::new(device.clone()), 1).unwrap()
}

fn new_device() -> MemoryDevice {
    let device = MemoryDevice::named("redo", format::BLOCK_BYTES as usize);
    Log::create(Arc::new(device.clone()), SMALL, ID).unwrap();
    device
}

fn started(device: &MemoryDevice) -> Arc<Log> {
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

fn payloads(scan: &Found) -> Vec<Vec<u8>> {
    scan.groups.iter().map(|(_, bytes)| bytes.clone()).collect()
}

fn is_poisoned<T>(result: Result<T>) -> bool {
    matches!(result, Err(Error::Poisoned(_)))
}

#[test]
fn a_new_log_is_empty() {
    let device = new_device();
    let (log, scan) = open(&device);
    assert!(scan.groups.is_empty());
    assert_eq!(scan.checkpoint_lsn, scan.end_lsn);
    assert!(scan.end_lsn > Lsn(0), "pages never logged have LSN 0");
    assert_eq!(log.capacity_bytes(), CAPACITY);
    assert_eq!(device.unsynced_changes(), 0);
}

#[test]
fn what_was_flushed_is_found_in_order() {
    let device = new_device();
    let log = started(&device);
    let ends: Vec<Lsn> = (0..20).map(|n| append(&log, n, 100 + n as usize)).collect();
    log.flush_to(ends[19]).unwrap();
    assert_eq!((log.durable_lsn(), log.end_lsn()), (ends[19], ends[19]));
    let (_, scan) = open(&device.cut(1));
    assert_eq!(payloads(&scan), (0..20).map(|n| payload(n, 100 + n as usize)).collect::<Vec<_>>());
    assert_eq!(scan.groups.iter().map(|g| g.0).collect::<Vec<_>>(), ends);
    assert_eq!(scan.end_lsn, ends[19]);
}

#[test]
fn in_order_sees_consecutive_lsns() {
    let log = started(&new_device());
    let mut last = log.end_lsn();
    for n in 0..10 {
        let end = log.append(log.reserve(50).unwrap(), &payload(n, 7), |start, end| {
            assert_eq!((start, end), (last, Lsn(last.0 + 15)));
            assert_eq!(log.end_lsn(), start, "the end is visible only afterwards");
        });
        assert_eq!(end, log.end_lsn());
        last = end;
    }
}

#[test]
fn the_ring_goes_round_and_stale_laps_are_not_found() {
    let device = new_device();
    let log = started(&device);
    let mut kept = Vec::new();
    for n in 0..2000u64 {
        let len = 1 + (n * 37 % 900) as usize;
        let start = log.end_lsn();
        let reservation = log.reserve(len as u64);
        log.append(reservation.unwrap(), &payload(n, len), |_, _| {});
        kept.push((start, n, len));
        if log.end_lsn().0 - log.checkpoint_lsn().0 > CAPACITY - 2000 {
            let keep_from = kept.len() - 5;
            log.checkpoint(kept[keep_from].0).unwrap();
            kept.drain(..keep_from);
            let (_, scan) = open(&device.cut(n));
            let want: Vec<_> = kept.iter().map(|&(_, n, len)| payload(n, len)).collect();
            let got = payloads(&scan);
            assert!(got.len() >= 4 && got[..] == want[..got.len()], "{} groups", got.len());
        }
    }
    log.flush_to(log.end_lsn()).unwrap();
    let (_, scan) = open(&device.cut(0));
    assert_eq!(payloads(&scan), kept.iter().map(|&(_, n, len)| payload(n, len)).collect::<Vec<_>>());
}

#[test]
fn groups_of_an_earlier_generation_are_never_found() {
    let device = new_device();
    let log = started(&device);
    for n in 0..30 {
        append(&log, n, 500);
    }
    let end = log.end_lsn();
    log.flush_to(end).unwrap();
    drop(log);
    let (log, scan) = open(&device);
    assert_eq!(scan.groups.len(), 30);
    // As if recovery had found nothing worth keeping: the same LSNs are given out again in the new generation.
    let before = log.io.lock().header;
    log.start(scan.end_lsn).unwrap();
    assert_eq!(log.io.lock().header.generation, before.generation + 1);
    assert!(open(&device).1.groups.is_empty());
    let end = append(&log, 99, 10);
    log.flush_to(end).unwrap();
    assert_eq!(payloads(&open(&device).1), [payload(99, 10)]);
}

#[test]
fn bytes_of_the_same_place_but_another_generation_do_not_verify() {
    let device = new_device();
    let log = started(&device);
    let checkpoint = log.checkpoint_lsn();
    log.flush_to(append(&log, 1, 100)).unwrap();
    let header = log.io.lock().header;
    device.damage(|bytes| {
        let next = format::Header { generation: header.generation + 1, sequence: header.sequence + 1, ..header };
        next.encode(&mut bytes[next.offset() as usize..][..format::BLOCK_BYTES as usize]);
    });
    let (_, scan) = open(&device);
    assert_eq!((scan.groups.len(), scan.checkpoint_lsn), (0, checkpoint));
}

#[test]
fn a_group_of_a_mebibyte_fits_the_smallest_buffer() {
    let device = MemoryDevice::new();
    Log::create(Arc::new(device.clone()), 4 << 20, ID).unwrap();
    let (log, scan) = Log::open(Arc::new(device.clone()), 0, 1, ID, Arc::default(), Arc::default()).unwrap();
    log.start(scan.end_lsn).unwrap();
    let len = (1 << 20) - format::FRAME_BYTES;
    append(&log, 1, 77);
    let ends: Vec<Lsn> = (2..5).map(|n| append(&log, n, len - n as usize)).collect();
    log.flush_to(ends[2]).unwrap();
    let (_, scan) = open(&device.cut(3));
    assert_eq!(scan.groups.len(), 4);
    assert_eq!(payloads(&scan)[3], payload(4, len - 4));
    let error = log.reserve(len as u64 + 1).map(drop).unwrap_err();
    assert!(matches!(error, Error::LogTooSmall { .. }), "{error}");
}

#[test]
fn a_full_buffer_is_written_by_the_appender() {
    let stats = Arc::new(Stats::default());
    let device = MemoryDevice::new();
    Log::create(Arc::new(device.clone()), 16 << 20, ID).unwrap();
    let (log, scan) = Log::open(Arc::new(device), 1 << 20, 0, ID, stats.clone(), Arc::default()).unwrap();
    log.start(scan.end_lsn).unwrap();
    let syncs = stats.log_syncs.get();
    for n in 0..5000 {
        append(&log, n, 1000);
    }
    assert!(log.written_lsn().0 > 4 << 20 && log.durable_lsn() < log.written_lsn());
    assert_eq!(stats.log_syncs.get(), syncs, "making room needs no sync");
    log.sync_step().unwrap();
    assert_eq!(log.durable_lsn(), log.end_lsn());
    assert_eq!(stats.redo_bytes.get(), 5000 * 1008);
}

#[test]
fn commit_waits_for_what_its_mode_says() {
    for (mode, written, durable) in [(0, false, false), (1, true, true), (2, true, false)] {
        let device = new_device();
        let (log, scan) = open_as(Arc::new(device.clone()), mode).unwrap();
        log.start(scan.end_lsn).unwrap();
        let lsn = append(&log, 1, 10);
        log.commit(lsn).unwrap();
        assert_eq!((log.written_lsn() >= lsn, log.durable_lsn() >= lsn), (written, durable), "mode {mode}");
        log.sync_step().unwrap();
        assert_eq!(log.durable_lsn(), lsn);
        let syncs = log.stats.log_syncs.get();
        log.commit(lsn).unwrap();
        log.sync_step().unwrap();
        assert_eq!(log.stats.log_syncs.get(), syncs, "nothing new, nothing synced");
    }
}

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
fn reservations_are_given_back() {
    let log = started(&new_device());
    for n in 0..100 {
        drop(log.reserve(CAPACITY - 28 * n - 8).unwrap());
        log.append(log.reserve(CAPACITY / 2).unwrap(), &payload(n, 20), |_, _| {});
    }
    let rest = CAPACITY - 100 * 28;
    drop(log.reserve(rest - 8).unwrap());
    log.checkpoint(log.end_lsn()).unwrap();
    drop(log.reserve(CAPACITY - 8).unwrap());
    assert_eq!(log.stats.log_waits.get(), 0);
}

#[test]
fn reserve_waits_for_a_checkpoint_and_asks_for_it() {
    let log = Arc::new(started(&new_device()));
    append(&log, 1, CAPACITY as usize - 100);
    let asked = Arc::new(AtomicUsize::new(0));
    let (counter, weak) = (asked.clone(), Arc::downgrade(&log));
    log.on_pressure(Box::new(move || {
        // The third request is heard, without a thread of its own: what a simulator does.
        if counter.fetch_add(1, Ordering::SeqCst) == 2 {
            let log = weak.upgrade().unwrap();
            log.checkpoint(log.end_lsn()).unwrap();
        }
    }));
    append(&log, 2, 5000);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    assert_eq!(log.stats.log_waits.get(), 1);
    assert!(log.stats.log_wait_us.get() > 0);
}

#[test]
fn a_waiter_goes_on_when_another_gives_its_reservation_back() {
    let log = started(&new_device());
    let held = log.reserve(CAPACITY - 100).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| log.reserve(1000).map(|_| ()));
        while log.space_waiting() == 0 {
            std::thread::yield_now();
        }
        drop(held);
        waiter.join().unwrap().unwrap();
    });
}

#[test]
fn poison_wakes_who_waits_for_room() {
    let log = started(&new_device());
    let _held = log.reserve(CAPACITY - 100).unwrap();
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..3).map(|_| scope.spawn(|| log.reserve(1000).map(|_| ()))).collect();
        while log.space_waiting() < 3 {
            std::thread::yield_now();
        }
        log.poison.set("a test");
        for waiter in waiters {
            assert!(is_poisoned(waiter.join().unwrap()));
        }
    });
    assert!(is_poisoned(log.reserve(1).map(drop)));
    assert!(is_poisoned(log.checkpoint(log.end_lsn())));
    assert!(is_poisoned(log.commit(log.end_lsn())));
}

#[test]
fn many_threads_in_a_tiny_ring_all_get_through() {
    let device = new_device();
    let log = Arc::new(started(&device));
    let weak = Arc::downgrade(&log);
    log.on_pressure(Box::new(move || {
        let log = weak.upgrade().unwrap();
        log.checkpoint(log.end_lsn()).unwrap();
    }));
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let log = &log;
            scope.spawn(move || {
                for n in 0..200 {
                    let most = if thread == 0 { CAPACITY - 8 } else { 8000 };
                    let reservation = log.reserve(most).unwrap();
                    log.append(reservation, &payload(n, 1 + (n * 97 % 3000) as usize), |_, _| {});
                }
            });
        }
    });
    log.checkpoint(log.end_lsn()).unwrap();
    drop(log.reserve(CAPACITY - 8).unwrap());
}

/// A device whose syncs take a while.
struct Slow(Arc<dyn Device>);

impl Device for Slow {
    fn name(&self) -> String {
        self.0.name()
    }
    fn len_bytes(&self) -> highwater_storage::Result<u64> {
        self.0.len_bytes()
    }
    fn set_len_bytes(&self, len: u64) -> highwater_storage::Result<()> {
        self.0.set_len_bytes(len)
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> highwater_storage::Result<()> {
        self.0.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> highwater_storage::Result<()> {
        self.0.write_at(offset, data, placement)
    }
    fn sync(&self) -> highwater_storage::Result<()> {
        std::thread::sleep(Duration::from_millis(2));
        self.0.sync()
    }
    fn discard(&self, offset: u64, len: u64) -> highwater_storage::Result<()> {
        self.0.discard(offset, len)
    }
    fn alignment_bytes(&self) -> usize {
        self.0.alignment_bytes()
    }
}

#[test]
fn threads_that_commit_together_share_syncs() {
    const THREADS: u64 = 16;
    const COMMITS: u64 = 20;
    let memory = MemoryDevice::new();
    Log::create(Arc::new(memory.clone()), 4 << 20, ID).unwrap();
    let counted = Counted::new(Arc::new(Slow(Arc::new(memory.clone()))));
    let (log, scan) = open_as(counted.clone(), 1).unwrap();
    log.start(scan.end_lsn).unwrap();
    let syncs = counted.counts().syncs;
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let log = &log;
            let commit = move |n: u64| {
                let lsn = append(log, thread * 1000 + n, 200);
                log.commit(lsn).unwrap();
                assert!(log.durable_lsn() >= lsn);
            };
            scope.spawn(move || (0..COMMITS).for_each(commit));
        }
    });
    let syncs = counted.counts().syncs - syncs;
    assert!(syncs * 4 < THREADS * COMMITS, "{syncs} syncs");
    let (_, scan) = open(&memory.cut(9));
    assert_eq!(scan.groups.len() as u64, THREADS * COMMITS);
}

#[test]
fn power_cuts_under_many_threads_lose_nothing_acknowledged() {
    let memory = MemoryDevice::new();
    Log::create(Arc::new(memory.clone()), 256 << 10, ID).unwrap();
    let (log, scan) = open_as(Arc::new(memory.clone()), 1).unwrap();
    log.start(scan.end_lsn).unwrap();
    let acknowledged = AtomicU64::new(0);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (log, acknowledged, stop) = (&log, &acknowledged, &stop);
            scope.spawn(move || {
                let mut n = thread;
                while !stop.load(Ordering::Relaxed) {
                    let lsn = append(log, n, 1 + (n * 131 % 2500) as usize);
                    log.flush_to(lsn).unwrap();
                    acknowledged.fetch_max(lsn.0, Ordering::SeqCst);
                    if lsn.0.saturating_sub(log.checkpoint_lsn().0) > 150 << 10 {
                        log.checkpoint(lsn).unwrap();
                    }
                    n += 4;
                }
            });
        }
        let cut_loses = |seed: &u64| {
            let before = Lsn(acknowledged.load(Ordering::SeqCst));
            open_as(Arc::new(memory.cut(*seed)), 1).map_or(true, |(_, scan)| scan.end_lsn < before)
        };
        // Until the ring has gone round, however slow the machine is; not for ever, should the writers fail.
        let goes_on = |seed: &u64| *seed < 300 || (*seed < 100_000 && acknowledged.load(Ordering::SeqCst) <= 300 << 10);
        let losses: Vec<u64> = (0..).take_while(goes_on).filter(cut_loses).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(losses.is_empty(), "cuts {losses:?}");
    });
    assert!(acknowledged.into_inner() > 300 << 10);
}

#[test]
fn a_failed_write_or_sync_poisons_for_good() {
    for (operation, kind) in [(Operation::Sync, FaultKind::ErrorOnce), (Operation::Write, FaultKind::DiskFull)] {
        let (device, faults) = (new_device(), Faults::new());
        let (log, scan) = open_as(faults.wrap(Arc::new(device.clone())), 1).unwrap();
        log.start(scan.end_lsn).unwrap();
        let before = append(&log, 1, 100);
        log.commit(before).unwrap();
        let held = log.reserve(100).unwrap();
        let lsn = append(&log, 2, 100);
        faults.fail(operation, 1, kind);
        assert!(matches!(log.commit(lsn), Err(Error::Storage(_))));
        let changes = faults.changes();
        faults.clear();
        assert!(is_poisoned(log.commit(lsn)) && is_poisoned(log.commit(before)) && is_poisoned(log.sync_step()));
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
    let (log, scan) = open_as(Arc::new(Slow(faults.wrap(Arc::new(memory)))), 1).unwrap();
    log.start(scan.end_lsn).unwrap();
    faults.fail(Operation::Sync, 1, FaultKind::ErrorForGood);
    std::thread::scope(|scope| {
        let commit = |n| append(&log, n, 50);
        let threads: Vec<_> = (0..8).map(|n| scope.spawn(move || commit(n))).collect();
        let ends: Vec<Lsn> = threads.into_iter().map(|t| t.join().unwrap()).collect();
        let log = &log;
        let waiters: Vec<_> = ends.into_iter().map(|lsn| scope.spawn(move || log.commit(lsn))).collect();
        assert!(waiters.into_iter().all(|w| w.join().unwrap().is_err()));
    });
}

#[test]
fn a_full_buffer_on_a_failed_device_does_not_hang_the_appender() {
    let faults = Faults::new();
    let device = MemoryDevice::new();
    Log::create(Arc::new(device.clone()), 16 << 20, ID).unwrap();
    let (log, scan) = open_as(faults.wrap(Arc::new(device)), 1).unwrap();
    log.start(scan.end_lsn).unwrap();
    faults.fail(Operation::Write, 1, FaultKind::ErrorForGood);
    let mut ends = Vec::new();
    while let Ok(reservation) = log.reserve(1 << 16) {
        ends.push(log.append(reservation, &payload(1, 1 << 16), |_, _| {}));
    }
    assert!(ends.len() >= 16 && ends.is_sorted());
}

#[test]
fn a_damaged_header_is_refused_or_the_other_one_used() {
    let device = new_device();
    let log = started(&device);
    log.flush_to(append(&log, 1, 100)).unwrap();
    drop(log);
    let newest = device.image()[..2 * 4096].to_vec();
    for at in (0..64).chain([100, 511, 512, 4095]) {
        let both = device.cut(0);
        both.damage(|b| [at, at + 4096].iter().for_each(|&i| b[i] ^= 0x40));
        let error = open_as(Arc::new(both), 1).map(drop).unwrap_err();
        let foreign = at < 8;
        assert_eq!(matches!(error, Error::Incompatible(_)), foreign, "byte {at}: {error}");
        assert_eq!(matches!(error, Error::Corrupt(_)), !foreign, "byte {at}: {error}");
        let one = |slot: usize| {
            let one = device.cut(0);
            one.damage(|b| b[slot + at] ^= 0x40);
            open_as(Arc::new(one), 1)
        };
        // The log was started once, so the newest header is the third.
        assert_eq!(one(0).unwrap().1.groups.len(), 1, "byte {at}");
        let error = one(4096).map(drop).unwrap_err();
        assert!(matches!(&error, Error::Corrupt(what) if what.contains("newest header")), "byte {at}: {error}");
    }
    assert_eq!(device.image()[..2 * 4096], newest[..], "a refused log is left as it was");
}

#[test]
fn files_that_are_no_log_of_this_database_are_refused() {
    let refuse = |device: MemoryDevice| open_as(Arc::new(device), 1).map(drop).unwrap_err();
    for image in [vec![], vec![0; 100], vec![0; 8192], b"PK\x03\x04".repeat(5000)] {
        let error = refuse(MemoryDevice::holding(image));
        assert!(matches!(error, Error::Incompatible(_)), "{error}");
    }
    let other = MemoryDevice::new();
    Log::create(Arc::new(other.clone()), SMALL, ID + 1).unwrap();
    let error = refuse(other);
    assert!(matches!(&error, Error::Incompatible(what) if what.contains("belongs to database")), "{error}");
    for len in [SMALL as usize - 4096, 8192] {
        let cut = new_device();
        cut.damage(|bytes| bytes.resize(len, 0));
        let error = refuse(cut);
        assert!(matches!(&error, Error::Corrupt(what) if what.contains("was made with")), "{error}");
    }
    let longer = new_device();
    longer.damage(|bytes| bytes.resize(2 * SMALL as usize, 7));
    let (log, scan) = open_as(Arc::new(longer), 1).unwrap();
    assert_eq!((log.geometry.capacity_bytes(), scan.groups.len()), (Geometry::new(SMALL).capacity_bytes(), 0));
    let error = Log::create(Arc::new(MemoryDevice::new()), SMALL - 1, ID).unwrap_err();
    assert!(matches!(error, Error::BadOption { .. }), "{error}");
    let error = Log::create(Arc::new(MemoryDevice::limited(1 << 20)), 4 << 20, ID).unwrap_err();
    assert!(matches!(&error, Error::Storage(e) if e.is_full()), "{error}");
}

#[test]
fn a_header_that_verifies_but_makes_no_sense_is_corrupt() {
    let device = new_device();
    let good = started(&device).io.lock().header;
    let bad = [
        format::Header { checkpoint_lsn: Lsn(0), ..good },
        format::Header { checkpoint_lsn: Lsn(u64::MAX), ..good },
        format::Header { size_bytes: 0, ..good },
        format::Header { size_bytes: u64::MAX, ..good },
    ];
    for header in bad.map(|h| format::Header { sequence: good.sequence + 1, ..h }) {
        let damaged = device.cut(0);
        damaged.damage(|b| header.encode(&mut b[header.offset() as usize..][..4096]));
        let error = open_as(Arc::new(damaged), 1).map(drop).unwrap_err();
        assert!(matches!(error, Error::Corrupt(_)), "{header:?}: {error}");
    }
}

#[test]
fn a_crash_at_any_write_of_a_checkpoint_leaves_a_usable_log() {
    for crash_at in 0..8 {
        let (device, faults) = (new_device(), Faults::new());
        let (log, scan) = open_as(faults.wrap(Arc::new(device.clone())), 1).unwrap();
        log.start(scan.end_lsn).unwrap();
        let first = append(&log, 1, 100);
        log.flush_to(first).unwrap();
        faults.power_off_after(crash_at);
        let _ = log.checkpoint(first);
        let second = log.reserve(100).map(|room| log.append(room, &payload(2, 100), |_, _| {}));
        let acknowledged = second.as_ref().is_ok_and(|&lsn| log.flush_to(lsn).is_ok());
        for seed in 0..40 {
            let (_, scan) = open(&device.cut(seed));
            let found = payloads(&scan);
            let (all, rest) = ([payload(1, 100), payload(2, 100)], [payload(2, 100)]);
            let is_prefix =
                if scan.checkpoint_lsn == first { rest.starts_with(&found) } else { all.starts_with(&found) };
            assert!(is_prefix && (scan.checkpoint_lsn == first || !found.is_empty()), "crash {crash_at} seed {seed}");
            assert!(
                !acknowledged || second.as_ref().is_ok_and(|&lsn| lsn == scan.end_lsn),
                "crash {crash_at} seed {seed}"
            );
        }
    }
}

#[test]
fn creation_is_quick_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let set = highwater_storage::StorageSet::open_dir(folder.path(), None, Default::default(), true).unwrap();
    let since = Instant::now();
    Log::create(set.redo.clone(), 8 << 20, ID).unwrap();
    assert!(since.elapsed() < Duration::from_secs(20));
    let (log, scan) = open_as(set.redo.clone(), 1).unwrap();
    log.start(scan.end_lsn).unwrap();
    let ends: Vec<Lsn> = (0..10).map(|n| append(&log, n, 300_000)).collect();
    log.commit(ends[9]).unwrap();
    let (_, scan) = open_as(set.redo.clone(), 1).unwrap();
    assert_eq!(scan.end_lsn, ends[9]);
}

/// One step of a random history.
#[derive(Clone, Debug)]
enum Step {
    Append(usize),
    Flush,
    Write,
    Checkpoint(usize),
    /// Power cut with this seed, then recovery and a new generation.
    Cut(u64),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        8 => prop_oneof![1usize..300, 3000usize..9000].prop_map(Step::Append),
        2 => Just(Step::Flush),
        1 => Just(Step::Write),
        1 => (0usize..20).prop_map(Step::Checkpoint),
        2 => any::<u64>().prop_map(Step::Cut),
    ]
}

/// Groups after the checkpoint, by start LSN.
#[derive(Default)]
struct Model {
    groups: Vec<(Lsn, Lsn, Vec<u8>)>,
    number: u64,
}

impl Model {
    fn append(&mut self, log: &Log, len: usize) {
        if log.end_lsn().0 - log.checkpoint_lsn().0 + len as u64 + 8 > log.capacity_bytes() {
            log.checkpoint(log.end_lsn()).unwrap();
            self.groups.clear();
        }
        self.number += 1;
        let (bytes, mut start) = (payload(self.number, len), Lsn(0));
        let end = log.append(log.reserve(len as u64).unwrap(), &bytes, |from, _| start = from);
        self.groups.push((start, end, bytes));
    }

    fn checkpoint(&mut self, log: &Log, keep: usize) {
        let drop = self.groups.len().saturating_sub(keep);
        let lsn = self.groups.get(drop).map_or(log.end_lsn(), |g| g.0);
        log.checkpoint(lsn).unwrap();
        self.groups.drain(..drop);
    }

    /// What is found is a prefix of what was appended, and holds all that was durable.
    fn check(&self, scan: &Found, checkpoint: Lsn, durable: Lsn) {
        assert_eq!(scan.checkpoint_lsn, checkpoint);
        assert!(scan.end_lsn >= durable);
        assert!(scan.groups.len() <= self.groups.len());
        for ((end, bytes), (_, want_end, want)) in scan.groups.iter().zip(&self.groups) {
            assert_eq!((end, bytes), (want_end, want));
        }
        assert_eq!(scan.groups.last().map_or(checkpoint, |g| g.0), scan.end_lsn);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(150))]

    #[test]
    fn every_acknowledged_group_survives_every_cut(steps in prop::collection::vec(step(), 1..120)) {
        let mut device = new_device();
        let mut log = started(&device);
        let mut model = Model::default();
        for step in steps {
            match step {
                Step::Append(len) => model.append(&log, len),
                Step::Flush => log.flush_to(log.end_lsn()).unwrap(),
                Step::Write => log.write_to(log.end_lsn()).unwrap(),
                Step::Checkpoint(keep) => model.checkpoint(&log, keep),
                Step::Cut(seed) => {
                    let (checkpoint, durable) = (log.checkpoint_lsn(), log.durable_lsn());
                    device = device.cut(seed);
                    let (next, scan) = open(&device);
                    model.check(&scan, checkpoint, durable);
                    next.start(scan.end_lsn).unwrap();
                    model.groups.clear();
                    log = next;
                }
            }
        }
    }

    #[test]
    fn garbage_in_the_ring_is_never_taken_for_a_group(
        bytes in prop::collection::vec(any::<u8>(), 1..5000),
        groups in 0u64..10,
        at in 0usize..60_000,
    ) {
        let device = new_device();
        let log = started(&device);
        let ends: Vec<Lsn> = (0..groups).map(|n| append(&log, n, 700)).collect();
        log.flush_to(log.end_lsn()).unwrap();
        let whole = device.image();
        device.damage(|image| {
            let at = 8192 + at % (image.len() - 8192 - bytes.len());
            image[at..at + bytes.len()].copy_from_slice(&bytes);
        });
        let image = device.image();
        let (_, scan) = open(&device);
        for (n, (end, bytes)) in scan.groups.iter().enumerate() {
            prop_assert_eq!((*end, &bytes[..]), (ends[n], &payload(n as u64, 700)[..]));
        }
        prop_assert!(image != whole || scan.groups.len() as u64 == groups);
    }

    #[test]
    fn any_bytes_at_all_open_or_are_refused(image in prop::collection::vec(any::<u8>(), 0..100_000), keep_headers: bool) {
        let good = new_device().image();
        let mut image = image;
        if keep_headers {
            image.resize(good.len(), 0xFF);
            image[..8192].copy_from_slice(&good[..8192]);
        }
        let result = open_as(Arc::new(MemoryDevice::holding(image)), 1);
        prop_assert_eq!(result.is_ok(), keep_headers);
    }
}

impl Log {
    fn space_waiting(&self) -> usize {
        self.space.waiting()
    }
}
