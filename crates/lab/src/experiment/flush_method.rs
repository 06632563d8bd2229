//! `flush-method`: fsync (the documents' fdatasync), O_DIRECT and O_DSYNC, loading the `user` table with its NAME_INDEX, with pools from far too small
//! to large enough.
//!
//! Source: a blog's measurement of 2010: MySQL 5.5.7, 4 GB of RAM, SATA disk of 7200 rpm, 500 MB of rows, pools of 16 to 256 MB.
//!
//! Choices
//! 1. Buffered writes leave pages in the operating system's cache, which is why they win below a small pool. So the cache is limited as that machine's
//!    memory limited it: a memory control group of eight times the data, in which the subject runs.
//! 2. On an emulated device Highwater too goes through a mounted file system: without one there is no cache to compare with.
//! 3. The document does not say how many rows a transaction had. One each would measure the disk's sync alone; there are [`ROWS_PER_TRANSACTION`].

use super::judge::{Rows, Verdict, for_each_subject, list, number};
use super::trial::{MIN_SERVER_POOL_BYTES, Trial, log_bytes};
use super::{
    Bench, Cell, Chart, Claim, DeviceChoice, Experiment, Figure, Line, Measured, Plan, Row, Scale, SubjectKind, Table,
    setting,
};
use crate::error::Result;
use crate::experiment::outcome::{subjects, title_of};
use crate::run::RunOptions;
use crate::subject::{Load, Settings};
use crate::workload::user_table::Config;
use highwater::config::{FlushMethod, KnobValue};
use std::collections::BTreeMap;

const METHODS: [&str; 3] = ["fsync", "O_DIRECT", "O_DSYNC"];
const POOLS: [&str; 5] = ["16 MB", "32 MB", "64 MB", "128 MB", "256 MB"];
const DATA_BYTES: u64 = 500 << 20;
const MEMORY_BYTES: u64 = 4 << 30;
/// MySQL 5.5's default: two files of 5 MiB.
const LOG_BYTES: u64 = 10 << 20;
/// Highwater takes no less.
const MIN_POOL_BYTES: u64 = 1 << 20;
const ROWS_PER_TRANSACTION: u64 = 100;
const THREADS: usize = 4;
/// The document: from this pool on O_DIRECT wins.
const CROSSOVER: &str = "128 MB";

/// The experiment.
#[derive(Debug)]
pub struct FlushMethods;

/// The emulated hard disks, on which a run takes a hundred times as long as on flash.
const DISKS: [&str; 2] = ["sata-7200rpm-500gb", "wd10ezex-1tb"];

fn is_disk(plan: &Plan) -> bool {
    DISKS.contains(&plan.device.name())
}

/// By what the paper's sizes are divided.
fn divisor(plan: &Plan) -> u64 {
    if is_disk(plan) { plan.scale.pick(50, 50, 16, 1) } else { plan.scale.pick(50, 12, 3, 1) }
}

fn pools(scale: Scale) -> &'static [&'static str] {
    if scale == Scale::Smoke { &POOLS[3..] } else { &POOLS }
}

/// At the quick scale and on disks O_DSYNC, of which the document says only that it exists, is measured with the smallest and the largest pool.
fn methods(plan: &Plan, pool: &str) -> &'static [&'static str] {
    let is_short = plan.scale == Scale::Quick || is_disk(plan);
    if is_short && pool != POOLS[0] && pool != POOLS[4] { &METHODS[..2] } else { &METHODS }
}

fn least_pool_bytes(subject: SubjectKind) -> u64 {
    if subject.is_server() { MIN_SERVER_POOL_BYTES } else { MIN_POOL_BYTES }
}

fn pool_bytes(pool: &str, by: u64, subject: SubjectKind) -> u64 {
    let megabytes: u64 = pool.trim_end_matches(" MB").parse().unwrap_or(128);
    ((megabytes << 20) / by).max(least_pool_bytes(subject))
}

