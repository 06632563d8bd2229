//! Free frames: eviction, victim policies, the LRU flusher.

use super::{get, new_page, put};
use crate::config::{Options, VictimPolicy};
use crate::db::open_parts::OpenParts;
use crate::error::Error;
use crate::pool::cleaner::LruFlusher;
use crate::testing::{open, seeded_options, small_options, small_parts};
use crate::types::PageNo;
use highwater_storage::StorageSet;

#[test]
fn more_pages_than_frames() {
    for seed in 0..9 {
        let core = open(StorageSet::memory(), seeded_options(seed));
        let pages: Vec<_> = (0..1000).map(|_| new_page(&core.ctx, &core.space)).collect();
        for (n, p) in pages.iter().enumerate() {
            put(&core.ctx, *p, n as u64);
        }
        for (n, p) in pages.iter().enumerate() {
            assert_eq!(get(&core.ctx, *p), n as u64);
        }
        assert!(core.ctx.pool.frame_count() < 300);
        let stats = core.ctx.stats.snapshot();
        assert!(stats.pages_read > 500, "{stats:?}");
        assert!(stats.pages_flushed_single_page + stats.pages_flushed_lru_list > 500, "{stats:?}");
        assert_eq!(core.ctx.pool.page_read_latency().count(), stats.pages_read);
    }
}

#[test]
fn many_threads_on_few_frames_make_progress() {
    for seed in 0..6 {
        let mut core = open(StorageSet::memory(), seeded_options(seed));
        if seed >= 3 {
            core.start_threads().unwrap();
        }
        let pages: Vec<_> = (0..600).map(|_| new_page(&core.ctx, &core.space)).collect();
        let (ctx, pages) = (&core.ctx, &pages);
        std::thread::scope(|scope| {
            for t in 0..16_usize {
                scope.spawn(move || {
                    for n in 0..200_usize {
                        let page = pages[(n * 37 + t * 101) % pages.len()];
                        put(ctx, page, n as u64);
                        ctx.pool.fix_s(page).unwrap();
                    }
                });
            }
        });
        assert!(!ctx.poison.is_set());
        core.close().unwrap();
    }
}

#[test]
fn a_page_deferred_is_found_with_its_newest_bytes() {
    let options = Options { victim_policy: VictimPolicy::War, ..small_options() };
    let core = open(StorageSet::memory(), options);
    let pool = &core.ctx.pool;
    // The extent map stays in its frame during the test.
    pool.make_resident(PageNo(1)).unwrap();
    let pages: Vec<_> = (0..150).map(|_| new_page(&core.ctx, &core.space)).collect();
    pages.iter().for_each(|p| assert!(put(&core.ctx, *p, 5).0 > 0));
    pool.loader().supply().write_deferred().unwrap();
    let before = core.ctx.stats.snapshot();
    let (mut all, mut frames) = (Vec::new(), Vec::new());
    pool.take_frames(pool.free_count(), &mut all).unwrap();
    pool.take_frames(3, &mut frames).unwrap();
    let stats = core.ctx.stats.snapshot();
    assert_eq!((frames.len(), stats.since(&before).pages_flushed), (3, 0), "frames came without a write");
    let reads = stats.pages_read;
    assert!(pages.iter().all(|p| get(&core.ctx, *p) == 5) && core.ctx.stats.snapshot().pages_read == reads);
    put(&core.ctx, pages[0], 6);
    assert_eq!(pool.loader().supply().write_deferred().unwrap(), 3);
    assert_eq!(pages.iter().filter(|p| pool.frame_of(**p).is_none()).count(), 3, "written, then evicted");
    pool.release_frames(all.into_iter().chain(frames));
    assert_eq!(get(&core.ctx, pages[0]), 6);
    assert!(pages[1..].iter().all(|p| get(&core.ctx, *p) == 5));
}

#[test]
fn lru_clean_passes_over_dirty_pages_and_raw_writes_them() {
    let dirty_tail = |policy| {
        let core = open(StorageSet::memory(), Options { victim_policy: policy, ..small_options() });
        core.ctx.pool.make_resident(PageNo(1)).unwrap();
        let pages: Vec<_> = (0..200).map(|_| new_page(&core.ctx, &core.space)).collect();
        core.ctx.pool.flush_all().unwrap();
        // Pages enter as old ones from the 64th on; of those, all but one are dirty.
        pages.iter().filter(|p| p.0 != pages[127].0).for_each(|p| assert!(put(&core.ctx, *p, 5).0 > 0));
        let mut frames = Vec::new();
        core.ctx.pool.take_frames(core.ctx.pool.free_count(), &mut frames).unwrap();
        let before = core.ctx.stats.snapshot();
        core.ctx.pool.take_frames(1, &mut frames).unwrap();
        core.ctx.pool.release_frames(frames);
        let stats = core.ctx.stats.snapshot().since(&before);
        (
            stats.dirty_victims,
            stats.pages_flushed_single_page,
            pages.iter().position(|p| core.ctx.pool.frame_of(*p).is_none()),
        )
    };
    let (dirty, single, evicted) = dirty_tail(VictimPolicy::LruClean);
    assert_eq!((dirty, single, evicted), (1, 0, Some(127)));
    let (dirty, single, evicted) = dirty_tail(VictimPolicy::Raw);
    assert_eq!((dirty, single), (1, 1));
    assert!(evicted.is_some_and(|n| n < 10), "{evicted:?}");
}

