//! Claims and figures of flush-neighbors: the paper's own figures as rows, and rows bent one value at a time.

use super::plan::{OPTION, PAPER, SIZE, SIZES, put_single_page_share, settings};
use super::*;
use crate::experiment::metric::Metric;
use crate::experiment::testing::{self, row};
use crate::experiment::{Scale, Verdict, setting};

fn plan() -> Plan {
    let subjects = [SubjectKind::Highwater, SubjectKind::Mysql];
    Plan { repetitions: 3, server_repetitions: 1, ..testing::plan(Scale::Standard, "local", &subjects) }
}

/// Rows with the paper's own figures as if they had been measured, `auto` as good as option 0.
fn rows_of_the_paper(subject: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for (size, three) in SIZES.iter().zip(PAPER) {
        for (option, (flushed, tps)) in ["0", "1", "2", "auto"].iter().zip(three.into_iter().chain([three[0]])) {
            let setting = setting([(SIZE, size), (OPTION, option)]);
            rows.push(row(subject, setting, &[(metric::PAGES_FLUSHED, flushed), (metric::TPS, tps)]));
        }
    }
    rows
}

fn verdicts(rows: &[Row]) -> Vec<bool> {
    testing::holding(&FlushNeighbors.claims(&plan(), rows))
}

fn change(rows: &mut [Row], size: &str, option: &str, metric: Metric, value: f64) {
    let row = rows.iter_mut().find(|row| row.get(SIZE) == size && row.get(OPTION) == option).unwrap();
    row.measured.insert(metric.name().into(), value);
}

#[test]
fn the_papers_own_figures_show_its_claims() {
    assert_eq!(verdicts(&rows_of_the_paper("highwater")), [true; 4]);
    assert_eq!(verdicts(&rows_of_the_paper("mysql")), [true; 3]);
}

#[test]
fn each_claim_can_be_lost() {
    let rows = rows_of_the_paper("highwater");
    let with = |size: &str, option: &str, metric: Metric, value: f64| {
        let mut rows = rows.clone();
        change(&mut rows, size, option, metric, value);
        verdicts(&rows)
    };
    assert_eq!(with("20 GB", "1", metric::PAGES_FLUSHED, 9e9), [false, true, true, true]);
    assert_eq!(with("50 GB", "2", metric::PAGES_FLUSHED, 9e9), [true, false, true, true]);
    assert_eq!(with("5 GB", "0", metric::TPS, 1950.0), [true, true, true, true]);
    let verdict = |size: &str, option: &str, pages: f64, claim: usize| {
        let mut rows = rows.clone();
        change(&mut rows, size, option, metric::PAGES_FLUSHED, pages);
        FlushNeighbors.claims(&plan(), &rows)[claim].verdict
    };
    // 1 and 2 nearly equal; hardly a page at one size.
    assert_eq!(verdict("20 GB", "1", 1_344_000.0, 0), Verdict::Undecided);
    assert_eq!(verdict("1 GB", "0", 152.0, 0), Verdict::Undecided);
    assert_eq!(verdict("1 GB", "0", 0.0, 1), Verdict::Undecided);
    // A run of a server that is so much slower may have flushed more for that reason.
    for (subject, verdict) in [("mysql", Verdict::Undecided), ("highwater", Verdict::Holds)] {
        let mut slow = rows_of_the_paper(subject);
        change(&mut slow, "1 GB", "1", metric::TPS, 900.0);
        assert_eq!(FlushNeighbors.claims(&plan(), &slow)[0].verdict, verdict, "{subject}");
    }
    // Two runs of option 1 are on both sides of option 2's.
    let mut noisy = rows.clone();
    let row = noisy.iter_mut().find(|row| row.get(SIZE) == "1 GB" && row.get(OPTION) == "1").unwrap();
    row.runs.insert(metric::PAGES_FLUSHED.name().into(), vec![160_000.0, 190_000.0]);
    assert_eq!(FlushNeighbors.claims(&plan(), &noisy)[0].verdict, Verdict::Undecided);
    let missing: Vec<Row> = rows.iter().filter(|row| row.get(SIZE) != "10 GB").cloned().collect();
    assert_eq!(verdicts(&missing), [false, true, false, false]);
}

