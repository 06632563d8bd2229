//! Creating and dropping indexes and tables that have pending changes; pages that are reused.

use super::*;
use crate::db::testing::{by_id, commit_all};

#[test]
fn a_new_index_has_what_is_pending_for_the_others() {
    for mode in MODES {
        let mut rng = Rng::with_seed(21);
        let (db, mut rows) = filled(options_of(mode), 8000, &mut rng);
        let table = db.table("t").unwrap();
        for _ in 0..3 {
            (0..60).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
            db.create_index("t", "by_both", &["b", "a"], false).unwrap();
            (0..60).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
            assert_same(&db, &rows, &format!("{mode:?}"));
            db.drop_index("t", "by_both").unwrap();
        }
    }
}

/// The pages of a dropped index are taken by another table's index while changes of the dropped one were pending; then
/// the power is cut, so that recovery sees both lives of them.
#[test]
fn pages_of_a_dropped_index_are_used_again() {
    for mode in MODES {
        let mut rng = Rng::with_seed(22);
        let (mut db, mut rows) = filled(options_of(mode), 8000, &mut rng);
        for round in 0..6 {
            let table = db.table("t").unwrap();
            db.create_index("t", "extra", &["a", "b"], false).unwrap();
            (0..80).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
            if round % 2 == 0 {
                db.drop_index("t", "extra").unwrap();
            }
            let other = db.create_table("other", by_id().column("x", Type::Text(200)).index("by_x", &["x"])).unwrap();
            for ids in (0..4000_u64).collect::<Vec<_>>().chunks(200) {
                commit_all(&db, ids, |txn, id| {
                    let text = format!("{:020} {}", rng.u64(..), "x".repeat(100));
                    txn.insert(&other, &values![*id, text.as_str()])
                });
            }
            if round % 2 == 1 {
                db.drop_index("t", "extra").unwrap();
            }
            if round < 4 {
                drop((table, other));
                db = db.after_power_cut(round);
            }
            assert_same(&db, &rows, &format!("{mode:?} round {round}"));
            db.drop_table("other").unwrap();
        }
    }
}

/// Changes of an index that is dropped are given up, and counted.
#[test]
fn pending_changes_of_a_dropped_index_are_discarded() {
    let mut rng = Rng::with_seed(23);
    let (db, mut rows) = filled(options(), 12_000, &mut rng);
    let table = db.table("t").unwrap();
    (0..60).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
    let before = db.stats().change_buffer_discarded_ops;
    db.drop_index("t", "by_a").unwrap();
    db.finish_drops().unwrap();
    assert!(db.stats().change_buffer_discarded_ops > before + 50, "{:?}", db.stats());
    db.create_index("t", "by_a", &["a"], false).unwrap();
    assert_same(&db, &rows, "made again");
}
