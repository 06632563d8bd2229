//! `buffer-pool-size`: LRU-list and flush-list flushing, and the requests to both devices, with pools of 15 to 75 % of a TPC-C database.
//!
//! Source: Ahn, Lee, "buffer pool size": MySQL 5.7.21, tpcc-mysql, 100 warehouses (10 GB), 64 clients, O_DIRECT, data on a Samsung 960 PRO, log on an
//! 850 PRO.
//!
//! Choices
//! 1. The log keeps the paper's ratio to the data: MySQL 5.7's default, 2 x 48 MiB for 10 GB, but no less than the 8 MiB every subject takes.
//! 2. `flush_neighbors` is 0, so that every flushed page belongs to one list.
//! 3. Requests are counted as pages read and flushed and as writes to the log, by the subjects themselves: the same on every device. The copies that
//!    go to the doublewrite area are not in them.
//! 4. How busy the processors were is measured with every cell. Only where that shows them at their limit ([`BUSY_PCT`]) does a note take them for
//!    the reason of a lost claim.

use super::judge::{Rows, Verdict, falls, for_each_subject, list, number, rises};
use super::trial::{MIN_SERVER_POOL_BYTES, Trial, log_bytes};
use super::{
    Cell, Chart, Claim, DeviceChoice, Experiment, Figure, Line, Measured, Plan, Row, Scale, SubjectKind, Table,
    Workspace, setting,
};
use crate::experiment::outcome::{subjects, title_of};
use crate::subject::{Load, Settings};
use highwater_bench::Result;
use highwater_bench::run::RunOptions;
use highwater_bench::workload::tpcc::{Config, Mix};
use std::collections::BTreeMap;

const SHARES: [&str; 5] = ["15 %", "30 %", "45 %", "60 %", "75 %"];
const WAREHOUSE_BYTES: u64 = 100_000_000;
const PAPER_WAREHOUSES: u64 = 100;
const LOG_BYTES: u64 = 96 << 20;
/// 1,024 for each of the paper's eight pool instances.
const LRU_SCAN_DEPTH: u64 = 8 * 1024;
/// A step against the claimed direction of up to this share is taken for noise.
const TOLERANCE: f64 = 0.10;
/// Processors that are busier than this have nothing left.
const BUSY_PCT: f64 = 90.0;

/// The paper's figures that it states: at 15 % and at 75 %, and the log's requests for all.
const PAPER_LRU: [f64; 5] = [98.0, f64::NAN, f64::NAN, f64::NAN, 54.0];
const PAPER_READS: [f64; 5] = [2683.0, f64::NAN, f64::NAN, f64::NAN, 1725.0];
const PAPER_WRITES: [f64; 5] = [2470.0, f64::NAN, f64::NAN, f64::NAN, 3363.0];
const PAPER_LOG: [f64; 5] = [6.0, 8.0, 21.0, 32.0, 43.0];

/// The experiment.
#[derive(Debug)]
pub struct BufferPoolSize;

fn warehouses(scale: Scale) -> u64 {
    scale.pick(1, 2, 5, PAPER_WAREHOUSES)
}

fn threads(scale: Scale) -> usize {
    scale.pick(4, 16, 16, 64)
}

fn seconds(scale: Scale) -> (f64, f64) {
    scale.pick((0.5, 1.0), (6.0, 12.0), (12.0, 25.0), (300.0, 1800.0))
}

fn settings(cell: &Cell, scale: Scale) -> Settings {
    let data_bytes = warehouses(scale) * WAREHOUSE_BYTES;
    let share: u64 = cell.get("pool").trim_end_matches(" %").parse().unwrap_or(100);
    Settings {
        buffer_pool_bytes: (data_bytes * share / 100).max(MIN_SERVER_POOL_BYTES),
        log_bytes: log_of(scale),
        flush_neighbors: "0".into(),
        lru_scan_depth: (LRU_SCAN_DEPTH * warehouses(scale) / PAPER_WAREHOUSES).clamp(100, 1024),
        ..Settings::default()
    }
}

fn log_of(scale: Scale) -> u64 {
    log_bytes(LOG_BYTES * warehouses(scale) / PAPER_WAREHOUSES)
}