impl Experiment for FlushMethods {
    fn name(&self) -> &'static str {
        "flush-method"
    }

    fn about(&self) -> &'static str {
        "Loading the user table with flush methods fsync (fdatasync), O_DIRECT and O_DSYNC, with pools of a thirtieth to half of the data"
    }

    fn source(&self) -> &'static str {
        "blog, 2010"
    }

    fn subjects(&self) -> &'static [SubjectKind] {
        &SubjectKind::ALL
    }

    fn devices(&self) -> &'static [&'static str] {
        &["local", "sata-7200rpm-500gb", "wd10ezex-1tb", "samsung-850-pro-256gb"]
    }

    fn mounts(&self, plan: &Plan) -> bool {
        plan.device != DeviceChoice::Local
    }

    fn repetitions(&self, scale: Scale) -> u32 {
        scale.pick(1, 1, 3, 1)
    }

    fn cells(&self, plan: &Plan) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for repetition in 0..plan.repetitions {
            for pool in pools(plan.scale) {
                for subject in &plan.subjects {
                    for method in methods(plan, pool) {
                        let setting = setting([("pool", pool.to_string()), ("flush_method", method.to_string())]);
                        cells.push(Cell::new(*subject, plan.device.name(), setting, repetition));
                    }
                }
            }
        }
        Ok(cells)
    }

    fn measure(&self, plan: &Plan, cell: &Cell, lab: &mut Bench<'_>) -> Result<Measured> {
        let by = divisor(plan);
        let method = FlushMethod::parse(cell.get("flush_method")).map_err(crate::Error::Usage)?;
        let settings = Settings {
            buffer_pool_bytes: pool_bytes(cell.get("pool"), by, cell.kind()?),
            log_bytes: log_bytes(LOG_BYTES / by),
            flush_method: method,
            flush_neighbors: "1".into(),
            lru_scan_depth: 100,
            memory_limit_bytes: Some(MEMORY_BYTES / by),
            ..Settings::default()
        };
        let load = Config {
            bytes: DATA_BYTES / by,
            rows_per_transaction: ROWS_PER_TRANSACTION,
            seed: plan.seed + u64::from(cell.repetition),
        };
        let trial = Trial {
            cell,
            load: Load::UserTable(load),
            settings,
            device: &plan.device,
            log: None,
            data_bytes: 2 * DATA_BYTES / by,
            mounted: true,
            options: RunOptions { threads: THREADS, seconds: 0.0, ..RunOptions::default() },
        };
        let taken = trial.take(lab)?;
        let mut measured = taken.measured();
        let megabytes = (DATA_BYTES / by) as f64 / 1e6;
        measured.put("load_mb_per_s", megabytes / taken.result.elapsed_s.max(1e-9));
        Ok(measured)
    }

    fn paper(&self, _cell: &Cell) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn claims(&self, plan: &Plan, rows: &[Row]) -> Vec<Claim> {
        let pools = pools(plan.scale);
        let from = pools.iter().position(|pool| *pool == CROSSOVER).unwrap_or(0);
        let mut claims = Vec::new();
        if from > 0 {
            claims.extend(for_each_subject(
                rows,
                "With a pool below a quarter of the data fdatasync is faster than O_DIRECT",
                |rows| wins(rows, &pools[..from], "fsync", "O_DIRECT"),
            ));
        }
        claims.extend(for_each_subject(
            rows,
            "From a pool of a quarter of the data on O_DIRECT is faster than fdatasync",
            |rows| wins(rows, &pools[from..], "O_DIRECT", "fsync"),
        ));
        claims.extend(for_each_subject(
            rows,
            "O_DIRECT gains on fdatasync from the smallest to the largest pool",
            |rows| gains(rows, pools),
        ));
        claims
    }

    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        let mut figures = vec![Figure::Table(table(rows))];
        figures.extend(subjects(rows).into_iter().map(|subject| Figure::Chart(chart(rows, subject))));
        figures
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        let by = divisor(plan);
        let mut notes = vec![
            format!(
                "Data, pools and memory are the document's divided by {by}: {} MB of values, pools of {} MB to {} MB (a thirty-second to half of the data).",
                (DATA_BYTES / by) >> 20,
                number((16 << 20) as f64 / by as f64 / 1e6),
                number((256 << 20) as f64 / by as f64 / 1e6)
            ),
            format!(
                "The operating system's cache is limited by a memory control group of {} MiB, in which the subject runs: the document's 4 GB of RAM in the same ratio to its data. What a server itself allocates counts too.",
                (MEMORY_BYTES / by) >> 20
            ),
            format!("{THREADS} clients, {ROWS_PER_TRANSACTION} rows a transaction, every commit synced; redo log {} MiB (MySQL 5.5's default of 10 MiB, at least 8). The document states none of these.", log_bytes(LOG_BYTES / by) >> 20),
            "fsync is what the document calls fdatasync, MySQL's default then: buffered writes, then fsync. O_DSYNC opens the log with O_SYNC and syncs the data files.".into(),
            "The document shows its result as a figure without numbers, so no column of it can stand beside ours.".into(),
        ];
        for (who, least) in [("A server", MIN_SERVER_POOL_BYTES), ("Highwater", MIN_POOL_BYTES)] {
            if (16 << 20) / by < least {
                let least = least >> 20;
                notes.push(format!(
                    "{who} takes no pool below {least} MiB: where the ratio asks for less, it has {least} MiB."
                ));
            }
        }
        if !is_disk(plan) {
            notes.push("Why a small pool may not favour fdatasync here: on the document's disk a page that the operating system's cache still holds saves a seek, 8 ms or more; on flash it saves a read of a tenth of a millisecond or less, about what copying the page through that cache costs at each write. --device sata-7200rpm-500gb has the document's disk.".into());
        }
        if plan.device != DeviceChoice::Local {
            notes.push("The emulated device is mounted with ext4 for every subject, Highwater too, so that all have the operating system's cache.".into());
        }
        notes
    }
}

