//! `stall`: a write-only load whose redo log is an eighth of the dirty volume, second by second.
//!
//! A log that small must be freed by flushing all the time. A server that puts it off stops everybody when the log is full: the stall that InnoDB's
//! users report most. What must hold: the worst second has at least half the median's throughput, no page is flushed by sync flushing, none alone
//! by a user's thread.
//!
//! Choices
//! 1. Everything fits the pool and every row is written to with equal chance, so the dirty volume is the whole database.
//! 2. Sync flushing and single-page flushing are claimed of what the subject counts. What it does not count is no zero: the claim is not shown.
//! 3. A commit waits for a sync of the log, and how long that takes the device decides. So the worst second is told with its log syncs beside those of
//!    the median second, with the processor time that the hypervisor withheld in it, and with the worst of the seconds in which it withheld little: what
//!    made a second slow then shows. The claim is about all seconds all the same.
//! 4. The seconds of the warm-up, during which the pool fills and the log runs round for the first time, are not judged.

use super::judge::{Rows, Verdict, for_each_subject, number};
use super::trial::{Trial, log_bytes};
use super::{
    Bench, Cell, Chart, Claim, DeviceChoice, Experiment, Figure, Line, Measured, Plan, Row, Scale, SubjectKind, Table,
    setting,
};
use crate::error::Result;
use crate::experiment::aggregate::median;
use crate::experiment::outcome::{subjects, title_of};
use crate::result::Interval;
use crate::run::RunOptions;
use crate::subject::{Load, Settings};
use crate::workload::sysbench::{Config, Profile, RandType};
use std::collections::BTreeMap;

const ROW_BYTES: u64 = 240;
const TABLES: u64 = 8;
const THREADS: usize = 8;
/// The log is the dirty volume divided by this.
const DIRTY_TO_LOG: u64 = 8;
/// In an undisturbed second the hypervisor withheld at most so much of the processors' time.
const UNDISTURBED_PCT: f64 = 10.0;
/// Shorter last intervals say little.
const WHOLE_INTERVAL: f64 = 0.9;

/// The experiment.
#[derive(Debug)]
pub struct Stall;

fn data_bytes(scale: Scale) -> u64 {
    scale.pick(64 << 20, 256 << 20, 512 << 20, 4 << 30)
}

fn seconds(scale: Scale) -> (f64, f64) {
    scale.pick((1.0, 4.0), (10.0, 60.0), (20.0, 600.0), (60.0, 3600.0))
}

