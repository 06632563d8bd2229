//! The selection of cases of a long list for a run of the tests.
//!
//! Rule: `HIGHWATER_TEST_PART=K/N` in the environment selects the part K, from 0, of N. Without it every case is tried.

use std::sync::OnceLock;

/// The part of each list: its number, and of how many it is one. `None` without the variable.
///
/// # Panics
/// The variable has another form.
pub fn test_part() -> Option<(u64, u64)> {
    static PART: OnceLock<Option<(u64, u64)>> = OnceLock::new();
    *PART.get_or_init(|| {
        let part = std::env::var("HIGHWATER_TEST_PART").ok()?;
        let (number, parts) = part.split_once('/').expect("HIGHWATER_TEST_PART is K/N");
        Some((number.parse().expect("K is a number"), parts.parse().expect("N is a number")))
    })
}

/// Whether this run tries this case: its number leaves the remainder K when divided by N.
pub fn is_tried(case: u64) -> bool {
    test_part().is_none_or(|(number, parts)| case % parts == number)
}
