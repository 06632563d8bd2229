//! The pool with a real log and mini-transactions over memory.

use super::{FlushReason, doublewrite};
use crate::config::{FlushNeighbors, Options};
use crate::db::core::Core;
use crate::error::Error;
use crate::log::Log;
use crate::mtr::Context;
use crate::page::{PageOp, PageType};
use crate::space::{SEGMENT_SYSTEM, Space, header};
use crate::testing::{open, small_core, small_options};
use crate::types::{Lsn, PageNo, SegmentId};
use highwater_storage::StorageSet;
use std::sync::Arc;

const SEGMENT: SegmentId = SegmentId(99);
const FIELD: u16 = 64;

fn new_page(ctx: &Context, space: &Space) -> PageNo {
    space.prepare(ctx).unwrap();
    let mut mtr = ctx.mtr_with(4096, 1).unwrap();
    let page_no = space.allocate(&mut mtr, SEGMENT, None).unwrap();
    let page = mtr.new_page(page_no);
    mtr.apply(page, &PageOp::Format { page_type: PageType::Overflow, level: 0, owner: SEGMENT.0 });
    mtr.commit();
    page_no
}

fn put(ctx: &Context, page: PageNo, value: u64) -> Lsn {
    let mut mtr = ctx.mtr().unwrap();
    let latched = mtr.fix_x(page).unwrap();
    mtr.apply(latched, &PageOp::Write { offset: FIELD, bytes: &value.to_le_bytes() });
    mtr.commit()
}

fn get(ctx: &Context, page: PageNo) -> u64 {
    let guard = ctx.pool.fix_s(page).unwrap();
    u64::from_le_bytes(guard[FIELD as usize..FIELD as usize + 8].try_into().unwrap())
}

#[test]
fn more_pages_than_frames() {
    let core = small_core();
    let pages: Vec<_> = (0..1000).map(|_| new_page(&core.ctx, &core.space)).collect();
    for (n, p) in pages.iter().enumerate() {
        put(&core.ctx, *p, n as u64);
    }
    for (n, p) in pages.iter().enumerate() {
        assert_eq!(get(&core.ctx, *p), n as u64);
    }
    assert!(core.ctx.pool.frame_count() < 300);
    let stats = core.ctx.stats.snapshot();
    assert!(stats.pages_read > 500 && stats.pages_flushed_single_page > 0, "{stats:?}");
}

#[test]
fn many_threads_on_few_frames_make_progress() {
    let core = small_core();
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
}

