//! Finding pages while frames change hands.

use super::{SEGMENT, get, new_page, put};
use crate::pool::frames::meanwhile;
use crate::testing::small_parts;
use crate::types::PageNo;

#[test]
fn no_thread_waits_for_the_frame_of_a_page_that_was_evicted() {
    let core = small_parts();
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

/// While a commit searches the extent map, the frame that its search has reached is given to a page of another chain.
#[test]
fn a_commit_finds_the_extent_map_whatever_moves_in_front_of_it() {
    let core = small_parts();
    let map = PageNo(1);
    let pages: Vec<_> = (0..2000).map(|_| new_page(&core.ctx, &core.space)).collect();
    let is_in_front = |page: &&PageNo| core.ctx.pool.pages().is_same_chain(**page, map);
    let same = *pages.iter().find(is_in_front).unwrap();
    let elsewhere = *pages.iter().find(|page| !is_in_front(page)).unwrap();
    core.ctx.pool.flush_all().unwrap();
    core.ctx.pool.evict_all_clean();
    core.ctx.pool.load(same).unwrap();
    let frame = core.ctx.pool.frame_of(same).unwrap();
    let ctx = core.ctx.clone();
    let lead_away = move || {
        ctx.pool.evict_all_clean();
        // By another thread: this one holds redo space.
        let context = ctx.clone();
        std::thread::spawn(move || context.pool.load(elsewhere).unwrap()).join().unwrap();
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
    let core = small_parts();
    let pool = &core.ctx.pool;
    // The extent map stays in its frame during the test.
    pool.make_resident(PageNo(1)).unwrap();
    let page = new_page(&core.ctx, &core.space);
    let mut busy = Vec::new();
    // Each time in a frame that was not used yet.
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
    pool.release_frames(busy);
    // Gone and back in the same frame, unchanged: another stay, another version.
    pool.evict_all_clean();
    let back = pool.fix_s(page).unwrap().version();
    assert!(pool.fix_s_if(again).is_none() && pool.fix_s_if(back).is_some());
}
