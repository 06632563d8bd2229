//! The document's claims for Highwater's journal, and claims about stores without a journal.

use super::own::{ATOMIC, DOUBLEWRITE, IN_ONE_STREAM, OUT_OF_PLACE, OUT_OF_PLACE_STREAMS, OWN_STREAM, has_journal};
use super::plan::{JOURNAL, JOURNALS, LARGE, MODE, SMALL};
use crate::experiment::judge::{self, Judgment, Rows, number};
use crate::experiment::metric::{self, Metric};
use crate::experiment::{Claim, Row, SubjectKind, Verdict};

/// Amplifications that are nearer are too close to decide.
const TOLERANCE: f64 = 0.01;
/// The tolerance for rates and bytes.
const RATE_TOLERANCE: f64 = 0.03;
/// Minimum ratio of written bytes to the device's capacity: with fewer writes a run shows nothing about its flash.
const MIN_CAPACITIES: f64 = 0.5;
/// The document's three modes.
const MODES: [&str; 3] = [DOUBLEWRITE, IN_ONE_STREAM, OWN_STREAM];

pub(super) fn claims(rows: &[Row]) -> Vec<Claim> {
    let own = SubjectKind::Highwater.name();
    let own: Vec<Row> = rows.iter().filter(|row| row.subject == own).cloned().collect();
    let mut claims = Vec::new();
    for journal in JOURNALS {
        let text = format!("Write amplification, {journal} journal: doublewrite > journal > journal in its own stream");
        claims.extend(judge::claims(&own, &[(&text, &|rows| waf_in_order(rows, journal))]));
    }
    for journal in JOURNALS {
        let text = format!(
            "Transactions per second of the device's time, {journal} journal: own stream ≥ one stream ≥ \
                            doublewrite"
        );
        claims.extend(judge::claims(&own, &[(&text, &|rows| rates_in_order(rows, journal))]));
    }
    let text = "A larger journal lowers the write amplification of the journal, in one stream and in its own";
    claims.extend(judge::claims(&own, &[(text, &large_is_better)]));
    for mode in [ATOMIC, OUT_OF_PLACE, OUT_OF_PLACE_STREAMS] {
        let text =
            format!("Flash bytes of a transaction: fewer with {mode} than with a large journal in its own stream");
        claims.extend(judge::claims(&own, &[(&text, &|rows| without_journal(rows, mode))]));
    }
    claims
}

fn row<'r>(rows: &Rows<'r>, mode: &str, journal: &str) -> Option<&'r Row> {
    // A mode without a journal has one row for both.
    rows.find(&[(MODE, mode), (JOURNAL, if has_journal(mode) { journal } else { SMALL })])
}

fn values<const N: usize>(rows: &Rows<'_>, modes: [&str; N], journal: &str, metric: Metric) -> [f64; N] {
    modes.map(|mode| row(rows, mode, journal).map_or(f64::NAN, |row| row.value(metric)))
}

/// The judgment, unless one of the runs wrote too little to have come into a steady state.
fn steady(rows: &Rows<'_>, modes: &[&str], journal: &str, (verdict, detail): Judgment) -> Judgment {
    let written = |mode: &&str| row(rows, mode, journal).map(|row| row.value(metric::CAPACITIES_WRITTEN));
    let least = modes.iter().filter_map(written).fold(f64::INFINITY, f64::min);
    match least < MIN_CAPACITIES {
        true => (Verdict::Undecided, format!("a run wrote {} of the device's capacity only; {detail}", number(least))),
        false => (verdict, detail),
    }
}

fn waf_in_order(rows: &Rows<'_>, journal: &str) -> Judgment {
    let [doublewrite, one, own] = values(rows, MODES, journal, metric::WRITE_AMPLIFICATION);
    let verdict = judge::all([judge::below(one, doublewrite, TOLERANCE), judge::below(own, one, TOLERANCE)]);
    steady(rows, &MODES, journal, (verdict, format!("{doublewrite:.3}, {one:.3}, {own:.3}")))
}

fn rates_in_order(rows: &Rows<'_>, journal: &str) -> Judgment {
    let [doublewrite, one, own] = values(rows, MODES, journal, metric::TPS);
    let verdict = judge::climbs(&[doublewrite, one, own], RATE_TOLERANCE);
    let detail = format!("{}, {}, {}", number(own), number(one), number(doublewrite));
    steady(rows, &MODES, journal, (verdict, detail))
}

fn large_is_better(rows: &Rows<'_>) -> Judgment {
    let modes = [IN_ONE_STREAM, OWN_STREAM];
    let [[one, own], [large_one, large_own]] =
        [SMALL, LARGE].map(|journal| values(rows, modes, journal, metric::WRITE_AMPLIFICATION));
    let verdict = judge::all([judge::below(large_one, one, TOLERANCE), judge::below(large_own, own, TOLERANCE)]);
    let detail = format!("one stream {one:.3} and {large_one:.3}, own stream {own:.3} and {large_own:.3}");
    steady(rows, &modes, LARGE, (verdict, detail))
}

fn without_journal(rows: &Rows<'_>, mode: &str) -> Judgment {
    let modes = [OWN_STREAM, mode];
    let [journal, without] = values(rows, modes, LARGE, metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION);
    let detail = format!("{} and {} bytes", number(without), number(journal));
    steady(rows, &modes, LARGE, (judge::below(without, journal, RATE_TOLERANCE), detail))
}
