//! Bytes by level, amplification and speed, by store and by axis.

use super::plan::{
    BASE, CLOCK, DEVICE_CLOCK, FILL, FILLS, MACHINE_CLOCK, PAGE, PAGES, Point, SPARE, SPARES, STORE, STORES, STREAMS,
    VARIED,
};
use crate::experiment::figure::{Columns, Figure, cells, heads, measured, places, series, table};
use crate::experiment::judge::{Rows, number};
use crate::experiment::metric::{self, Axis, Metric, Series, series as over_time};
use crate::experiment::outcome::title_of;
use crate::experiment::{Row, SubjectKind};
use highwater_report::{Bar, Bars, Chart, Table};

const SETTING: [(&str, Axis); 6] =
    [("Store", STORE), ("Page", PAGE), ("Fill", FILL), ("Spare, %", SPARE), ("Streams", STREAMS), ("Clock", CLOCK)];

/// Shown in KiB.
const LEVELS: &Columns<'_> = &[
    ("Flushed by the pool", metric::FLUSHED_BYTES_PER_TRANSACTION),
    ("Pages", metric::PAGE_BYTES_PER_TRANSACTION),
    ("Doublewrite, journal", metric::DOUBLEWRITE_BYTES_PER_TRANSACTION),
    ("Cleaner", metric::CLEANED_BYTES_PER_TRANSACTION),
    ("Redo", metric::REDO_BYTES_PER_TRANSACTION),
    ("Device, host", metric::DEVICE_HOST_BYTES_PER_TRANSACTION),
    ("Device, flash", metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION),
];

const RATIOS: &Columns<'_> = &[
    ("Engine WAF", metric::ENGINE_WRITE_AMPLIFICATION),
    ("Device WAF", metric::WRITE_AMPLIFICATION),
    ("Page streams", metric::PAGE_STREAMS_WRITE_AMPLIFICATION),
    ("Compression", metric::COMPRESSION_RATIO),
    ("TPS", metric::TPS),
    ("CPU us", metric::CPU_US_PER_TRANSACTION),
    ("Capacities", metric::CAPACITIES_WRITTEN),
];

const SEGMENTS: &Columns<'_> = &[
    ("Segments", metric::STORE_SEGMENTS),
    ("Free", metric::STORE_SEGMENTS_FREE),
    ("Cleaned", metric::SEGMENTS_CLEANED),
    ("Discards", metric::STORE_DISCARDS),
    ("Live bytes", metric::STORE_LIVE_BYTES),
    ("Waits for the cleaner", metric::CLEAN_WAITS),
    ("us waited", metric::CLEAN_WAIT_US),
    ("us compressing", metric::COMPRESS_US),
];

const KIB: f64 = 1024.0;

pub(super) fn figures(rows: &[Row]) -> Vec<Figure> {
    let mut figures = vec![Figure::Table(levels(rows)), Figure::Table(ratios(rows))];
    figures.extend(segments(rows).map(Figure::Table));
    figures.extend(PAGES.into_iter().filter_map(|page| bars(rows, page)).map(Figure::Bars));
    let varied = [(FILL, &FILLS[..], "fill"), (SPARE, &SPARES[..], "spare flash, %"), (PAGE, &PAGES[..], "page size")];
    let charts = varied.into_iter().filter_map(|(axis, values, label)| along(rows, axis, values, label));
    figures.extend(charts.map(Figure::Chart));
    figures.push(Figure::Chart(course(
        rows,
        over_time::FLASH_TO_FLUSHED_OVER_TIME,
        "Flash bytes a byte that the pool flushed, over time",
        "flash bytes : flushed bytes, redo counted",
    )));
    figures.push(Figure::Chart(course(
        rows,
        over_time::WAF_OVER_TIME,
        "Write amplification of the device over time",
        "flash bytes : host bytes",
    )));
    figures
}

/// A line for each row, with its whole setting.
fn lines(title: &str, caption: &str, columns: &Columns<'_>, rows: &[Row], show: &dyn Fn(&Row, Metric) -> f64) -> Table {
    let texts: Vec<&str> = ["Subject"].into_iter().chain(SETTING.iter().map(|(head, _)| *head)).collect();
    let mut table = table(title, caption, &texts, &heads(columns));
    for row in rows {
        let texts: Vec<&str> =
            [title_of(&row.subject)].into_iter().chain(SETTING.iter().map(|(_, axis)| row.get(axis))).collect();
        table.rows.push(cells(&texts, columns.iter().map(|(_, metric)| number(show(row, *metric)))));
    }
    table
}

fn levels(rows: &[Row]) -> Table {
    let caption = "KiB. Pages: as the store wrote them, compressed and with headers where it does so. A server \
                   does not count what it writes of compressed pages.";
    lines("Bytes a transaction, by level", caption, LEVELS, rows, &|row, metric| row.value(metric) / KIB)
}

