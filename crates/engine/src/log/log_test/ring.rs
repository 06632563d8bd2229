//! What was appended is found, and nothing else.

use super::*;

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
    // As if recovery had found nothing worth keeping: the same LSNs are assigned again in the new generation.
    let before = log.writer().header();
    log.start(scan.end_lsn).unwrap();
    assert_eq!(log.writer().header().generation, before.generation + 1);
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
    let header = log.writer().header();
    device.damage(|bytes| {
        let next = format::LogHeader { generation: header.generation + 1, sequence: header.sequence + 1, ..header };
        next.encode(&mut bytes[next.offset() as usize..][..format::BLOCK_BYTES as usize]);
    });
    let (_, scan) = open(&device);
    assert_eq!((scan.groups.len(), scan.checkpoint_lsn), (0, checkpoint));
}

#[test]
fn a_group_of_a_mebibyte_fits_the_smallest_buffer() {
    let device = MemoryDevice::new();
    Log::create(Arc::new(device.clone()), 4 << 20, ID).unwrap();
    let (log, scan) =
        Log::open(Arc::new(device.clone()), 0, FlushLog::Sync, ID, None, Arc::default(), Arc::default()).unwrap();
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
    let (log, scan) =
        Log::open(Arc::new(device), 1 << 20, FlushLog::EverySecond, ID, None, stats.clone(), Arc::default()).unwrap();
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
    let modes = [(FlushLog::EverySecond, false, false), (FlushLog::Sync, true, true), (FlushLog::Write, true, false)];
    for (mode, written, durable) in modes {
        let device = new_device();
        let (log, scan) = open_as(Arc::new(device.clone()), mode).unwrap();
        log.start(scan.end_lsn).unwrap();
        let lsn = append(&log, 1, 10);
        log.commit(lsn, None).unwrap();
        assert_eq!((log.written_lsn() >= lsn, log.durable_lsn() >= lsn), (written, durable), "mode {mode:?}");
        log.sync_step().unwrap();
        assert_eq!(log.durable_lsn(), lsn);
        let syncs = log.ring().stats().log_syncs.get();
        log.commit(lsn, None).unwrap();
        log.sync_step().unwrap();
        assert_eq!(log.ring().stats().log_syncs.get(), syncs, "nothing new, nothing synced");
    }
}
