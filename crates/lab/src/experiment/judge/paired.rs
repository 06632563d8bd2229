//! Speeds of one option against another, over pairs of runs directly after one another.
//!
//! Rules
//! 1. The ratio is the geometric mean over all pairs; its spread is the half of that mean's interval of 95 % confidence
//!    (Student's t: with few pairs it is much wider than two standard errors).
//! 2. Ratios that differ from one by less than the spread, or less than [`TOLERANCE`], count as equal.
//! 3. A ratio with a spread above [`UNDECIDED_ABOVE`] decides nothing, unless its interval is on one side of one.
//! 4. A pair with a missing or zero value has no ratio: the option counts as not measured.

use super::{Judgment, number};
use crate::experiment::Verdict;

/// Speeds that differ by less count as equal.
const TOLERANCE: f64 = 0.03;
/// A ratio with a larger spread than this is not judged.
const UNDECIDED_ABOVE: f64 = 0.10;

/// The speed of an option relative to another, and the spread of that ratio.
#[derive(Clone, Copy)]
pub(in crate::experiment) struct Speed {
    ratio: f64,
    /// Half of the interval of 95 % confidence of the mean over the pairs of runs; infinite for a single pair.
    spread: f64,
}

impl Speed {
    /// The speed of an option that was not measured.
    pub(in crate::experiment) const NONE: Speed = Speed { ratio: f64::NAN, spread: f64::NAN };

    /// Of pairs of runs.
    pub(in crate::experiment) fn of(pairs: &[(f64, f64)]) -> Speed {
        let logarithms: Vec<f64> = pairs.iter().map(|(a, b)| (a / b).ln()).collect();
        if !logarithms.iter().all(|one| one.is_finite()) {
            return Speed::NONE;
        }
        let n = logarithms.len() as f64;
        let mean = logarithms.iter().sum::<f64>() / n;
        let squares: f64 = logarithms.iter().map(|one| (one - mean).powi(2)).sum();
        let spread = if n < 2.0 { f64::INFINITY } else { student(pairs.len()) * (squares / (n - 1.0) / n).sqrt() };
        Speed { ratio: mean.exp(), spread }
    }

    /// The spread is that of the ratio's logarithm.
    fn is_on_one_side(&self) -> bool {
        self.ratio.ln().abs() > self.spread
    }

    fn is_decided(&self) -> bool {
        self.spread <= UNDECIDED_ABOVE || self.is_on_one_side()
    }

    fn is_at_least_one(&self) -> bool {
        self.ratio >= 1.0 - TOLERANCE || !self.is_on_one_side()
    }

    /// `1.02 times 1 (± 3.1 %)`.
    pub(in crate::experiment) fn show(&self, other: &str) -> String {
        format!("{} times {other} (± {} %)", number(self.ratio), number(self.spread * 100.0))
    }
}

/// Whether each speed is at least one: lost if a decided speed is not, undecided if one of the others is undecided.
pub(in crate::experiment) fn all_at_least_one(speeds: &[Speed], detail: String) -> Judgment {
    if speeds.iter().any(|speed| speed.ratio.is_nan()) {
        return (Verdict::Lost, format!("not measured; {detail}"));
    }
    if speeds.iter().any(|speed| speed.is_decided() && !speed.is_at_least_one()) {
        return (Verdict::Lost, detail);
    }
    let widest = speeds.iter().map(|speed| speed.spread).fold(0.0, f64::max);
    if speeds.iter().all(Speed::is_decided) {
        return (Verdict::Holds, detail);
    }
    (Verdict::Undecided, format!("spread {} %; {detail}", number(widest * 100.0)))
}

/// Student's t for 95 % confidence, both sides, of the mean of `n` values.
fn student(n: usize) -> f64 {
    const T: [f64; 9] = [12.71, 4.30, 3.18, 2.78, 2.57, 2.45, 2.36, 2.31, 2.26];
    match n {
        0 | 1 => f64::INFINITY,
        2..=10 => T[n - 2],
        11..=20 => 2.23,
        21..=40 => 2.09,
        _ => 2.02,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(pairs: &[(f64, f64)]) -> Verdict {
        all_at_least_one(&[Speed::of(pairs)], String::new()).0
    }

    #[test]
    fn an_interval_on_one_side_of_one_decides_however_wide_it_is() {
        assert_eq!(verdict(&[(0.5, 1.0), (0.6, 1.0), (0.55, 1.0)]), Verdict::Lost);
        assert_eq!(verdict(&[(2.0, 1.0), (3.0, 1.0), (2.5, 1.0)]), Verdict::Holds);
        assert_eq!(verdict(&[(0.5, 1.0), (1.1, 1.0), (0.9, 1.0)]), Verdict::Undecided);
        assert_eq!(verdict(&[(0.98, 1.0), (0.98, 1.0), (0.98, 1.0)]), Verdict::Holds, "within the tolerance");
    }

    #[test]
    fn a_pair_without_a_ratio_is_lost() {
        for value in [0.0, f64::NAN, f64::INFINITY] {
            for pair in [(value, 1.0), (1.0, value)] {
                assert_eq!(verdict(&[(1.0, 1.0), pair, (1.0, 1.0)]), Verdict::Lost, "{pair:?}");
            }
        }
        assert_eq!(verdict(&[(0.0, 0.0)]), Verdict::Lost);
    }

    #[test]
    fn a_single_pair_and_a_missing_one_decide_nothing() {
        let (single, none) = (Speed::of(&[(1.0, 1.0)]), Speed::of(&[]));
        assert_eq!(all_at_least_one(&[single], String::new()).0, Verdict::Undecided);
        assert_eq!(all_at_least_one(&[none], String::new()).0, Verdict::Lost);
        assert!(all_at_least_one(&[none, Speed::NONE], String::new()).1.starts_with("not measured"));
    }
}