/// The paper's log has a device of its own: the 850 PRO beside the 960 PRO.
fn log_device(plan: &Plan) -> DeviceChoice {
    match &plan.device {
        DeviceChoice::Local => DeviceChoice::Local,
        DeviceChoice::Preset(_) => DeviceChoice::Preset("samsung-850-pro-256gb".into()),
    }
}

impl Experiment for BufferPoolSize {
    fn name(&self) -> &'static str {
        "buffer-pool-size"
    }

    fn about(&self) -> &'static str {
        "Flushing from the LRU list and from the flush list, and requests to data and log, with pools of 15 to 75 % of a TPC-C database"
    }

    fn source(&self) -> &'static str {
        "Ahn, Lee"
    }

    fn subjects(&self) -> &'static [SubjectKind] {
        &SubjectKind::ALL
    }

    fn devices(&self) -> &'static [&'static str] {
        &["samsung-960-pro-512gb", "samsung-850-pro-256gb", "datacenter-nvme", "local"]
    }

    fn repetitions(&self, scale: Scale, _: &DeviceChoice) -> u32 {
        if scale == Scale::Standard { 2 } else { 1 }
    }

    fn cells(&self, plan: &Plan) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for repetition in 0..plan.repetitions {
            for share in SHARES {
                for subject in &plan.subjects {
                    cells.push(Cell::new(*subject, plan.device.name(), setting([("pool", share.into())]), repetition));
                }
            }
        }
        Ok(cells)
    }

    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<Measured> {
        let (warmup_s, seconds) = seconds(plan.scale);
        let load = Config {
            warehouses: warehouses(plan.scale),
            mix: Mix::TpccMysql,
            seed: plan.seed + u64::from(cell.repetition),
            ..Config::default()
        };
        let trial = Trial {
            cell,
            load: Load::Tpcc(load),
            settings: settings(cell, plan.scale),
            device: &plan.device,
            log: Some(log_device(plan)),
            data_bytes: warehouses(plan.scale) * WAREHOUSE_BYTES,
            mounted: false,
            options: RunOptions { threads: threads(plan.scale), seconds, warmup_s, ..RunOptions::default() },
        };
        let taken = trial.take(workspace)?;
        let mut measured = taken.measured();
        let (lru, list) = (taken.counter("pages_flushed_lru_list"), taken.flush_list());
        let share = |part: f64| if lru + list > 0.0 { part * 100.0 / (lru + list) } else { f64::NAN };
        if lru + list > 0.0 {
            measured.put("lru_list_pct", share(lru));
            measured.put("flush_list_pct", share(list));
        }
        measured.put("data_reads_per_s", taken.rate("pages_read"));
        measured.put("data_writes_per_s", taken.rate("pages_flushed"));
        measured.put("log_writes_per_s", taken.rate("log_writes"));
        measured.put("log_bytes_per_s", taken.rate("bytes_written_redo"));
        measured.put("new_orders_per_min", taken.result.new_orders_per_min.unwrap_or(0.0));
        Ok(measured)
    }

    fn required(&self) -> &'static [&'static str] {
        &["tps", "transactions", "pages_read", "pages_flushed"]
    }

    fn paper(&self, cell: &Cell) -> BTreeMap<String, f64> {
        let Some(n) = SHARES.iter().position(|share| *share == cell.get("pool")) else { return BTreeMap::new() };
        let values = [
            ("lru_list_pct", PAPER_LRU[n]),
            ("flush_list_pct", 100.0 - PAPER_LRU[n]),
            ("data_reads_per_s", PAPER_READS[n]),
            ("data_writes_per_s", PAPER_WRITES[n]),
            ("log_writes_per_s", PAPER_LOG[n]),
        ];
        values
            .into_iter()
            .filter(|(_, value)| value.is_finite())
            .map(|(name, value)| (name.to_string(), value))
            .collect()
    }

    fn claims(&self, _plan: &Plan, rows: &[Row]) -> Vec<Claim> {
        let mut claims = Vec::new();
        let mut add =
            |text: &str, judge: &dyn Fn(&Rows<'_>) -> Verdict| claims.extend(for_each_subject(rows, text, judge));
        add("The LRU list's share of flushed pages falls, the flush list's rises with the pool", &|rows| {
            let shares = series(rows, "lru_list_pct");
            (falls(&shares, TOLERANCE), format!("LRU list {} % (paper: 98 to 54 %)", list(&shares)))
        });
        add("At 15 % nearly everything is flushed from the LRU list (90 % and more)", &|rows| {
            let share = rows.value(&[("pool", SHARES[0])], "lru_list_pct");
            (share >= 90.0, format!("{} % (paper: 98 %)", number(share)))
        });
        add("Page reads per transaction fall with the pool", &|rows| {
            let reads = per_transaction(rows, "pages_read");
            (falls(&reads, TOLERANCE), format!("{} a transaction", list(&reads)))
        });
        add("Data reads per second are fewer at 75 % than at 15 %", &|rows| {
            let reads = series(rows, "data_reads_per_s");
            (reads[0] > reads[SHARES.len() - 1], format!("{} /s (paper: 2,683 to 1,725)", list(&reads)))
        });
        add("Data writes per second are more at 75 % than at 15 %", &data_writes_grow);
        add("Log writes per second rise with the pool", &log_writes_rise);
        add("The log fills faster with a larger pool (the document's reason): bytes per second rise", &|rows| {
            let bytes: Vec<f64> = series(rows, "log_bytes_per_s").iter().map(|bytes| bytes / 1e6).collect();
            (rises(&bytes, TOLERANCE), format!("{} MB/s", list(&bytes)))
        });
        claims
    }

    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        let mut figures = vec![Figure::Table(table(rows))];
        for (name, title, unit) in [
            ("lru_list_pct", "Flushed from the LRU list", "percent of the pages of both lists"),
            ("data_reads_per_s", "Data reads", "pages per second"),
            ("data_writes_per_s", "Data writes", "pages per second"),
            ("log_writes_per_s", "Log writes", "writes per second"),
            ("new_orders_per_min", "New orders", "per minute"),
        ] {
            figures.push(Figure::Chart(chart(rows, name, title, unit)));
        }
        figures
    }

    fn explanations(&self, rows: &[Row]) -> Vec<String> {
        subjects(rows).into_iter().filter_map(|subject| explanation(&Rows::of(rows, subject))).collect()
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        let scale = plan.scale;
        let (warmup_s, seconds) = seconds(scale);
        vec![
            format!(
                "{} warehouses instead of 100 ({} MB instead of 10 GB); pools of 15, 30, 45, 60 and 75 % of that; log {} MiB (the paper's, MySQL 5.7's default of 96 MiB, in the same ratio to the data, but at least 8 MiB).",
                warehouses(scale),
                warehouses(scale) * WAREHOUSE_BYTES / 1_000_000,
                log_of(scale) >> 20
            ),
            format!("{} client threads; the paper had 64 on a server of 24 threads.", threads(scale)),
            format!("{warmup_s} s of warm-up, then {seconds} s measured, each on a fresh copy of the same loaded data; the mix is tpcc-mysql's, 10:10:1:1:1."),
            "Every commit is synced. A log write then is a group of commits; the paper's 6 to 43 a second cannot be that, so only the direction is compared.".into(),
            "lru_scan_depth is the paper's 1,024 for each of eight pool instances, divided as the data, at least 100; flush_neighbors 0, so that every page belongs to one list.".into(),
            match plan.device {
                DeviceChoice::Local => "Data and log lie in folders of their own on the same disk of this machine; requests are counted by the subjects.".into(),
                DeviceChoice::Preset(ref name) => format!("Data lie on the emulated {name}, the log on an emulated samsung-850-pro-256gb, as in the paper."),
            },
        ]
    }
}

