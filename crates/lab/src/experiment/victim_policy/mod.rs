//! `victim-policy`: what to do when the frame that is needed holds a dirty page.
//!
//! Source: "LRU-C: Parallelizing Database I/Os for Flash SSDs" (VLDB 2023), whose figures against stock MySQL (which writes, then reads: `raw`) and
//! against WAR (write after read) are the ones to look up to.
//!
//! Choices
//! 1. Data are ten times the pool, sysbench's read-write mix with uniform rows and many threads: nearly every transaction needs frames.
//! 2. Highwater runs on the emulated SSD in process: no file system, no other user of the device.

use super::judge::{Rows, for_each_subject, list, number};
use super::trial::{Trial, log_bytes};
use super::{
    Cell, Chart, Claim, DeviceChoice, Experiment, Figure, Line, Measured, Plan, Row, Scale, SubjectKind, Table,
    Workspace, setting,
};
use crate::experiment::outcome::{subjects, title_of};
use crate::subject::{Load, Settings};
use highwater_bench::Result;
use highwater_bench::run::RunOptions;
use highwater_bench::workload::sysbench::{Config, Profile, RandType};
use std::collections::BTreeMap;

const POLICIES: [&str; 3] = ["raw", "war", "lru-clean"];
/// LRU-C against stock MySQL, and against WAR.
const PAPER_OVER_RAW: f64 = 3.0;
const PAPER_OVER_WAR: f64 = 1.5;
const ROW_BYTES: u64 = 240;
const TABLES: u64 = 4;
/// The pool is a tenth of the data.
const DATA_TO_POOL: u64 = 10;
const PERCENTILES: [(&str, f64); 3] = [("p50", 50.0), ("p95", 95.0), ("p99", 99.0)];

/// The experiment.
#[derive(Debug)]
pub struct VictimPolicy;

fn data_bytes(scale: Scale) -> u64 {
    scale.pick(64 << 20, 320 << 20, 640 << 20, 10 << 30)
}

fn threads(scale: Scale) -> usize {
    scale.pick(8, 32, 32, 64)
}

fn seconds(scale: Scale) -> (f64, f64) {
    scale.pick((0.5, 1.5), (5.0, 12.0), (10.0, 60.0), (60.0, 600.0))
}

