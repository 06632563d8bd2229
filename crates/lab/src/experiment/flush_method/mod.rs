//! `flush-method`: fsync (the documents' fdatasync), O_DIRECT and O_DSYNC, loading the `user` table with its NAME_INDEX, with pools from far too small
//! to large enough.
//!
//! Source: a blog's measurement of 2010: MySQL 5.5.7, 4 GB of RAM, SATA disk of 7200 rpm, 500 MB of rows, pools of 16 to 256 MB.
//!
//! Choices
//! 1. Buffered writes leave pages in the operating system's cache, which is why they win below a small pool. So the cache is limited as that machine's
//!    memory limited it: a memory control group of eight times the data, in which the subject runs.
//! 2. On an emulated device Highwater too goes through a mounted file system: without one there is no cache to compare with.
//! 3. Subjects have a least pool. Of the document's pools that would be the same one for a subject only the largest, whose ratio to the data is the
//!    nearest, is measured; claims are of the pools that are. Each row has the pool, log and data it really had.
//! 4. The document does not say how many rows a transaction had. One each would measure the disk's sync alone; there are [`ROWS_PER_TRANSACTION`].

use super::judge::{Rows, Verdict, for_each_subject, list, number};
use super::trial::{MIN_SERVER_POOL_BYTES, Trial, log_bytes};
use super::{
    Cell, Chart, Claim, DeviceChoice, Experiment, Figure, Line, Measured, Plan, Row, Scale, SubjectKind, Table,
    Workspace, setting,
};
use crate::experiment::outcome::{subjects, title_of};
use crate::subject::{Load, Settings};
use highwater::config::{FlushMethod, KnobValue};
use highwater_bench::Result;
use highwater_bench::run::RunOptions;
use highwater_bench::workload::user_table::Config;
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

/// A claim's judge: a subject's rows, its pools below the crossover, those from it on.
type Judge = dyn Fn(&Rows<'_>, &[&str], &[&str]) -> Verdict;

/// The emulated hard disks, on which a run takes a hundred times as long as on flash; they are slow enough for one run to say all.
const DISKS: [&str; 2] = ["sata-7200rpm-500gb", "wd10ezex-1tb"];

fn is_disk(device: &DeviceChoice) -> bool {
    DISKS.contains(&device.name())
}

/// By what the paper's sizes are divided.
fn divisor(plan: &Plan) -> u64 {
    if is_disk(&plan.device) { plan.scale.pick(50, 50, 16, 1) } else { plan.scale.pick(50, 12, 3, 1) }
}

fn pools(scale: Scale) -> &'static [&'static str] {
    if scale == Scale::Smoke { &POOLS[3..] } else { &POOLS }
}