fn ratios(rows: &[Row]) -> Table {
    let caption = "Engine: bytes of pages, doublewrite and cleaner for each flushed byte. Device: flash bytes for each \
                   host byte; its page streams are all but the log's. TPS by the clock of the row. CPU: of the \
                   subject's process, a transaction; Highwater's also runs the clients and the emulated device. \
                   Capacities: how many times the device's capacity the host wrote.";
    lines("Write amplification, compression, speed", caption, RATIOS, rows, &|row, metric| row.value(metric))
}

/// None where no row is of an out-of-place store.
fn segments(rows: &[Row]) -> Option<Table> {
    let rows: Vec<Row> = rows.iter().filter(|row| row.value(metric::STORE_SEGMENTS).is_finite()).cloned().collect();
    let of = |row: &Row, metric| row.value(metric);
    (!rows.is_empty()).then(|| lines("Segments at the end, and their cleaning", "", SEGMENTS, &rows, &of))
}

/// Parts of a transaction's flash bytes, from the bottom up.
const PARTS: [&str; 6] = ["pages", "doublewrite", "cleaner", "redo", "other host writes", "the device's own copies"];

/// A bar for each store, and one for each of the servers', with pages of that size.
fn bars(rows: &[Row], page: &str) -> Option<Bars> {
    let own = SubjectKind::Highwater.name();
    let here = rows.iter().filter(|row| {
        let (fill, spare) = (row.get(FILL) == BASE.fill, row.get(SPARE) == BASE.spare);
        let is_own = row.get(STREAMS) == BASE.streams && row.get(CLOCK) == DEVICE_CLOCK;
        row.get(PAGE) == page && fill && spare && (is_own || row.subject != own)
    });
    let bars: Vec<Bar> = here.map(bar).collect();
    (!bars.is_empty()).then(|| Bars {
        title: format!("Flash bytes a transaction with pages of {page}"),
        x_label: "store".into(),
        y_label: "KiB".into(),
        parts: PARTS.map(String::from).to_vec(),
        bars,
        ..Bars::default()
    })
}

fn bar(row: &Row) -> Bar {
    let is_own = row.subject == SubjectKind::Highwater.name();
    let of = |metric| Some(row.value(metric) / KIB).filter(|kib| kib.is_finite()).unwrap_or(0.0);
    let counted = [
        metric::PAGE_BYTES_PER_TRANSACTION,
        metric::DOUBLEWRITE_BYTES_PER_TRANSACTION,
        metric::CLEANED_BYTES_PER_TRANSACTION,
        metric::REDO_BYTES_PER_TRANSACTION,
    ]
    .map(of);
    let host = of(metric::DEVICE_HOST_BYTES_PER_TRANSACTION);
    let others = (host - counted.iter().sum::<f64>()).max(0.0);
    let copies = (of(metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION) - host).max(0.0);
    let store = row.get(STORE).trim_start_matches("out-of-place ");
    let name = if is_own { store.to_string() } else { format!("{}: {store}", title_of(&row.subject)) };
    Bar {
        label: format!("{} {}", title_of(&row.subject), row.get(STORE)),
        tick: Some(name),
        parts: counted.into_iter().chain([others, copies]).collect(),
        ..Bar::default()
    }
}

fn own(rows: &[Row]) -> Rows<'_> {
    let first = Rows::of_first(rows);
    Rows::of_each(rows).find(|of| of.subject == SubjectKind::Highwater.name()).unwrap_or(first)
}

/// Flash bytes along an axis, a line for each store; `None` if only one value was measured.
fn along(rows: &[Row], axis: Axis, values: &[&str], label: &str) -> Option<Chart> {
    let of = own(rows);
    let at = |store, value: &str| {
        let key = Point { store, ..BASE }.key().map(|(name, base)| (name, if name == axis { value } else { base }));
        of.value(&key, metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION) / KIB
    };
    let lines: Vec<_> = VARIED
        .into_iter()
        .map(|store| {
            let points = places(values.iter().map(|value| at(store, value)));
            measured(store, points.into_iter().filter(|point| point[1].is_finite()).collect())
        })
        .collect();
    lines.iter().any(|line| line.points.len() > 1).then(|| Chart {
        title: format!("Flash bytes a transaction by {}", label.trim_end_matches(", %")),
        x_label: label.into(),
        y_label: "KiB".into(),
        categories: values.iter().map(ToString::to_string).collect(),
        lines,
        ..Chart::default()
    })
}

/// A series of each store in the base setting, and of servers.
fn course(rows: &[Row], name: Series, title: &str, unit: &str) -> Chart {
    let of = own(rows);
    let stores = STORES.into_iter().filter_map(|store| Some((store, of.find(&Point { store, ..BASE }.key())?)));
    let mut lines: Vec<_> = stores.map(|(store, row)| measured(store, series(row, name))).collect();
    let servers = rows.iter().filter(|row| row.subject != of.subject && row.get(PAGE) == BASE.page);
    let named = |row: &Row| format!("{}: {}", title_of(&row.subject), row.get(STORE));
    lines.extend(
        servers.filter(|row| row.get(CLOCK) == MACHINE_CLOCK).map(|row| measured(named(row), series(row, name))),
    );
    Chart {
        title: title.into(),
        x_label: "transactions since the warm-up".into(),
        y_label: unit.into(),
        lines,
        ..Chart::default()
    }
}
