//! The pool with a real log and mini-transactions over memory.

use super::hash::meanwhile;
use super::lru_flusher::LruFlusher;
use super::policy::Orders;
use super::{FlushReason, cleaner};
use crate::config::{FlushNeighbors, Options, VictimPolicy};
use crate::context::Context;
use crate::db::core::Core;
use crate::error::Error;
use crate::log::Log;
use crate::page::{PageOp, PageType};
use crate::space::{SEGMENT_SYSTEM, Space};
use crate::store::bootstrap;
use crate::testing::{open, seeded_options, small_core, small_options};
use crate::types::{Lsn, PageNo, SegmentId};
use highwater_storage::{Faults, StorageSet};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

const SEGMENT: SegmentId = SegmentId(99);
const FIELD: u16 = 64;

fn new_page(ctx: &Context, space: &Space) -> PageNo {
    let new_page = || {
        let mut mtr = ctx.mtr_with(4096, 1)?;
        let page_no = space.allocate(&mut mtr, SEGMENT, None)?;
        let page = mtr.new_page(page_no);
        mtr.apply(page, &PageOp::Format { page_type: PageType::Overflow, level: 0, owner: SEGMENT.0 });
        mtr.commit();
        Ok(page_no)
    };
    space.with_room(ctx, new_page).unwrap()
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

/// Two threads raise counters that do not fit the pool, with all background threads, until the power goes; what was
/// acknowledged is there afterwards.
fn counters_after_a_power_cut(seed: u64) {
    let storage = StorageSet::memory();
    let faults = Faults::new();
    let mut core = open(storage.map(|device| faults.wrap(device)), seeded_options(seed));
    let pages: Vec<_> = (0..400).map(|_| new_page(&core.ctx, &core.space)).collect();
    // With the checkpoint behind their making, recovery takes the pages as the data file has them.
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
                for n in 0..200_000_usize {
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
    let end = Log::open(Arc::new(redo), 1 << 20, 1, id, Arc::default(), Arc::default()).unwrap().1.end_lsn;
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

fn try_put(ctx: &Context, page: PageNo, value: u64) -> crate::error::Result<Lsn> {
    let mut mtr = ctx.mtr()?;
    let latched = mtr.fix_x(page)?;
    mtr.apply(latched, &PageOp::Write { offset: FIELD, bytes: &value.to_le_bytes() });
    Ok(mtr.commit())
}

#[test]
fn power_cuts_in_the_middle_of_eviction_and_flushing() {
    (0..27).for_each(counters_after_a_power_cut);
}

#[test]
fn a_page_set_aside_is_found_with_its_newest_bytes() {
    let options = Options { victim_policy: VictimPolicy::War, ..small_options() };
    let core = open(StorageSet::memory(), options);
    let pool = &core.ctx.pool;
    // The extent map's frame is not to come into play.
    pool.make_resident(PageNo(1)).unwrap();
    let pages: Vec<_> = (0..150).map(|_| new_page(&core.ctx, &core.space)).collect();
    pages.iter().for_each(|p| assert!(put(&core.ctx, *p, 5).0 > 0));
    pool.write_set_aside().unwrap();
    let before = core.ctx.stats.snapshot();
    let (mut all, mut frames) = (Vec::new(), Vec::new());
    pool.take_frames(pool.free_count(), &mut all).unwrap();
    pool.take_frames(3, &mut frames).unwrap();
    let stats = core.ctx.stats.snapshot();
    assert_eq!((frames.len(), stats.since(&before).pages_flushed), (3, 0), "frames came without a write");
    let reads = stats.pages_read;
    assert!(pages.iter().all(|p| get(&core.ctx, *p) == 5) && core.ctx.stats.snapshot().pages_read == reads);
    put(&core.ctx, pages[0], 6);
    assert_eq!(pool.write_set_aside().unwrap(), 3);
    assert_eq!(pages.iter().filter(|p| pool.frame_of(**p).is_none()).count(), 3, "written, then evicted");
    pool.give_frames(all.into_iter().chain(frames));
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
        core.ctx.pool.give_frames(frames);
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
                core.ctx.pool.evict_all_clean();
            }
        });
        for _ in 0..30_000 {
            assert_eq!(get(&core.ctx, page), 7);
            assert!(core.ctx.pool.optimistic(page).is_none_or(|view| view.page_no() == page));
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
    });
}

