//! A log that shrinks when it is started loses nothing, and says how large it is.

use super::*;
use crate::log::RedoReader;
use highwater_storage::{Limited, Request, TestDevice};

const LARGE: u64 = 144 * format::BLOCK_BYTES;

/// A log that has grown to `LARGE`, with groups in all of its ring, up to `groups`; not closed.
fn grown(groups: u64) -> (MemoryDevice, Lsn) {
    let device = new_device();
    let (log, found) = open_growing(Arc::new(device.clone()), FlushLog::Sync, LARGE).unwrap();
    log.start(found.end_lsn).unwrap();
    for n in 0..groups {
        let start = log.end_lsn();
        log.flush_to(append(&log, n, 700)).unwrap();
        log.growth_step().unwrap();
        if log.size_bytes() == LARGE && n % 100 == 0 {
            log.checkpoint(start).unwrap();
        }
    }
    assert_eq!((log.size_bytes(), device.len_bytes().unwrap()), (LARGE, LARGE));
    (device, log.end_lsn())
}

/// What a run in the smaller log came to.
struct Run {
    start: Option<Lsn>,
    durable: Lsn,
    appended: Vec<(Lsn, Vec<u8>)>,
}

/// Opens the log as one that may have `SMALL` bytes, and goes round its ring, until something fails.
fn run(device: Arc<dyn Device>) -> Run {
    let mut run = Run { start: None, durable: Lsn(0), appended: Vec::new() };
    let Ok((log, found)) = open_growing(device, FlushLog::Sync, SMALL) else { return run };
    if log.start(found.end_lsn).is_err() {
        return run;
    }
    (run.start, run.durable) = (Some(log.end_lsn()), log.end_lsn());
    for n in 1000..1150 {
        let start = log.end_lsn();
        let end = append(&log, n, 700);
        run.appended.push((end, payload(n, 700)));
        if log.flush_to(end).is_err() || n % 20 == 0 && log.checkpoint(start).is_err() {
            break;
        }
        run.durable = end;
    }
    run
}

#[test]
fn a_power_cut_at_any_write_or_sync_of_a_shrinking_log_loses_nothing() {
    let (image, end) = grown(600);
    let before = payloads(&open(&image).1);
    let (mut as_before, mut smaller, mut longer_files) = (0, 0, 0);
    for at in 0.. {
        let (device, faults) = (image.cut(at), Faults::new());
        faults.power_off_after(at);
        let run = run(faults.wrap(Arc::new(device.clone())));
        for seed in 0..20 {
            let cut = device.cut(seed << 32 | at);
            longer_files += u32::from(cut.len_bytes().unwrap() > open(&cut).0.size_bytes());
            let (log, found) = open_growing(Arc::new(cut.clone()), FlushLog::Sync, SMALL).unwrap();
            if log.generation() == 2 {
                assert_eq!((run.start, found.end_lsn, log.size_bytes()), (None, end, LARGE), "cut {at}, seed {seed}");
                assert!(payloads(&found) == before, "cut {at}, seed {seed}");
                as_before += 1;
            } else {
                assert_eq!(log.size_bytes(), SMALL, "cut {at}, seed {seed}");
                assert!(found.end_lsn >= run.durable, "cut {at}, seed {seed}: {} of {}", found.end_lsn, run.durable);
                let here = |end: &Lsn| *end > found.checkpoint_lsn && *end <= found.end_lsn;
                let expected = run.appended.iter().filter(|(end, _)| here(end));
                assert!(found.groups.iter().eq(expected), "cut {at}, seed {seed}");
                smaller += 1;
            }
            log.start(found.end_lsn).unwrap();
            assert_eq!((log.size_bytes(), cut.len_bytes().unwrap()), (SMALL, SMALL), "cut {at}, seed {seed}");
        }
        if !faults.is_power_off() {
            break;
        }
    }
    assert!(as_before > 20 && smaller > 1000 && longer_files > 20, "{as_before} {smaller} {longer_files}");
}