#[cfg(all(target_os = "linux", not(miri)))]
#[test]
fn frames_that_are_reserved_take_no_memory() {
    let core = small_parts();
    let pool = &core.ctx.pool;
    (0..200).for_each(|_| assert!(put(&core.ctx, new_page(&core.ctx, &core.space), 5).0 > 0));
    pool.flush_all().unwrap();
    pool.evict_all_clean();
    // SAFETY: this thread took the frame, and with it its latch.
    let is_zero = |frame| unsafe { pool.frames().bytes(frame) }.iter().all(|byte| *byte == 0);
    let (mut taken, mut aside) = (Vec::new(), Vec::new());
    pool.take_frames(pool.free_count(), &mut taken).unwrap();
    taken.retain(|frame| {
        !is_zero(*frame) || {
            pool.release_frames([*frame]);
            false
        }
    });
    let used = taken.len();
    pool.release_frames(taken);
    pool.reserve_frames(pool.free_count(), &mut aside).unwrap();
    assert!(used > 20 && aside.len() > used && aside.iter().all(|frame| is_zero(*frame)));
    pool.return_frames(aside.into_iter());
    assert!(put(&core.ctx, new_page(&core.ctx, &core.space), 6).0 > 0);
}

#[test]
fn exhausted_pool_is_an_error_and_not_a_hang() {
    let core = small_parts();
    let mut all = Vec::new();
    core.ctx.pool.take_frames(core.ctx.pool.free_count(), &mut all).unwrap();
    core.ctx.pool.flush_all().unwrap();
    let mut rest = Vec::new();
    core.ctx.pool.evict_all_clean();
    core.ctx.pool.take_frames(core.ctx.pool.free_count(), &mut rest).unwrap();
    core.ctx.pool.set_free_frame_timeout_ms(50);
    let error = core.ctx.pool.load(PageNo(9)).unwrap_err();
    assert!(matches!(error, Error::PoolExhausted { .. }), "{error}");
    core.ctx.pool.release_frames(all);
    core.ctx.pool.load(PageNo(9)).unwrap();
}

#[test]
fn background_threads_keep_frames_free() {
    let mut core: OpenParts = small_parts();
    core.start_threads().unwrap();
    let pages: Vec<_> = (0..1500).map(|_| new_page(&core.ctx, &core.space)).collect();
    for round in 0..20_u64 {
        for p in &pages {
            put(&core.ctx, *p, round);
        }
    }
    assert!(pages.iter().all(|p| get(&core.ctx, *p) == 19));
    core.close().unwrap();
    let stats = core.ctx.stats.snapshot();
    assert!(stats.pages_flushed_lru_list + stats.pages_flushed_flush_list() > 0);
    assert!(stats.checkpoints > 0);
    let again = open(core.storage().cut(3), small_options());
    assert_eq!(again.replayed.operations, 0, "a clean close leaves nothing to replay");
    assert!(pages.iter().all(|p| get(&again.ctx, *p) == 19));
}

/// With space for everything, nothing is written to free frames; with a few frames free only, the tail is.
#[test]
fn the_lru_list_is_flushed_only_when_frames_are_short() {
    for (pages, expected) in [(20, false), (200, true)] {
        let core = small_parts();
        let pages: Vec<_> = (0..pages).map(|_| new_page(&core.ctx, &core.space)).collect();
        let mut flusher = LruFlusher::new();
        for round in 0..20 {
            for p in &pages {
                put(&core.ctx, *p, round);
            }
            flusher.step(&core.ctx.pool, 50 * (round + 1)).unwrap();
        }
        let stats = core.ctx.stats.snapshot();
        assert_eq!(stats.pages_flushed_lru_list > 0, expected, "{} pages: {stats:?}", pages.len());
    }
}

/// On a fast device a page leaves the old part long before `old_blocks_time_ms`. Pages that are used repeatedly stay
/// nevertheless, and a scan, which uses each page several times in a row, evicts none of them.
#[test]
fn a_page_that_is_used_again_while_others_pass_it_becomes_young_and_a_scan_does_not() {
    let core = small_parts();
    let ctx = &core.ctx;
    let pages: Vec<_> = (0..1500).map(|_| new_page(ctx, &core.space)).collect();
    ctx.pool.flush_all().unwrap();
    let scan = |range: std::ops::Range<usize>, hot: Option<PageNo>| {
        for page in &pages[range] {
            for _ in 0..3 {
                get(ctx, *page);
            }
            hot.map(|page| get(ctx, page));
        }
    };
    scan(0..600, None);
    let young = ctx.stats.pages_made_young.get();
    let reads = ctx.stats.pages_read.get();
    scan(600..900, Some(pages[1000]));
    assert_eq!(ctx.stats.pages_read.get() - reads, 301, "the page used again and again was read once");
    assert!(ctx.stats.pages_made_young.get() > young);
    let young = ctx.stats.pages_made_young.get();
    scan(0..600, None);
    assert_eq!(ctx.stats.pages_made_young.get(), young, "a scan makes no page young");
}