/// While a commit looks for the extent map, the frame it stands on goes to a page of another chain.
#[test]
fn a_commit_finds_the_extent_map_whatever_moves_in_front_of_it() {
    let core = small_core();
    let map = PageNo(1);
    let pages: Vec<_> = (0..2000).map(|_| new_page(&core.ctx, &core.space)).collect();
    let is_in_front = |page: &&PageNo| core.ctx.pool.table.is_same_chain(**page, map);
    let same = *pages.iter().find(is_in_front).unwrap();
    let elsewhere = *pages.iter().find(|page| !is_in_front(page)).unwrap();
    core.ctx.pool.flush_all().unwrap();
    core.ctx.pool.evict_all_clean();
    core.ctx.pool.load(same).unwrap();
    let frame = core.ctx.pool.frame_of(same).unwrap();
    let ctx = core.ctx.clone();
    let lead_away = move || {
        ctx.pool.evict_all_clean();
        ctx.pool.load(elsewhere).unwrap();
        assert_eq!(ctx.pool.frame_of(elsewhere), Some(frame));
    };
    meanwhile::on(frame, Box::new(lead_away));
    let page = new_page(&core.ctx, &core.space);
    assert!(!meanwhile::is_pending(), "the commit passed by");
    assert_eq!(core.space.owner(page), Some(SEGMENT));
}

/// A page that comes back changed, into a frame whose version is the one the page was seen with in another.
#[test]
fn a_changed_page_is_not_taken_for_the_one_seen_before() {
    let core = small_core();
    let pool = &core.ctx.pool;
    // The extent map's frame is not to come into play.
    pool.make_resident(PageNo(1)).unwrap();
    let page = new_page(&core.ctx, &core.space);
    let mut busy = Vec::new();
    // Each time in a frame that nobody has used yet.
    let mut come_back = || {
        pool.flush_all().unwrap();
        pool.evict_all_clean();
        assert_eq!(pool.frame_of(page), None);
        pool.take_frames(1, &mut busy).unwrap();
        pool.fix_s(page).unwrap().version()
    };
    let seen = come_back();
    assert!(pool.fix_s_if(seen).is_some());
    put(&core.ctx, page, 1);
    assert!(pool.fix_s_if(seen).is_none());
    let again = come_back();
    assert_eq!((seen.page_no, seen.version), (again.page_no, again.version));
    assert!(pool.fix_s_if(seen).is_none());
    assert!(pool.fix_s_if(again).is_some());
    pool.give_frames(busy);
    // Gone and back in the same frame, unchanged: another stay, another version.
    pool.evict_all_clean();
    let back = pool.fix_s(page).unwrap().version();
    assert!(pool.fix_s_if(again).is_none() && pool.fix_s_if(back).is_some());
}

#[test]
fn exhausted_pool_is_an_error_and_not_a_hang() {
    let core = small_core();
    let mut all = Vec::new();
    core.ctx.pool.take_frames(core.ctx.pool.free_count(), &mut all).unwrap();
    core.ctx.pool.flush_all().unwrap();
    let mut rest = Vec::new();
    core.ctx.pool.evict_all_clean();
    core.ctx.pool.take_frames(core.ctx.pool.free_count(), &mut rest).unwrap();
    core.ctx.pool.set_give_up_ms(50);
    let error = core.ctx.pool.load(PageNo(9)).unwrap_err();
    assert!(matches!(error, Error::PoolExhausted { .. }), "{error}");
    core.ctx.pool.give_frames(all);
    core.ctx.pool.load(PageNo(9)).unwrap();
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
        let [data, redo, _] = image.memory_devices().unwrap().clone();
        let found = bootstrap::find(&image).unwrap();
        let id = found.header().database_id;
        let scan = Log::open(Arc::new(redo), 1 << 20, 1, id, Arc::default(), Arc::default()).unwrap().1;
        let log = scan.checkpoint_lsn..scan.end_lsn;
        assert_eq!(found.repair(log).unwrap(), vec![page]);
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

/// The database of `with_flushed_page` with every byte of the ring from the last checkpoint on zeroed.
fn without_the_logs_end(reason: FlushReason) -> (StorageSet, PageNo) {
    let (core, page) = with_flushed_page(reason);
    let image = core.storage().cut(0);
    image.memory_devices().unwrap()[1].damage(|bytes| bytes[8192..].fill(0));
    (image, page)
}

#[test]
fn a_log_that_lost_its_end_is_told_from_the_copies() {
    for reason in [FlushReason::LruList, FlushReason::CheckpointAge, FlushReason::SinglePage] {
        let (image, page) = without_the_logs_end(reason);
        let error = Core::open(image, small_options()).err().expect("refused").to_string();
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

/// With room for everything, nothing is written to free frames; with a few frames free only, the tail is.
#[test]
fn the_lru_list_is_flushed_only_when_frames_are_short() {
    for (pages, expected) in [(20, false), (200, true)] {
        let core = small_core();
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

/// One page is due for the log's sake and fifty for the dirty share's.
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

/// Threads that take a page's latch in turn leave it to nobody who only tries.
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

/// The log says how far it is durable once nothing has been appended for a while.
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