impl Experiment for Stall {
    fn name(&self) -> &'static str {
        "stall"
    }

    fn about(&self) -> &'static str {
        "Throughput of every second of a write-only load whose redo log is an eighth of the dirty volume"
    }

    fn source(&self) -> &'static str {
        "the stalls that InnoDB's users report (no source document)"
    }

    fn subjects(&self) -> &'static [SubjectKind] {
        &SubjectKind::ALL
    }

    fn devices(&self) -> &'static [&'static str] {
        &["local", "samsung-850-pro-256gb", "samsung-960-pro-512gb", "datacenter-nvme"]
    }

    fn repetitions(&self, _scale: Scale, _: &DeviceChoice) -> u32 {
        1
    }

    fn cells(&self, plan: &Plan) -> Result<Vec<Cell>> {
        let mut cells = Vec::new();
        for repetition in 0..plan.repetitions {
            for subject in &plan.subjects {
                let setting = setting([("log", format!("1/{DIRTY_TO_LOG} of the dirty volume"))]);
                cells.push(Cell::new(*subject, plan.device.name(), setting, repetition));
            }
        }
        Ok(cells)
    }

    fn measure(&self, plan: &Plan, cell: &Cell, lab: &mut Bench<'_>) -> Result<Measured> {
        let data_bytes = data_bytes(plan.scale);
        let (warmup_s, seconds) = seconds(plan.scale);
        let load = Config {
            profile: Profile::WriteOnly,
            tables: TABLES,
            table_size: data_bytes / ROW_BYTES / TABLES,
            rand_type: RandType::Uniform,
            seed: plan.seed + u64::from(cell.repetition),
            ..Config::default()
        };
        let settings = Settings {
            buffer_pool_bytes: data_bytes * 2,
            log_bytes: log_bytes(data_bytes / DIRTY_TO_LOG),
            flush_neighbors: "0".into(),
            max_dirty_pages_pct: 90,
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
            options: RunOptions { threads: THREADS, seconds, warmup_s, ..RunOptions::default() },
        };
        let taken = trial.take(lab)?;
        let mut measured = taken.measured();
        for name in ["sync_flush_waits", "log_waits", "log_wait_us", "free_frame_waits"] {
            measured.put(name, taken.counter(name));
        }
        put_seconds(&mut measured, &taken.result.intervals);
        measured.info.insert("log_bytes".into(), log_bytes(data_bytes / DIRTY_TO_LOG).to_string());
        Ok(measured)
    }

    fn required(&self) -> &'static [&'static str] {
        &["seconds", "tps_median_second"]
    }

    fn paper(&self, _cell: &Cell) -> BTreeMap<String, f64> {
        BTreeMap::new()
    }

    fn claims(&self, _plan: &Plan, rows: &[Row]) -> Vec<Claim> {
        let mut claims =
            for_each_subject(rows, "The worst second has at least half the median's throughput", worst_second);
        claims.extend(for_each_subject(rows, "No page is flushed by sync flushing", |rows| {
            none(rows, "pages_flushed_sync")
        }));
        claims.extend(for_each_subject(rows, "No page is flushed alone by a user's thread", |rows| {
            none(rows, "pages_flushed_single_page")
        }));
        claims
    }

    fn figures(&self, rows: &[Row]) -> Vec<Figure> {
        vec![
            Figure::Table(table(rows)),
            Figure::Chart(over_time(rows, "tps", "Throughput", "transactions per second")),
            Figure::Chart(over_time(rows, "checkpoint_age", "Checkpoint age", "percent of the log")),
            Figure::Chart(over_time(rows, "flushed", "Pages flushed", "pages per second")),
            Figure::Chart(over_time(rows, "log_sync_us", "A sync of the redo log", "microseconds, mean of the second")),
        ]
    }

    fn notes(&self, plan: &Plan) -> Vec<String> {
        let data = data_bytes(plan.scale);
        let (warmup_s, seconds) = seconds(plan.scale);
        vec![
            format!(
                "{} MiB of rows, all in the pool, every row written to with equal chance: the dirty volume is the database. Redo log {} MiB.",
                data >> 20,
                log_bytes(data / DIRTY_TO_LOG) >> 20
            ),
            format!("sysbench write-only, {THREADS} threads, every commit synced; {warmup_s} s of warm-up, then {seconds} s judged, second by second."),
            "What else runs on the machine or its disk makes seconds slow too; an emulated device (--device) takes the disk out of it.".into(),
            "Not every server counts sync flushing and single-page flushing; what a server does not count is absent, and the claim about it then says so and does not hold.".into(),
        ]
    }
}

/// Throughput, checkpoint age and flushing of each whole second.
fn put_seconds(measured: &mut Measured, intervals: &[Interval]) {
    let whole: Vec<&Interval> = intervals.iter().filter(|i| i.length_s >= WHOLE_INTERVAL).collect();
    let mut tps: Vec<f64> = whole.iter().map(|i| i.tps).collect();
    let series = |value: &dyn Fn(&Interval) -> f64| whole.iter().map(|i| [i.at_s, value(i)]).collect::<Vec<_>>();
    measured.series.insert("tps".into(), series(&|i| i.tps));
    measured.series.insert("checkpoint_age_bytes".into(), series(&|i| i.checkpoint_age_bytes as f64));
    measured.series.insert("flushed".into(), series(&|i| i.pages.flushed as f64 / i.length_s));
    put_log_syncs(measured, &whole);
    put_withheld(measured, &whole);
    tps.sort_by(f64::total_cmp);
    measured.put("seconds", tps.len() as f64);
    measured.put("tps_median_second", median(&tps));
    measured.put("tps_worst_second", tps.first().copied().unwrap_or(f64::NAN));
}

/// What a sync of the log took in each second; nothing of a subject that does not say.
fn put_log_syncs(measured: &mut Measured, whole: &[&Interval]) {
    let mean_us = |i: &Interval| (i.log_sync_us > 0).then(|| i.log_sync_us as f64 / i.log_syncs.max(1) as f64);
    let seconds: Vec<[f64; 2]> = whole.iter().filter_map(|i| Some([i.at_s, mean_us(i)?])).collect();
    let mut sorted: Vec<f64> = seconds.iter().map(|[_, us]| *us).collect();
    sorted.sort_by(f64::total_cmp);
    let worst = whole.iter().min_by(|a, b| a.tps.total_cmp(&b.tps)).and_then(|i| mean_us(i));
    if let Some(worst) = worst {
        measured.put("log_sync_us_worst_second", worst);
        measured.put("log_sync_us_median_second", median(&sorted));
    }
    measured.series.insert("log_sync_us".into(), seconds);
}