/// The pools that differ for a subject, and those that would be the same as the next larger one.
fn distinct_pools(plan: &Plan, subject: SubjectKind) -> (Vec<&'static str>, Vec<&'static str>) {
    let pools = pools(plan.scale);
    let bytes = |pool: &str| pool_bytes(pool, divisor(plan), subject);
    let numbered: Vec<(usize, &str)> = pools.iter().copied().enumerate().collect();
    let (same, distinct): (Vec<_>, Vec<_>) =
        numbered.into_iter().partition(|(n, pool)| pools.get(n + 1).is_some_and(|next| bytes(pool) == bytes(next)));
    let names = |list: Vec<(usize, &'static str)>| list.into_iter().map(|(_, pool)| pool).collect();
    (names(distinct), names(same))
}

/// At the quick scale and on disks O_DSYNC, of which the document says only that it exists, is measured with the smallest and the largest pool.
fn methods(plan: &Plan, pools: &[&str], pool: &str) -> &'static [&'static str] {
    let is_short = plan.scale == Scale::Quick || is_disk(&plan.device);
    let is_end = pools.first() == Some(&pool) || pools.last() == Some(&pool);
    if is_short && !is_end { &METHODS[..2] } else { &METHODS }
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

    fn repetitions(&self, scale: Scale, device: &DeviceChoice) -> u32 {
        if is_disk(device) { 1 } else { scale.pick(1, 1, 3, 1) }
    }

    fn cells(&self, plan: &Plan) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for repetition in 0..plan.repetitions {
            for pool in pools(plan.scale) {
                for subject in &plan.subjects {
                    let (distinct, _) = distinct_pools(plan, *subject);
                    let methods = if distinct.contains(pool) { methods(plan, &distinct, pool) } else { &[] };
                    for method in methods {
                        let setting = setting([("pool", pool.to_string()), ("flush_method", method.to_string())]);
                        cells.push(Cell::new(*subject, plan.device.name(), setting, repetition));
                    }
                }
            }
        }
        Ok(cells)
    }

    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<Measured> {
        let by = divisor(plan);
        let method = FlushMethod::parse(cell.get("flush_method")).map_err(crate::Error::Usage)?;
        let (pool, log) = (pool_bytes(cell.get("pool"), by, cell.kind()?), log_bytes(LOG_BYTES / by));
        let settings = Settings {
            buffer_pool_bytes: pool,
            log_bytes: log,
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
        let taken = trial.take(workspace)?;
        let mut measured = taken.measured();
        put_sizes(&mut measured, pool, log, DATA_BYTES / by);
        let megabytes = (DATA_BYTES / by) as f64 / 1e6;
        measured.put("load_mb_per_s", megabytes / taken.result.elapsed_s.max(1e-9));
        Ok(measured)
    }

    fn required(&self) -> &'static [&'static str] {
        &["load_mb_per_s"]
    }

    fn paper(&self, _cell: &Cell) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn claims(&self, plan: &Plan, rows: &[Row]) -> Vec<Claim> {
        let mut claims = Vec::new();
        let mut add = |text: &str, judge: &Judge| {
            claims.extend(for_each_subject(rows, text, |rows| {
                let (below, above) = around_crossover(plan, rows.subject);
                judge(rows, &below, &above)
            }));
        };
        if pools(plan.scale)[0] != CROSSOVER {
            add("With a pool below a quarter of the data fdatasync is faster than O_DIRECT", &|rows, below, _| {
                wins(rows, below, "fsync", "O_DIRECT")
            });
        }
        add("From a pool of a quarter of the data on O_DIRECT is faster than fdatasync", &|rows, _, above| {
            wins(rows, above, "O_DIRECT", "fsync")
        });
        add("O_DIRECT gains on fdatasync from the smallest to the largest pool", &|rows, below, above| {
            gains(rows, &[below, above].concat())
        });
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
            format!("{THREADS} clients, {ROWS_PER_TRANSACTION} rows a transaction, every commit synced; redo log {} MiB, {} % of the data (MySQL 5.5's default of 10 MiB would be 2 %, but no subject takes less than 8 MiB). The document states none of these.", log_bytes(LOG_BYTES / by) >> 20, number(percent(log_bytes(LOG_BYTES / by), DATA_BYTES / by))),
            "fsync is what the document calls fdatasync, MySQL's default then: buffered writes, then fsync. O_DSYNC opens the log with O_SYNC and syncs the data files.".into(),
            "The document shows its result as a figure without numbers, so no column of it can stand beside ours.".into(),
        ];
        notes.extend(plan.subjects.iter().filter_map(|subject| least_pool_note(plan, *subject)));
        if !is_disk(&plan.device) {
            notes.push("Why a small pool may not favour fdatasync here: on the document's disk a page that the operating system's cache still holds saves a seek, 8 ms or more; on flash it saves a read of a tenth of a millisecond or less, about what copying the page through that cache costs at each write. --device sata-7200rpm-500gb has the document's disk.".into());
        }
        if plan.device != DeviceChoice::Local {
            notes.push("The emulated device is mounted with ext4 for every subject, Highwater too, so that all have the operating system's cache.".into());
        }
        notes
    }
}

/// The sizes that a cell really had.
fn put_sizes(measured: &mut Measured, pool: u64, log: u64, data: u64) {
    for (name, bytes) in [("pool_bytes", pool), ("log_bytes", log), ("data_bytes", data)] {
        measured.put(name, bytes as f64);
    }
    measured.put("pool_to_data_pct", percent(pool, data));
    measured.put("log_to_data_pct", percent(log, data));
}

