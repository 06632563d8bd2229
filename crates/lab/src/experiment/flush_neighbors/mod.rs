//! `flush-neighbors`: what else of an extent is flushed with a dirty page, and what it costs, at five database sizes.
//!
//! Source: Shin, Park, Lee, "flush neighbors" (KIISE 2017): MySQL 5.6.25, sysbench OLTP, 1,000,000 requests, Samsung 850 Pro, 8 GB of RAM.
//!
//! Choices
//! 1. The pool is not stated. TPS stay from 1 to 5 GB and fall from 10 GB on, so it lies between: half of the memory, 4 GB, is taken.
//! 2. A cell is a number of transactions, as in the paper, not of seconds: so options are compared over the same work. Pages are counted from the
//!    first to the last transaction, as `Innodb_buffer_pool_pages_flushed` was; the dirty pages left then are counted beside, for the cost to
//!    the same, clean, end state.
//! 3. TPS are compared run by run: each option's with the other's of the same size and repetition, which were taken one right after the other. The
//!    ratio is the geometric mean of all these pairs, its spread two standard errors of that mean. A ratio whose spread is above
//!    [`UNDECIDED_ABOVE`] decides nothing: the claim says so and does not hold.
//! 4. At standard a server's cell takes about eight times as long as Highwater's, so a server is measured once where Highwater is measured
//!    seven times: each some ten minutes.
//! 5. `lru_scan_depth` is not divided: InnoDB frees so many frames once a second at every scale, and a second is a second. With less, user threads
//!    flush single pages, which have no neighbors, and the experiment measures those. It is at most a quarter of the pool, as Highwater has it too.
//! 6. At the smaller scales everything is divided by the same number, but the log, which not every subject has below 8 MiB.

use super::judge::{Rows, Verdict, for_each_subject, list, number};
use super::trial::{MIN_SERVER_POOL_BYTES, Trial, log_bytes};
use super::{
    Cell, Chart, Claim, DeviceChoice, Experiment, Figure, Line, Measured, Plan, Row, Scale, SubjectKind, Table,
    Workspace, setting,
};
use crate::experiment::outcome::{subjects, title_of};
use crate::subject::{Load, Settings};
use highwater_bench::Result;
use highwater_bench::run::RunOptions;
use highwater_bench::workload::sysbench::{Config, Profile};
use std::collections::BTreeMap;

const SIZES: [&str; 5] = ["1 GB", "5 GB", "10 GB", "20 GB", "50 GB"];
const OPTIONS: [&str; 3] = ["0", "1", "2"];
const POOL_BYTES: u64 = 4 << 30;
const REQUESTS: u64 = 1_000_000;
/// MySQL 5.6's default: two files of 48 MiB.
const LOG_BYTES: u64 = 96 << 20;
/// MySQL 5.6's default.
const LRU_SCAN_DEPTH: u64 = 1024;
const TABLES: u64 = 2;
/// What a row of sysbench takes in an InnoDB table, its index included.
const ROW_BYTES: u64 = 240;
const THREADS: usize = 8;
/// TPS that differ by less are taken for equal; the paper's own differences are 0.3 to 2.6 %.
const TPS_TOLERANCE: f64 = 0.03;
/// A ratio of TPS with a larger spread than this is not judged.
const UNDECIDED_ABOVE: f64 = 0.10;

/// Table 2: pages flushed; table 3: transactions per second.
const PAPER: [[(f64, f64); 3]; 5] = [
    [(148_505.0, 2068.68), (171_623.0, 2035.11), (188_764.0, 2015.71)],
    [(193_548.0, 2019.44), (212_482.0, 1996.82), (218_332.0, 1980.82)],
    [(692_128.0, 1315.79), (765_790.0, 1309.57), (807_061.0, 1289.55)],
    [(1_144_276.0, 914.72), (1_236_026.0, 910.79), (1_344_994.0, 896.64)],
    [(2_799_107.0, 430.02), (2_914_321.0, 425.54), (2_976_420.0, 422.92)],
];

/// The experiment.
#[derive(Debug)]
pub struct FlushNeighbors;