/// What the hypervisor withheld in the worst second, and the worst second in which it withheld little.
fn put_withheld(measured: &mut Measured, whole: &[&Interval]) {
    let slowest = |a: &&&Interval, b: &&&Interval| a.tps.total_cmp(&b.tps);
    if let Some(withheld) = whole.iter().min_by(slowest).and_then(|i| i.cpu_withheld_pct) {
        measured.put("cpu_withheld_pct_worst_second", withheld);
    }
    let undisturbed = || whole.iter().filter(|i| i.cpu_withheld_pct.is_some_and(|pct| pct <= UNDISTURBED_PCT));
    measured.put("seconds_undisturbed", undisturbed().count() as f64);
    if let Some(worst) = undisturbed().min_by(slowest) {
        measured.put("tps_worst_second_undisturbed", worst.tps);
    }
}

fn only<'r>(rows: &Rows<'r>) -> Option<&'r Row> {
    rows.find(&[])
}

fn worst_second(rows: &Rows<'_>) -> Verdict {
    let Some(row) = only(rows) else { return (false, "not measured".into()) };
    let (worst, median) = (row.value("tps_worst_second"), row.value("tps_median_second"));
    let percent = worst * 100.0 / median;
    let detail = format!(
        "{} of {} /s: {} % in the worst of {:.0} seconds{}",
        number(worst),
        number(median),
        number(percent),
        row.value("seconds"),
        circumstances(row)
    );
    (worst * 2.0 >= median && median > 0.0, detail)
}

/// What the device and the machine were like meanwhile, as far as it was counted.
fn circumstances(row: &Row) -> String {
    let (worst, median) = (row.value("log_sync_us_worst_second"), row.value("log_sync_us_median_second"));
    let mut text = String::new();
    if worst.is_finite() && median.is_finite() {
        text = format!("; a log sync took {} us in it, {} us in the median second", number(worst), number(median));
    }
    let withheld = row.value("cpu_withheld_pct_worst_second");
    let (undisturbed, seconds) = (row.value("tps_worst_second_undisturbed"), row.value("seconds_undisturbed"));
    if withheld.is_finite() && undisturbed.is_finite() {
        let (withheld, most) = (number(withheld), number(UNDISTURBED_PCT));
        let undisturbed = number(undisturbed);
        text += &format!(
            "; the hypervisor withheld {withheld} % of the processors' time in it; worst of the {seconds:.0} seconds with at most {most} %: {undisturbed} /s"
        );
    }
    text
}

fn none(rows: &Rows<'_>, name: &str) -> Verdict {
    let pages = rows.value(&[], name);
    if pages.is_nan() {
        return (false, "not counted by this subject".into());
    }
    (pages == 0.0, format!("{pages} pages"))
}

fn table(rows: &[Row]) -> Table {
    let columns = [
        ("Median second", "tps_median_second"),
        ("Worst second", "tps_worst_second"),
        ("Flushed: list", "pages_flushed_flush_list"),
        ("Sync flush", "pages_flushed_sync"),
        ("Single page", "pages_flushed_single_page"),
        ("Log waits", "log_waits"),
        ("p99 us", "latency_p99_us"),
    ];
    let line = |subject: &str| {
        let cells = columns.iter().map(|(_, name)| number(Rows::of(rows, subject).value(&[], name)));
        [title_of(subject).to_string()].into_iter().chain(cells).collect()
    };
    let head = ["Subject"].into_iter().chain(columns.map(|(title, _)| title)).map(String::from).collect();
    let lines = subjects(rows).into_iter().map(line).collect();
    Table {
        title: "Steadiness".into(),
        caption: "Throughput in transactions per second.".into(),
        texts: 1,
        head,
        rows: lines,
    }
}

fn over_time(rows: &[Row], name: &str, title: &str, unit: &str) -> Chart {
    let points = |row: &Row| match name {
        "checkpoint_age" => share_of_log(row),
        name => row.series.get(name).cloned().unwrap_or_default(),
    };
    let line = |row: &Row| Line { name: title_of(&row.subject).into(), points: points(row), paper: false };
    Chart {
        title: title.into(),
        x_label: "seconds since the warm-up".into(),
        y_label: unit.into(),
        lines: rows.iter().map(line).collect(),
        ..Chart::default()
    }
}

