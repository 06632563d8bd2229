//! Many pages read at once.

use super::*;
use crate::store::hooks::Hooks;
use std::sync::Weak;

/// Pages with images of every length, pages without one, several pages in one read, and a page beyond the end.
#[test]
fn every_read_is_reported_once_and_finds_its_pages() {
    for compression in PageCompression::ALL {
        let storage = new_store();
        let store = open_after(&storage, 0, compression).unwrap();
        let all: Vec<u32> = (2..NEW_PAGES).filter(|page| page % 7 != 0).collect();
        write(&*store, &all, 3, FlushLane::FlushList).unwrap();
        let mut runs: Vec<Range<u32>> = (2..NEW_PAGES).rev().map(|page| page..page + 1).collect();
        runs.extend([4..9, NEW_PAGES..NEW_PAGES + 1, 20..21]);
        for (run, read) in runs.iter().zip(read_together(&*store, &runs)) {
            assert_eq!(read.is_err(), run.start == NEW_PAGES, "{run:?}");
            let Ok(bytes) = read else { continue };
            for (page, bytes) in run.clone().zip(bytes.chunks(PAGE_BYTES)) {
                let has_image = page % 7 != 0;
                let expected = if has_image { page_of(PageNo(page), 3, noise_of(page)) } else { vec![0; PAGE_BYTES] };
                assert!(bytes == expected, "page {page}, {compression:?}");
            }
        }
        assert!(read_together(&*store, &[]).is_empty());
    }
}

/// All pages of a read are moved, and their segments used again, before the bytes come.
#[test]
fn pages_that_are_moved_while_they_are_read_are_read_again() {
    let (storage, hooks) = (new_store(), Arc::new(Hooks::default()));
    let store = open(&storage.map(|inner| hooks.over(inner)));
    write(&*store, &[5, 9, 13], 1, FlushLane::FlushList).unwrap();
    let place = store.place(PageNo(9)).unwrap().unwrap();
    let weak: Weak<dyn PageStore> = Arc::downgrade(&store);
    let mut is_first = true;
    *hooks.before_read.lock() = Some(Box::new(move || {
        if std::mem::take(&mut is_first) {
            let store = weak.upgrade().unwrap();
            let pages: Vec<u32> = (2..20).collect();
            (2..400).for_each(|lsn| write(&*store, &pages, lsn, FlushLane::FlushList).unwrap());
        }
    }));
    let read = read_together(&*store, &[5..6, 9..10, 13..14]);
    for (page, bytes) in [5, 9, 13].into_iter().zip(read) {
        assert!(bytes.unwrap()[..] == page_of(PageNo(page), 399, noise_of(page)), "page {page}");
    }
    assert!(store.place(PageNo(9)).unwrap() != Some(place));
}

/// An image that cannot be unpacked is an error of its page, and of no other.
#[test]
fn a_damaged_image_fails_alone() {
    let storage = new_store();
    let store = open_after(&storage, 0, PageCompression::Lz4).unwrap();
    write(&*store, &[4, 9, 18], 1, FlushLane::FlushList).unwrap();
    let place = store.place(PageNo(9)).unwrap().unwrap();
    assert!(place.bytes < PAGE_BYTES as u64, "it is compressed");
    storage.data.write_at(place.offset, &[0xff; 8], Placement::Other).unwrap();
    let read = read_together(&*store, &[4..5, 9..10, 18..19]);
    assert!(read[0].is_ok() && read[2].is_ok());
    let error = read[1].as_ref().map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("page 9") && error.contains("claims to hold"), "{error}");
}
