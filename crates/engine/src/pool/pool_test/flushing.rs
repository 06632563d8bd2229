//! Which pages are flushed, and what is counted.

use super::{SEGMENT, new_page, put};
use crate::config::{FlushNeighbors, Options};
use crate::db::open_parts::OpenParts;
use crate::page::{PageOp, PageType};
use crate::pool::FlushReason;
use crate::pool::cleaner::{self};
use crate::pool::pacing::policy::FlushPlan;
use crate::store::BATCH_PAGES;
use crate::testing::{open, small_options, small_parts};
use crate::types::{CHANGE_BUFFER_INDEX, Lsn, PageNo};
use highwater_storage::{FaultKind, Faults, Operation, StorageSet};
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// One page is due for the log and fifty for the share of dirty pages.
#[test]
fn a_page_flushed_for_the_log_counts_for_the_other_budget() {
    let core = small_parts();
    let pages: Vec<_> = (0..100).map(|_| new_page(&core.ctx, &core.space)).collect();
    core.ctx.pool.flush_all().unwrap();
    put(&core.ctx, pages[0], 1);
    let second = core.ctx.log.end_lsn();
    pages[1..].iter().for_each(|p| assert!(put(&core.ctx, *p, 1) > second));
    let (reason, pages_reason) = (FlushReason::CheckpointAge, FlushReason::DirtyPct);
    let orders = FlushPlan { flush_before: second, reason, pages: 50, pages_reason, user_redo_bytes_per_s: None };
    let before = core.ctx.stats.snapshot();
    assert_eq!(cleaner::flush(&core.ctx.pool, &orders).unwrap(), 50);
    let stats = core.ctx.stats.snapshot().since(&before);
    assert_eq!((stats.pages_flushed_checkpoint_age, stats.pages_flushed_dirty_pct), (1, 49));
}

/// Flushes the seventh of 31 new pages, of which all but every fifth are dirty, for `reason`; returns what was counted.
fn flushed_with(mode: FlushNeighbors, reason: FlushReason) -> (u64, u64, Vec<bool>) {
    let core = open(StorageSet::memory(), Options { flush_neighbors: mode, ..small_options() });
    // Pages enter the LRU list as old ones once it is long enough to have an old part.
    for _ in 0..65 {
        new_page(&core.ctx, &core.space);
    }
    let pages: Vec<_> = (0..31).map(|_| new_page(&core.ctx, &core.space)).collect();
    core.ctx.pool.flush_all().unwrap();
    assert!(pages.windows(2).all(|w| w[1].0 == w[0].0 + 1), "the test wants neighbors: {pages:?}");
    for (n, page) in pages.iter().enumerate().filter(|(n, _)| n % 5 != 4) {
        put(&core.ctx, *page, n as u64);
    }
    let before = core.ctx.stats.snapshot();
    let frame = core.ctx.pool.frame_of(pages[6]).unwrap();
    core.ctx.pool.flush_frames(&[frame], reason).unwrap();
    let stats = core.ctx.stats.snapshot().since(&before);
    assert_eq!(stats.pages_flushed, stats.pages_flushed_by_reason());
    let own = stats.pages_flushed - stats.pages_flushed_neighbor;
    (own, stats.pages_flushed_neighbor, pages.iter().map(|p| core.ctx.pool.is_dirty(*p)).collect())
}

#[test]
fn neighbors_go_with_a_page_as_the_option_says() {
    for reason in [FlushReason::LruList, FlushReason::CheckpointAge, FlushReason::Idle] {
        let (own, neighbors, dirty) = flushed_with(FlushNeighbors::Off, reason);
        assert_eq!((own, neighbors, dirty[6]), (1, 0, false));
        let (own, neighbors, dirty) = flushed_with(FlushNeighbors::Contiguous, reason);
        assert_eq!((own, neighbors), (1, 3), "{reason:?}");
        assert!(dirty[3] && !dirty[5] && !dirty[8] && dirty[10]);
        let (own, neighbors, dirty) = flushed_with(FlushNeighbors::Extent, reason);
        assert!(own == 1 && neighbors > 20, "{reason:?}: {neighbors}");
        assert!(!dirty[0] && !dirty[10]);
    }
    let (own, neighbors, _) = flushed_with(FlushNeighbors::Extent, FlushReason::SinglePage);
    assert_eq!((own, neighbors), (1, 0), "a single-page flush writes its page alone");
    let (_, neighbors, _) = flushed_with(FlushNeighbors::Auto, FlushReason::CheckpointAge);
    assert_eq!(neighbors, 0);
}

