//! While the database runs.

use super::*;

#[test]
fn changes_become_pending_and_are_merged() {
    let mut rng = Rng::with_seed(1);
    let (db, mut rows) = filled(options(), 20_000, &mut rng);
    let table = db.table("t").unwrap();
    (0..300).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
    let stats = db.stats();
    assert!(stats.change_buffer_ops_buffered > 10_000, "{stats:?}");
    assert!(stats.change_buffer_merges > 100 && stats.change_buffer_merged_inserts > 1000, "{stats:?}");
    assert_same(&db, &rows, "running");
    let stats = db.stats();
    assert!(stats.change_buffer_merged_deletes > 0 && stats.change_buffer_merged_delete_marks > 0, "{stats:?}");
}