fn data_writes_grow(rows: &Rows<'_>) -> Verdict {
    let writes = series(rows, "data_writes_per_s");
    let (each, tps) = (per_transaction(rows, "pages_flushed"), series(rows, "tps"));
    let detail = format!(
        "{} /s (paper: 2,470 to 3,363), which is {} a transaction times {} transactions/s",
        list(&writes),
        list(&each),
        list(&tps)
    );
    (writes[0] < writes[SHARES.len() - 1], detail)
}

fn log_writes_rise(rows: &Rows<'_>) -> Verdict {
    let writes = series(rows, "log_writes_per_s");
    (rises(&writes, TOLERANCE), format!("{} /s (paper: 6 to 43)", list(&writes)))
}

/// Why writes do not rise with the pool, where the processors were at their limit with the largest one.
fn explanation(rows: &Rows<'_>) -> Option<String> {
    let busy = series(rows, "cpu_pct");
    let is_busy = busy[SHARES.len() - 1] >= BUSY_PCT;
    let (data, log) = (!data_writes_grow(rows).0, !log_writes_rise(rows).0);
    if !is_busy || !(data || log) {
        return None;
    }
    let name = title_of(rows.subject);
    let mut text = format!("{name}: the processors were busy to {} % with the five pools.", list(&busy));
    if data {
        text += " Data writes a second are pages written a transaction times transactions a second. A larger pool combines more changes into one \
                 write, so the first falls; the second rises only until the processors are the limit.";
    }
    if log {
        text += " A log write is a group of commits: the busier the processors, the more commits share one, so the log's writes need not rise \
                 with its bytes.";
    }
    Some(text)
}

