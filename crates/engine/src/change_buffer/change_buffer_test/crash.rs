//! Power cuts.

use super::*;

#[test]
fn pending_changes_survive_power_cuts() {
    for seed in 0..6 {
        let mut rng = Rng::with_seed(seed);
        let (mut db, mut rows) = filled(StorageSet::memory(), options(), 12_000, &mut rng);
        for life in 0..4 {
            let table = db.table("t").unwrap();
            (0..rng.usize(20..200)).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
            let buffered = db.stats().change_buffer_ops_buffered;
            assert!(buffered > 20, "seed {seed} life {life}: {buffered}");
            let cut = db.storage().cut(seed * 10 + life);
            drop(table);
            drop(db);
            db = Database::open_storage(cut, options()).unwrap();
            assert_same(&db, &rows, &format!("seed {seed} life {life}"));
        }
    }
}
