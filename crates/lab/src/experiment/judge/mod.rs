//! Functions that judge the claims of an experiment: they select rows by setting, compare numbers, compute the speeds
//! of paired runs, and format numbers.

mod paired;
mod text;

pub(super) use paired::{Speed, all_at_least_one};
pub(super) use text::{list, number, table_number};

use super::metric::{self, Axis, Metric};
use super::outcome::subjects;
use super::{Claim, Row, Verdict};

/// The verdict on a claim, and the numbers that it is based on.
pub(super) type Judgment = (Verdict, String);

/// The text of a claim, and the function that judges it from the rows of a subject.
pub(super) type Judged<'j> = (&'j str, &'j dyn Fn(&Rows<'_>) -> Judgment);

/// Judges every claim for every subject that has rows.
pub(super) fn claims(rows: &[Row], judged: &[Judged<'_>]) -> Vec<Claim> {
    let of_subject = |(text, judge): &Judged<'_>, subject: &str| {
        let (verdict, detail) = judge(&Rows { rows, subject });
        Claim { text: text.to_string(), subject: subject.to_string(), verdict, detail }
    };
    let subjects = subjects(rows);
    judged.iter().flat_map(|one| subjects.iter().map(move |subject| of_subject(one, subject))).collect()
}

#[derive(Clone, Copy)]
pub(super) struct Rows<'r> {
    rows: &'r [Row],
    pub subject: &'r str,
}

impl<'r> Rows<'r> {
    /// The rows of the first subject.
    pub(super) fn of_first(rows: &'r [Row]) -> Rows<'r> {
        Rows { rows, subject: subjects(rows).first().copied().unwrap_or("") }
    }

    /// The rows of each subject.
    pub(super) fn of_each(rows: &'r [Row]) -> impl Iterator<Item = Rows<'r>> {
        subjects(rows).into_iter().map(move |subject| Rows { rows, subject })
    }

    /// All rows of the subject.
    pub(super) fn all(&self) -> impl Iterator<Item = &'r Row> {
        self.rows.iter().filter(|row| row.subject == self.subject)
    }

    pub(super) fn find(&self, setting: &[(Axis, &str)]) -> Option<&'r Row> {
        let fits =
            |row: &&Row| row.subject == self.subject && setting.iter().all(|(axis, value)| row.get(axis) == *value);
        self.rows.iter().find(fits)
    }

    /// A value of the row with this setting. NaN if there is no such row, so that every comparison with it is false.
    pub(super) fn value(&self, setting: &[(Axis, &str)], metric: Metric) -> f64 {
        self.find(setting).map_or(f64::NAN, |row| row.value(metric))
    }

    /// As [`value`](Self::value), the greatest over the repetitions.
    pub(super) fn max(&self, setting: &[(Axis, &str)], metric: Metric) -> f64 {
        self.find(setting).map_or(f64::NAN, |row| row.max(metric))
    }

    /// A value with each of the values of an axis.
    pub(super) fn along<const N: usize>(&self, axis: Axis, values: [&str; N], metric: Metric) -> [f64; N] {
        values.map(|value| self.value(&[(axis, value)], metric))
    }

    /// The document's figure for a setting, if it has one.
    pub(super) fn paper(&self, setting: &[(Axis, &str)], metric: Metric) -> Option<f64> {
        self.find(setting)?.paper.get(metric.name()).copied()
    }
}

/// Whether values rise from first to last, without a fall by more than `tolerance` of the previous value.
pub(super) fn rises(values: &[f64], tolerance: f64) -> bool {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return false };
    first < last && values.windows(2).all(|pair| pair[1] >= pair[0] - pair[0].abs() * tolerance)
}

/// As [`rises`], down.
pub(super) fn falls(values: &[f64], tolerance: f64) -> bool {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return false };
    first > last && values.windows(2).all(|pair| pair[1] <= pair[0] + pair[0].abs() * tolerance)
}

/// Whether `a` is below `b`; too small to decide if they differ by at most `tolerance` of `a`.
pub(super) fn below(a: f64, b: f64, tolerance: f64) -> Verdict {
    match b / a - 1.0 {
        more if more.is_nan() => Verdict::Lost,
        more if more.abs() <= tolerance => Verdict::Undecided,
        more => (more > 0.0).into(),
    }
}

