//! Watches: they show purge that a leaf was changed or read since purge read it.

use super::super::{Added, PendingChange};
use super::advance::Fixture;
use crate::page::node::LeafChange;
use crate::types::TxnId;

/// Removes a key that was looked at under a watch; `meanwhile` happens in between.
fn remove_watched(fixture: &Fixture, key: &[u8], meanwhile: impl FnOnce()) -> Added {
    let (ctx, changes) = (&fixture.parts.ctx, &fixture.parts.changes);
    let leaf = fixture.tree.non_resident_leaf(ctx, key).unwrap().expect("the leaf is out of the pool");
    let watch = changes.watch(&leaf).expect("no thread reads it");
    meanwhile();
    let mut mtr = ctx.mtr().unwrap();
    let leaf = fixture.tree.non_resident_leaf_in(&mut mtr, key).unwrap().expect("the leaf is out of the pool again");
    let pending = PendingChange { change: LeafChange::Remove { key }, trx_id: TxnId(0) };
    changes.add_if_watched(mtr, &leaf, &pending, &watch).unwrap()
}

#[test]
fn a_watch_is_broken_by_a_pending_change_and_by_a_read_of_its_leaf() {
    let fixture = Fixture::new();
    let keys = fixture.make_pending(3);
    assert!(matches!(remove_watched(&fixture, &keys[0], || {}), Added::Done));
    let put_again = || assert!(fixture.put(&keys[1]).unwrap());
    assert!(matches!(remove_watched(&fixture, &keys[1], put_again), Added::Again));
    let read_and_evict = || {
        let pool = &fixture.parts.ctx.pool;
        pool.load(fixture.leaf_of(&keys[2])).unwrap();
        pool.flush_all().unwrap();
        pool.evict_all_clean();
    };
    assert!(matches!(remove_watched(&fixture, &keys[2], read_and_evict), Added::Again));
    // A change of another leaf does not concern it.
    let put_elsewhere = || assert!(fixture.put(&keys[1]).unwrap());
    assert!(matches!(remove_watched(&fixture, &keys[2], put_elsewhere), Added::Done));
    fixture.assert_has(&keys[1..2]);
}
