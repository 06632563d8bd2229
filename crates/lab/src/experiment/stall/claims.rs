//! The claims.

use super::seconds::UNDISTURBED_PCT;
use crate::experiment::judge::{self, Judgment, Rows, number};
use crate::experiment::metric::{self, Metric};
use crate::experiment::{Claim, Row, Verdict};

/// Processor use of other programs, in percent, above which they may have caused a slow second.
const DISTURBED_PCT: f64 = 10.0;

pub(super) fn claims(rows: &[Row]) -> Vec<Claim> {
    judge::claims(
        rows,
        &[
            ("The worst second has at least half the median's throughput", &worst_second),
            ("No page is flushed by sync flushing", &|rows| none(rows, metric::PAGES_FLUSHED_SYNC)),
            ("No page is flushed by a client thread (single-page flush)", &|rows| {
                none(rows, metric::PAGES_FLUSHED_SINGLE_PAGE)
            }),
        ],
    )
}

fn worst_second(rows: &Rows<'_>) -> Judgment {
    let Some(row) = rows.find(&[]) else { return (Verdict::Lost, "not measured".into()) };
    let (worst, median) = (row.value(metric::TPS_WORST_SECOND), row.value(metric::TPS_MEDIAN_SECOND));
    let percent = worst * 100.0 / median;
    let detail = format!(
        "{} of {} /s: {} % in the worst of {:.0} seconds{}",
        number(worst),
        number(median),
        number(percent),
        row.value(metric::SECONDS),
        circumstances(row)
    );
    let others = row.value(metric::CPU_OTHERS_PCT);
    match worst * 2.0 >= median && median > 0.0 {
        false if others > DISTURBED_PCT => {
            (Verdict::Undecided, format!("other programs took {others:.0} % of the processors; {detail}"))
        }
        holds => (holds.into(), detail),
    }
}

/// The state of device and machine during that second, as far as it was counted.
fn circumstances(row: &Row) -> String {
    let (worst, median) = (row.value(metric::LOG_SYNC_US_WORST_SECOND), row.value(metric::LOG_SYNC_US_MEDIAN_SECOND));
    let mut text = String::new();
    if row.value(metric::LOG_SYNCS_WORST_SECOND) == 0.0 {
        text = format!("; no sync of the log ended in it, {} us each took in the median second", number(median));
    } else if worst.is_finite() {
        text = format!("; a log sync took {} us in it, {} us in the median second", number(worst), number(median));
    }
    let withheld = row.value(metric::CPU_WITHHELD_PCT_WORST_SECOND);
    if withheld.is_finite() {
        text += &format!("; the hypervisor withheld {withheld:.0} % of the processors' time in it");
    }
    let undisturbed = row.value(metric::TPS_WORST_SECOND_UNDISTURBED);
    if undisturbed.is_finite() {
        let (seconds, undisturbed) = (row.value(metric::SECONDS_UNDISTURBED), number(undisturbed));
        text += &format!("; worst of the {seconds:.0} seconds with at most {UNDISTURBED_PCT:.0} %: {undisturbed} /s");
    }
    text
}

fn none(rows: &Rows<'_>, metric: Metric) -> Judgment {
    let pages = rows.max(&[], metric);
    if pages.is_nan() {
        return (Verdict::Undecided, "not counted by this subject".into());
    }
    ((pages == 0.0).into(), format!("{pages} pages"))
}
