//! Pages damaged while a load runs, and what comes after: some lives of `highwater torture corrupt --beside`.

use highwater_bench::corruption::{Whole, lives};
use std::sync::Arc;

/// Lives of each database.
const LIVES: u64 = 8;

#[test]
fn a_page_damaged_beside_a_load_costs_no_more_than_declared() {
    for own in [[("change_buffering", "disk")], [("change_buffering", "memory")]] {
        let wholes = [Arc::new(Whole::new(&own).unwrap())];
        let lived = lives(&wholes, 0..LIVES, |_| {}).unwrap();
        println!("{own:?}: {lived:?}");
        assert!(lived.failures.is_empty(), "{own:?}: {}", lived.failures.join("\n"));
        assert!(lived.lives == LIVES && lived.commits > LIVES, "{lived:?}");
    }
}
