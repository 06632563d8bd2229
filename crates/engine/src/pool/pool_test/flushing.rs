//! Which pages are flushed, and what is counted.

use super::{new_page, put};
use crate::config::{FlushNeighbors, Options};
use crate::pool::FlushReason;
use crate::pool::cleaner::policy::Orders;
use crate::pool::cleaner::{self};
use crate::testing::{open, small_core, small_options};
use crate::types::Lsn;
use highwater_storage::StorageSet;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// One page is due for the log and fifty for the share of dirty pages.
#[test]
fn a_page_flushed_for_the_log_counts_for_the_other_budget() {
    let core = small_core();
    let pages: Vec<_> = (0..100).map(|_| new_page(&core.ctx, &core.space)).collect();
    core.ctx.pool.flush_all().unwrap();
    put(&core.ctx, pages[0], 1);
    let second = core.ctx.log.end_lsn();
    pages[1..].iter().for_each(|p| assert!(put(&core.ctx, *p, 1) > second));
    let (reason, pages_reason) = (FlushReason::CheckpointAge, FlushReason::DirtyPct);
    let orders = Orders { flush_before: second, reason, pages: 50, pages_reason, user_redo_bytes_per_s: None };
    let before = core.ctx.stats.snapshot();
    assert_eq!(cleaner::flush(&core.ctx.pool, &orders).unwrap(), 50);
    let stats = core.ctx.stats.snapshot().since(&before);
    assert_eq!((stats.pages_flushed_checkpoint_age, stats.pages_flushed_dirty_pct), (1, 49));
}

/// Flushes the seventh of 31 new pages, of which all but every fifth are dirty, for `reason`; says what was counted.
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

/// Threads take a page's latch in turn, so that a thread that only tries never gets it.
#[test]
fn a_page_latched_over_and_over_does_not_hold_the_checkpoint_back() {
    let core = small_core();
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

/// The log's header says the durable LSN once nothing has been appended for a while.
#[test]
fn the_cleaner_marks_an_idle_log_once() {
    let core = small_core();
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
