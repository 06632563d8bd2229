//! Tests of `crash`.

use super::*;
use crate::promises::Faults;
use crate::store::MemoryStore;

const LEN: u64 = 1 << 20;

fn promises(atomic_write_bytes: u32) -> Promises {
    Promises { atomic_write_bytes, ..Promises::default() }
}

fn with_fault(set: impl Fn(&mut Faults)) -> Promises {
    let mut promises = promises(4096);
    set(&mut promises.faults);
    promises
}

/// Writes `n` filled blocks of 4 KiB, block i with the byte i + 1.
fn write_blocks(log: &mut CrashLog, store: &dyn Store, blocks: Range<u64>) {
    for i in blocks {
        log.before_write(store, i * BLOCK..(i + 1) * BLOCK, 0, 0).unwrap();
        store.write(i * BLOCK, &[i as u8 + 1; BLOCK as usize]).unwrap();
    }
}

fn block(store: &dyn Store, i: u64) -> Vec<u8> {
    let mut buf = vec![0; BLOCK as usize];
    store.read(i * BLOCK, &mut buf).unwrap();
    buf
}

/// Runs 16 flushed and 16 unflushed block writes, cuts, and tells how many of each survived whole, and whether any
/// block is mixed.
fn cut(promises: Promises, seed: u64) -> (usize, usize, usize, CutReport) {
    let (store, mut log) = (MemoryStore::new(LEN), CrashLog::new(promises, LOG_BYTES));
    write_blocks(&mut log, &store, 0..16);
    log.flush(0, 0);
    write_blocks(&mut log, &store, 16..32);
    let (report, _) = log.cut(&store, seed, 256, 0).unwrap();
    let whole = |i: u64| block(&store, i).iter().all(|b| *b == i as u8 + 1);
    let empty = |i: u64| block(&store, i).iter().all(|b| *b == 0);
    let mixed = (0..32).filter(|i| !whole(*i) && !empty(*i)).count();
    ((0..16).filter(|i| whole(*i)).count(), (16..32).filter(|i| whole(*i)).count(), mixed, report)
}

#[test]
fn flushed_writes_survive_and_others_may_not() {
    let results: Vec<_> = (0..600).map(|seed| cut(promises(4096), seed)).collect();
    assert!(results.iter().all(|r| r.0 == 16 && r.2 == 0), "honest: nothing flushed is lost, nothing tears");
    for survivors in [0, 16] {
        assert!(results.iter().any(|r| r.1 == survivors), "{survivors} of 16 must be possible");
    }
    assert!(results.iter().any(|r| (1..16).contains(&r.1)));
    assert_eq!(cut(promises(4096), 5), cut(promises(4096), 5), "a seed fixes the outcome");
}

#[test]
fn a_protected_device_loses_only_what_was_under_way() {
    for seed in 0..50 {
        let (flushed, unflushed, mixed, report) = cut(Promises::protected(4096), seed);
        assert_eq!((flushed, unflushed, mixed, report.pending_writes), (16, 16, 0, 0));
    }
    let (store, mut log) = (MemoryStore::new(LEN), CrashLog::new(Promises::protected(512), LOG_BYTES));
    let torn = (0..50u64).filter(|seed| {
        store.write(0, &[0; 16384]).unwrap();
        log.before_write(&store, 0..16384, NEVER, 0).unwrap();
        store.write(0, &[9; 16384]).unwrap();
        log.cut(&store, *seed, 256, 0).unwrap().0.torn_writes == 1
    });
    assert!(torn.count() > 5);
}

#[test]
fn several_writes_of_one_block_leave_any_version() {
    let mut seen = BTreeSet::new();
    for seed in 0..100 {
        let (store, mut log) = (MemoryStore::new(LEN), CrashLog::new(promises(4096), LOG_BYTES));
        for version in 1..=3u8 {
            log.before_write(&store, 0..BLOCK, 0, 0).unwrap();
            store.write(0, &[version; BLOCK as usize]).unwrap();
        }
        log.cut(&store, seed, 256, 0).unwrap();
        seen.insert(block(&store, 0)[0]);
    }
    assert_eq!(seen.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
}

#[test]
fn a_full_log_makes_the_oldest_writes_durable() {
    let (store, mut log) = (MemoryStore::new(LEN), CrashLog::new(promises(4096), 8 * BLOCK as usize));
    write_blocks(&mut log, &store, 0..32);
    let (report, _) = log.cut(&store, 1, 256, 0).unwrap();
    assert_eq!(report.pending_writes, 8);
    assert!((0..24).all(|i| block(&store, i)[0] == i as u8 + 1));
}

// Each fault must have an effect: with it on, something happens that never happens without it (see the honest device
// above).

#[test]
fn shorn_writes_bite() {
    let shorn = (0..100).filter(|seed| cut(with_fault(|f| f.shorn_writes = true), *seed).2 > 0);
    assert!(shorn.count() > 20);
}

#[test]
fn unserializable_writes_bite() {
    let results = (0..100).map(|seed| cut(with_fault(|f| f.unserializable_writes = true), seed));
    let bitten: Vec<_> = results.filter(|r| r.0 < 16).collect();
    assert!(bitten.len() > 50);
    assert!(bitten.iter().all(|r| r.3.flushed_writes_lost > 0));
    assert!(bitten.iter().any(|r| r.1 > 0), "later writes survive earlier, flushed ones");
}

#[test]
fn lying_flushes_bite() {
    assert!((0..50).any(|seed| cut(with_fault(|f| f.lying_flush = true), seed).0 < 16));
}

#[test]
fn bit_corruption_bites() {
    for seed in 0..20 {
        let (_, _, mixed, report) = cut(with_fault(|f| f.bit_corruption = true), seed);
        assert!(report.flipped_bits > 0 && mixed > 0);
    }
}

#[test]
fn metadata_corruption_and_death_bite() {
    let (store, mut dead) = (MemoryStore::new(LEN), 0);
    for seed in 0..40 {
        let faults = |f: &mut Faults| (f.metadata_corruption, f.dead_device) = (true, true);
        let mut log = CrashLog::new(with_fault(faults), LOG_BYTES);
        write_blocks(&mut log, &store, 0..4);
        log.flush(0, 0);
        let (report, damage) = log.cut(&store, seed, 256, 0).unwrap();
        assert_eq!(
            (report.unreadable_blocks, damage.unreadable.len()),
            (256, 256),
            "one page of the map, cut at the device's end"
        );
        dead += usize::from(report.dead);
    }
    assert!((4..20).contains(&dead), "{dead} of 40");
}