/// The header before says the same size: no append overwrites the positions of an older ring.
#[test]
fn a_header_damaged_after_a_log_has_shrunk_hides_nothing() {
    for appended in 0..30 {
        let (device, _) = grown(600);
        let (log, found) = open_growing(Arc::new(device.clone()), FlushLog::Sync, SMALL).unwrap();
        log.start(found.end_lsn).unwrap();
        for n in 0..appended {
            log.flush_to(append(&log, n, 700)).unwrap();
        }
        for slot in [0, format::BLOCK_BYTES] {
            let damaged = device.cut(0);
            damaged.damage(|bytes| bytes[slot as usize + 50] ^= 1);
            let (other, found) = open(&damaged);
            assert_eq!((found.end_lsn, other.size_bytes()), (log.end_lsn(), SMALL), "{appended} groups, slot {slot}");
        }
    }
}

#[test]
fn a_log_that_has_shrunk_grows_again() {
    let (device, _) = grown(600);
    run(Arc::new(device.clone()));
    let (log, found) = open_growing(Arc::new(device.clone()), FlushLog::Sync, LARGE).unwrap();
    assert_eq!(log.size_bytes(), SMALL);
    log.start(found.end_lsn).unwrap();
    let mut starts = Vec::new();
    for n in 0..1000 {
        starts.push(log.end_lsn());
        log.flush_to(append(&log, n, 700)).unwrap();
        log.growth_step().unwrap();
        // More than half of the ring is in use.
        let behind = log.capacity_bytes() as usize / 10 * 6 / 708;
        if let Some(first) = starts.len().checked_sub(behind) {
            log.checkpoint(starts[first]).unwrap();
        }
    }
    drop(log);
    let (log, found) = open(&device);
    let expected: Vec<Vec<u8>> = (0..1000).map(|n| payload(n, 700)).collect();
    assert_eq!(log.size_bytes(), LARGE);
    assert!(found.groups.len() > 300 && expected.ends_with(&payloads(&found)), "{} groups", found.groups.len());
}

#[test]
fn a_log_that_has_shrunk_gives_out_the_room_that_it_has() {
    let (device, _) = grown(600);
    let (log, found) = open_growing(Arc::new(device.clone()), FlushLog::Sync, SMALL).unwrap();
    log.start(found.end_lsn).unwrap();
    let mut appended = Vec::new();
    while let Some(room) = log.reserve_at_once(700) {
        let number = appended.len() as u64;
        log.flush_to(log.append(room, &payload(number, 700), |_, _| {})).unwrap();
        appended.push(payload(number, 700));
        assert!(appended.len() < 1000, "the ring is over full");
    }
    assert_eq!(payloads(&open(&device).1), appended);
    assert!(appended.len() as u64 > CAPACITY / 708 - 2, "{} groups", appended.len());
}

/// A full disk refuses nothing that makes a file shorter.
#[test]
fn a_full_disk_lets_a_log_shrink() {
    let (device, _) = grown(600);
    let whole = run(Limited::new(Arc::new(device.clone()), 0));
    assert_eq!((whole.appended.len(), device.len_bytes().unwrap()), (150, SMALL));
}

/// Discards respect the present position of blocks: redo that either header needs is not discarded.
#[test]
fn a_log_shrinks_on_a_device_that_prefers_discards() {
    let (device, _) = grown(600);
    let whole = run(preferring_discards(Arc::new(device.clone())));
    let (log, found) = open(&device);
    assert_eq!((log.size_bytes(), found.end_lsn), (SMALL, whole.durable));
    assert!(whole.appended.ends_with(&found.groups) && found.groups.len() > 5);
}

/// Closes a log that has grown to `LARGE`, keeping `SMALL` bytes of it; whether it said that it was closed.
fn close(device: Arc<dyn Device>) -> bool {
    let Ok((log, found)) = open_growing(device, FlushLog::Sync, LARGE) else { return false };
    log.start(found.end_lsn).is_ok()
        && log.flush_to(append(&log, 7, 700)).is_ok()
        && log.checkpoint(log.end_lsn()).is_ok()
        && log.finish(log.end_lsn(), SMALL).is_ok()
}

