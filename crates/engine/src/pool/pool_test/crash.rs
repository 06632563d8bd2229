//! Power cuts, torn pages, and logs that lost their end.

use super::{FIELD, SEGMENT, get, new_page, put, try_put};
use crate::config::FlushLog;
use crate::db::open_parts::OpenParts;
use crate::error::Error;
use crate::log::Log;
use crate::page::PageOp;
use crate::pool::FlushReason;
use crate::space::SEGMENT_SYSTEM;
use crate::store::bootstrap;
use crate::testing::{open, seeded_options, small_options, small_parts};
use crate::types::{Lsn, PageNo};
use highwater_storage::{Faults, StorageSet};
use std::sync::Arc;

/// Two threads raise counters that do not fit the pool, with all background threads, until the power is cut; what was
/// acknowledged is there afterwards.
fn counters_after_a_power_cut(seed: u64) {
    let storage = StorageSet::memory();
    let faults = Faults::new();
    let mut core = open(storage.map(|device| faults.wrap(device)), seeded_options(seed));
    let pages: Vec<_> = (0..400).map(|_| new_page(&core.ctx, &core.space)).collect();
    // The checkpoint is after the pages' creation, so recovery takes them as the data file has them.
    core.ctx.pool.flush_all().unwrap();
    core.ctx.log.checkpoint(core.ctx.log.end_lsn()).unwrap();
    core.start_threads().unwrap();
    faults.power_off_after(300 + seed * 97 % 900);
    // Rare commits leave pages to be written whose redo is not durable yet.
    let commit_every = if seed.is_multiple_of(2) { 8 } else { 10_000 };
    let ctx = &core.ctx;
    let durable: Vec<Vec<u64>> = std::thread::scope(|scope| {
        let halves = pages.chunks(200).map(|half| {
            scope.spawn(move || {
                let mut durable = vec![0; half.len()];
                // However few device changes a scheduler lets them need, the power goes before this ends.
                for n in 0..50_000_000_usize {
                    let at = (n * 7919) % half.len();
                    let Ok(lsn) = try_put(ctx, half[at], n as u64 + 1) else { break };
                    if n % commit_every == 0 && ctx.log.flush_to(lsn).is_ok() {
                        durable[at] = n as u64 + 1;
                    }
                }
                durable
            })
        });
        halves.collect::<Vec<_>>().into_iter().map(|half| half.join().unwrap()).collect()
    });
    assert!(faults.is_power_off(), "seed {seed}: the load ended before the power went");
    drop(core);
    let image = storage.cut(seed);
    let redo = image.memory_devices().unwrap()[1].clone();
    let id = bootstrap::find(&image).unwrap().header().database_id;
    let end =
        Log::open(Arc::new(redo), 1 << 20, FlushLog::Sync, id, None, Arc::default(), Arc::default()).unwrap().1.end_lsn;
    let core = open(image, seeded_options(seed));
    for (page, least) in pages.iter().zip(durable.concat()) {
        let found = get(&core.ctx, *page);
        assert!(found >= least, "seed {seed}: page {page} holds {found}, {least} was durable");
        let lsn = core.ctx.pool.resident_lsn(*page);
        assert!(
            lsn.is_none_or(|lsn| lsn <= end),
            "seed {seed}: page {page} was written before its redo: {lsn:?} {end}"
        );
    }
}

#[test]
fn power_cuts_in_the_middle_of_eviction_and_flushing() {
    (0..27).for_each(counters_after_a_power_cut);
}