/// By what the paper's sizes are divided.
fn divisor(scale: Scale) -> u64 {
    scale.pick(1024, 256, 64, 1)
}

fn size_bytes(size: &str, scale: Scale) -> u64 {
    let gigabytes: u64 = size.trim_end_matches(" GB").parse().unwrap_or(1);
    gigabytes * 1_000_000_000 / divisor(scale)
}

fn sizes(scale: Scale) -> &'static [&'static str] {
    if scale == Scale::Smoke { &SIZES[..2] } else { &SIZES }
}

fn settings(cell: &Cell, scale: Scale) -> Settings {
    let buffer_pool_bytes = (POOL_BYTES / divisor(scale)).max(MIN_SERVER_POOL_BYTES);
    Settings {
        buffer_pool_bytes,
        log_bytes: log_bytes(LOG_BYTES / divisor(scale)),
        flush_neighbors: cell.get("flush_neighbors").into(),
        lru_scan_depth: (buffer_pool_bytes / (16 << 10) / 4).min(LRU_SCAN_DEPTH),
        ..Settings::default()
    }
}

impl Experiment for FlushNeighbors {
    fn name(&self) -> &'static str {
        "flush-neighbors"
    }

    fn about(&self) -> &'static str {
        "Pages flushed and transactions per second with flush_neighbors 0, 1 and 2 at five database sizes"
    }

    fn source(&self) -> &'static str {
        "Shin, Park, Lee, KIISE 2017"
    }

    fn subjects(&self) -> &'static [SubjectKind] {
        &SubjectKind::ALL
    }

    fn devices(&self) -> &'static [&'static str] {
        &["local", "samsung-850-pro-256gb", "samsung-960-pro-512gb", "datacenter-nvme", "wd10ezex-1tb"]
    }

    fn repetitions(&self, scale: Scale, _: &DeviceChoice) -> u32 {
        scale.pick(1, 1, 7, 3)
    }

    fn server_repetitions(&self, scale: Scale, _: &DeviceChoice) -> u32 {
        scale.pick(1, 1, 1, 3)
    }

    fn cells(&self, plan: &Plan) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for repetition in 0..plan.repetitions.max(plan.server_repetitions) {
            for size in sizes(plan.scale) {
                for subject in plan.subjects.iter().filter(|kind| repetition < plan.repetitions_of(**kind)) {
                    let auto = (*subject == SubjectKind::Highwater).then_some("auto");
                    for option in OPTIONS.into_iter().chain(auto) {
                        let setting = setting([("size", size.to_string()), ("flush_neighbors", option.into())]);
                        cells.push(Cell::new(*subject, plan.device.name(), setting, repetition));
                    }
                }
            }
        }
        Ok(cells)
    }

    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<Measured> {
        let data_bytes = size_bytes(cell.get("size"), plan.scale);
        let load = Config {
            profile: Profile::ReadWrite,
            tables: TABLES,
            table_size: data_bytes / ROW_BYTES / TABLES,
            seed: plan.seed + u64::from(cell.repetition),
            ..Config::default()
        };
        let events = REQUESTS / divisor(plan.scale);
        let trial = Trial {
            cell,
            load: Load::Sysbench(load),
            settings: settings(cell, plan.scale),
            device: &plan.device,
            log: None,
            data_bytes,
            mounted: false,
            options: RunOptions { threads: THREADS, seconds: 0.0, events, ..RunOptions::default() },
        };
        let mut measured = trial.take(workspace)?.measured();
        let clean = measured.values["pages_flushed"] + measured.values["pages_dirty_at_end"];
        measured.put("pages_flushed_to_clean", clean);
        put_single_page_share(&mut measured);
        Ok(measured)
    }

    fn required(&self) -> &'static [&'static str] {
        &["tps", "pages_flushed"]
    }

    fn paper(&self, cell: &Cell) -> BTreeMap<String, f64> {
        let size = SIZES.iter().position(|size| *size == cell.get("size"));
        let option = OPTIONS.iter().position(|option| *option == cell.get("flush_neighbors"));
        let Some((size, option)) = size.zip(option) else { return BTreeMap::new() };
        let (flushed, tps) = PAPER[size][option];
        BTreeMap::from([("pages_flushed".into(), flushed), ("tps".into(), tps)])
    }

    fn claims(&self, plan: &Plan, rows: &[Row]) -> Vec<Claim> {
        let sizes = sizes(plan.scale);
        let mut claims =
            for_each_subject(rows, "Pages flushed: 0 < 1 < 2 at every size", |rows| flushed_in_order(rows, sizes));
        claims.extend(for_each_subject(
            rows,
            "What 2 flushes more than 0 shrinks from the smallest to the largest size",
            |rows| gap_narrows(rows, sizes),
        ));
        claims.extend(for_each_subject(
            rows,
            "TPS: 0 ≥ 1 ≥ 2 in the mean of all sizes, within the spread (3 to 10 %)",
            |rows| tps_in_order(rows, sizes),
        ));
        let highwater: Vec<Row> = rows.iter().filter(|row| row.subject == "highwater").cloned().collect();
        let text = "Beyond the document: auto is as fast as each of 0, 1, 2 in the mean of all sizes, within the spread (3 to 10 %)";
        claims.extend(for_each_subject(&highwater, text, |rows| auto_is_best(rows, sizes)));
        claims
    }

    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        let mut figures = vec![
            Figure::Table(table(rows, "pages_flushed", "Pages flushed")),
            Figure::Table(table(rows, "tps", "Transactions per second")),
            Figure::Table(table(
                rows,
                "single_page_pct",
                "Flushed as single pages by user threads, % of the pages flushed",
            )),
        ];
        for subject in subjects(rows) {
            for (name, what) in [("pages_flushed", "Pages flushed"), ("tps", "TPS")] {
                figures.push(Figure::Chart(chart(rows, subject, name, what)));
            }
        }
        figures
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        let by = divisor(plan.scale);
        vec![
            format!(
                "Sizes, pool and number of requests are the paper's divided by {by}: pool {} MiB, {} requests a cell, {} transactions per MB of the smallest database.",
                (POOL_BYTES / by) >> 20,
                REQUESTS / by,
                REQUESTS / 1000
            ),
            "The paper does not state its buffer pool. Its TPS stay from 1 to 5 GB and fall at 10 GB, so the pool lay between; half of its 8 GB of memory, 4 GB, is taken.".into(),
            format!(
                "The redo log is {} MiB in all. MySQL 5.6's default, 96 MiB for 1 to 50 GB, divided by {by} would be less than every subject takes (8 MiB).",
                log_bytes(LOG_BYTES / by) >> 20
            ),
            format!("{THREADS} client threads; sysbench's default distribution (special); {TABLES} tables. The paper states none of these."),
            "lru_scan_depth is MySQL's default, 1,024, at every scale, but no more than a quarter of the pool: what InnoDB frees once a second is not divided, for seconds are not. Pages that user threads flush alone for want of a free frame have no neighbors; their share stands in a table of its own, – where a subject does not count them.".into(),
            "Pages are counted over the same number of transactions for every option, from the first to the last of them. pages_flushed_to_clean adds the pages still dirty then: the cost to the same, clean, end state.".into(),
            "The paper's TPS differ by 0.3 to 2.6 %, less than two runs of the same setting differ here; so TPS are compared in the mean over all sizes, and what differs by less than the spread, or 3 %, counts as equal. Each run is compared with the runs of the other options of its size and repetition, taken just before and after it; the spread is two standard errors of the mean of all these ratios. Above 10 % the claim is undecided and does not hold.".into(),
            format!("Repetitions: Highwater {}, a server {}. At standard a server's run takes about eight times as long.", plan.repetitions, plan.server_repetitions),
            "Every option of a size follows the other at once, repetition after repetition (A B C A B C), each on a fresh copy of the same loaded data, caches cold.".into(),
        ]
    }
}

