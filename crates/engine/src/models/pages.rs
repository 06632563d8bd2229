//! The pool: readers with and without latches, writers, loads, evictions and flushes, each of which may find that the
//! page it is after moves to another frame meanwhile.

use super::device::taking_turns;
use super::{explore, small_database};
use crate::context::Context;
use crate::db::open_parts::OpenParts;
use crate::page::{PageBytes, PageOp, PageType};
use crate::pool::{FlushReason, Pool};
use crate::sync::thread;
use crate::types::{PageNo, SegmentId};

const SEGMENT: SegmentId = SegmentId(99);
/// A value is at both places of a page, and its tag at the third: whose page it is.
const PLACES: [u16; 2] = [64, 3000];
const TAG: u16 = 1000;

/// A database with these many pages of its own, all in the store, none in the pool but those that always are.
fn pages<const N: usize>() -> (OpenParts, [PageNo; N]) {
    let storage = small_database().map(taking_turns);
    let parts = OpenParts::open(storage, super::options()).unwrap();
    let new_page = |tag: u64| {
        let make = || {
            let mut mtr = parts.ctx.mtr_with(4096, 1)?;
            let page_no = parts.space.allocate(&mut mtr, SEGMENT, None)?;
            let page = mtr.new_page(page_no);
            mtr.apply(page, &PageOp::Format { page_type: PageType::Overflow, level: 0, owner: SEGMENT.0 });
            mtr.apply(page, &PageOp::Write { offset: TAG, bytes: &tag.to_le_bytes() });
            mtr.commit();
            Ok(page_no)
        };
        parts.space.with_room(&parts.ctx, make).unwrap()
    };
    let pages = std::array::from_fn(|n| new_page(n as u64));
    flush(&parts.ctx.pool);
    parts.ctx.pool.evict_all_clean();
    (parts, pages)
}

fn flush(pool: &Pool) {
    let dirty = pool.dirty_tail(usize::MAX, usize::MAX);
    pool.flush_frames(&dirty, FlushReason::LruList).unwrap();
}

fn put(ctx: &Context, page: PageNo, value: u64) {
    let mut mtr = ctx.mtr().unwrap();
    let latched = mtr.fix_x(page).unwrap();
    for offset in PLACES {
        mtr.apply(latched, &PageOp::Write { offset, bytes: &value.to_le_bytes() });
        thread::yield_now();
    }
    mtr.commit();
}

/// What a page's bytes say: its tag, and the value, of which there must not be two.
fn read(bytes: &(impl PageBytes + ?Sized)) -> (u64, u64, u64) {
    let word = |offset: u16| {
        thread::yield_now();
        bytes.u64_at(usize::from(offset))
    };
    (word(TAG), word(PLACES[0]), word(PLACES[1]))
}

/// Reads the page by a latch-free view that validates in the end.
fn read_optimistically(pool: &Pool, page: PageNo) -> Option<(u64, u64, u64)> {
    let view = pool.optimistic(page)?;
    let read = read(&view);
    view.validate().then_some(read)
}

fn assert_whole(found: (u64, u64, u64), tag: u64, at_least: u64) -> u64 {
    let (found_tag, first, second) = found;
    assert_eq!(found_tag, tag, "another page");
    assert_eq!(first, second, "half of a change");
    assert!(first >= at_least, "{first} after {at_least}");
    first
}

/// A page is read by latch and by view while it is changed, flushed and evicted, and another page takes its frame. A
/// reader sees this page only, whole, and never an older value than before; no change is lost.
pub fn a_reader_whose_frame_moves() {
    explore(3000, || {
        let (parts, [page, other]) = pages();
        let ctx = parts.ctx.clone();
        let writer = {
            let ctx = ctx.clone();
            thread::spawn(move || (1..=2).for_each(|value| put(&ctx, page, value)))
        };
        let mover = {
            let ctx = ctx.clone();
            thread::spawn(move || {
                for _ in 0..2 {
                    flush(&ctx.pool);
                    ctx.pool.evict_all_clean();
                    assert_eq!(read(&*ctx.pool.fix_s(other).unwrap()).0, 1);
                }
            })
        };
        let mut last = 0;
        for _ in 0..2 {
            last = assert_whole(read(&*ctx.pool.fix_s(page).unwrap()), 0, last);
            if let Some(found) = read_optimistically(&ctx.pool, page) {
                last = assert_whole(found, 0, last);
            }
        }
        writer.join().unwrap();
        mover.join().unwrap();
        flush(&ctx.pool);
        ctx.pool.evict_all_clean();
        assert_whole(read(&*ctx.pool.fix_s(page).unwrap()), 0, 2);
        assert_eq!(ctx.pool.dirty_count(), 0);
    });
}

/// A page that becomes dirty while a thread looks whether it may be evicted stays.
pub fn a_page_that_becomes_dirty_stays() {
    explore(1000, || {
        let (parts, [page]) = pages();
        let ctx = parts.ctx.clone();
        drop(ctx.pool.fix_s(page).unwrap());
        let writer = {
            let ctx = ctx.clone();
            thread::spawn(move || put(&ctx, page, 1))
        };
        ctx.pool.evict_all_clean();
        writer.join().unwrap();
        assert_whole(read(&*ctx.pool.fix_s(page).unwrap()), 0, 1);
    });
}

/// Threads that find a page missing read it once, and each gets it; a page that was seen is found again only unchanged.
pub fn a_page_is_read_by_one_of_those_who_miss_it() {
    explore(150, || {
        let (parts, [page, other]) = pages();
        let ctx = parts.ctx.clone();
        let readers: Vec<_> = (0..2)
            .map(|_| {
                let ctx = ctx.clone();
                thread::spawn(move || {
                    let guard = ctx.pool.fix_s(page).unwrap();
                    let (version, value) = (guard.version(), assert_whole(read(&*guard), 0, 0));
                    drop(guard);
                    if let Some(again) = ctx.pool.fix_s_if(version) {
                        assert_eq!(again.page_no(), page);
                        assert_eq!(assert_whole(read(&*again), 0, 0), value, "it was taken for unchanged");
                    }
                })
            })
            .collect();
        let mover = {
            let ctx = ctx.clone();
            thread::spawn(move || {
                ctx.pool.evict_all_clean();
                assert_eq!(read(&*ctx.pool.fix_s(other).unwrap()).0, 1);
            })
        };
        put(&ctx, page, 1);
        readers.into_iter().for_each(|reader| reader.join().unwrap());
        mover.join().unwrap();
        assert_whole(read(&*ctx.pool.fix_s(page).unwrap()), 0, 1);
    });
}
