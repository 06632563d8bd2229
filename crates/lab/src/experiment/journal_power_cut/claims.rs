//! The document's claims and Percona's, and the table of their figures.

use super::plan::{ATOMIC, ATOMIC_BYTES, MODE, WHOLE_PAGE};
use crate::experiment::figure::{Columns, cells, heads, table as table_of};
use crate::experiment::journaled::Mode;
use crate::experiment::metric::{self, Metric, info};
use crate::experiment::{Claim, Row, SubjectKind, Verdict};
use highwater_report::Table;

/// Number of cuts without damage that shows its absence: damage in 3 of 100 cuts would be found with 95 %.
const CUTS_TO_HOLD: f64 = 100.0;
/// This many cuts without damage are needed to say that there is too little: damage in 22 of 100 shows then with 95 %.
const CUTS_TO_LOSE: f64 = 12.0;

const COLUMNS: &Columns<'_> = &[
    ("Cuts", metric::CUTS),
    ("Damaged", metric::DAMAGED_DATABASES),
    ("With torn pages", metric::DATABASES_WITH_TORN_PAGES),
    ("Torn pages", metric::TORN_PAGES),
    ("With lost commits", metric::DATABASES_WITH_LOST_COMMITS),
];

pub(super) fn claims(rows: &[Row]) -> Vec<Claim> {
    let mut claims = Vec::new();
    for size in ATOMIC_BYTES.iter().filter(|size| rows.iter().any(|row| row.get(ATOMIC) == **size)) {
        let row = |mode: Mode| rows.iter().find(|row| row.get(MODE) == mode.name() && row.get(ATOMIC) == *size);
        let on = format!("on a device with atomic writes of {size} bytes");
        let text = format!("Ordered journaling with doublewrite keeps every database, {on}");
        claims.push(none_damaged(row(Mode::OrderedDoublewrite), text));
        if let Some(row) = row(Mode::Data) {
            let text = format!("The document: data journaling keeps every database without doublewrite, {on}");
            claims.push(none_damaged(Some(row), text));
        }
        if let Some(row) = row(Mode::Ordered).filter(|_| *size != WHOLE_PAGE) {
            let text = format!("Without doublewrite ordered journaling damages databases, {on}");
            let damages = all(row, metric::DAMAGED_DATABASES) > 0.0;
            let verdict = match (damages, all(row, metric::CUTS) < CUTS_TO_LOSE) {
                (true, _) => Verdict::Holds,
                (false, true) => Verdict::Undecided,
                (false, false) => Verdict::Lost,
            };
            claims.push(claim(text, verdict, detail(row)));
        }
    }
    claims.push(no_commit_lost(rows));
    claims
}

fn claim(text: String, verdict: Verdict, detail: String) -> Claim {
    Claim { text, subject: SubjectKind::Mysql.to_string(), verdict, detail }
}

/// A count, of all repetitions.
fn all(row: &Row, metric: Metric) -> f64 {
    row.runs(metric).iter().sum()
}

/// Whether an event never happened; few cuts cannot show that.
fn never(happened: f64, cuts: f64) -> Verdict {
    match (happened == 0.0, cuts < CUTS_TO_HOLD) {
        (true, true) => Verdict::Undecided,
        (never, _) => never.into(),
    }
}

pub(super) fn detail(row: &Row) -> String {
    let [damaged, cuts, torn] =
        [metric::DAMAGED_DATABASES, metric::CUTS, metric::DATABASES_WITH_TORN_PAGES].map(|metric| all(row, metric));
    let first = row.info(info::FIRST_FINDING).map_or(String::new(), |text| format!("; first: {text}"));
    format!("{damaged:.0} of {cuts:.0} damaged, {torn:.0} with torn pages{first}")
}

fn none_damaged(row: Option<&Row>, text: String) -> Claim {
    match row {
        Some(row) => {
            let verdict = never(all(row, metric::DAMAGED_DATABASES), all(row, metric::CUTS));
            claim(text, verdict, detail(row))
        }
        None => claim(text, Verdict::Lost, "not measured".into()),
    }
}

fn no_commit_lost(rows: &[Row]) -> Claim {
    let sum = |metric| rows.iter().map(|row| all(row, metric)).sum::<f64>();
    let (lost, cuts) = (sum(metric::DATABASES_WITH_LOST_COMMITS), sum(metric::CUTS));
    let text = "No acknowledged commit is missing from a sound database".into();
    claim(text, never(lost, cuts), format!("{lost:.0} of {cuts:.0} cuts"))
}

pub(super) fn table(rows: &[Row]) -> Table {
    let caption = "OJ: ordered journaling, DJ: data journaling, DWB: doublewrite buffer. Torn pages: before recovery.";
    let mut table = table_of("Databases after power cuts", caption, &["Mode", "Atomic bytes"], &heads(COLUMNS));
    for row in rows {
        let numbers = COLUMNS.iter().map(|(_, metric)| format!("{:.0}", row.value(*metric)));
        table.rows.push(cells(&[row.get(MODE), row.get(ATOMIC)], numbers));
    }
    table
}