/// The share of pages flushed that user threads flushed alone; absent where the subject does not count them.
fn put_single_page_share(measured: &mut Measured) {
    let value = |name: &str| measured.values.get(name).copied().unwrap_or(f64::NAN);
    let (single, all) = (value("pages_flushed_single_page"), value("pages_flushed"));
    measured.put("single_page_pct", single * 100.0 / all.max(1.0));
}

fn key<'a>(size: &'a str, option: &'a str) -> [(&'static str, &'a str); 2] {
    [("size", size), ("flush_neighbors", option)]
}

fn three(rows: &Rows<'_>, size: &str, name: &str) -> [f64; 3] {
    OPTIONS.map(|option| rows.value(&key(size, option), name))
}

fn flushed_in_order(rows: &Rows<'_>, sizes: &[&str]) -> Verdict {
    let flushed = sizes.iter().map(|size| (*size, three(rows, size, "pages_flushed")));
    let holds = flushed.clone().all(|(_, [a, b, c])| a < b && b < c);
    (holds, flushed.map(|(size, values)| format!("{size}: {}", list(&values))).collect::<Vec<_>>().join("; "))
}

/// What option 2 flushes more than option 0, in percent.
fn gap(rows: &Rows<'_>, size: &str) -> f64 {
    let [zero, _, two] = three(rows, size, "pages_flushed");
    (two / zero - 1.0) * 100.0
}