fn series(rows: &Rows<'_>, name: &str) -> Vec<f64> {
    SHARES.iter().map(|share| rows.value(&[("pool", share)], name)).collect()
}

fn per_transaction(rows: &Rows<'_>, name: &str) -> Vec<f64> {
    series(rows, name)
        .iter()
        .zip(series(rows, "transactions"))
        .map(|(count, transactions)| count / transactions)
        .collect()
}

fn table(rows: &[Row]) -> Table {
    let columns = [
        ("LRU list %", "lru_list_pct"),
        ("Flush list %", "flush_list_pct"),
        ("Data reads/s", "data_reads_per_s"),
        ("Data writes/s", "data_writes_per_s"),
        ("Log writes/s", "log_writes_per_s"),
        ("New orders/min", "new_orders_per_min"),
        ("Processors busy %", "cpu_pct"),
    ];
    let mut lines = Vec::new();
    let first = Rows::of(rows, subjects(rows).first().copied().unwrap_or(""));
    for share in SHARES {
        let paper = first.find(&[("pool", share)]).map(|row| &row.paper);
        let cells =
            columns.iter().map(|(_, name)| paper.and_then(|p| p.get(*name)).map_or("–".into(), |v| number(*v)));
        lines.push(["Paper: MySQL 5.7.21".to_string(), share.to_string()].into_iter().chain(cells).collect());
    }
    for subject in subjects(rows) {
        let rows = Rows::of(rows, subject);
        for share in SHARES {
            let cells = columns.iter().map(|(_, name)| number(rows.value(&[("pool", share)], name)));
            lines.push([title_of(subject).to_string(), share.to_string()].into_iter().chain(cells).collect());
        }
    }
    let head = ["Subject", "Pool"].into_iter().chain(columns.map(|(title, _)| title)).map(String::from).collect();
    Table { title: "Flushing and requests by pool size".into(), caption: String::new(), texts: 2, head, rows: lines }
}

fn chart(rows: &[Row], name: &str, title: &str, unit: &str) -> Chart {
    let mut lines = Vec::new();
    for subject in subjects(rows) {
        let points =
            series(&Rows::of(rows, subject), name).into_iter().enumerate().map(|(n, y)| [n as f64, y]).collect();
        lines.push(Line { name: title_of(subject).into(), points, paper: false });
    }
    let first = Rows::of(rows, subjects(rows).first().copied().unwrap_or(""));
    let paper = |share: &str| first.find(&[("pool", share)]).and_then(|row| row.paper.get(name)).copied();
    let points: Vec<[f64; 2]> =
        SHARES.iter().enumerate().filter_map(|(n, share)| Some([n as f64, paper(share)?])).collect();
    if !points.is_empty() {
        lines.push(Line { name: "MySQL 5.7.21".into(), points, paper: true });
    }
    Chart {
        title: title.into(),
        x_label: "buffer pool, share of the database".into(),
        y_label: unit.into(),
        categories: SHARES.map(String::from).to_vec(),
        lines,
        ..Chart::default()
    }
}

#[cfg(test)]
#[path = "buffer_pool_size_test.rs"]
mod tests;