impl Experiment for VictimPolicy {
    fn name(&self) -> &'static str {
        "victim-policy"
    }

    fn about(&self) -> &'static str {
        "Throughput, page read latency and waits for a frame with the victim policies raw, war and lru-clean, data ten times the pool"
    }

    fn source(&self) -> &'static str {
        "LRU-C, VLDB 2023 (by the group behind the source documents)"
    }

    fn subjects(&self) -> &'static [SubjectKind] {
        &[SubjectKind::Highwater]
    }

    fn devices(&self) -> &'static [&'static str] {
        &["samsung-850-pro-256gb", "samsung-960-pro-512gb", "samsung-pm953-960gb", "datacenter-nvme", "local"]
    }

    fn repetitions(&self, scale: Scale, _: &DeviceChoice) -> u32 {
        scale.pick(1, 2, 5, 3)
    }

    fn cells(&self, plan: &Plan) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for repetition in 0..plan.repetitions {
            for policy in POLICIES {
                let setting = setting([("victim_policy", policy.into())]);
                cells.push(Cell::new(SubjectKind::Highwater, plan.device.name(), setting, repetition));
            }
        }
        Ok(cells)
    }

    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<Measured> {
        let data_bytes = data_bytes(plan.scale);
        let (warmup_s, seconds) = seconds(plan.scale);
        let load = Config {
            profile: Profile::ReadWrite,
            tables: TABLES,
            table_size: data_bytes / ROW_BYTES / TABLES,
            rand_type: RandType::Uniform,
            seed: plan.seed + u64::from(cell.repetition),
            ..Config::default()
        };
        let pool = data_bytes / DATA_TO_POOL;
        let settings = Settings {
            buffer_pool_bytes: pool,
            log_bytes: log_bytes(data_bytes / 8),
            flush_neighbors: "0".into(),
            lru_scan_depth: (pool / (16 << 10) / 8).clamp(100, 1024),
            extra: BTreeMap::from([("victim_policy".to_string(), cell.get("victim_policy").to_string())]),
            ..Settings::default()
        };
        let trial = Trial {
            cell,
            load: Load::Sysbench(load),
            settings,
            device: &plan.device,
            log: None,
            data_bytes,
            mounted: false,
            options: RunOptions { threads: threads(plan.scale), seconds, warmup_s, ..RunOptions::default() },
        };
        let taken = trial.take(workspace)?;
        let mut measured = taken.measured();
        for name in
            ["free_frame_waits", "free_frame_wait_us", "dirty_victims", "single_page_flush_us", "doublewrite_wait_us"]
        {
            measured.put(name, taken.counter(name));
        }
        let per_transaction = taken.counter("free_frame_wait_us") / (taken.result.transactions.max(1) as f64);
        measured.put("free_frame_wait_us_per_transaction", per_transaction);
        for (name, percentile) in PERCENTILES {
            if let Some(us) = taken.page_read_us(percentile) {
                measured.put(&format!("page_read_us_{name}"), us);
            }
        }
        Ok(measured)
    }

    fn required(&self) -> &'static [&'static str] {
        &["tps"]
    }

    fn paper(&self, _cell: &Cell) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn claims(&self, _plan: &Plan, rows: &[Row]) -> Vec<Claim> {
        let mut claims = for_each_subject(rows, "Throughput: lru-clean > war > raw", |rows| {
            let [raw, war, clean] = tps(rows);
            (clean > war && war > raw, format!("{} /s for raw, war, lru-clean", list(&[raw, war, clean])))
        });
        claims.extend(for_each_subject(rows, "lru-clean is faster than raw beyond the spread of both", |rows| {
            beyond_the_spread(rows, "raw", PAPER_OVER_RAW)
        }));
        claims.extend(for_each_subject(rows, "lru-clean is faster than war beyond the spread of both", |rows| {
            beyond_the_spread(rows, "war", PAPER_OVER_WAR)
        }));
        claims.extend(for_each_subject(
            rows,
            "User threads wait less for a frame with lru-clean than with raw",
            |rows| {
                let waits = POLICIES
                    .map(|policy| rows.value(&[("victim_policy", policy)], "free_frame_wait_us_per_transaction"));
                (waits[2] < waits[0], format!("{} us a transaction for raw, war, lru-clean", list(&waits)))
            },
        ));
        claims
    }

    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        let mut figures = vec![Figure::Table(table(rows))];
        for (name, title, unit) in [
            ("tps", "Throughput", "transactions per second"),
            (
                "page_read_us_p99",
                "Page read latency, 99 %",
                "microseconds from the miss to the page, the wait for a frame included",
            ),
            ("free_frame_wait_us_per_transaction", "Waits for a frame", "microseconds a transaction"),
        ] {
            let line = |subject: &str| Line {
                name: title_of(subject).into(),
                points: POLICIES
                    .iter()
                    .enumerate()
                    .map(|(n, policy)| [n as f64, Rows::of(rows, subject).value(&[("victim_policy", policy)], name)])
                    .collect(),
                paper: false,
            };
            figures.push(Figure::Chart(Chart {
                title: title.into(),
                x_label: "victim policy".into(),
                y_label: unit.into(),
                categories: POLICIES.map(String::from).to_vec(),
                lines: subjects(rows).into_iter().map(line).collect(),
                ..Chart::default()
            }));
        }
        figures
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        let data = data_bytes(plan.scale);
        let (warmup_s, seconds) = seconds(plan.scale);
        vec![
            format!(
                "{} MiB of data, pool a tenth of it; sysbench read-write with uniform rows, {} threads; {warmup_s} s of warm-up, then {seconds} s measured; policies interleaved.",
                data >> 20,
                threads(plan.scale)
            ),
            "raw: the page in the frame is written, then the new one is read into it (InnoDB's read after write). war: the dirty page is copied aside, the new one read first. lru-clean: the least recently used clean page is taken.".into(),
            format!("Published: LRU-C {PAPER_OVER_RAW} times stock MySQL and {PAPER_OVER_WAR} times WAR, on servers whose foreground threads flush single pages. A Highwater whose cleaner keeps free frames ahead of demand rarely meets a dirty victim at all, so its policies differ by less."),
        ]
    }
}

