//! Pages damaged while a load runs, and what comes after: some lives of `highwater torture corrupt --under-load`.

use highwater_torture::corruption::{Whole, lives};
use std::ops::Range;
use std::sync::Arc;

/// Lives of each database.
const SEEDS: Range<u64> = 200..208;

#[test]
fn a_page_damaged_under_load_costs_no_more_than_declared() {
    let mut met = 0;
    for own in [[("change_buffering", "disk")], [("change_buffering", "memory")]] {
        let wholes = [Arc::new(Whole::new(&own).unwrap())];
        let lived = lives(&wholes, SEEDS, |_| {}).unwrap();
        println!("{own:?}: {lived:?}");
        assert!(lived.failures.is_empty(), "{own:?}: {}", lived.failures.join("\n"));
        assert!(lived.lives == SEEDS.end - SEEDS.start && lived.commits > lived.lives, "{lived:?}");
        met += lived.met;
    }
    assert!(met > 0, "no life met its damage");
}
