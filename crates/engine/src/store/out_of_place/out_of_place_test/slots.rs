//! How many pages the store has is known after any power cut.

use super::*;

/// A power cut may damage everything written since the last sync: the older of two slots is elsewhere.
#[test]
fn a_damaged_slot_leaves_the_one_before() {
    let storage = new_store();
    let store = open(&storage);
    let pages_after = |damaged: &[std::ops::Range<u64>]| {
        let cut = storage.cut(0);
        for range in damaged {
            let bytes = vec![0xA5; (range.end - range.start) as usize];
            cut.data.write_at(range.start, &bytes, Placement::Other).unwrap();
        }
        open(&cut).pages().unwrap()
    };
    let mut pages = NEW_PAGES;
    for _ in 0..5 {
        let (before, next) = (pages, pages + 64);
        store.reserve(before..next).unwrap();
        store.sync().unwrap();
        assert_eq!(pages_after(&[]), u64::from(next), "the newest slot counts");
        let unsynced = unsynced_of_a_sync(&storage, next + 64);
        assert!(!unsynced.is_empty(), "a sync writes a slot");
        assert_eq!(pages_after(&unsynced), u64::from(next), "whatever the next sync was writing");
        pages = next;
    }
}

/// Headers and footers elsewhere name batches in segments that are cut off: that is no damage, also when the file has
/// grown again.
#[test]
fn segments_that_were_cut_off_are_not_missed() {
    const LOW: u32 = 1000;
    const HIGH: u32 = 3000;
    let storage = new_store();
    let store = open(&storage);
    store.reserve(0..HIGH).unwrap();
    store.sync().unwrap();
    for pages in [(2..LOW).collect::<Vec<_>>(), (LOW..HIGH).collect()] {
        pages.chunks(100).for_each(|some| write(&*store, some, 1, FlushLane::FlushList).unwrap());
    }
    let full = storage.data.len_bytes().unwrap();
    store.truncate(LOW).unwrap();
    while store.shrink_step(true).unwrap() {}
    let cut = storage.data.len_bytes().unwrap();
    assert!(cut < full * 2 / 3, "{cut} of {full} bytes");
    let opens = |case: &str| {
        let found = bootstrap::find(&storage.cut(7)).unwrap().expect(store.mark()).unwrap();
        found.repair(Lsn(1)..Lsn(100)).unwrap_or_else(|error| panic!("{case}: {error}"));
        let again = open(&storage.cut(7));
        (2..LOW).for_each(|page| assert_holds(&*again, page, 1, case));
    };
    opens("cut");
    store.reserve(0..HIGH).unwrap();
    store.sync().unwrap();
    opens("grown again");
    write(&*store, &[HIGH - 1], 2, FlushLane::FlushList).unwrap();
    opens("used again");
    assert_holds(&*store, HIGH - 1, 2, "used again");
}

/// Most pages of each segment are given up, so that none is free: the file is truncated nevertheless.
#[test]
fn segments_with_few_live_pages_each_are_brought_together() {
    const PAGES: u32 = 6000;
    const STAY: u32 = PAGES / 10;
    let storage = new_store();
    let store = open_after(&storage, 0, PageCompression::Off).unwrap();
    store.reserve(0..PAGES).unwrap();
    store.sync().unwrap();
    let evenly: Vec<u32> =
        (2..STAY).flat_map(|page| std::iter::once(page).chain(STAY + 9 * page..STAY + 9 * page + 9)).collect();
    evenly.iter().filter(|page| **page < PAGES).copied().collect::<Vec<_>>().chunks(100).for_each(|some| {
        write(&*store, some, 1, FlushLane::FlushList).unwrap();
    });
    let full = storage.data.len_bytes().unwrap();
    store.truncate(STAY).unwrap();
    while store.shrink_step(true).unwrap() {}
    let cut = storage.data.len_bytes().unwrap();
    assert!(cut < full / 4, "{cut} of {full} bytes");
    (2..STAY).for_each(|page| assert_holds(&*store, page, 1, "after the cut"));
    let again = open(&storage.cut(3));
    (2..STAY).for_each(|page| assert_holds(&*again, page, 1, "opened after a power cut"));
}

/// What a sync that makes the store `pages` long writes, found out on a copy.
fn unsynced_of_a_sync(storage: &StorageSet, pages: u32) -> Vec<Range<u64>> {
    let (copy, faults) = (storage.cut(0), Faults::new());
    let store = open(&copy.map(|device| faults.wrap(device)));
    store.reserve(0..pages).unwrap();
    faults.fail(highwater_storage::Operation::Sync, 1, highwater_storage::FaultKind::ErrorForGood);
    assert!(store.sync().is_err());
    let unsynced = copy.memory_devices().unwrap()[0].unsynced();
    unsynced.into_iter().filter(|range| !range.is_empty()).collect()
}
