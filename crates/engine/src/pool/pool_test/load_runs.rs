//! Pages that are read at once.

use super::{get, new_page, put};
use crate::db::open_parts::OpenParts;
use crate::pool::ReadBuffer;
use crate::testing::small_parts;
use crate::types::PageNo;

const PAGES: usize = 12;

/// A pool over adjacent pages that hold their numbers and are not resident.
fn evicted() -> (OpenParts, Vec<PageNo>) {
    let core = small_parts();
    let mut pages: Vec<PageNo> = (0..PAGES).map(|_| new_page(&core.ctx, &core.space)).collect();
    for page in &pages {
        put(&core.ctx, *page, u64::from(page.0));
    }
    pages.sort();
    assert!(pages.is_sorted_by(|a, b| a.0 + 1 == b.0));
    core.ctx.pool.flush_all().unwrap();
    core.ctx.pool.evict_all_clean();
    (core, pages)
}

fn read(core: &OpenParts, pages: &[PageNo]) -> usize {
    let mut buffer = ReadBuffer::default();
    let run = pages[0].0..pages[0].0 + pages.len() as u32;
    core.ctx
        .pool
        .loader()
        .load_runs(std::slice::from_ref(&run), buffer.of_bytes(pages.len() * core.ctx.pool.page_bytes()))
        .unwrap()
}

#[test]
fn a_run_brings_all_pages_that_are_missing() {
    let (core, pages) = evicted();
    let changed = pages[3];
    put(&core.ctx, changed, 77);
    let before = core.ctx.stats.pages_read.get();
    assert_eq!(read(&core, &pages), PAGES - 1);
    assert_eq!(core.ctx.stats.pages_read.get() - before, PAGES as u64 - 1);
    for page in &pages {
        assert!(core.ctx.pool.is_resident(*page));
        // The change that is only in the pool is still there.
        assert_eq!(get(&core.ctx, *page), if *page == changed { 77 } else { u64::from(page.0) });
    }
    assert_eq!(core.ctx.stats.pages_read.get() - before, PAGES as u64 - 1);
    assert_eq!(read(&core, &pages), 0);
}

#[test]
fn a_damaged_page_is_left_out_and_the_others_come() {
    let (core, pages) = evicted();
    let page_bytes = core.ctx.pool.page_bytes();
    let data = &core.storage().memory_devices().unwrap()[0];
    data.damage(|bytes| bytes[pages[5].0 as usize * page_bytes + 100] ^= 1);
    assert_eq!(read(&core, &pages), PAGES - 1);
    assert!(core.ctx.pool.fix_s(pages[5]).is_err());
    assert!(pages.iter().filter(|page| **page != pages[5]).all(|page| get(&core.ctx, *page) == u64::from(page.0)));
}

/// A read that fails leaves no page half there, and every frame free again.
#[test]
fn after_a_read_that_fails_each_page_is_read_by_the_thread_that_needs_it() {
    let (core, pages) = evicted();
    let beyond: Vec<PageNo> = (0..PAGES as u32).map(|n| PageNo(u32::MAX - 64 + n)).collect();
    let mut buffer = ReadBuffer::default();
    let bytes = buffer.of_bytes(PAGES * core.ctx.pool.page_bytes());
    let free = core.ctx.pool.free_count();
    let run = beyond[0].0..beyond[0].0 + PAGES as u32;
    assert_eq!(core.ctx.pool.loader().load_runs(std::slice::from_ref(&run), bytes).unwrap(), 0);
    assert!(beyond.iter().all(|page| !core.ctx.pool.is_resident(*page)));
    assert_eq!(core.ctx.pool.free_count(), free);
    assert_eq!(read(&core, &pages), PAGES);
}

/// Of many runs, one reaches beyond the store, one has a damaged page and one is resident.
#[test]
fn many_runs_arrive_at_once_and_what_fails_fails_alone() {
    let (core, pages) = evicted();
    let page_bytes = core.ctx.pool.page_bytes();
    let data = &core.storage().memory_devices().unwrap()[0];
    data.damage(|bytes| bytes[pages[6].0 as usize * page_bytes + 100] ^= 1);
    assert_eq!(read(&core, &pages[9..11]), 2);
    let run = |from: usize, to: usize| pages[from].0..pages[to - 1].0 + 1;
    let beyond = u32::MAX - 8..u32::MAX - 6;
    let runs = [run(0, 2), beyond, run(4, 8), run(9, 11), run(11, 12)];
    let mut buffer = ReadBuffer::default();
    let free = core.ctx.pool.free_count();
    assert_eq!(core.ctx.pool.loader().load_runs(&runs, buffer.of_bytes(11 * page_bytes)).unwrap(), 6);
    assert_eq!(core.ctx.pool.free_count(), free - 6);
    let there: Vec<usize> = (0..PAGES).filter(|n| core.ctx.pool.is_resident(pages[*n])).collect();
    assert_eq!(there, [0, 1, 4, 5, 7, 9, 10, 11]);
    assert!(there.iter().all(|n| get(&core.ctx, pages[*n]) == u64::from(pages[*n].0)));
}

/// No thread waits for a request: a thread that leaves requests in the queue asks for one more thread.
#[test]
fn a_thread_that_leaves_pages_behind_asks_for_another_one() {
    let (core, pages) = evicted();
    let pool = &core.ctx.pool;
    pool.start_readers();
    pool.request(&pages);
    let (mut buffer, mut asked) = (ReadBuffer::default(), Vec::new());
    while pages.iter().any(|page| !pool.is_resident(*page)) {
        let mut asks = false;
        pool.read_ahead_step(&mut buffer, || asks = true);
        asked.push(asks);
    }
    pool.read_ahead_step(&mut buffer, || panic!("nothing is left"));
    pool.stop_readers();
    let last = asked.pop();
    assert!(last == Some(false) && !asked.is_empty() && asked.iter().all(|asks| *asks), "{asked:?}, then {last:?}");
}