#[test]
fn a_power_cut_while_a_log_shrinks_at_closing_loses_nothing() {
    let (image, _) = grown(600);
    let (mut open_still, mut closed, mut longer_files) = (0, 0, 0);
    for at in 0.. {
        let (device, faults) = (image.cut(at), Faults::new());
        faults.power_off_after(at);
        let is_closed = close(faults.wrap(Arc::new(device.clone())));
        for seed in 0..20 {
            let cut = device.cut(seed << 32 | at);
            longer_files += u32::from(cut.len_bytes().unwrap() > open(&cut).0.size_bytes());
            let (log, found) = open_growing(Arc::new(cut.clone()), FlushLog::Sync, LARGE).unwrap();
            match log.generation() {
                4 => {
                    assert_eq!((log.size_bytes(), found.groups.len()), (SMALL, 0), "cut {at}, seed {seed}");
                    assert_eq!(found.checkpoint_lsn, found.end_lsn, "cut {at}, seed {seed}");
                    closed += 1;
                }
                _ => {
                    assert!(!is_closed && log.size_bytes() == LARGE, "cut {at}, seed {seed}");
                    open_still += 1;
                }
            }
            log.start(found.end_lsn).unwrap();
            log.flush_to(append(&log, 9, 700)).unwrap();
            drop(log);
            let (log, found) = open(&cut);
            assert_eq!(cut.len_bytes().unwrap(), log.size_bytes(), "cut {at}, seed {seed}");
            assert!(payloads(&found) == [payload(9, 700)], "cut {at}, seed {seed}");
        }
        if !faults.is_power_off() {
            assert!(is_closed);
            break;
        }
    }
    assert!(open_still > 20 && closed > 100 && longer_files > 20, "{open_still} {closed} {longer_files}");
}

/// A growth frees space in pieces; a close may come between two of them.
#[test]
fn a_closed_log_leaves_no_room_of_a_growth_that_never_finished() {
    let (device, _) = grown(600);
    let (log, found) = open_growing(Arc::new(device.clone()), FlushLog::Sync, LARGE).unwrap();
    log.start(found.end_lsn).unwrap();
    log.checkpoint(log.end_lsn()).unwrap();
    device.set_len_bytes(2 * LARGE).unwrap();
    assert!(log.finish(log.end_lsn(), LARGE).unwrap());
    assert_eq!((log.size_bytes(), device.len_bytes().unwrap()), (LARGE, LARGE));
}

#[test]
fn a_log_that_a_reader_needs_keeps_its_size_at_closing() {
    for (keep_bytes, is_read, expected) in
        [(SMALL, false, SMALL), (SMALL, true, LARGE), (LARGE / 2 + format::BLOCK_BYTES, false, LARGE)]
    {
        let (device, _) = grown(600);
        let (log, found) = open_growing(Arc::new(device.clone()), FlushLog::Sync, LARGE).unwrap();
        log.start(found.end_lsn).unwrap();
        let kept = is_read.then(|| Log::keep(log.clone(), RedoReader::Archive).unwrap());
        log.flush_to(append(&log, 7, 700)).unwrap();
        log.checkpoint(log.end_lsn()).unwrap();
        log.finish(log.end_lsn(), keep_bytes).unwrap();
        drop(kept);
        assert_eq!((open(&device).0.size_bytes(), device.len_bytes().unwrap()), (expected, expected));
    }
}

#[test]
fn on_a_device_of_fixed_length_a_log_keeps_its_size() {
    let (device, _) = grown(600);
    let fixed = TestDevice::over(Arc::new(device.clone())).of_fixed_len().before(|request| {
        assert!(!matches!(request, Request::SetLen(_)), "its length is fixed");
        Ok(())
    });
    let (log, found) = open_growing(Arc::new(fixed), FlushLog::Sync, SMALL).unwrap();
    log.start(found.end_lsn).unwrap();
    assert_eq!((log.size_bytes(), log.max_bytes(), device.len_bytes().unwrap()), (LARGE, LARGE, LARGE));
}