fn share_of_log(row: &Row) -> Vec<[f64; 2]> {
    let log: f64 = row.info.get("log_bytes").and_then(|text| text.parse().ok()).unwrap_or(f64::NAN);
    let ages = row.series.get("checkpoint_age_bytes").cloned().unwrap_or_default();
    ages.into_iter().map(|[at, age]| [at, age * 100.0 / log]).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(subject: &str, seconds: &[f64], sync: f64, single: f64) -> Row {
        let intervals: Vec<Interval> = seconds
            .iter()
            .enumerate()
            .map(|(n, tps)| Interval { at_s: n as f64 + 1.0, length_s: 1.0, tps: *tps, ..Interval::default() })
            .chain([Interval { at_s: 99.0, length_s: 0.1, tps: 0.0, ..Interval::default() }])
            .collect();
        let mut measured = Measured::default();
        put_seconds(&mut measured, &intervals);
        measured.put("pages_flushed_sync", sync);
        measured.put("pages_flushed_single_page", single);
        Row { subject: subject.into(), measured: measured.values, series: measured.series, ..Row::default() }
    }

    fn verdicts(row: Row) -> Vec<bool> {
        let plan = Plan::on_paper(Scale::Quick, "local", &[SubjectKind::Highwater]);
        Stall.claims(&plan, &[row]).iter().map(|claim| claim.holds).collect()
    }

    #[test]
    fn claims_follow_the_seconds() {
        assert_eq!(verdicts(row("highwater", &[100.0, 90.0, 55.0, 110.0], 0.0, 0.0)), [true; 3]);
        assert_eq!(verdicts(row("mysql", &[100.0, 90.0, 4.0, 110.0], 0.0, 0.0)), [false, true, true]);
        assert_eq!(verdicts(row("mysql", &[100.0, 90.0, 80.0], 3.0, 0.0)), [true, false, true]);
        assert_eq!(verdicts(row("mysql", &[100.0, 90.0, 80.0], 0.0, 2.0)), [true, true, false]);
        assert!(!verdicts(row("mysql", &[], 0.0, 0.0))[0]);
    }

    #[test]
    fn what_is_not_counted_is_not_claimed() {
        for (name, expected) in
            [("pages_flushed_sync", [true, false, true]), ("pages_flushed_single_page", [true, true, false])]
        {
            let mut row = row("mariadb", &[100.0, 90.0, 80.0], 0.0, 0.0);
            row.measured.remove(name);
            let plan = Plan::on_paper(Scale::Quick, "local", &[SubjectKind::Mariadb]);
            let claims = Stall.claims(&plan, &[row]);
            assert_eq!(claims.iter().map(|claim| claim.holds).collect::<Vec<_>>(), expected);
            assert!(claims.iter().all(|claim| claim.holds != claim.detail.contains("not counted")), "{claims:?}");
        }
    }

    #[test]
    fn the_worst_second_is_told_with_its_log_syncs() {
        let second = |tps, log_sync_us, withheld| Interval {
            length_s: 1.0,
            tps,
            log_syncs: 10,
            log_sync_us,
            cpu_withheld_pct: Some(withheld),
            ..Interval::default()
        };
        let mut measured = Measured::default();
        put_seconds(&mut measured, &[second(100.0, 5_000, 0.0), second(9.0, 80_000, 62.5), second(110.0, 4_000, 9.0)]);
        let row = Row { subject: "highwater".into(), measured: measured.values, ..Row::default() };
        let plan = Plan::on_paper(Scale::Quick, "local", &[SubjectKind::Highwater]);
        let told = Stall.claims(&plan, &[row])[0].detail.replace('\u{202f}', " ");
        assert!(told.starts_with("9.00 of 100 /s"), "{told}");
        assert!(told.contains("; a log sync took 8 000 us in it, 500 us in the median second"), "{told}");
        assert!(
            told.ends_with(
                "withheld 62.5 % of the processors' time in it; worst of the 2 seconds with at most 10.0 %: 100 /s"
            ),
            "{told}"
        );
    }

    #[test]
    fn a_last_short_interval_is_no_second() {
        assert_eq!(row("mysql", &[100.0, 90.0], 0.0, 0.0).value("seconds"), 2.0);
    }
}
