//! Power cuts.

use super::*;
use crate::testing::is_tried;

#[test]
fn buffered_changes_survive_power_cuts() {
    let cases = MODES.into_iter().flat_map(|mode| (0..6).map(move |seed| (mode, seed)));
    for (_, (mode, seed)) in (0..).zip(cases).filter(|(n, _)| is_tried(*n)) {
        let mut rng = Rng::with_seed(seed);
        let (mut db, mut rows) = filled(options_of(mode), 14_000, &mut rng);
        for life in 0..4 {
            let note = format!("{mode:?} seed {seed} life {life}");
            let table = db.table("t").unwrap();
            (0..rng.usize(20..200)).for_each(|_| transact(&db, &table, &mut rows, &mut rng));
            let buffered = db.stats().change_buffer_ops_buffered;
            assert!(buffered > 20, "{note}: {buffered}");
            drop(table);
            db = db.after_power_cut(seed * 10 + life);
            assert_same(&db, &rows, &note);
        }
    }
}
