//! The paper's claims, and one about `auto`.

use super::plan::{AUTO, OPTION, OPTIONS, SIZE, sizes};
use crate::experiment::judge::{self, Judgment, Rows, Speed, all_at_least_one, below, list, more_pct, number};
use crate::experiment::metric::{self, Axis, Metric};
use crate::experiment::{Claim, Plan, Row, SubjectKind, Verdict};

type Sizes<'s> = &'s [&'s str];

/// Counts of pages that differ by less count as equal. The document's least difference is 2.1 %.
const TOLERANCE: f64 = 0.02;
/// Of fewer pages nothing is said.
const MIN_PAGES: f64 = 1000.0;
/// Surpluses, in percent, that differ by less count as equal.
const GAP_TOLERANCE_PCT: f64 = 4.0;

pub(super) fn claims(plan: &Plan, rows: &[Row]) -> Vec<Claim> {
    let sizes = sizes(plan.scale);
    let mut claims = judge::claims(
        rows,
        &[
            ("Pages flushed: 0 < 1 < 2 at every size", &|rows| flushed_in_order(rows, sizes)),
            ("The surplus of option 2 over option 0 is smaller at the largest size than at the smallest", &|rows| {
                gap_narrows(rows, sizes)
            }),
            ("TPS: 0 ≥ 1 ≥ 2 in the mean of all sizes, within the spread (3 to 10 %)", &|rows| {
                tps_in_order(rows, sizes)
            }),
        ],
    );
    let highwater: Vec<Row> = rows.iter().filter(|row| row.subject == SubjectKind::Highwater.name()).cloned().collect();
    let text = "Beyond the document: auto is as fast as each of 0, 1, 2 in the mean of all sizes, within the spread \
                (3 to 10 %)";
    claims.extend(judge::claims(&highwater, &[(text, &|rows| auto_is_best(rows, sizes))]));
    claims
}

pub(super) fn key<'a>(size: &'a str, option: &'a str) -> [(Axis, &'a str); 2] {
    [(SIZE, size), (OPTION, option)]
}

fn three(rows: &Rows<'_>, size: &str, metric: Metric) -> [f64; 3] {
    OPTIONS.map(|option| rows.value(&key(size, option), metric))
}

fn flushed_in_order(rows: &Rows<'_>, sizes: Sizes<'_>) -> Judgment {
    let flushed = sizes.iter().map(|size| (*size, three(rows, size, metric::PAGES_FLUSHED)));
    let shown: Vec<String> = flushed.clone().map(|(size, values)| format!("{size}: {}", list(&values))).collect();
    let steps = sizes.iter().flat_map(|size| OPTIONS.windows(2).map(|pair| fewer(rows, size, pair[0], pair[1])));
    let verdict = judge::all(steps);
    unless_few(flushed.map(|(_, [zero, ..])| zero), verdict, shown.join("; "))
}

/// By how much the speeds of two rows of a server differ, as a share. InnoDB flushes by the second, so a slower run
/// flushes more, and counts of pages must differ by more than speeds do. Highwater flushes as redo and frames need it.
fn speeds_differ_by(a: &Row, b: &Row) -> f64 {
    if a.subject == SubjectKind::Highwater.name() {
        return 0.0;
    }
    (a.value(metric::TPS) / b.value(metric::TPS)).ln().abs().exp_m1()
}

/// Whether fewer pages are flushed with option `a` than with `b`; also too small to decide if runs of both overlap.
fn fewer(rows: &Rows<'_>, size: &str, a: &str, b: &str) -> Verdict {
    let (Some(a), Some(b)) = (rows.find(&key(size, a)), rows.find(&key(size, b))) else { return Verdict::Lost };
    let flushed = |row: &Row| row.runs(metric::PAGES_FLUSHED);
    match overlap(&flushed(a), &flushed(b)) {
        true => Verdict::Undecided,
        false => {
            let tolerance = speeds_differ_by(a, b).max(TOLERANCE);
            below(a.value(metric::PAGES_FLUSHED), b.value(metric::PAGES_FLUSHED), tolerance)
        }
    }
}

