//! The page table, with frames.

use super::page_table::meanwhile;
use super::{FrameNo, Frames, PageTable};
use crate::types::PageNo;
use std::sync::Arc;

#[test]
fn finds_what_was_inserted_and_only_that() {
    let frames = Frames::new(200, 4096).unwrap();
    let table = PageTable::new(4).unwrap();
    for n in 0..200 {
        frames.get(n).set_page_no(PageNo(n * 7));
        table.insert(&frames, n, &table.lock(PageNo(n * 7)));
    }
    for n in (0..200).step_by(2) {
        table.remove(&frames, n, &table.lock(PageNo(n * 7)));
    }
    for n in 0..200 {
        let page = PageNo(n * 7);
        let expected = (n % 2 == 1).then_some(n);
        assert_eq!(table.find_locked(&frames, page, &table.lock(page)), expected);
        assert_eq!(table.find(&frames, page), expected);
    }
    assert_eq!(table.find(&frames, PageNo(1)), None);
}

/// The frames of pages in the bucket of `page`, and of another one.
fn others(table: &PageTable, page: PageNo) -> (PageNo, PageNo) {
    let find = |same| (page.0 + 1..).map(PageNo).find(|p| table.is_same_chain(*p, page) == same);
    (find(true).unwrap(), find(false).unwrap())
}

fn move_to(frames: &Frames, table: &PageTable, frame: FrameNo, page: PageNo) {
    let lock = table.lock(frames.get(frame).page_no());
    table.remove(frames, frame, &lock);
    drop(lock);
    frames.get(frame).set_page_no(page);
    table.insert(frames, frame, &table.lock(page));
}

/// The frame that a reader has reached is evicted and given to a page of another chain: the reader must not take
/// the end of that chain for the end of its own.
#[test]
fn a_reader_led_to_another_chain_finds_its_page() {
    let frames = Arc::new(Frames::new(2, 4096).unwrap());
    let table = Arc::new(PageTable::new(64).unwrap());
    let sought = PageNo(1);
    let (same, elsewhere) = others(&table, sought);
    for (frame, page) in [(0, sought), (1, same)] {
        frames.get(frame).set_page_no(page);
        table.insert(&frames, frame, &table.lock(page));
    }
    let lead_away = || {
        move_to(&frames, &table, 1, same);
        let (frames, table) = (frames.clone(), table.clone());
        meanwhile::on(1, Box::new(move || move_to(&frames, &table, 1, elsewhere)));
    };
    lead_away();
    assert_eq!(table.peek(&frames, sought), None, "what an unlatched lookup may do");
    lead_away();
    assert_eq!(table.find(&frames, sought), Some(0));
    assert!(!meanwhile::is_pending());
    assert_eq!(table.find(&frames, same), None);
}

/// A chain longer than an unlatched lookup is walked to its end.
#[test]
fn a_long_chain_is_walked_to_its_end() {
    let frames = Frames::new(300, 4096).unwrap();
    let table = PageTable::new(4).unwrap();
    let pages: Vec<_> = (0..).map(PageNo).filter(|p| table.is_same_chain(*p, PageNo(0))).take(300).collect();
    for (frame, page) in pages.iter().enumerate() {
        frames.get(frame as FrameNo).set_page_no(*page);
        table.insert(&frames, frame as FrameNo, &table.lock(*page));
    }
    for (frame, page) in pages.iter().enumerate() {
        assert_eq!(table.find(&frames, *page), Some(frame as FrameNo));
    }
}