/// Of the pages that are named, one was flushed before and changed since, one is clean, and one number belongs to no
/// page.
#[test]
fn filled_pages_are_flushed_many_at_a_time_if_they_were_recreated_by_redo() {
    let core = open(StorageSet::memory(), Options { buffer_pool_size: 16 << 20, ..small_options() });
    let (ctx, pool) = (&core.ctx, &core.ctx.pool);
    let old: Vec<_> = (0..2).map(|_| new_page(ctx, &core.space)).collect();
    pool.flush_all().unwrap();
    put(ctx, old[0], 1);
    let pages: Vec<_> = (0..4 * BATCH_PAGES).map(|_| new_page(ctx, &core.space)).collect();
    let (named, others) = pages.split_at(4 * BATCH_PAGES - 3);
    let before = ctx.stats.snapshot();
    let names: Vec<_> = old.iter().chain(&[PageNo(u32::MAX - 1)]).chain(named).collect();
    names[1..].iter().for_each(|page| pool.note_bulk_loaded(**page));
    assert_eq!(pool.flusher().flush_bulk_loaded().unwrap(), 0, "one is missing");
    pool.note_bulk_loaded(*names[0]);
    assert_eq!(pool.flusher().flush_bulk_loaded().unwrap(), named.len());
    let stats = ctx.stats.snapshot().since(&before);
    assert_eq!((stats.pages_flushed_bulk_load, stats.pages_flushed), (named.len() as u64, named.len() as u64));
    assert!(pool.is_dirty(old[0]) && others.iter().all(|page| pool.is_dirty(*page)));
    assert!(!named.iter().any(|page| pool.is_dirty(*page)));
    assert_eq!(pool.flusher().flush_bulk_loaded().unwrap(), 0);
}

/// While writers are slowed, the oldest pages alone free space in the log.
#[test]
fn the_cleaner_flushes_filled_pages_unless_writers_are_slowed() {
    for is_slowed in [false, true] {
        let core = open(StorageSet::memory(), Options { buffer_pool_size: 16 << 20, ..small_options() });
        let (ctx, pool, log) = (&core.ctx, &core.ctx.pool, &core.ctx.log);
        let pages: Vec<_> = (0..4 * BATCH_PAGES).map(|_| new_page(ctx, &core.space)).collect();
        pages.iter().for_each(|page| pool.note_bulk_loaded(*page));
        while is_slowed && (log.end_lsn().0 - log.checkpoint_lsn().0) * 100 < 85 * log.capacity_bytes() {
            put(ctx, pages[0], 1);
        }
        cleaner::Cleaner::new(&core.options).step(pool, log, 0).unwrap();
        let stats = ctx.stats.snapshot();
        assert_eq!(stats.pages_flushed_bulk_load, if is_slowed { 0 } else { pages.len() as u64 });
        assert_eq!(stats.pages_flushed_checkpoint_age > 0, is_slowed);
    }
}

#[test]
fn names_of_filled_pages_that_find_no_room_are_dropped() {
    let core = small_parts();
    (0..10_000).for_each(|n| core.ctx.pool.note_bulk_loaded(PageNo(n + 1_000_000)));
    assert_eq!(core.ctx.pool.flusher().bulk_loaded_count(), 4096);
}

/// A core whose pool has this many dirty pages that several threads flush them, and the faults of its devices.
fn with_many_dirty() -> (OpenParts, Faults) {
    let faults = Faults::new();
    let storage = StorageSet::memory().map(|device| faults.wrap(device));
    let core = open(storage, Options { buffer_pool_size: 16 << 20, ..small_options() });
    let pages: Vec<_> = (0..2500).map(|_| new_page(&core.ctx, &core.space)).collect();
    pages.iter().for_each(|page| assert!(core.ctx.pool.is_dirty(*page)));
    (core, faults)
}

#[test]
fn several_threads_flush_each_page_once() {
    let (core, _) = with_many_dirty();
    let (dirty, before) = (core.ctx.pool.dirty_count(), core.ctx.stats.snapshot());
    core.ctx.pool.flush_all().unwrap();
    let written = core.ctx.stats.snapshot().since(&before);
    assert_eq!((core.ctx.pool.dirty_count(), written.pages_flushed_shutdown), (0, dirty as u64));
}

#[test]
fn all_threads_stop_at_a_write_that_fails() {
    let (core, faults) = with_many_dirty();
    faults.fail(Operation::Write, 20, FaultKind::ErrorOnce);
    assert!(core.ctx.pool.flush_all().is_err());
    assert!(core.ctx.poison.is_set() && core.ctx.pool.dirty_count() > 0);
}

