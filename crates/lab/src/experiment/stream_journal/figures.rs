//! The document's table 1 and figures 1, 3 and 4, compared with the measurements.

use super::plan::{JOURNAL, JOURNALS, MODE, OWN_SPARE, SPARE};
use crate::experiment::Row;
use crate::experiment::figure::{Figure, cells, measured, series, table as table_of};
use crate::experiment::journaled::Mode;
use crate::experiment::judge::{more_pct, table_number};
use crate::experiment::metric::{self, series};
use crate::experiment::outcome::subjects;
use highwater_report::{Chart, Table};

pub(super) fn figures(rows: &[Row]) -> Vec<Figure> {
    let own = || rows.iter().filter(|row| row.get(SPARE) == OWN_SPARE);
    let mut figures = vec![Figure::Table(waf_table(rows))];
    for subject in subjects(rows) {
        for journal in JOURNALS {
            let rows = own().filter(|row| row.subject == subject && row.get(JOURNAL) == journal);
            figures.push(Figure::Chart(waf_over_time(rows, subject, journal)));
        }
    }
    let has_places = |row: &&Row| row.series.contains_key(series::WRITES_BY_PLACE.name());
    figures.extend(own().filter(has_places).map(|row| Figure::Chart(heat(row))));
    if rows.iter().any(|row| row.value(metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION).is_finite()) {
        figures.push(Figure::Table(bytes_table(rows)));
    }
    if rows.iter().any(|row| row.value(metric::NOPM).is_finite()) {
        figures.push(Figure::Table(nopm_table(rows)));
    }
    figures
}

/// The document's table 1, compared with ours.
fn waf_table(rows: &[Row]) -> Table {
    let mut table = table_of(
        "Write amplification",
        "The document's table 1, compared with what was measured here.",
        &["Subject", "Mode", "Journal", "Spare flash, %"],
        &["WAF", "WAF in the document", "Journal, % of writes", "Host GiB"],
    );
    for row in rows {
        let value = |metric| Some(row.value(metric)).filter(|value| value.is_finite());
        let share = value(metric::JOURNAL_SHARE).map(|share| share * 100.0);
        let host = value(metric::HOST_WRITTEN_BYTES).map(|bytes| bytes / f64::from(1 << 30));
        let numbers = [
            table_number(value(metric::WRITE_AMPLIFICATION), 3),
            table_number(row.paper(metric::WRITE_AMPLIFICATION), 3),
            table_number(share, 1),
            table_number(host, 1),
        ];
        table.rows.push(cells(&[&row.subject, row.get(MODE), row.get(JOURNAL), row.get(SPARE)], numbers));
    }
    table
}

/// A table of the bytes of a transaction with each of Highwater's modes.
fn bytes_table(rows: &[Row]) -> Table {
    let mut table = table_of(
        "Highwater: a transaction",
        "Bytes that the device got and wrote to its flash; syncs of the data, of doublewrite and of the journal; rate \
         by the device's time.",
        &["Mode", "Journal"],
        &["Host bytes", "Flash bytes", "WAF", "Syncs", "Transactions per second"],
    );
    for row in rows.iter().filter(|row| row.value(metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION).is_finite()) {
        let syncs = [metric::DATA_SYNCS, metric::DOUBLEWRITE_SYNCS, metric::JOURNAL_SYNCS].map(|of| row.value(of));
        let syncs: f64 = syncs.into_iter().filter(|count| count.is_finite()).sum();
        let numbers = [
            table_number(Some(row.value(metric::DEVICE_HOST_BYTES_PER_TRANSACTION)), 0),
            table_number(Some(row.value(metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION)), 0),
            table_number(Some(row.value(metric::WRITE_AMPLIFICATION)), 3),
            table_number(Some(syncs / row.value(metric::TRANSACTIONS)), 3),
            table_number(Some(row.value(metric::TPS)), 0),
        ];
        table.rows.push(cells(&[row.get(MODE), row.get(JOURNAL)], numbers));
    }
    table
}

fn nopm_table(rows: &[Row]) -> Table {
    let mut table = table_of(
        "New orders per minute",
        "The document: MS-DJ 7 % over DJ with the small journal, 2 % with the large one, 30 % and more over OJ+DWB.",
        &["Mode", "Journal"],
        &["New orders per minute", "Over OJ+DWB, %"],
    );
    for row in rows.iter().filter(|row| row.value(metric::NOPM).is_finite()) {
        let same = |r: &&Row| r.get(JOURNAL) == row.get(JOURNAL) && r.get(MODE) == Mode::OrderedDoublewrite.name();
        let reference = rows.iter().find(same).map_or(f64::NAN, |r| r.value(metric::NOPM));
        let nopm = row.value(metric::NOPM);
        let numbers = [format!("{nopm:.0}"), format!("{:+.1}", more_pct(reference, nopm))];
        table.rows.push(cells(&[row.get(MODE), row.get(JOURNAL)], numbers));
    }
    table
}

fn waf_over_time<'r>(rows: impl Iterator<Item = &'r Row>, subject: &str, journal: &str) -> Chart {
    Chart {
        title: format!("{subject}: write amplification over time, {journal} journal"),
        caption: "The document's figures 3 and 4: MS-DJ always lowest.".into(),
        x_label: "host writes, GiB".into(),
        y_label: "media writes : host writes, so far".into(),
        y_from: Some(1.0),
        lines: rows.map(|row| measured(row.get(MODE), series(row, series::WAF_OVER_TIME))).collect(),
        ..Chart::default()
    }
}

fn heat(row: &Row) -> Chart {
    Chart {
        title: format!("{}, {} journal: writes by place", row.get(MODE), row.get(JOURNAL)),
        caption: "The document's figure 1: the journal's blocks are written more often than any others.".into(),
        x_label: "place on the device, GiB".into(),
        y_label: "writes of a block, mean over a stretch".into(),
        lines: vec![measured("writes of a block", series(row, series::WRITES_BY_PLACE))],
        ..Chart::default()
    }
}
