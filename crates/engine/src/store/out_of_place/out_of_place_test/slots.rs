//! How many pages the store has is known after any power cut.

use super::*;

/// A power cut may damage everything written since the last sync: the older of two slots lies elsewhere.
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