fn rate(rows: &Rows<'_>, pool: &str, method: &str) -> f64 {
    rows.value(&[("pool", pool), ("flush_method", method)], "load_mb_per_s")
}

/// Whether one method is faster than the other with each of the pools.
fn wins(rows: &Rows<'_>, pools: &[&str], winner: &str, loser: &str) -> Verdict {
    let holds = pools.iter().all(|pool| rate(rows, pool, winner) > rate(rows, pool, loser));
    let shown = pools.iter().map(|pool| {
        format!("{pool}: {} against {}", number(rate(rows, pool, winner)), number(rate(rows, pool, loser)))
    });
    (holds, shown.collect::<Vec<_>>().join("; ") + " MB/s")
}

fn gains(rows: &Rows<'_>, pools: &[&str]) -> Verdict {
    let ratios: Vec<f64> = pools.iter().map(|pool| rate(rows, pool, "O_DIRECT") / rate(rows, pool, "fsync")).collect();
    (ratios[0] < ratios[ratios.len() - 1], format!("O_DIRECT is {} times fdatasync", list(&ratios)))
}

fn present(rows: &[Row]) -> Vec<&'static str> {
    POOLS.into_iter().filter(|pool| rows.iter().any(|row| row.get("pool") == *pool)).collect()
}

fn table(rows: &[Row]) -> Table {
    let mut lines = Vec::new();
    for subject in subjects(rows) {
        let of = Rows::of(rows, subject);
        for pool in present(rows) {
            let cells = METHODS.map(|method| number(rate(&of, pool, method)));
            lines.push([title_of(subject).to_string(), pool.to_string()].into_iter().chain(cells).collect());
        }
    }
    Table {
        title: "Load speed, MB of values per second".into(),
        caption: "Pools by their size in the document.".into(),
        texts: 2,
        head: ["Subject", "Pool", "fsync (fdatasync)", "O_DIRECT", "O_DSYNC"].map(String::from).to_vec(),
        rows: lines,
    }
}

fn chart(rows: &[Row], subject: &str) -> Chart {
    let of = Rows::of(rows, subject);
    let pools = present(rows);
    let line = |method: &str| Line {
        name: method.into(),
        points: pools.iter().enumerate().map(|(n, pool)| [n as f64, rate(&of, pool, method)]).collect(),
        paper: false,
    };
    Chart {
        title: format!("{}: load speed", title_of(subject)),
        x_label: "buffer pool in the document (500 MB of data)".into(),
        y_label: "MB of values per second".into(),
        categories: pools.iter().map(ToString::to_string).collect(),
        lines: METHODS.iter().map(|method| line(method)).collect(),
        ..Chart::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rows(fsync: [f64; 5], direct: [f64; 5]) -> Vec<Row> {
        let row = |n: usize, method: &str, rate: f64| Row {
            subject: "mysql".into(),
            setting: setting([("pool", POOLS[n].into()), ("flush_method", method.to_string())]),
            measured: BTreeMap::from([("load_mb_per_s".into(), rate)]),
            ..Row::default()
        };
        (0..5).flat_map(|n| [row(n, "fsync", fsync[n]), row(n, "O_DIRECT", direct[n])]).collect()
    }

    fn verdicts(rows: &[Row]) -> Vec<bool> {
        let plan = Plan::on_paper(Scale::Quick, "local", &[SubjectKind::Mysql]);
        FlushMethods.claims(&plan, rows).iter().map(|claim| claim.holds).collect()
    }

    #[test]
    fn claims_follow_the_rows() {
        let fsync = [5.0, 6.0, 7.0, 8.0, 9.0];
        assert_eq!(verdicts(&rows(fsync, [1.0, 3.0, 6.0, 9.0, 12.0])), [true; 3]);
        assert_eq!(verdicts(&rows(fsync, [1.0, 3.0, 7.5, 9.0, 12.0])), [false, true, true]);
        assert_eq!(verdicts(&rows(fsync, [1.0, 3.0, 6.0, 7.0, 12.0])), [true, false, true]);
        assert_eq!(verdicts(&rows(fsync, [4.9, 3.0, 6.0, 7.0, 8.0])), [true, false, false]);
        assert_eq!(verdicts(&rows(fsync, [1.0, 3.0, 6.0, 9.0, 12.0])[..2]), [false; 3]);
    }
}
