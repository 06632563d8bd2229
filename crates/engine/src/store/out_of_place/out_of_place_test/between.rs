//! What others do in the middle of a read or a sync, at an exact moment.

use super::*;
use crate::store::hooks::Hooks;
use std::sync::Weak;

fn open_with_hooks(storage: &StorageSet) -> (Arc<dyn PageStore>, Arc<Hooks>) {
    let hooks = Arc::new(Hooks::default());
    let store = open(&storage.map(|inner| hooks.over(inner)));
    (store, hooks)
}

fn places(store: &dyn PageStore) -> Vec<Option<PageLocation>> {
    (0..NEW_PAGES).map(|page| store.place(PageNo(page)).unwrap()).collect()
}

/// A flush and a cleaner's copy: while the sync runs, readers still get the images before.
#[test]
fn the_map_points_at_nothing_that_is_not_durable() {
    let storage = new_store();
    let (store, hooks) = open_with_hooks(&storage);
    store.reserve(NEW_PAGES..512).unwrap();
    store.sync().unwrap();
    write(&*store, &[10, 11, 12], 1, FlushLane::FlushList).unwrap();
    for lsn in 2..30 {
        write(&*store, &[2, 3, 4, 5, 6], lsn, FlushLane::FlushList).unwrap();
    }
    let during = |change: &dyn Fn()| {
        let (weak, seen): (Weak<dyn PageStore>, _) = (Arc::downgrade(&store), Arc::new(Mutex::new(None)));
        let (before, note) = (places(&*store), seen.clone());
        let look = move || *note.lock() = Some(places(&*weak.upgrade().unwrap()));
        *hooks.before_sync.lock() = Some(Box::new(look));
        change();
        let seen = seen.lock().take();
        assert!(seen.expect("it was synced") == before, "a place changed before the sync");
        assert!(places(&*store) != before, "places change after it");
    };
    during(&|| write(&*store, &[5], 30, FlushLane::FlushList).unwrap());
    during(&|| assert!(store.clean_step().unwrap()));
}

/// The segment that it was in is used again before the bytes are read.
#[test]
fn a_page_that_is_moved_while_it_is_read_is_read_from_its_new_place() {
    let storage = new_store();
    let (store, hooks) = open_with_hooks(&storage);
    write(&*store, &[5], 1, FlushLane::FlushList).unwrap();
    let place = store.place(PageNo(5)).unwrap().unwrap();
    let bytes_there = || {
        let mut bytes = vec![0; place.bytes as usize];
        storage.data.read_at(place.offset, &mut bytes).unwrap();
        bytes
    };
    let before = bytes_there();
    let weak: Weak<dyn PageStore> = Arc::downgrade(&store);
    let mut is_first = true;
    *hooks.before_read.lock() = Some(Box::new(move || {
        if !std::mem::take(&mut is_first) {
            return;
        }
        let store = weak.upgrade().unwrap();
        for lsn in 2..400 {
            write(&*store, &(2..20).collect::<Vec<u32>>(), lsn, FlushLane::FlushList).unwrap();
        }
    }));
    assert_holds(&*store, 5, 399, "read while it was moved");
    assert!(bytes_there() != before, "its old place was used again");
}
