//! A row for each cell with every engine's speed; the cost of each speed; charts.

use super::claims::{best, cells as settings, has_flash, own, ratio, speed, speed_of};
use super::plan::{CLIENTS, COMMITS, DATA, Point, WORKLOAD};
use crate::experiment::figure::{Columns, Figure, cells, heads, measured, table};
use crate::experiment::judge::{number, table_number};
use crate::experiment::metric::{self, Metric};
use crate::experiment::outcome::{subjects, title_of};
use crate::experiment::{Row, Setting};
use highwater_bench::peers::PeerWorkload;
use highwater_report::{Bar, Bars, Chart, Table};

const HEAD: [&str; 4] = ["Workload", "Data", "Commits", "Clients"];

/// The costs of a run, and its evenness.
const COSTS: &Columns<'_> = &[
    ("/s", metric::TPS),
    ("worst second", metric::TPS_WORST_SECOND),
    ("p50 us", metric::LATENCY_P50_US),
    ("p99 us", metric::LATENCY_P99_US),
    ("p99.9 us", metric::LATENCY_P999_US),
    ("max us", metric::LATENCY_MAX_US),
    ("CPU us", metric::CPU_US_PER_TRANSACTION),
    ("of it clients", metric::CLIENT_CPU_US_PER_TRANSACTION),
    ("instructions", metric::INSTRUCTIONS_PER_TRANSACTION),
    ("B to device", metric::DEVICE_HOST_BYTES_PER_TRANSACTION),
    ("until closed", metric::DEVICE_HOST_BYTES_CLOSED_PER_TRANSACTION),
    ("B dirtied", metric::WRITTEN_BYTES_PER_TRANSACTION),
    ("B read", metric::READ_BYTES_PER_TRANSACTION),
    ("retries", metric::RETRIES),
    ("space, MiB", metric::SPACE_BYTES),
    ("memory, MiB", metric::PEAK_MEMORY_BYTES),
];

/// The flash bytes of a run.
const FLASH: &Columns<'_> = &[
    ("B to device", metric::DEVICE_HOST_BYTES_CLOSED_PER_TRANSACTION),
    ("write amplification", metric::WRITE_AMPLIFICATION),
    ("B of flash", metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION),
    ("capacities", metric::CAPACITIES_WRITTEN),
];

const MIB: f64 = (1 << 20) as f64;

pub(super) fn figures(rows: &[Row]) -> Vec<Figure> {
    let mut figures = vec![Figure::Table(speeds(rows)), Figure::Table(costs(rows))];
    figures.extend(flash(rows).map(Figure::Table));
    figures.extend(steps(rows).map(Figure::Table));
    for group in groups(rows) {
        figures.extend(by_clients(rows, &group).map(Figure::Chart).or_else(|| bars(rows, &group).map(Figure::Bars)));
    }
    figures
}

fn texts(setting: &Setting) -> [&str; 4] {
    [WORKLOAD, DATA, COMMITS, CLIENTS].map(|axis| setting.get(axis.name()).map_or("", String::as_str))
}

fn workload_of(setting: &Setting) -> Option<PeerWorkload> {
    Point::of(setting).ok().map(|point| point.workload)
}

fn find<'r>(rows: &'r [Row], setting: &Setting, subject: &str) -> Option<&'r Row> {
    rows.iter().find(|row| row.setting == *setting && row.subject == subject)
}

/// The line a cell: every engine's median, and Highwater against the fastest of the others.
fn speeds(rows: &[Row]) -> Table {
    let subjects = subjects(rows);
    let titles: Vec<&str> = subjects.iter().map(|subject| title_of(subject)).collect();
    let numbers = [&titles[..], &["Highwater to the fastest peer"]].concat();
    let caption = "Transactions a second, medians; for bulk load rows a second until the database is closed, for \
                   redb's benchmark milliseconds of all steps. The last column: how many times as fast Highwater is \
                   as the fastest of the others, with half of the 95 % interval over the runs.";
    let mut table = table("Speed", caption, &HEAD, &numbers);
    for setting in settings(rows) {
        let Some(workload) = workload_of(setting) else { continue };
        let value = |subject: &&str| find(rows, setting, subject).map_or(f64::NAN, |row| row.value(speed_of(workload)));
        let against = own(rows, setting).zip(best(rows, setting, workload));
        let against = against.map(|(own, best)| ratio(own, best, workload).show(title_of(&best.subject)));
        let numbers = subjects.iter().map(|subject| number(value(subject))).chain([against.unwrap_or_default()]);
        table.rows.push(cells(&texts(setting), numbers));
    }
    table
}