fn percent(part: u64, whole: u64) -> f64 {
    part as f64 * 100.0 / whole as f64
}

/// What became of the pools that are smaller than the subject takes.
fn least_pool_note(plan: &Plan, subject: SubjectKind) -> Option<String> {
    let (least, by) = (least_pool_bytes(subject), divisor(plan));
    let (distinct, same) = distinct_pools(plan, subject);
    let smallest = distinct.first()?;
    if pool_bytes(smallest, by, subject) > least {
        return None;
    }
    let (name, mib) = (title_of(subject.name()), least >> 20);
    let share = number(percent(least, DATA_BYTES / by));
    let mut note = format!(
        "{name} takes no pool below {mib} MiB, here {share} % of the data: it has that for the document's {smallest}."
    );
    if !same.is_empty() {
        note += &format!(" Left out, because it would be the same pool: {}.", same.join(", "));
    }
    Some(note)
}

/// The pools that are measured on a subject, below the document's crossover and from it on.
fn around_crossover(plan: &Plan, subject: &str) -> (Vec<&'static str>, Vec<&'static str>) {
    let distinct = subject.parse().map_or(Vec::new(), |subject| distinct_pools(plan, subject).0);
    let place = |pool: &str| POOLS.iter().position(|one| *one == pool);
    distinct.into_iter().partition(|pool| place(pool) < place(CROSSOVER))
}

fn rate(rows: &Rows<'_>, pool: &str, method: &str) -> f64 {
    rows.value(&[("pool", pool), ("flush_method", method)], "load_mb_per_s")
}

/// Whether one method is faster than the other with each of the pools.
fn wins(rows: &Rows<'_>, pools: &[&str], winner: &str, loser: &str) -> Verdict {
    if pools.is_empty() {
        return (false, "no such pool is measured: this subject takes none so small".into());
    }
    let holds = pools.iter().all(|pool| rate(rows, pool, winner) > rate(rows, pool, loser));
    let shown = pools.iter().map(|pool| {
        format!("{pool}: {} against {}", number(rate(rows, pool, winner)), number(rate(rows, pool, loser)))
    });
    (holds, shown.collect::<Vec<_>>().join("; ") + " MB/s")
}

fn gains(rows: &Rows<'_>, pools: &[&str]) -> Verdict {
    if pools.len() < 2 {
        return (false, format!("{} pool is measured: nothing to compare", pools.len()));
    }
    let ratios: Vec<f64> = pools.iter().map(|pool| rate(rows, pool, "O_DIRECT") / rate(rows, pool, "fsync")).collect();
    (ratios.first() < ratios.last(), format!("O_DIRECT is {} times fdatasync", list(&ratios)))
}

fn present(rows: &[Row]) -> Vec<&'static str> {
    POOLS.into_iter().filter(|pool| rows.iter().any(|row| row.get("pool") == *pool)).collect()
}

const HEAD: [&str; 10] = [
    "Subject",
    "Pool",
    "Data MiB",
    "Pool MiB",
    "Log MiB",
    "Pool, % of data",
    "Log, % of data",
    "fsync (fdatasync)",
    "O_DIRECT",
    "O_DSYNC",
];

fn table(rows: &[Row]) -> Table {
    let mut lines = Vec::new();
    for subject in subjects(rows) {
        let of = Rows::of(rows, subject);
        for (pool, row) in present(rows).into_iter().filter_map(|pool| Some((pool, of.find(&[("pool", pool)])?))) {
            let mib = |name: &str| number(row.value(name) / f64::from(1 << 20));
            let sizes = ["data_bytes", "pool_bytes", "log_bytes"].map(mib);
            let shares = ["pool_to_data_pct", "log_to_data_pct"].map(|name| number(row.value(name)));
            let rates = METHODS.map(|method| number(rate(&of, pool, method)));
            let cells = sizes.into_iter().chain(shares).chain(rates);
            lines.push([title_of(subject).to_string(), pool.to_string()].into_iter().chain(cells).collect());
        }
    }
    Table {
        title: "Load speed, MB of values per second".into(),
        caption: "Pools by their size in the document, and what data, pool and log really had.".into(),
        texts: 2,
        head: HEAD.map(String::from).to_vec(),
        rows: lines,
    }
}