/// The paper's rows with options 0 and auto `ratios` times as fast as option 1 in each of the runs; option 2 as fast as
/// option 1.
fn rows_with_runs(ratios: &[f64]) -> Vec<Row> {
    let mut rows = rows_of_the_paper("highwater");
    for row in &mut rows {
        let is_one = matches!(row.get(OPTION), "1" | "2");
        let runs = ratios.iter().map(|ratio| 1000.0 * if is_one { 1.0 } else { *ratio }).collect();
        row.runs.insert(metric::TPS.name().into(), runs);
    }
    rows
}

#[test]
fn tps_are_judged_by_the_spread_of_pairs_of_runs() {
    // The last two are slower and faster, but of runs that do not agree.
    for (ratios, verdict) in [
        (&[1.0; 5][..], Verdict::Holds),
        (&[0.9; 5], Verdict::Lost),
        (&[0.96, 1.0, 0.98, 1.03, 0.99], Verdict::Holds),
        (&[0.6, 0.75, 0.7, 1.0, 0.6], Verdict::Lost),
        (&[0.3, 1.6, 1.4, 0.2, 2.0], Verdict::Undecided),
        (&[3.0, 0.3, 2.0, 1.1, 1.5], Verdict::Undecided),
    ] {
        let claims = FlushNeighbors.claims(&plan(), &rows_with_runs(ratios));
        for claim in &claims[2..] {
            assert_eq!(claim.verdict, verdict, "{ratios:?}: {}", claim.detail);
            assert_eq!(claim.detail.starts_with("spread "), verdict == Verdict::Undecided, "{}", claim.detail);
        }
    }
}

#[test]
fn the_scan_depth_is_innodbs_and_not_divided() {
    let cell = Cell::new(SubjectKind::Mysql, "local", setting([(OPTION, "0")]), 0);
    for (scale, depth) in [(Scale::Smoke, 96), (Scale::Quick, 512), (Scale::Standard, 1024), (Scale::Full, 1024)] {
        assert_eq!(settings(&cell, scale).lru_scan_depth, depth, "{scale}");
    }
}

#[test]
fn the_share_of_single_pages_is_of_what_is_counted() {
    let mut measured = CellResult::default();
    measured.put(metric::PAGES_FLUSHED, 200.0);
    put_single_page_share(&mut measured);
    assert!(measured.value(metric::SINGLE_PAGE_PCT).is_nan());
    measured.put(metric::PAGES_FLUSHED_SINGLE_PAGE, 50.0);
    put_single_page_share(&mut measured);
    assert_eq!(measured.value(metric::SINGLE_PAGE_PCT), 25.0);
}

#[test]
fn cells_interleave_options_and_only_highwater_has_auto() {
    let cells = FlushNeighbors.cells(&plan());
    assert_eq!(cells.len(), 5 * (3 * 4 + 3), "a server is measured as often as planned for servers");
    let first: Vec<&str> = cells.iter().take(7).map(|cell| cell.get(OPTION)).collect();
    assert_eq!(first, ["0", "1", "2", "auto", "0", "1", "2"]);
    let ids: std::collections::BTreeSet<&String> = cells.iter().map(|cell| &cell.id).collect();
    assert_eq!(ids.len(), cells.len());
}

#[test]
fn figures_show_the_paper_too() {
    let mut rows = rows_of_the_paper("mysql");
    for row in &mut rows {
        row.measured.insert(metric::SINGLE_PAGE_PCT.name().into(), 92.0);
        row.paper = FlushNeighbors.paper(&Cell::new(SubjectKind::Mysql, "local", row.setting.clone(), 0));
    }
    let figures = FlushNeighbors.figures(&rows);
    let Figure::Table(table) = &figures[0] else { panic!("a table first") };
    assert_eq!(table.rows[0][2..], table.rows[5][2..=4].iter().cloned().chain(["–".into()]).collect::<Vec<_>>());
    let Figure::Table(single) = &figures[2] else { panic!("then another table") };
    assert_eq!((single.title.contains("single pages"), single.rows[5][2].as_str()), (true, "92.0"));
    let Figure::Chart(chart) = &figures[3] else { panic!("then a chart") };
    assert_eq!(chart.lines[0].points, chart.lines[1].points);
}