/// Whether the ranges of two lists overlap.
fn overlap(a: &[f64], b: &[f64]) -> bool {
    let ends = |list: &[f64]| list.iter().fold((f64::MAX, f64::MIN), |(low, high), x| (low.min(*x), high.max(*x)));
    let (a, b) = (ends(a), ends(b));
    a.0 <= b.1 && b.0 <= a.1
}

/// The verdict, unless a subject flushed too few pages with option 0 at one of the sizes.
fn unless_few(with_zero: impl Iterator<Item = f64>, verdict: Verdict, detail: String) -> Judgment {
    match with_zero.fold(f64::INFINITY, f64::min) {
        least if least < MIN_PAGES => (Verdict::Undecided, format!("only {} pages flushed; {detail}", number(least))),
        _ => (verdict, detail),
    }
}

fn gap_narrows(rows: &Rows<'_>, sizes: Sizes<'_>) -> Judgment {
    let gap = |size: &&str| {
        let [zero, _, two] = three(rows, size, metric::PAGES_FLUSHED);
        more_pct(zero, two)
    };
    let gaps: Vec<f64> = sizes.iter().map(gap).collect();
    let (first, last) = (gaps[0], gaps[gaps.len() - 1]);
    let shown: Vec<String> = sizes.iter().zip(&gaps).map(|(size, gap)| format!("{size} {gap:+.1} %")).collect();
    let of_paper = [sizes[0], sizes[sizes.len() - 1]].map(|size| {
        let [zero, two] = ["0", "2"].map(|option| rows.paper(&key(size, option), metric::PAGES_FLUSHED));
        zero.zip(two).map_or("–".into(), |(zero, two)| format!("{:+.1} %", more_pct(zero, two)))
    });
    let detail = format!("{} (paper: {} to {})", shown.join(", "), of_paper[0], of_paper[1]);
    let runs = |size: &str| -> Vec<f64> {
        let flushed = |option| rows.find(&key(size, option)).map_or(Vec::new(), |row| row.runs(metric::PAGES_FLUSHED));
        flushed("0").into_iter().zip(flushed("2")).map(|(zero, two)| more_pct(zero, two)).collect()
    };
    let faster = |size: &&str| match (rows.find(&key(size, "0")), rows.find(&key(size, "2"))) {
        (Some(zero), Some(two)) => speeds_differ_by(zero, two) * 100.0,
        _ => 0.0,
    };
    let tolerance = [&sizes[0], &sizes[sizes.len() - 1]].map(faster).into_iter().fold(GAP_TOLERANCE_PCT, f64::max);
    let is_close = (first - last).abs() < tolerance || overlap(&runs(sizes[0]), &runs(sizes[sizes.len() - 1]));
    let verdict = if is_close { Verdict::Undecided } else { (last < first).into() };
    unless_few(sizes.iter().map(|size| three(rows, size, metric::PAGES_FLUSHED)[0]), verdict, detail)
}

/// The speed of option `a` relative to `b`, over the runs of every size.
fn speed(rows: &Rows<'_>, sizes: Sizes<'_>, a: &str, b: &str) -> Speed {
    let mut pairs = Vec::new();
    for size in sizes {
        let (Some(a), Some(b)) = (rows.find(&key(size, a)), rows.find(&key(size, b))) else { return Speed::NONE };
        pairs.extend(a.runs(metric::TPS).into_iter().zip(b.runs(metric::TPS)));
    }
    Speed::of(&pairs)
}

fn tps_in_order(rows: &Rows<'_>, sizes: Sizes<'_>) -> Judgment {
    let (first, second) = (speed(rows, sizes, "0", "1"), speed(rows, sizes, "1", "2"));
    let shown = sizes.iter().map(|size| format!("{size}: {}", list(&three(rows, size, metric::TPS))));
    let shown = shown.collect::<Vec<_>>().join("; ");
    let detail = format!("0 is {}, 1 is {}; {shown}", first.show("1"), second.show("2"));
    all_at_least_one(&[first, second], detail)
}

fn auto_is_best(rows: &Rows<'_>, sizes: Sizes<'_>) -> Judgment {
    let speeds = OPTIONS.map(|option| speed(rows, sizes, AUTO, option));
    let shown: Vec<String> = OPTIONS.iter().zip(speeds).map(|(option, speed)| speed.show(option)).collect();
    all_at_least_one(&speeds, shown.join(", "))
}