fn gap_narrows(rows: &Rows<'_>, sizes: &[&str]) -> Verdict {
    let gaps: Vec<f64> = sizes.iter().map(|size| gap(rows, size)).collect();
    let (first, last) = (gaps[0], gaps[gaps.len() - 1]);
    let shown: Vec<String> = sizes.iter().zip(&gaps).map(|(size, gap)| format!("{size} {gap:+.1} %")).collect();
    (last < first && last.is_finite(), shown.join(", ") + " (paper: +27.1 % to +6.3 %)")
}

/// How many times as fast an option is as another, and how far that can be trusted.
#[derive(Clone, Copy)]
struct Speed {
    ratio: f64,
    /// Two standard errors of the mean over the pairs of runs; infinite for a single pair.
    spread: f64,
}

impl Speed {
    /// Of logarithms of the ratios of pairs of runs.
    fn of(logarithms: &[f64]) -> Speed {
        let n = logarithms.len() as f64;
        let mean = logarithms.iter().sum::<f64>() / n;
        let squares: f64 = logarithms.iter().map(|one| (one - mean).powi(2)).sum();
        let spread = if n < 2.0 { f64::INFINITY } else { 2.0 * (squares / (n - 1.0) / n).sqrt() };
        Speed { ratio: mean.exp(), spread }
    }

    fn is_decided(&self) -> bool {
        self.spread <= UNDECIDED_ABOVE
    }

    fn is_at_least_one(&self) -> bool {
        self.ratio >= 1.0 - self.spread.max(TPS_TOLERANCE)
    }

    /// `1.02 times 1 (± 3.1 %)`.
    fn show(&self, other: &str) -> String {
        format!("{} times {other} (± {} %)", number(self.ratio), number(self.spread * 100.0))
    }
}

/// How many times as fast option `a` is as `b`, over the runs of every size; not a number where a size was not measured.
fn speed(rows: &Rows<'_>, sizes: &[&str], a: &str, b: &str) -> Speed {
    let mut logarithms = Vec::new();
    for size in sizes {
        let (Some(a), Some(b)) = (rows.find(&key(size, a)), rows.find(&key(size, b))) else {
            return Speed { ratio: f64::NAN, spread: f64::NAN };
        };
        logarithms.extend(a.runs("tps").iter().zip(b.runs("tps")).map(|(a, b)| (a / b).ln()));
    }
    Speed::of(&logarithms)
}

/// Whether each is at least one: lost by one that is decided and is not, undecided if one of the others is.
fn all_at_least_one(speeds: &[Speed], detail: String) -> Verdict {
    if speeds.iter().any(|speed| speed.ratio.is_nan()) {
        return (false, format!("not measured; {detail}"));
    }
    if speeds.iter().any(|speed| speed.is_decided() && !speed.is_at_least_one()) {
        return (false, detail);
    }
    let widest = speeds.iter().map(|speed| speed.spread).fold(0.0, f64::max);
    if speeds.iter().all(Speed::is_decided) {
        return (true, detail);
    }
    (false, format!("undecided: spread {} %; {detail}", number(widest * 100.0)))
}