fn chart(rows: &[Row], subject: &str) -> Chart {
    let of = Rows::of(rows, subject);
    let pools = present(rows);
    let line = |method: &str| Line {
        name: method.into(),
        points: pools
            .iter()
            .enumerate()
            .map(|(n, pool)| [n as f64, rate(&of, pool, method)])
            .filter(|point| point[1].is_finite())
            .collect(),
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

    fn plan(scale: Scale, device: &str, subject: SubjectKind) -> Plan {
        Plan::on_paper(scale, device, &[subject])
    }

    fn verdicts(rows: &[Row]) -> Vec<bool> {
        verdicts_at(Scale::Standard, rows)
    }

    fn verdicts_at(scale: Scale, rows: &[Row]) -> Vec<bool> {
        let plan = plan(scale, "local", SubjectKind::Mysql);
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

    #[test]
    fn no_two_pools_of_a_subject_are_the_same() {
        let disk = DISKS[0];
        for (scale, device, subject, measured) in [
            (Scale::Quick, "local", SubjectKind::Mysql, &POOLS[2..]),
            (Scale::Standard, disk, SubjectKind::Mariadb, &POOLS[2..]),
            (Scale::Quick, disk, SubjectKind::Mariadb, &POOLS[4..]),
            (Scale::Quick, disk, SubjectKind::Highwater, &POOLS[1..]),
            (Scale::Standard, "local", SubjectKind::Mysql, &POOLS[..]),
            (Scale::Full, disk, SubjectKind::Mysql, &POOLS[..]),
        ] {
            let plan = plan(scale, device, subject);
            let cells = FlushMethods.cells(&plan).unwrap();
            let mut pools: Vec<&str> = cells.iter().map(|cell| cell.get("pool")).collect();
            pools.dedup();
            assert_eq!(pools, measured, "{scale} {device} {subject}");
            let mut bytes: Vec<u64> = pools.iter().map(|pool| pool_bytes(pool, divisor(&plan), subject)).collect();
            bytes.dedup();
            assert_eq!(bytes.len(), measured.len(), "{bytes:?}");
            // Both ends are measured with every method, and what is left out is said.
            assert!(cells.iter().filter(|cell| cell.get("pool") == measured[0]).count() >= METHODS.len());
            let left_out = POOLS[..POOLS.len() - measured.len()].join(", ");
            let says =
                FlushMethods.notes(&plan).iter().any(|note| note.contains(&format!("the same pool: {left_out}.")));
            assert_eq!(says, !left_out.is_empty(), "{scale} {device} {subject}");
        }
    }

    #[test]
    fn claims_are_of_the_pools_that_are_measured() {
        let all = rows([5.0, 6.0, 7.0, 8.0, 9.0], [9.0, 9.0, 6.0, 9.0, 12.0]);
        assert_eq!((verdicts(&all)[0], verdicts_at(Scale::Quick, &all[4..])), (false, vec![true; 3]));
        let plan = plan(Scale::Quick, DISKS[0], SubjectKind::Mysql);
        let claims = FlushMethods.claims(&plan, &all[8..]);
        assert_eq!(claims.iter().map(|claim| claim.holds).collect::<Vec<_>>(), [false, true, false]);
        assert!(claims[0].detail.contains("no such pool"), "{claims:?}");
    }

    #[test]
    fn rows_have_the_sizes_they_really_had() {
        let mut measured = Measured::default();
        put_sizes(&mut measured, 6 << 20, 8 << 20, 32 << 20);
        assert_eq!((measured.values["pool_bytes"], measured.values["pool_to_data_pct"]), (6_291_456.0, 18.75));
        let row = Row { measured: measured.values, ..rows([1.0; 5], [1.0; 5]).remove(0) };
        assert_eq!(table(&[row]).rows[0][2..7], ["32.0", "6.00", "8.00", "18.8", "25.0"]);
    }
}
