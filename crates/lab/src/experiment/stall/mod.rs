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
    Cell, Chart, Claim, DeviceChoice, Experiment, Figure, Line, Measured, Plan, Row, Scale, SubjectKind, Table,
    Workspace, setting,
};
use crate::experiment::aggregate::median;
use crate::experiment::outcome::{subjects, title_of};
use crate::subject::{Load, Settings};
use highwater_bench::Result;
use highwater_bench::result::Interval;
use highwater_bench::run::RunOptions;
use highwater_bench::workload::sysbench::{Config, Profile, RandType};
use std::collections::BTreeMap;

const ROW_BYTES: u64 = 240;
const TABLES: u64 = 8;
const THREADS: usize = 8;
/// The log is the dirty volume divided by this.
const DIRTY_TO_LOG: u64 = 8;
/// In an undisturbed second the hypervisor withheld at most so much of the processors' time.
const UNDISTURBED_PCT: f64 = 10.0;
/// The last second may end so much early.
const LATEST_END: f64 = 0.1;

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

    fn measure(&self, plan: &Plan, cell: &Cell, workspace: &mut Workspace<'_>) -> Result<Measured> {
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
        let taken = trial.take(workspace)?;
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
            Figure::Chart(over_time(
                rows,
                "cpu_withheld_pct",
                "Withheld by the hypervisor",
                "percent of the processors' time",
            )),
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

/// Throughput, checkpoint age and flushing of each second.
fn put_seconds(measured: &mut Measured, intervals: &[Interval]) {
    let tps = by_second(intervals, |i| i.tps * i.length_s);
    let at = |n: usize| n as f64 + 1.0;
    let series = |values: &[f64]| values.iter().enumerate().map(|(n, value)| [at(n), *value]).collect::<Vec<_>>();
    measured.series.insert("tps".into(), series(&tps));
    measured.series.insert("flushed".into(), series(&by_second(intervals, |i| i.pages.flushed.unwrap_or(0) as f64)));
    let ages = intervals.iter().map(|i| [i.at_s, i.checkpoint_age_bytes.unwrap_or(0) as f64]).collect();
    measured.series.insert("checkpoint_age_bytes".into(), ages);
    measured.put("seconds", tps.len() as f64);
    let Some(worst) = least(&tps) else { return };
    measured.put("tps_median_second", median_of(&tps));
    measured.put("tps_worst_second", tps[worst]);
    put_log_syncs(measured, intervals, worst);
    put_withheld(measured, intervals, &tps, worst);
}

/// What happened in each whole second. Ticks of a busy machine are late; what an interval counted is spread evenly over it, so that no second is
/// left out and none is longer than another.
fn by_second(intervals: &[Interval], amount: impl Fn(&Interval) -> f64) -> Vec<f64> {
    let end_s = intervals.last().map_or(0.0, |i| i.at_s);
    let mut seconds = vec![0.0; (end_s + LATEST_END).floor() as usize];
    for interval in intervals {
        let (mut from, to) = ((interval.at_s - interval.length_s).max(0.0), interval.at_s);
        while from < to {
            let end = (from.floor() + 1.0).min(to);
            if let Some(second) = seconds.get_mut(from as usize) {
                *second += amount(interval) * (end - from) / interval.length_s;
            }
            from = end;
        }
    }
    seconds
}

/// Which is the least.
fn least(values: &[f64]) -> Option<usize> {
    (0..values.len()).min_by(|a, b| values[*a].total_cmp(&values[*b]))
}

fn median_of(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median(&sorted)
}

/// What a sync of the log took in each second; nothing of a subject that does not say. A second in which none ended has none.
fn put_log_syncs(measured: &mut Measured, intervals: &[Interval], worst: usize) {
    if intervals.iter().all(|i| i.log_sync_us.unwrap_or(0) == 0) {
        return;
    }
    let by_second = |count: fn(&Interval) -> Option<u64>| by_second(intervals, |i| count(i).unwrap_or(0) as f64);
    let (syncs, us) = (by_second(|i| i.log_syncs), by_second(|i| i.log_sync_us));
    let mean_us = |second: usize| (syncs[second] > 0.0).then(|| us[second] / syncs[second]);
    let means: Vec<[f64; 2]> = (0..syncs.len()).filter_map(|n| Some([n as f64 + 1.0, mean_us(n)?])).collect();
    measured.put("log_syncs_worst_second", syncs[worst]);
    measured.put("log_sync_us_worst_second", mean_us(worst).unwrap_or(f64::NAN));
    measured.put("log_sync_us_median_second", median_of(&means.iter().map(|[_, us]| *us).collect::<Vec<_>>()));
    measured.series.insert("log_sync_us".into(), means);
}

/// What the hypervisor withheld in the worst second, and the worst second in which it withheld little; nothing where the kernel does not say.
fn put_withheld(measured: &mut Measured, intervals: &[Interval], tps: &[f64], worst: usize) {
    if intervals.iter().any(|i| i.cpu_withheld_pct.is_none()) {
        return;
    }
    let withheld = by_second(intervals, |i| i.cpu_withheld_pct.unwrap_or(0.0) * i.length_s);
    let undisturbed: Vec<f64> = (0..tps.len()).filter(|n| withheld[*n] <= UNDISTURBED_PCT).map(|n| tps[n]).collect();
    measured.put("cpu_withheld_pct_worst_second", withheld[worst]);
    measured.put("seconds_undisturbed", undisturbed.len() as f64);
    measured.put("tps_worst_second_undisturbed", least(&undisturbed).map_or(f64::NAN, |n| undisturbed[n]));
    measured.series.insert(
        "cpu_withheld_pct".into(),
        withheld.iter().enumerate().map(|(n, pct)| [n as f64 + 1.0, *pct]).collect(),
    );
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
    if row.value("log_syncs_worst_second") == 0.0 {
        text = format!("; no sync of the log ended in it, {} us each took in the median second", number(median));
    } else if worst.is_finite() {
        text = format!("; a log sync took {} us in it, {} us in the median second", number(worst), number(median));
    }
    let withheld = row.value("cpu_withheld_pct_worst_second");
    if withheld.is_finite() {
        text += &format!("; the hypervisor withheld {withheld:.0} % of the processors' time in it");
    }
    let (undisturbed, seconds) = (row.value("tps_worst_second_undisturbed"), row.value("seconds_undisturbed"));
    if undisturbed.is_finite() {
        let undisturbed = number(undisturbed);
        text += &format!("; worst of the {seconds:.0} seconds with at most {UNDISTURBED_PCT:.0} %: {undisturbed} /s");
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
            .chain([Interval { at_s: seconds.len() as f64 + 0.1, length_s: 0.1, tps: 0.0, ..Interval::default() }])
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

    fn told(measured: Measured) -> String {
        let row = Row { subject: "highwater".into(), measured: measured.values, ..Row::default() };
        let plan = Plan::on_paper(Scale::Quick, "local", &[SubjectKind::Highwater]);
        Stall.claims(&plan, &[row])[0].detail.replace('\u{202f}', " ")
    }

    fn second(at_s: f64, tps: f64, log_sync_us: u64, withheld: f64) -> Interval {
        let (log_syncs, log_sync_us, cpu_withheld_pct) = (Some(log_sync_us / 400), Some(log_sync_us), Some(withheld));
        Interval { at_s, length_s: 1.0, tps, log_syncs, log_sync_us, cpu_withheld_pct, ..Interval::default() }
    }

    #[test]
    fn the_worst_second_is_told_with_its_circumstances() {
        let mut measured = Measured::default();
        let mut slow = second(2.0, 9.0, 80_000, 62.0);
        slow.log_syncs = Some(10);
        put_seconds(&mut measured, &[second(1.0, 100.0, 5_200, 0.0), slow.clone(), second(3.0, 110.0, 4_000, 9.0)]);
        let text = told(measured);
        assert!(
            text.starts_with(
                "9.00 of 100 /s: 9.00 % in the worst of 3 seconds; a log sync took 8 000 us in it, 400 us"
            ),
            "{text}"
        );
        assert!(
            text.ends_with(
                "withheld 62 % of the processors' time in it; worst of the 2 seconds with at most 10 %: 100 /s"
            ),
            "{text}"
        );
        // A sync that outlasts the second; and none of the seconds undisturbed.
        (slow.log_syncs, slow.log_sync_us) = (Some(0), Some(0));
        let mut measured = Measured::default();
        put_seconds(&mut measured, &[second(1.0, 100.0, 5_200, 50.0), slow]);
        let text = told(measured);
        assert!(
            text.contains("; no sync of the log ended in it, 400 us")
                && text.ends_with("withheld 62 % of the processors' time in it"),
            "{text}"
        );
    }

    #[test]
    fn what_nobody_says_is_not_told() {
        let mut measured = Measured::default();
        let silent = |at_s, tps| Interval { at_s, length_s: 1.0, tps, ..Interval::default() };
        put_seconds(&mut measured, &[silent(1.0, 100.0), silent(2.0, 60.0)]);
        assert!(told(measured).ends_with("in the worst of 2 seconds"));
    }

    #[test]
    fn late_ticks_leave_no_second_out() {
        // The second tick is late by 0.9 s, the third comes half a second after it.
        let interval = |at_s, length_s, transactions: f64| Interval {
            at_s,
            length_s,
            tps: transactions / length_s,
            ..Interval::default()
        };
        let intervals =
            [interval(1.0, 1.0, 100.0), interval(2.9, 1.9, 19.0), interval(3.4, 0.5, 50.0), interval(4.0, 0.6, 60.0)];
        let tps = by_second(&intervals, |i| i.tps * i.length_s);
        let expected = [100.0, 10.0, 9.0 + 10.0, 90.0 + 10.0];
        assert!(
            tps.len() == 4 && tps.iter().zip(expected).all(|(found, wanted)| (found - wanted).abs() < 1e-6),
            "{tps:?}"
        );
    }

    #[test]
    fn a_last_short_interval_is_no_second() {
        assert_eq!(row("mysql", &[100.0, 90.0], 0.0, 0.0).value("seconds"), 2.0);
    }
}