#[test]
fn what_was_durable_survives_a_power_cut() {
    for seed in 0..40 {
        let core = open(StorageSet::memory(), seeded_options(seed));
        let pages: Vec<_> = (0..300).map(|_| new_page(&core.ctx, &core.space)).collect();
        let mut durable = Lsn(0);
        for round in 0..5_u64 {
            for (n, p) in pages.iter().enumerate() {
                durable = put(&core.ctx, *p, round * 1000 + n as u64);
            }
            if round == seed % 5 {
                core.ctx.pool.flush_oldest(Lsn(u64::MAX), 100, FlushReason::CheckpointAge).unwrap();
            }
        }
        core.ctx.log.flush_to(durable).unwrap();
        let core = open(core.storage().cut(seed), seeded_options(seed));
        for (n, p) in pages.iter().enumerate() {
            assert_eq!(get(&core.ctx, *p), 4000 + n as u64, "seed {seed} page {p}");
            assert_eq!(core.space.owner(*p), Some(SEGMENT));
        }
        assert_eq!(core.space.owner(PageNo(0)), Some(SEGMENT_SYSTEM));
    }
}

fn flush(core: &OpenParts, page: PageNo, reason: FlushReason) {
    let frame = core.ctx.pool.frame_of(page).unwrap();
    assert_eq!(core.ctx.pool.flush_frames(&[frame], reason).unwrap(), 1);
}

/// A database of one page, changed since it was first in the store and `flushed` for that reason, without a checkpoint
/// since; and the page.
fn with_flushed_page(reason: FlushReason) -> (OpenParts, PageNo) {
    let core = small_parts();
    let page = new_page(&core.ctx, &core.space);
    flush(&core, page, reason);
    put(&core.ctx, page, 7);
    flush(&core, page, reason);
    (core, page)
}

fn damage(image: &StorageSet, page: PageNo) {
    let at = page.0 as usize * 4096;
    image.memory_devices().unwrap()[0].damage(|bytes| bytes[at + 2048..at + 4096].fill(0xaa));
}

#[test]
fn a_torn_page_is_repaired_from_every_area() {
    for reason in [FlushReason::LruList, FlushReason::CheckpointAge, FlushReason::SinglePage] {
        let (core, page) = with_flushed_page(reason);
        // Each cut keeps another part of what was not synced.
        for seed in 0..8 {
            let image = core.storage().cut(seed);
            damage(&image, page);
            let core = open(image, small_options());
            assert_eq!(core.repaired, vec![page], "{reason:?}, seed {seed}");
            assert_eq!(get(&core.ctx, page), 7);
        }
    }
}

/// A page that redo recreates goes to its place without a copy, once; torn there, it is recreated.
#[test]
fn a_new_page_needs_no_copy() {
    for reason in [FlushReason::LruList, FlushReason::CheckpointAge, FlushReason::SinglePage] {
        let core = small_parts();
        let page = new_page(&core.ctx, &core.space);
        put(&core.ctx, page, 7);
        let copied_bytes = || core.ctx.stats.snapshot().bytes_written_doublewrite;
        let before = copied_bytes();
        flush(&core, page, reason);
        assert_eq!(copied_bytes() - before, 4096, "the directory alone");
        let image = core.storage().cut(0);
        damage(&image, page);
        let again = open(image, small_options());
        assert_eq!((again.repaired.len(), get(&again.ctx, page)), (0, 7), "{reason:?}");
        put(&core.ctx, page, 8);
        flush(&core, page, reason);
        assert_eq!(copied_bytes() - before, 2 * 4096 + 4096, "with a copy");
    }
}

#[test]
fn of_several_copies_the_newest_is_put_back() {
    let reasons = [FlushReason::LruList, FlushReason::CheckpointAge, FlushReason::SinglePage];
    for newest in 0..3 {
        let (core, page) = with_flushed_page(reasons[(newest + 1) % 3]);
        let frame = core.ctx.pool.frame_of(page).unwrap();
        for value in [8, 9] {
            put(&core.ctx, page, value);
            core.ctx.pool.flush_frames(&[frame], reasons[(newest + 4 - (value as usize - 7)) % 3]).unwrap();
        }
        let image = core.storage().cut(0);
        damage(&image, page);
        let [data, redo, _] = image.memory_devices().unwrap().clone();
        let found = bootstrap::find(&image).unwrap();
        let id = found.header().database_id;
        let scan =
            Log::open(Arc::new(redo), 1 << 20, FlushLog::Sync, id, None, Arc::default(), Arc::default()).unwrap().1;
        let log = scan.checkpoint_lsn..scan.end_lsn;
        assert_eq!(found.repair(log).unwrap(), vec![page]);
        let at = page.0 as usize * 4096 + FIELD as usize;
        assert_eq!(data.image()[at..at + 8], 9_u64.to_le_bytes(), "{:?}", reasons[newest]);
    }
}

