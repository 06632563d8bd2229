//! A ring that grows loses nothing, and says how large it is.

use super::*;
use crate::log::RedoReader;
use crate::testing::is_tried;
use highwater_storage::Limited;

const MAX_BYTES: u64 = 200 * format::BLOCK_BYTES;

/// What a run had acknowledged.
#[derive(Default)]
struct Run {
    /// Start, number and length of each group since the checkpoint.
    groups: Vec<(Lsn, u64, usize)>,
    /// Everything before this was flushed.
    durable: Lsn,
    grown: u32,
}

/// Appends, flushes, grows and moves the checkpoint, until something fails.
fn run(device: Arc<dyn Device>, seed: u64, mode: FlushLog) -> Run {
    let (mut random, mut run) = (fastrand::Rng::with_seed(seed), Run::default());
    let Ok((log, found)) = open_growing(device, mode, MAX_BYTES) else { return run };
    if log.start(found.end_lsn).is_err() {
        return run;
    }
    run.durable = log.end_lsn();
    for n in 0..1500 {
        let (start, len) = (log.end_lsn(), random.usize(1..900));
        append(&log, n, len);
        run.groups.push((start, n, len));
        let size = log.size_bytes();
        let done = match random.u32(..20) {
            0..8 => log.flush_to(log.end_lsn()).map(|()| run.durable = log.end_lsn()),
            8..10 => log.growth_step().map(drop),
            _ => Ok(()),
        };
        run.grown += u32::from(log.size_bytes() > size);
        let is_full = log.end_lsn().0 - log.checkpoint_lsn().0 > log.capacity_bytes() - 2000;
        if done.is_err() || is_full && log.checkpoint(run.groups[run.groups.len() / 2].0).is_err() {
            break;
        }
        run.groups.retain(|(start, ..)| *start >= log.checkpoint_lsn());
    }
    run
}

#[test]
fn a_power_cut_at_any_write_or_sync_of_a_growing_ring_loses_nothing() {
    for seed in 0..6 {
        let mode = if seed % 2 == 0 { FlushLog::Sync } else { FlushLog::Write };
        let (device, faults) = (new_device(), Faults::new());
        let whole = run(faults.wrap(Arc::new(device.clone())), seed, mode);
        assert_eq!((whole.grown, device.len_bytes().unwrap()), (4, MAX_BYTES), "18 blocks, 36, 72, 144, 200");
        for at in (0..faults.changes()).step_by(3).filter(|at| is_tried(at / 3)) {
            let (device, faults) = (new_device(), Faults::new());
            faults.power_off_after(at);
            let run = run(faults.wrap(Arc::new(device.clone())), seed, mode);
            let cut = device.cut(seed << 32 | at);
            let (log, found) = open_growing(Arc::new(cut), FlushLog::Sync, MAX_BYTES).unwrap();
            assert!(found.end_lsn >= run.durable, "seed {seed}, cut {at}: {} of {}", found.end_lsn, run.durable);
            let here = run.groups.iter().filter(|(start, ..)| *start >= found.checkpoint_lsn && *start < found.end_lsn);
            let expected: Vec<Vec<u8>> = here.map(|(_, n, len)| payload(*n, *len)).collect();
            let found = payloads(&found);
            assert!(found.ends_with(&expected), "seed {seed}, cut {at}");
            drop(log);
        }
    }
}

/// The thread that grows the ring has checkpoints to move meanwhile.
#[test]
fn room_is_made_in_pieces() {
    let device = new_device();
    let (log, found) = open_growing(Arc::new(device.clone()), FlushLog::Sync, 16 << 20).unwrap();
    log.start(found.end_lsn).unwrap();
    let fill = || append(&log, 1, (log.capacity_bytes() / 8).min(200_000) as usize);
    while log.size_bytes() < 8 << 20 {
        fill();
        while log.growth_step().unwrap() {}
    }
    let (size_bytes, mut appends) = (log.size_bytes(), 0..100);
    while !log.growth_step().unwrap() {
        fill();
        assert!(appends.next().is_some() && log.size_bytes() == size_bytes, "half of the ring is free");
    }
    let zeros = device.unsynced().iter().map(|range| range.end - range.start).max();
    assert_eq!((log.size_bytes(), zeros), (size_bytes, Some(4 << 20)));
    assert!(!log.growth_step().unwrap());
    assert_eq!(log.size_bytes(), 16 << 20);
}

/// A reader that asks for redo from before the ring's base, as an archive may that was not followed for a time, gets
/// nothing.
#[test]
fn what_was_written_before_the_base_is_not_found() {
    let (log, found) = open_growing(Arc::new(new_device()), FlushLog::Sync, MAX_BYTES).unwrap();
    log.start(found.end_lsn).unwrap();
    let first = log.end_lsn();
    for n in 0..300 {
        let start = log.end_lsn();
        log.flush_to(append(&log, n, 700)).unwrap();
        // It goes round before it grows.
        if n < 200 {
            log.checkpoint(start).unwrap();
        }
        log.growth_step().unwrap();
    }
    assert!(log.writer().header().ring_base > first);
    assert_eq!(log.copy_groups(first..log.end_lsn(), log.generation(), |_, _| Ok(())).unwrap(), first);
}

#[test]
fn on_a_full_disk_the_ring_stays_as_it_is() {
    let device = new_device();
    let limited = Limited::new(Arc::new(device.clone()), SMALL + 10 * format::BLOCK_BYTES);
    let whole = run(limited, 1, FlushLog::Sync);
    assert_eq!((whole.grown, whole.groups.last().unwrap().1), (0, 1499));
    let (log, found) = open(&device);
    assert_eq!((log.size_bytes(), found.end_lsn >= whole.durable), (SMALL, true));
    // At the next opening there is space again.
    assert_eq!(run(Arc::new(device), 2, FlushLog::Sync).grown, 4);
}

#[test]
fn a_reader_goes_on_while_the_ring_grows() {
    let (log, found) = open_growing(Arc::new(new_device()), FlushLog::Sync, MAX_BYTES).unwrap();
    log.start(found.end_lsn).unwrap();
    let mut kept = Log::keep(log.clone(), RedoReader::Backup).unwrap();
    let (mut read, mut piece, mut expected) = (Vec::new(), Vec::new(), Vec::new());
    for n in 0..800 {
        expected.extend_from_slice(&payload(n, 700));
        let end = append(&log, n, 700);
        log.flush_to(end).unwrap();
        if n % 3 == 0 {
            kept.read(end, &mut piece).unwrap();
            read.extend_from_slice(&piece);
            kept.release(kept.at());
        }
        log.growth_step().unwrap();
        let behind = (n % if n < 200 { 60 } else { 250 }).min(n);
        log.checkpoint(Lsn(end.0 - 708 * behind)).unwrap();
    }
    assert_eq!(log.size_bytes(), 144 * format::BLOCK_BYTES);
    kept.read(log.end_lsn(), &mut piece).unwrap();
    read.extend_from_slice(&piece);
    let groups = read.chunks(700 + format::FRAME_BYTES).flat_map(|group| &group[format::FRAME_BYTES..]);
    assert!(groups.eq(expected.iter()), "{} bytes", read.len());
}