/// Trees of five indexes and of the change buffer, and one other page, written and read once each.
#[test]
fn index_pages_and_pages_of_the_change_buffer_are_counted_apart() {
    let core = small_parts();
    let (ctx, space) = (&core.ctx, &core.space);
    let new_leaf = |owner: u32| {
        let new_leaf = || {
            let mut mtr = ctx.mtr_with(4096, 1)?;
            let page_no = space.allocate(&mut mtr, SEGMENT, None)?;
            let page = mtr.new_page(page_no);
            mtr.apply(page, &PageOp::Format { page_type: PageType::Leaf, level: 0, owner });
            mtr.apply(page, &PageOp::NodeFormat { lower: None, upper: None, upper_child: PageNo(0) });
            mtr.commit();
            Ok(page_no)
        };
        space.with_room(ctx, new_leaf).unwrap()
    };
    // The list is long enough to have an old part.
    for _ in 0..65 {
        new_page(ctx, space);
    }
    ctx.pool.flush_all().unwrap();
    let before = ctx.stats.snapshot();
    let mut pages: Vec<PageNo> = (20..25).map(new_leaf).collect();
    pages.extend((0..3).map(|_| new_leaf(CHANGE_BUFFER_INDEX.0)));
    pages.push(new_page(ctx, space));
    ctx.pool.flush_all().unwrap();
    let written = ctx.stats.snapshot().since(&before);
    assert_eq!((written.index_pages_written, written.change_buffer_pages_written), (5, 3));
    assert_eq!((written.index_pages_read, written.change_buffer_pages_read), (0, 0));

    // Other pages push these out; reading brings each in again.
    for _ in 0..400 {
        new_page(ctx, space);
    }
    assert!(pages.iter().all(|page| ctx.pool.frame_of(*page).is_none()));
    pages.iter().for_each(|page| drop(ctx.pool.fix_s(*page).unwrap()));
    let read = ctx.stats.snapshot().since(&before);
    assert_eq!((read.index_pages_read, read.change_buffer_pages_read), (5, 3));
    assert_eq!((read.index_pages_written, read.change_buffer_pages_written), (5, 3));
}

/// Threads take a page's latch in turn, so that a thread that only tries never gets it.
#[test]
fn a_page_latched_over_and_over_does_not_hold_the_checkpoint_back() {
    let core = small_parts();
    let (ctx, page) = (&core.ctx, new_page(&core.ctx, &core.space));
    ctx.pool.flush_all().unwrap();
    put(ctx, page, 1);
    let stop = std::sync::atomic::AtomicBool::new(false);
    let latched = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..3 {
            scope.spawn(|| {
                while !stop.load(Relaxed) {
                    let frame = ctx.pool.try_latch_x(page).unwrap();
                    latched.fetch_add(1, Relaxed);
                    std::thread::sleep(Duration::from_micros(300));
                    ctx.pool.frames().get(frame).latch.unlock_exclusive(true);
                }
            });
        }
        while latched.load(Relaxed) < 10 {
            std::thread::yield_now();
        }
        let flushes = (1..=8).find(|_| {
            ctx.pool.flush_oldest(Lsn(u64::MAX), 10, FlushReason::CheckpointAge).unwrap();
            ctx.pool.oldest_dirty_lsn().is_none()
        });
        stop.store(true, Relaxed);
        assert!(flushes.is_some(), "it is still the oldest after 8 flushes");
    });
}

/// A flush up to an LSN ends although others change pages: what is changed after it stays dirty.
#[test]
fn a_flush_up_to_an_lsn_leaves_what_was_changed_behind_it() {
    let core = small_parts();
    let ctx = &core.ctx;
    let older: Vec<_> = (0..40).map(|_| new_page(ctx, &core.space)).collect();
    let lsn = ctx.log.end_lsn();
    let newer = new_page(ctx, &core.space);
    ctx.pool.flush_before(lsn).unwrap();
    assert!(ctx.pool.oldest_dirty_lsn().unwrap() >= lsn);
    assert!(ctx.pool.is_dirty(newer) && older.iter().all(|page| !ctx.pool.is_dirty(*page)));
}

/// The log's header says the durable LSN once nothing has been appended for a while.
#[test]
fn the_cleaner_marks_an_idle_log_once() {
    let core = small_parts();
    let (ctx, page) = (&core.ctx, new_page(&core.ctx, &core.space));
    let mut cleaner = cleaner::Cleaner::new(&core.options);
    let redo = &core.storage().memory_devices().unwrap()[1];
    let mark = || {
        let look = crate::inspect::look(redo).unwrap();
        look.headers[look.newest.unwrap()].as_ref().unwrap().durable_lsn
    };
    for round in 0..3 {
        let end = put(ctx, page, round);
        let now_ms = 10_000 * round;
        cleaner.step(&ctx.pool, &ctx.log, now_ms).unwrap();
        assert!(mark() < end);
        cleaner.step(&ctx.pool, &ctx.log, now_ms + 900).unwrap();
        cleaner.step(&ctx.pool, &ctx.log, now_ms + 1000).unwrap();
        assert_eq!(mark(), end);
        let writes = ctx.stats.log_writes.get();
        cleaner.step(&ctx.pool, &ctx.log, now_ms + 5000).unwrap();
        assert_eq!(ctx.stats.log_writes.get(), writes);
    }
}
