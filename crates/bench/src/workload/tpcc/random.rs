//! TPC-C's random values.
//!
//! Source: TPC-C 5.11, clauses 2.1.5 and 2.1.6 (NURand and its constant C), 4.3.2 (strings, last names, zip codes).
//!
//! Rules
//! 1. C is fixed for a run, the same for all its terminals (2.1.6). For last names the run's C differs from the load's
//!    by 65 to 119, but not by 96 or 112 (2.1.6.1).
//! 2. The load's C is in 0..=255 and is stored with the data, so that later runs can follow rule 1.

use crate::workload::random::{push_alphanumeric, push_digits};
use fastrand::Rng;

const SYLLABLES: [&str; 10] = ["BAR", "OUGHT", "ABLE", "PRI", "PRES", "ESE", "ANTI", "CALLY", "ATION", "EING"];

/// The constants C of NURand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Constants {
    /// For C_LAST (A = 255).
    pub last_name: u64,
    /// For C_ID (A = 1023).
    pub customer: u64,
    /// For OL_I_ID (A = 8191).
    pub item: u64,
}

impl Constants {
    /// Constants of a run over data loaded with `load_last_name`.
    pub(super) fn for_run(rng: &mut Rng, load_last_name: u64) -> Constants {
        let last_name = loop {
            let c = rng.u64(0..=255);
            let delta = c.abs_diff(load_last_name);
            if (65..=119).contains(&delta) && delta != 96 && delta != 112 {
                break c;
            }
        };
        Constants { last_name, customer: rng.u64(0..=1023), item: rng.u64(0..=8191) }
    }
}

/// NURand(A, x, y) of 2.1.6.
#[inline]
pub(super) fn nurand(rng: &mut Rng, a: u64, c: u64, x: u64, y: u64) -> u64 {
    ((rng.u64(0..=a) | rng.u64(x..=y)) + c) % (y - x + 1) + x
}

/// Appends the last name of `number` (0..=999), 4.3.2.3.
pub(super) fn push_last_name(out: &mut String, number: u64) {
    for digit in [number / 100, number / 10 % 10, number % 10] {
        out.push_str(SYLLABLES[digit as usize]);
    }
}

/// Appends an a-string of `min..=max` characters (4.3.2.2).
pub(super) fn push_a_string(rng: &mut Rng, out: &mut String, min: usize, max: usize) {
    let len = rng.usize(min..=max);
    push_alphanumeric(rng, out, len);
}

/// Appends a zip code: four digits and 11111 (4.3.2.7).
pub(super) fn push_zip(rng: &mut Rng, out: &mut String) {
    push_digits(rng, out, 4);
    out.push_str("11111");
}

/// Appends item or stock data: 26 to 50 characters, in one row of ten with ORIGINAL somewhere (4.3.3.1).
pub(super) fn push_data(rng: &mut Rng, out: &mut String) {
    let start = out.len();
    push_a_string(rng, out, 26, 50);
    if rng.u32(..10) == 0 {
        let at = start + rng.usize(..=out.len() - start - ORIGINAL.len());
        out.replace_range(at..at + ORIGINAL.len(), ORIGINAL);
    }
}

/// The text that marks a brand item.
pub(super) const ORIGINAL: &str = "ORIGINAL";

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workload::random::rng;

    #[test]
    fn last_names_are_syllables() {
        let name = |n| {
            let mut out = String::new();
            push_last_name(&mut out, n);
            out
        };
        assert_eq!(name(371), "PRICALLYOUGHT");
        assert_eq!(name(40), "BARPRESBAR");
        assert_eq!(name(999), "EINGEINGEING");
    }

    #[test]
    fn run_constant_keeps_its_distance() {
        let mut rng = rng(5, 5);
        for load in 0..=255 {
            let delta = Constants::for_run(&mut rng, load).last_name.abs_diff(load);
            assert!((65..=119).contains(&delta) && delta != 96 && delta != 112);
        }
    }

    #[test]
    fn nurand_stays_in_range_and_is_skewed() {
        let mut rng = rng(1, 1);
        let mut hits = vec![0u32; 3001];
        for _ in 0..100_000 {
            hits[nurand(&mut rng, 1023, 100, 1, 3000) as usize] += 1;
        }
        assert_eq!(hits[0], 0);
        let max = hits.iter().max().copied().unwrap_or(0);
        assert!(max > 4 * 100_000 / 3000, "the hottest customer got {max} of 100000");
    }

    #[test]
    fn a_tenth_of_the_data_is_original() {
        let mut rng = rng(2, 2);
        let mut text = String::new();
        let originals = (0..10_000)
            .filter(|_| {
                text.clear();
                push_data(&mut rng, &mut text);
                assert!((26..=50).contains(&text.len()));
                text.contains(ORIGINAL)
            })
            .count();
        assert!((900..1100).contains(&originals), "{originals}");
    }
}