#[test]
fn nobody_waits_for_the_frame_of_a_page_that_was_evicted() {
    let core = small_core();
    let page = new_page(&core.ctx, &core.space);
    put(&core.ctx, page, 7);
    core.ctx.pool.flush_all().unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    let stopped = || stop.load(std::sync::atomic::Ordering::Relaxed);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stopped() {
                core.ctx.pool.evict_clean(100, 16);
            }
        });
        for _ in 0..30_000 {
            assert_eq!(get(&core.ctx, page), 7);
            assert!(core.ctx.pool.optimistic(page).is_none_or(|view| view.page_no() == page));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

#[test]
fn exhausted_pool_is_an_error_and_not_a_hang() {
    let core = small_core();
    let mut all = Vec::new();
    core.ctx.pool.take_frames(core.ctx.pool.free_count(), &mut all).unwrap();
    core.ctx.pool.flush_all().unwrap();
    let mut rest = Vec::new();
    while core.ctx.pool.evict_clean(1000, 1) > 0 {
        core.ctx.pool.take_frames(1, &mut rest).unwrap();
    }
    core.ctx.pool.set_give_up_ms(50);
    let error = core.ctx.pool.load(PageNo(9)).unwrap_err();
    assert!(matches!(error, Error::PoolExhausted { .. }), "{error}");
    core.ctx.pool.give_frames(all);
    core.ctx.pool.load(PageNo(9)).unwrap();
}

#[test]
fn what_was_durable_survives_a_power_cut() {
    for seed in 0..40 {
        let core = small_core();
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
        let core = open(core.storage().cut(seed), small_options());
        for (n, p) in pages.iter().enumerate() {
            assert_eq!(get(&core.ctx, *p), 4000 + n as u64, "seed {seed} page {p}");
            assert_eq!(core.space.owner(*p), Some(SEGMENT));
        }
        assert_eq!(core.space.owner(PageNo(0)), Some(SEGMENT_SYSTEM));
    }
}

/// A database of one page, `flushed` for that reason, without a checkpoint since; and the page.
fn with_flushed_page(reason: FlushReason) -> (Core, PageNo) {
    let core = small_core();
    let page = new_page(&core.ctx, &core.space);
    put(&core.ctx, page, 7);
    let frame = core.ctx.pool.frame_of(page).unwrap();
    assert_eq!(core.ctx.pool.flush_frames(&[frame], reason).unwrap(), 1);
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
        let image = core.storage().cut(0);
        damage(&image, page);
        let core = open(image, small_options());
        assert_eq!(core.repaired, vec![page], "{reason:?}");
        assert_eq!(get(&core.ctx, page), 7);
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
        let [data, redo, copies] = image.memory_devices().unwrap().clone();
        let id = header::parse(&data.image()).unwrap().database_id;
        let checkpoint = Log::open(Arc::new(redo), 1 << 20, 1, id, Arc::default()).unwrap().1.checkpoint_lsn;
        assert_eq!(doublewrite::restore(&copies, &data, 4096, id, checkpoint).unwrap().pages, vec![page]);
        let at = page.0 as usize * 4096 + FIELD as usize;
        assert_eq!(data.image()[at..at + 8], 9_u64.to_le_bytes(), "{:?}", reasons[newest]);
    }
}

#[test]
fn a_page_that_rots_after_the_checkpoint_is_reported_and_not_replaced() {
    for reason in [FlushReason::LruList, FlushReason::CheckpointAge, FlushReason::SinglePage] {
        let (mut core, page) = with_flushed_page(reason);
        core.close().unwrap();
        let image = core.storage().cut(0);
        damage(&image, page);
        let core = open(image, small_options());
        assert_eq!(core.repaired, vec![]);
        let error = core.ctx.pool.load(page).unwrap_err();
        assert!(error.to_string().contains(&format!("page {page} ")), "{error}");
    }
}

#[test]
fn a_page_in_the_wrong_place_does_not_verify() {
    let mut core = small_core();
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
    let core = small_core();
    let page = new_page(&core.ctx, &core.space);
    let mut mtr = core.ctx.mtr().unwrap();
    let latched = mtr.fix_x(page).unwrap();
    mtr.apply(latched, &PageOp::Write { offset: FIELD, bytes: &[1] });
    drop(mtr);
    assert!(matches!(core.ctx.mtr().map(drop), Err(Error::Poisoned(_))));
    assert!(core.ctx.pool.flush_all().is_err());
}

#[test]
fn segments_are_dropped_and_their_space_comes_back() {
    let core = small_core();
    for _ in 0..500 {
        new_page(&core.ctx, &core.space);
    }
    let before = core.space.page_count();
    assert_eq!(core.space.pages_of(SEGMENT).len(), 500);
    while !core.space.drop_segment_step(&core.ctx, SEGMENT, 2).unwrap() {}
    assert!(core.space.pages_of(SEGMENT).is_empty());
    for _ in 0..500 {
        new_page(&core.ctx, &core.space);
    }
    assert_eq!(core.space.page_count(), before);
    let pages = core.space.pages_of(SEGMENT);
    let lsn = core.ctx.log.end_lsn();
    core.ctx.log.flush_to(lsn).unwrap();
    let again = open(core.storage().cut(1), small_options());
    assert_eq!(again.space.pages_of(SEGMENT), pages);
}

#[test]
fn background_threads_keep_frames_free() {
    let mut core: Core = small_core();
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