fn tps_in_order(rows: &Rows<'_>, sizes: &[&str]) -> Verdict {
    let (first, second) = (speed(rows, sizes, "0", "1"), speed(rows, sizes, "1", "2"));
    let shown = sizes.iter().map(|size| format!("{size}: {}", list(&three(rows, size, "tps"))));
    let shown = shown.collect::<Vec<_>>().join("; ");
    let detail = format!("0 is {}, 1 is {}; {shown}", first.show("1"), second.show("2"));
    all_at_least_one(&[first, second], detail)
}

fn auto_is_best(rows: &Rows<'_>, sizes: &[&str]) -> Verdict {
    let speeds = OPTIONS.map(|option| speed(rows, sizes, "auto", option));
    let shown: Vec<String> = OPTIONS.iter().zip(speeds).map(|(option, speed)| speed.show(option)).collect();
    all_at_least_one(&speeds, shown.join(", "))
}

/// Ours and the paper's, a line a subject and size.
fn table(rows: &[Row], name: &str, title: &str) -> Table {
    let options = ["0", "1", "2", "auto"];
    let mut lines = Vec::new();
    let paper_rows = Rows::of(rows, subjects(rows).first().copied().unwrap_or(""));
    let of_paper =
        |size: &str, option: &str| paper_rows.find(&key(size, option)).and_then(|row| row.paper.get(name)).copied();
    let present = SIZES.iter().filter(|size| paper_rows.find(&[("size", size)]).is_some());
    for size in present.clone() {
        let cells = options.iter().map(|option| of_paper(size, option).map_or("–".into(), number));
        lines.push(["Paper: MySQL 5.6.25".to_string(), size.to_string()].into_iter().chain(cells).collect());
    }
    for subject in subjects(rows) {
        let rows = Rows::of(rows, subject);
        for size in present.clone() {
            let cells = options.iter().map(|option| number(rows.value(&key(size, option), name)));
            lines.push([title_of(subject).to_string(), size.to_string()].into_iter().chain(cells).collect());
        }
    }
    let head = ["Subject", "Size in the paper", "0", "1", "2", "auto"].map(String::from).to_vec();
    Table { title: title.into(), caption: String::new(), texts: 2, head, rows: lines }
}

/// Relative to option 0, as the paper's figures.
fn chart(rows: &[Row], subject: &str, name: &str, what: &str) -> Chart {
    let rows = Rows::of(rows, subject);
    let present: Vec<&str> = SIZES.into_iter().filter(|size| rows.find(&[("size", size)]).is_some()).collect();
    let relative = |value: &dyn Fn(&str, &str) -> f64, option: &str| -> Vec<[f64; 2]> {
        present.iter().enumerate().map(|(n, size)| [n as f64, value(size, option) / value(size, "0")]).collect()
    };
    let ours = |size: &str, option: &str| rows.value(&key(size, option), name);
    let papers = |size: &str, option: &str| {
        rows.find(&key(size, option)).and_then(|row| row.paper.get(name)).copied().unwrap_or(f64::NAN)
    };
    let mut lines = Vec::new();
    for option in ["1", "2"] {
        lines.push(Line { name: format!("option {option}"), points: relative(&ours, option), paper: false });
        lines.push(Line { name: format!("option {option}"), points: relative(&papers, option), paper: true });
    }
    if rows.find(&[("flush_neighbors", "auto")]).is_some() {
        lines.push(Line { name: "auto".into(), points: relative(&ours, "auto"), paper: false });
    }
    let lowest = lines.iter().flat_map(|line| &line.points).map(|p| p[1]).fold(1.0, f64::min);
    Chart {
        title: format!("{}: {what} relative to option 0", title_of(subject)),
        x_label: "database size in the paper".into(),
        y_label: "option 0 = 1".into(),
        categories: present.iter().map(ToString::to_string).collect(),
        y_from: Some((lowest * 20.0).floor() / 20.0),
        lines,
        ..Chart::default()
    }
}

#[cfg(test)]
#[path = "flush_neighbors_test.rs"]
mod tests;
