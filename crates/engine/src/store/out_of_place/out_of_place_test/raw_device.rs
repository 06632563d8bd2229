//! A store on a device whose length is fixed and that holds what was there before.

use super::*;
use highwater_storage::{Request, TestDevice, UNUSED_ZEROS_BYTES};

/// Pages of a store that the tests fill the device with.
const MAX_PAGES: u32 = NEW_PAGES + 256;

/// A set whose data device has this many segments, full of old bytes but for its start.
fn old_device(segments: u64) -> StorageSet {
    let storage = StorageSet::memory();
    let old = vec![0xA5; (segments * SEGMENT_BYTES) as usize];
    storage.data.write_at(0, &old, Placement::Other).unwrap();
    storage.data.write_at(0, &vec![0; UNUSED_ZEROS_BYTES], Placement::Other).unwrap();
    storage.data.sync().unwrap();
    storage
}

/// The set as it is used: only its data device has a fixed length.
fn fixed(storage: &StorageSet) -> StorageSet {
    storage.map_data(|inner| {
        let below = inner.clone();
        Arc::new(TestDevice::over(inner).of_fixed_len().before(move |request| {
            let is_beyond = || request.range().end > below.len_bytes().unwrap();
            assert!(!matches!(request, Request::Write { .. }) || !is_beyond(), "a write beyond the end");
            Ok(())
        }))
    })
}

fn sizes() -> Sizes {
    geometry().sizes(1)
}

#[test]
fn a_device_is_full_exactly_where_every_page_can_still_be_written() {
    let storage = fixed(&old_device(capacity::guaranteed_segments(MAX_PAGES, sizes())));
    assert!(bootstrap::is_uncreated(&storage, NEW_PAGES).unwrap());
    create(&storage);
    assert!(!bootstrap::is_uncreated(&storage, NEW_PAGES).unwrap());
    let store = open(&storage);
    assert_eq!(store.pages().unwrap(), u64::from(NEW_PAGES));
    (2..NEW_PAGES).for_each(|page| assert_holds(&*store, page, 0, "as created"));
    let fits = |pages: &u32| capacity::guaranteed_segments(*pages, sizes()) <= storage_segments(&storage);
    let max = (MAX_PAGES..).take_while(fits).last().unwrap();
    let refused = store.reserve(max..max + 1).unwrap_err();
    assert!(refused.is_full() && refused.to_string().contains("bytes"), "{refused}");
    store.reserve(NEW_PAGES..max).unwrap();
    store.sync().unwrap();
    let (mut random, mut model) = (fastrand::Rng::with_seed(3), HashMap::new());
    for lsn in 1..1500 {
        let pages = some_pages(&mut random, max, 60);
        write(&*store, &pages, lsn, FlushLane::FlushList).unwrap();
        model.extend(pages.into_iter().map(|page| (page, lsn)));
    }
    drop(store);
    let store = open(&storage);
    assert_sound(&*store, "full");
    assert_eq!(store.pages().unwrap(), u64::from(max));
    (2..max).for_each(|page| assert_holds(&*store, page, model.get(&page).copied().unwrap_or(0), "opened again"));
}

fn storage_segments(storage: &StorageSet) -> u64 {
    storage.data.len_bytes().unwrap() / SEGMENT_BYTES
}

#[test]
fn a_device_that_is_too_small_is_refused_before_anything_is_written() {
    let needed = capacity::guaranteed_segments(NEW_PAGES, sizes());
    let storage = fixed(&old_device(needed - 1));
    let before = storage.memory_devices().unwrap()[0].image();
    let error = try_create(&storage).unwrap_err().to_string();
    assert!(error.contains("the device has"), "{error}");
    assert!(storage.memory_devices().unwrap()[0].image() == before);
}

/// A file system may leave its first block empty and begin further on.
#[test]
fn what_lies_behind_an_empty_first_block_is_not_taken_for_a_creation() {
    let storage = fixed(&old_device(capacity::guaranteed_segments(NEW_PAGES, sizes())));
    storage.data.write_at(64 << 10, b"a superblock", Placement::Other).unwrap();
    let error = bootstrap::is_uncreated(&storage, NEW_PAGES).unwrap_err().to_string();
    assert!(error.contains("holds something already"), "{error}");
}

#[test]
fn a_creation_that_was_cut_short_is_done_again() {
    let segments = capacity::guaranteed_segments(NEW_PAGES, sizes());
    let (mut uncreated, mut created) = (0, 0);
    for cut in 0..10 {
        for seed in 0..6 {
            let (old, faults) = (old_device(segments), Faults::new());
            faults.power_off_after(cut);
            let finished = try_create(&fixed(&old.map(|device| faults.wrap(device)))).is_ok();
            let left = old.cut(seed);
            let again = fixed(&left);
            if bootstrap::is_uncreated(&again, NEW_PAGES).unwrap() {
                assert!(!finished, "it was acknowledged");
                create(&again);
                uncreated += 1;
            } else {
                created += 1;
            }
            let store = open(&again);
            (2..NEW_PAGES).for_each(|page| assert_holds(&*store, page, 0, "as created"));
        }
    }
    assert!(uncreated > 10 && created > 5, "{uncreated} and {created}");
}

#[test]
fn pages_in_place_are_refused() {
    let storage = fixed(&old_device(8));
    let error = bootstrap::check_kind(&storage, StoreKind::InPlace).unwrap_err().to_string();
    assert!(error.contains("block device") && error.contains("out-of-place"), "{error}");
    bootstrap::check_kind(&storage, StoreKind::OutOfPlace { segment_bytes: SEGMENT_BYTES }).unwrap();
    bootstrap::check_kind(&new_store(), StoreKind::InPlace).unwrap();
}