/// Whether `metric` is higher in `winner` than in `loser`; too small to decide if they differ by at most `tolerance`,
/// or if the repetitions of the two overlap.
pub(super) fn above(loser: Option<&Row>, winner: Option<&Row>, metric: Metric, tolerance: f64) -> Verdict {
    let (Some(loser), Some(winner)) = (loser, winner) else { return Verdict::Lost };
    let apart = match (loser.spread(metric), winner.spread(metric)) {
        (Some([low, high]), Some([lowest, highest])) => high < lowest || highest < low,
        _ => true,
    };
    match below(loser.value(metric), winner.value(metric), tolerance) {
        Verdict::Holds | Verdict::Lost if !apart => Verdict::Undecided,
        verdict => verdict,
    }
}

/// By how much rates of these rows may differ and yet be equal: by `tolerance`, and by what other programs may have
/// slowed one of them down where they took more than a tenth of the processors.
pub(super) fn rate_tolerance<'r>(rows: impl IntoIterator<Item = &'r Row>, tolerance: f64) -> f64 {
    const UNDISTURBED: f64 = 0.1;
    let shares = rows.into_iter().map(|row| row.value(metric::CPU_OTHERS_PCT) / 100.0);
    match shares.filter(|share| share.is_finite()).fold(0.0, f64::max).min(0.99) {
        others if others > UNDISTURBED => tolerance + others / (1.0 - others),
        _ => tolerance,
    }
}

/// The verdict of several: lost if one of them is lost, else too small to decide if one is.
pub(super) fn all(verdicts: impl IntoIterator<Item = Verdict>) -> Verdict {
    let worst = |verdict: &Verdict| match verdict {
        Verdict::Holds => 0,
        Verdict::Undecided => 1,
        Verdict::Lost => 2,
    };
    verdicts.into_iter().max_by_key(worst).unwrap_or(Verdict::Holds)
}

/// Whether values rise as for [`rises`]; too small to decide if the ends differ by at most `tolerance`.
pub(super) fn climbs(values: &[f64], tolerance: f64) -> Verdict {
    let (Some(first), Some(last)) = (values.first(), values.last()) else { return Verdict::Lost };
    match below(*first, *last, tolerance) {
        Verdict::Holds => rises(values, tolerance).into(),
        other => other,
    }
}

/// The excess of `b` over `a` in percent.
pub(super) fn more_pct(a: f64, b: f64) -> f64 {
    (b / a - 1.0) * 100.0
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
    fn other_programs_widen_what_rates_may_differ_by() {
        let row = |others: f64| {
            let measured = std::collections::BTreeMap::from([(metric::CPU_OTHERS_PCT.name().to_string(), others)]);
            Row { measured, ..Row::default() }
        };
        let (calm, busy, unknown) = (row(4.0), row(50.0), Row::default());
        assert_eq!((rate_tolerance([&calm], 0.1), rate_tolerance([&unknown], 0.1)), (0.1, 0.1));
        assert_eq!(rate_tolerance([&calm, &busy], 0.1), 1.1);
    }

    #[test]
    fn repetitions_that_overlap_decide_nothing() {
        let row = |value: f64, spread: [f64; 2]| {
            let name = metric::TPS.name().to_string();
            let (measured, spread) = ([(name.clone(), value)].into(), [(name, spread)].into());
            Row { measured, spread, ..Row::default() }
        };
        let slow = row(10.0, [9.0, 11.0]);
        let found = |winner: Option<&Row>| above(Some(&slow), winner, metric::TPS, 0.05);
        assert_eq!(found(Some(&row(12.0, [11.5, 12.5]))), Verdict::Holds);
        assert_eq!(found(Some(&row(12.0, [10.5, 12.5]))), Verdict::Undecided);
        assert_eq!(found(Some(&row(8.0, [7.0, 8.5]))), Verdict::Lost);
        assert_eq!(found(Some(&row(10.4, [10.4, 10.4]))), Verdict::Undecided);
        assert_eq!(found(None), Verdict::Lost);
    }

    #[test]
    fn small_differences_decide_nothing() {
        use Verdict::{Holds, Lost, Undecided};
        for (a, b, verdict) in [(1.0, 1.2, Holds), (1.0, 0.8, Lost), (1.0, 1.05, Undecided), (1.0, 0.95, Undecided)] {
            assert_eq!(below(a, b, 0.1), verdict, "{a} {b}");
        }
        assert_eq!((below(f64::NAN, 1.0, 0.1), below(0.0, 0.0, 0.1)), (Lost, Lost));
        assert_eq!((all([Holds, Undecided]), all([Holds, Lost, Undecided]), all([Holds])), (Undecided, Lost, Holds));
        assert_eq!(climbs(&[1.0, 1.5, 2.0], 0.1), Holds);
        assert_eq!(climbs(&[1.0, 3.0, 2.0], 0.1), Lost, "up, but not all the way");
        assert_eq!(climbs(&[1.0, 3.0, 1.05], 0.1), Undecided);
    }
}
