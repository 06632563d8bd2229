//! What claims are made of: rows by setting, orders of numbers, numbers as text.

use super::{Claim, Row};
use crate::experiment::outcome::subjects;
pub(super) use highwater_report::numbers::figure as number;

/// What a judge found: whether it holds, and the numbers.
pub(super) type Verdict = (bool, String);

/// The claim for each subject that has rows.
pub(super) fn for_each_subject(rows: &[Row], text: &str, judge: impl Fn(&Rows<'_>) -> Verdict) -> Vec<Claim> {
    let one = |subject: &&str| {
        let (holds, detail) = judge(&Rows { rows, subject });
        Claim { text: text.into(), subject: subject.to_string(), holds, detail }
    };
    subjects(rows).iter().map(one).collect()
}

/// A subject's rows.
pub(super) struct Rows<'r> {
    rows: &'r [Row],
    pub subject: &'r str,
}

impl<'r> Rows<'r> {
    /// The subject's.
    pub(super) fn of(rows: &'r [Row], subject: &'r str) -> Rows<'r> {
        Rows { rows, subject }
    }

    /// The row of a setting.
    pub(super) fn find(&self, setting: &[(&str, &str)]) -> Option<&'r Row> {
        let fits =
            |row: &&Row| row.subject == self.subject && setting.iter().all(|(name, value)| row.get(name) == *value);
        self.rows.iter().find(fits)
    }

    /// A value of that row; not a number when there is none, so that no comparison with it holds.
    pub(super) fn value(&self, setting: &[(&str, &str)], name: &str) -> f64 {
        self.find(setting).map_or(f64::NAN, |row| row.value(name))
    }
}

/// Whether values go up from first to last, no step going down by more than `tolerance` of the value before it.
pub(super) fn rises(values: &[f64], tolerance: f64) -> bool {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return false };
    first < last && values.windows(2).all(|pair| pair[1] >= pair[0] - pair[0].abs() * tolerance)
}

/// As [`rises`], down.
pub(super) fn falls(values: &[f64], tolerance: f64) -> bool {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return false };
    first > last && values.windows(2).all(|pair| pair[1] <= pair[0] + pair[0].abs() * tolerance)
}

/// Numbers in a row: `1, 2, 3`.
pub(super) fn list(values: &[f64]) -> String {
    values.iter().map(|value| number(*value)).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_allow_small_steps_back_only() {
        assert!(rises(&[1.0, 2.0, 1.95, 3.0], 0.05));
        assert!(!rises(&[1.0, 2.0, 1.5, 3.0], 0.05));
        assert!(!rises(&[3.0, 3.0], 0.05) && !rises(&[], 0.05));
        assert!(falls(&[3.0, 2.0, 2.05, 1.0], 0.05) && !falls(&[1.0, 2.0], 0.05));
        assert!(!rises(&[1.0, f64::NAN, 3.0], 0.05) && !falls(&[f64::NAN, 1.0], 0.05));
    }

    #[test]
    fn numbers_are_readable() {
        assert_eq!(list(&[1.234, 12.34, 12_345.6, f64::NAN]), "1.23, 12.3, 12\u{202f}346, –");
    }
}
