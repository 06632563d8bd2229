//! The document's claims.

use super::plan::{JOURNAL, JOURNALS, LARGE, MODE, MODES, OTHER_SPARES, OWN_SPARE, SMALL, SPARE, is_live};
use crate::experiment::journaled::Mode;
use crate::experiment::judge::more_pct;
use crate::experiment::metric::{self, Metric, series};
use crate::experiment::{Claim, Plan, Row, SubjectKind};

/// A smaller difference of new orders per minute does not count.
const NOPM_TOLERANCE: f64 = 0.03;

pub(super) fn claims(plan: &Plan, rows: &[Row]) -> Vec<Claim> {
    let found = Found { rows, spare: OWN_SPARE };
    let mut claims: Vec<Claim> = JOURNALS.iter().map(|journal| found.waf_in_order(journal)).collect();
    claims.extend(JOURNALS.iter().map(|journal| found.always_lowest(journal)));
    claims.push(found.large_is_better());
    claims.push(found.journal_is_hot());
    if is_live(plan.scale) {
        claims.extend(JOURNALS.iter().map(|journal| found.nopm_in_order(journal)));
    }
    for spare in OTHER_SPARES.iter().filter(|spare| rows.iter().any(|row| row.get(SPARE) == **spare)) {
        let found = Found { rows, spare };
        claims.extend(JOURNALS.iter().map(|journal| found.waf_in_order(journal)));
    }
    claims
}

/// The rows at one share of spare flash.
struct Found<'r> {
    rows: &'r [Row],
    spare: &'r str,
}

impl Found<'_> {
    fn row(&self, mode: Mode, journal: &str) -> Option<&Row> {
        let fits = |journal: &str| {
            self.rows
                .iter()
                .find(|row| row.get(MODE) == mode.name() && row.get(JOURNAL) == journal && row.get(SPARE) == self.spare)
        };
        // Choice 2 of the experiment.
        fits(journal).or_else(|| if mode.journals_data() { None } else { fits(SMALL) })
    }

    /// A value of the three modes; not a number where there is no row, so that no comparison holds.
    fn three(&self, journal: &str, metric: Metric) -> [f64; 3] {
        MODES.map(|mode| self.row(mode, journal).map_or(f64::NAN, |row| row.value(metric)))
    }

    fn claim(&self, text: String, holds: bool, detail: String) -> Claim {
        let spare = if self.spare == OWN_SPARE { String::new() } else { format!(" ({} % spare flash)", self.spare) };
        Claim { text: format!("{text}{spare}"), subject: SubjectKind::Mysql.to_string(), verdict: holds.into(), detail }
    }

    fn waf_in_order(&self, journal: &str) -> Claim {
        let [ordered, data, streams] = self.three(journal, metric::WRITE_AMPLIFICATION);
        let text = format!("Write amplification, {journal} journal: OJ+DWB > DJ > MS-DJ");
        let detail = format!("{ordered:.3}, {data:.3}, {streams:.3}");
        self.claim(text, ordered > data && data > streams, detail)
    }

    /// At every sample of MS-DJ after the first third (before it there is little to collect).
    fn always_lowest(&self, journal: &str) -> Claim {
        let text = format!("Write amplification over time, {journal} journal: MS-DJ always lowest");
        let series = MODES.map(|mode| self.row(mode, journal)?.series.get(series::WAF_OVER_TIME.name()));
        let [Some(ordered), Some(data), Some(streams)] = series else {
            return self.claim(text, false, "not measured".into());
        };
        let late = &streams[streams.len() / 3..];
        let above = |line: &[[f64; 2]], [x, waf]: &[f64; 2]| at(line, *x).is_none_or(|other| other > *waf);
        let lowest = late.iter().filter(|point| above(ordered, point) && above(data, point)).count();
        let detail = format!("at {lowest} of {} points after the first third", late.len());
        self.claim(text, lowest == late.len() && lowest > 0, detail)
    }

    fn large_is_better(&self) -> Claim {
        let [[_, data, streams], [_, large_data, large_streams]] =
            [SMALL, LARGE].map(|journal| self.three(journal, metric::WRITE_AMPLIFICATION));
        let holds = large_data < data && large_streams < streams;
        let detail = format!("DJ {data:.3} and {large_data:.3}, MS-DJ {streams:.3} and {large_streams:.3}");
        self.claim("A larger journal lowers the write amplification of DJ and of MS-DJ".into(), holds, detail)
    }

    fn journal_is_hot(&self) -> Claim {
        let of = |metric| self.row(Mode::Data, SMALL).map_or(f64::NAN, |row| row.value(metric));
        let (journal, others) = (of(metric::JOURNAL_WRITES_PER_BLOCK), of(metric::OTHER_WRITES_PER_BLOCK));
        let text =
            "A block of the journal is written more often than another block that is written (DJ, small journal)";
        self.claim(text.into(), journal > others, format!("{journal:.1} and {others:.1} times (document: about twice)"))
    }

    fn nopm_in_order(&self, journal: &str) -> Claim {
        let [ordered, data, streams] = self.three(journal, metric::NOPM);
        let at_least = |a: f64, b: f64| a >= b * (1.0 - NOPM_TOLERANCE);
        let holds = at_least(streams, data) && at_least(data, ordered) && streams > ordered;
        let text = format!("New orders per minute, {journal} journal: MS-DJ ≥ DJ ≥ OJ+DWB");
        let detail = format!(
            "{streams:.0}, {data:.0}, {ordered:.0} (MS-DJ over DJ {:+.1} %, over OJ+DWB {:+.1} %)",
            more_pct(data, streams),
            more_pct(ordered, streams)
        );
        self.claim(text, holds, detail)
    }
}

/// The value of a line at `x`: that of the last point at or before `x`; `None` before the first point.
fn at(line: &[[f64; 2]], x: f64) -> Option<f64> {
    line.iter().take_while(|point| point[0] <= x).last().map(|point| point[1])
}
