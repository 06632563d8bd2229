//! A damaged leaf with pending changes: the error names it, everything else goes on.

use super::advance::Fixture;
use crate::error::Error;

#[test]
fn a_damaged_leaf_keeps_its_changes_and_holds_nobody_up() {
    let fixture = Fixture::new();
    let keys = fixture.make_pending(20);
    let leaf = fixture.leaf_of(&keys[7]);
    let sound = fixture.damage(leaf);
    let error = fixture.core.changes.merge_all().unwrap_err();
    assert!(matches!(&error, Error::CorruptPage { page, .. } if *page == leaf), "{error}");
    let stats = &fixture.core.ctx.stats;
    assert_eq!(stats.change_buffer_merges.get(), 19, "the other leaves are merged");
    assert!(fixture.core.ctx.pool.load(leaf).unwrap_err().to_string().contains(&format!("page {leaf} ")));
    // The checkpoint passes its changes.
    fixture.fill_log(60);
    fixture.core.changes.step().unwrap();
    assert_eq!(stats.change_buffer_carried_ops.get(), 1);
    assert!(fixture.checkpoint().0 > fixture.core.ctx.log.end_lsn().0 - fixture.core.ctx.log.capacity_bytes() / 4);
    // The page is put back as it was: its changes are there.
    fixture.repair(leaf, &sound);
    fixture.after_power_cut(3).assert_has(&keys);
    fixture.assert_has(&keys);
}