fn tps(rows: &Rows<'_>) -> [f64; 3] {
    POLICIES.map(|policy| rows.value(&[("victim_policy", policy)], "tps"))
}

/// Whether lru-clean's slowest repetition is faster than the other's fastest.
fn beyond_the_spread(rows: &Rows<'_>, other: &str, published: f64) -> (bool, String) {
    let spread = |policy: &str| rows.find(&[("victim_policy", policy)]).and_then(|row| row.spread.get("tps")).copied();
    let ratio = rows.value(&[("victim_policy", "lru-clean")], "tps") / rows.value(&[("victim_policy", other)], "tps");
    let detail = format!("{} times {other} (published: {published} times)", number(ratio));
    let holds =
        matches!((spread("lru-clean"), spread(other)), (Some([slowest, _]), Some([_, fastest])) if slowest > fastest);
    (holds, detail)
}

fn table(rows: &[Row]) -> Table {
    let columns = [
        ("TPS", "tps"),
        ("Page read p50 us", "page_read_us_p50"),
        ("p95 us", "page_read_us_p95"),
        ("p99 us", "page_read_us_p99"),
        ("Frame waits", "free_frame_waits"),
        ("us waited a transaction", "free_frame_wait_us_per_transaction"),
        ("Dirty victims", "dirty_victims"),
        ("Single-page flushes", "pages_flushed_single_page"),
    ];
    let mut lines = Vec::new();
    for subject in subjects(rows) {
        let rows = Rows::of(rows, subject);
        for policy in POLICIES {
            let cells = columns.iter().map(|(_, name)| number(rows.value(&[("victim_policy", policy)], name)));
            lines.push([title_of(subject).to_string(), policy.to_string()].into_iter().chain(cells).collect());
        }
    }
    let head = ["Subject", "Policy"].into_iter().chain(columns.map(|(title, _)| title)).map(String::from).collect();
    Table { title: "By victim policy".into(), caption: String::new(), texts: 2, head, rows: lines }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(tps: [f64; 3], waits: [f64; 3]) -> Vec<Row> {
        let row = |n: usize| Row {
            subject: "highwater".into(),
            setting: setting([("victim_policy", POLICIES[n].into())]),
            measured: BTreeMap::from([("tps".into(), tps[n]), ("free_frame_wait_us_per_transaction".into(), waits[n])]),
            spread: BTreeMap::from([("tps".into(), [tps[n] - 10.0, tps[n] + 10.0])]),
            repetitions: 3,
            ..Row::default()
        };
        (0..3).map(row).collect()
    }

    fn verdicts(rows: &[Row]) -> Vec<bool> {
        let plan = Plan::on_paper(Scale::Quick, "local", &[SubjectKind::Highwater]);
        VictimPolicy.claims(&plan, rows).iter().map(|claim| claim.holds).collect()
    }

    #[test]
    fn claims_follow_the_rows() {
        assert_eq!(verdicts(&rows([100.0, 200.0, 300.0], [9.0, 5.0, 1.0])), [true; 4]);
        assert_eq!(verdicts(&rows([300.0, 200.0, 100.0], [1.0, 5.0, 9.0])), [false; 4]);
        // In order, but within the spread.
        assert_eq!(verdicts(&rows([100.0, 110.0, 115.0], [9.0, 5.0, 1.0])), [true, false, false, true]);
    }

    #[test]
    fn missing_rows_lose_every_claim() {
        assert_eq!(verdicts(&rows([100.0, 200.0, 300.0], [9.0, 5.0, 1.0])[..1]), [false; 4]);
    }
}