#[test]
fn a_page_that_rots_after_the_checkpoint_is_reported_and_not_replaced() {
    for reason in [FlushReason::LruList, FlushReason::CheckpointAge, FlushReason::SinglePage] {
        let (core, page) = with_flushed_page(reason);
        // The copy stays in its area.
        core.ctx.log.checkpoint(core.ctx.log.end_lsn()).unwrap();
        let image = core.storage().cut(0);
        damage(&image, page);
        let core = open(image, small_options());
        assert_eq!(core.repaired, vec![]);
        let error = core.ctx.pool.load(page).unwrap_err();
        assert!(error.to_string().contains(&format!("page {page} ")), "{error}");
    }
}

/// The database of `with_flushed_page` with every byte of the ring from the last checkpoint on zeroed.
fn without_the_logs_end(reason: FlushReason) -> (StorageSet, PageNo) {
    let (core, page) = with_flushed_page(reason);
    let image = core.storage().cut(0);
    image.memory_devices().unwrap()[1].damage(|bytes| bytes[8192..].fill(0));
    (image, page)
}

#[test]
fn a_log_that_lost_its_end_is_detected_by_the_copies() {
    for reason in [FlushReason::LruList, FlushReason::CheckpointAge, FlushReason::SinglePage] {
        let (image, page) = without_the_logs_end(reason);
        let error = OpenParts::open(image, small_options()).err().expect("refused").to_string();
        assert!(error.contains("lost its end") && error.contains(&format!("page {page} ")), "{error}");
    }
}

#[test]
fn a_page_newer_than_the_log_is_reported() {
    let (image, page) = without_the_logs_end(FlushReason::LruList);
    image.memory_devices().unwrap()[2].damage(|bytes| bytes.fill(0));
    let core = open(image, small_options());
    let error = core.ctx.pool.load(page).unwrap_err().to_string();
    assert!(error.contains("beyond the end of the redo log"), "{error}");
}

#[test]
fn a_page_in_the_wrong_place_does_not_verify() {
    let mut core = small_parts();
    let (a, b) = (new_page(&core.ctx, &core.space), new_page(&core.ctx, &core.space));
    core.ctx.pool.flush_all().unwrap();
    let other = new_page(&core.ctx, &core.space);
    put(&core.ctx, other, 1);
    core.close().unwrap();
    let image = core.storage().cut(0);
    let (from, to) = (a.0 as usize * 4096, b.0 as usize * 4096);
    image.memory_devices().unwrap()[0].damage(|bytes| bytes.copy_within(from..from + 4096, to));
    let core = open(image, small_options());
    core.ctx.pool.load(a).unwrap();
    assert!(matches!(core.ctx.pool.load(b), Err(Error::CorruptPage { page, .. }) if page == b));
}

#[test]
fn a_dropped_mtr_stops_the_database() {
    let core = small_parts();
    let page = new_page(&core.ctx, &core.space);
    let mut mtr = core.ctx.mtr().unwrap();
    let latched = mtr.fix_x(page).unwrap();
    mtr.apply(latched, &PageOp::Write { offset: FIELD, bytes: &[1] });
    drop(mtr);
    assert!(matches!(core.ctx.mtr().map(drop), Err(Error::Poisoned(_))));
    assert!(core.ctx.pool.flush_all().is_err());
}