fn costs(rows: &[Row]) -> Table {
    let caption = "Of a transaction where not said otherwise. B to device: bytes that the device took while it was \
                   measured, no matter which process wrote them, so the machine must be quiet, also what the warm-up \
                   had left to be \
                   written; until closed: those of warm-up, measurement, closing and syncing, for each \
                   transaction of the first two. B dirtied: bytes that the process wrote or made dirty to be written, \
                   whole folios of the page cache at a time. Memory: most the process had, mapped files included. \
                   Instructions: absent where the processor's counter cannot be read.";
    let head = [&HEAD[..], &["Subject"]].concat();
    let mut table = table("What it costs", caption, &head, &heads(COSTS));
    for setting in settings(rows) {
        for row in rows.iter().filter(|row| row.setting == *setting) {
            let value = |metric| match metric {
                metric::SPACE_BYTES | metric::PEAK_MEMORY_BYTES => row.value(metric) / MIB,
                other => row.value(other),
            };
            let names = [&texts(setting)[..], &[title_of(&row.subject)]].concat();
            table.rows.push(cells(&names, COSTS.iter().map(|(_, metric)| number(value(*metric)))));
        }
    }
    table
}

/// A table of the writes of an emulated SSD; `None` on this machine's disk.
fn flash(rows: &[Row]) -> Option<Table> {
    let caption = "Of a transaction, until the database is closed: bytes that the device took, and bytes that it wrote \
                   to its flash, garbage collection's copies included; write amplification is the device's. \
                   Capacities: what it took in all, in sizes of the device.";
    let head = [&HEAD[..], &["Subject"]].concat();
    let mut table = table("Flash", caption, &head, &heads(FLASH));
    for setting in settings(rows) {
        let counted = |row: &&Row| row.setting == *setting && has_flash(row);
        for row in rows.iter().filter(counted) {
            let names = [&texts(setting)[..], &[title_of(&row.subject)]].concat();
            let digits = |metric: Metric| if metric.name().ends_with("_per_transaction") { 0 } else { 2 };
            let value = |(_, metric): &(_, Metric)| table_number(Some(row.value(*metric)), digits(*metric));
            table.rows.push(cells(&names, FLASH.iter().map(value)));
        }
    }
    (!table.rows.is_empty()).then_some(table)
}

/// redb's table, a line a step.
fn steps(rows: &[Row]) -> Option<Table> {
    let of: Vec<&Row> = rows.iter().filter(|row| row.get(WORKLOAD) == PeerWorkload::Redb.name()).collect();
    let names: Vec<&String> = of
        .iter()
        .max_by_key(|row| row.measured.len())?
        .measured
        .keys()
        .filter(|name| name.starts_with("redb_"))
        .collect();
    let titles: Vec<&str> = of.iter().map(|row| title_of(&row.subject)).collect();
    let mut table = table("redb's benchmark", "Milliseconds, medians.", &["Step"], &titles);
    for name in names {
        let step = name.trim_start_matches("redb_").trim_end_matches("_ms").replace('_', " ");
        let value = |row: &&Row| number(row.measured.get(name).copied().unwrap_or(f64::NAN));
        table.rows.push(cells(&[&step], of.iter().map(value)));
    }
    Some(table)
}

/// Settings that differ in their clients only, by the first of them.
fn groups(rows: &[Row]) -> Vec<Vec<Setting>> {
    let mut groups: Vec<Vec<Setting>> = Vec::new();
    for setting in settings(rows).into_iter().filter(|setting| workload_of(setting) != Some(PeerWorkload::Redb)) {
        let same = |group: &&mut Vec<Setting>| texts(&group[0])[..3] == texts(setting)[..3];
        match groups.iter_mut().find(same) {
            Some(group) => group.push(setting.clone()),
            None => groups.push(vec![setting.clone()]),
        }
    }
    groups
}

fn title(setting: &Setting) -> String {
    let [workload, data, commits, _] = texts(setting);
    let commits = if commits == super::plan::NONE { String::new() } else { format!(", {commits}") };
    format!("{workload}, {data}{commits}")
}

/// A line for each engine over the number of clients; `None` if only one number was measured.
fn by_clients(rows: &[Row], group: &[Setting]) -> Option<Chart> {
    let line = |subject: &&str| {
        let points = group.iter().enumerate().filter_map(|(n, setting)| {
            let row = find(rows, setting, subject)?;
            Some([n as f64, row.value(metric::TPS)]).filter(|point| point[1].is_finite())
        });
        measured(title_of(subject), points.collect())
    };
    (group.len() > 1).then(|| Chart {
        title: title(&group[0]),
        x_label: "clients".into(),
        y_label: "/s".into(),
        categories: group.iter().map(|setting| texts(setting)[3].to_string()).collect(),
        lines: subjects(rows).iter().map(line).collect(),
        ..Chart::default()
    })
}

/// A bar an engine.
fn bars(rows: &[Row], group: &[Setting]) -> Option<Bars> {
    let setting = &group[0];
    let workload = workload_of(setting)?;
    let bar = |row: &Row| Bar {
        label: title_of(&row.subject).into(),
        tick: Some(title_of(&row.subject).into()),
        parts: vec![speed(row, workload)],
        ..Bar::default()
    };
    let timed = |row: &&Row| row.setting == *setting && speed(row, workload).is_finite();
    let bars: Vec<Bar> = rows.iter().filter(timed).map(bar).collect();
    let clients = texts(setting)[3];
    (!bars.is_empty()).then(|| Bars {
        title: format!("{}, {clients} clients", title(setting)),
        x_label: "engine".into(),
        y_label: "/s".into(),
        parts: vec!["/s".into()],
        bars,
        ..Bars::default()
    })
}
