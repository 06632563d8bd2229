//! Claims of stall, on made-up seconds.

use super::seconds::by_second;
use super::*;
use crate::experiment::testing;
use crate::experiment::{Scale, Verdict};
use highwater_bench::result::Interval;

fn row(subject: &str, seconds: &[f64], sync: f64, single: f64) -> Row {
    let intervals: Vec<Interval> = seconds
        .iter()
        .enumerate()
        .map(|(n, tps)| Interval { at_s: n as f64 + 1.0, length_s: 1.0, tps: *tps, ..Interval::default() })
        .chain([Interval { at_s: seconds.len() as f64 + 0.1, length_s: 0.1, tps: 0.0, ..Interval::default() }])
        .collect();
    let mut measured = CellResult::default();
    seconds::put(&mut measured, &intervals);
    measured.put(metric::PAGES_FLUSHED_SYNC, sync);
    measured.put(metric::PAGES_FLUSHED_SINGLE_PAGE, single);
    Row { subject: subject.into(), measured: measured.values, series: measured.series, ..Row::default() }
}

fn verdicts(row: Row) -> Vec<bool> {
    testing::verdicts(&Stall, &[row])
}

#[test]
fn claims_follow_the_seconds() {
    assert_eq!(verdicts(row("highwater", &[100.0, 90.0, 55.0, 110.0], 0.0, 0.0)), [true; 3]);
    assert_eq!(verdicts(row("mysql", &[100.0, 90.0, 4.0, 110.0], 0.0, 0.0)), [false, true, true]);
    assert_eq!(verdicts(row("mysql", &[100.0, 90.0, 80.0], 3.0, 0.0)), [true, false, true]);
    assert_eq!(verdicts(row("mysql", &[100.0, 90.0, 80.0], 0.0, 2.0)), [true, true, false]);
    assert!(!verdicts(row("mysql", &[], 0.0, 0.0))[0]);
    let plan = testing::plan(Scale::Quick, "local", &[SubjectKind::Highwater]);
    for (others, verdict) in [(4.0, Verdict::Lost), (30.0, Verdict::Undecided)] {
        let mut row = row("highwater", &[100.0, 90.0, 4.0, 110.0], 0.0, 0.0);
        row.measured.insert(metric::CPU_OTHERS_PCT.name().into(), others);
        assert_eq!(Stall.claims(&plan, &[row])[0].verdict, verdict);
    }
}

#[test]
fn what_is_not_counted_is_not_claimed() {
    for (metric, expected) in
        [(metric::PAGES_FLUSHED_SYNC, [true, false, true]), (metric::PAGES_FLUSHED_SINGLE_PAGE, [true, true, false])]
    {
        let mut row = row("mariadb", &[100.0, 90.0, 80.0], 0.0, 0.0);
        row.measured.remove(metric.name());
        let plan = testing::plan(Scale::Quick, "local", &[SubjectKind::Mariadb]);
        let claims = Stall.claims(&plan, &[row]);
        assert_eq!(testing::holding(&claims), expected);
        let fits = |claim: &Claim| (claim.verdict == Verdict::Undecided) == claim.detail.contains("not counted");
        assert!(claims.iter().all(fits), "{claims:?}");
    }
}

fn detail(measured: CellResult) -> String {
    let row = Row { subject: "highwater".into(), measured: measured.values, ..Row::default() };
    let plan = testing::plan(Scale::Quick, "local", &[SubjectKind::Highwater]);
    Stall.claims(&plan, &[row])[0].detail.replace('\u{202f}', " ")
}

fn second(at_s: f64, tps: f64, log_sync_us: u64, withheld: f64) -> Interval {
    let (log_syncs, log_sync_us, cpu_withheld_pct) = (Some(log_sync_us / 400), Some(log_sync_us), Some(withheld));
    Interval { at_s, length_s: 1.0, tps, log_syncs, log_sync_us, cpu_withheld_pct, ..Interval::default() }
}

#[test]
fn the_worst_second_is_shown_with_its_circumstances() {
    let mut measured = CellResult::default();
    let mut slow = second(2.0, 9.0, 80_000, 62.0);
    slow.log_syncs = Some(10);
    seconds::put(&mut measured, &[second(1.0, 100.0, 5_200, 0.0), slow.clone(), second(3.0, 110.0, 4_000, 9.0)]);
    let text = detail(measured);
    assert!(
        text.starts_with("9.00 of 100 /s: 9.00 % in the worst of 3 seconds; a log sync took 8 000 us in it, 400 us"),
        "{text}"
    );
    assert!(
        text.ends_with("withheld 62 % of the processors' time in it; worst of the 2 seconds with at most 10 %: 100 /s"),
        "{text}"
    );
    // A sync that outlasts the second; and none of the seconds undisturbed.
    (slow.log_syncs, slow.log_sync_us) = (Some(0), Some(0));
    let mut measured = CellResult::default();
    seconds::put(&mut measured, &[second(1.0, 100.0, 5_200, 50.0), slow]);
    let text = detail(measured);
    assert!(
        text.contains("; no sync of the log ended in it, 400 us")
            && text.ends_with("withheld 62 % of the processors' time in it"),
        "{text}"
    );
}

#[test]
fn what_is_not_counted_is_not_in_the_detail() {
    let mut measured = CellResult::default();
    let silent = |at_s, tps| Interval { at_s, length_s: 1.0, tps, ..Interval::default() };
    seconds::put(&mut measured, &[silent(1.0, 100.0), silent(2.0, 60.0)]);
    assert!(detail(measured).ends_with("in the worst of 2 seconds"));
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
    assert!(tps.len() == 4 && tps.iter().zip(expected).all(|(found, wanted)| (found - wanted).abs() < 1e-6), "{tps:?}");
}

#[test]
fn a_last_short_interval_is_no_second() {
    assert_eq!(row("mysql", &[100.0, 90.0], 0.0, 0.0).value(metric::SECONDS), 2.0);
}
