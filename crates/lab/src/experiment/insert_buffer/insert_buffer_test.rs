//! Claims of insert-buffer: made-up rows of both outcomes, and what is set for each cell.

use super::claims::all_above;
use super::plan::{
    BOTH, BUFFERING, BUFFERINGS, DISK, HDD, HDD_PRESET, MEDIA, MEDIUM, MEMORY, OFF, SSD, SSD_PRESET, put_merge_ratio,
    settings,
};
use super::*;
use crate::experiment::metric::Metric;
use crate::experiment::testing::{self, row};
use crate::experiment::{Scale, Verdict, setting};

/// The paper's rows, with a hard disk's memory and what only Highwater counts.
fn rows(subject: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for medium in MEDIA {
        for buffering in BUFFERINGS {
            let figure = |metric| paper::figure(medium, buffering, metric);
            let tps = figure(metric::TPS).unwrap_or(30.0) * if buffering == MEMORY { 1.2 } else { 1.0 };
            let mut values = vec![
                (metric::TPS, tps),
                (metric::TRANSACTIONS, tps * paper::SECONDS),
                (metric::CHANGE_BUFFER_CARRIED_BYTES, if buffering == MEMORY { 1e6 } else { 0.0 }),
            ];
            for metric in
                [metric::INDEX_PAGES_WRITTEN, metric::CHANGE_BUFFER_PAGES_READ, metric::CHANGE_BUFFER_PAGES_WRITTEN]
            {
                values.push((metric, figure(metric).unwrap_or(0.0)));
            }
            rows.push(row(subject, setting([(MEDIUM, medium), (BUFFERING, buffering)]), &values));
        }
    }
    rows
}

fn change(rows: &mut [Row], medium: &str, buffering: &str, metric: Metric, value: f64) {
    let fits = |row: &&mut Row| row.get(MEDIUM) == medium && row.get(BUFFERING) == buffering;
    let row = rows.iter_mut().find(fits).unwrap();
    row.measured.insert(metric.name().into(), value);
}

fn verdicts(rows: &[Row]) -> Vec<Verdict> {
    InsertBuffer.claims(&plan(&[]), rows).into_iter().map(|claim| claim.verdict).collect()
}

fn plan(subjects: &[SubjectKind]) -> Plan {
    testing::plan(Scale::Quick, BOTH, subjects)
}

#[test]
fn the_papers_rows_show_its_claims() {
    assert_eq!(verdicts(&rows("mysql")), [Verdict::Holds; 9]);
    // Two media, each with Highwater's two: the aim, and what is carried.
    assert_eq!(verdicts(&rows("highwater")), [Verdict::Holds; 13]);
}

#[test]
fn each_claim_can_be_lost() {
    let lost = |medium: &str, buffering: &str, metric: Metric, value: f64| -> Vec<usize> {
        let mut rows = rows("highwater");
        change(&mut rows, medium, buffering, metric, value);
        let verdicts = verdicts(&rows);
        verdicts.iter().enumerate().filter(|(_, verdict)| **verdict == Verdict::Lost).map(|(n, _)| n).collect()
    };
    assert_eq!(lost(SSD, DISK, metric::TPS, 700.0), [0]);
    assert_eq!(lost(SSD, MEMORY, metric::TPS, 800.0), [1, 9]);
    assert_eq!(lost(SSD, OFF, metric::CHANGE_BUFFER_PAGES_READ, 1.0), [2]);
    assert_eq!(lost(SSD, MEMORY, metric::CHANGE_BUFFER_PAGES_WRITTEN, 1.0), [2]);
    assert_eq!(lost(SSD, DISK, metric::INDEX_PAGES_WRITTEN, 9e9), [3]);
    assert_eq!(lost(HDD, DISK, metric::TPS, 14.8), [8]);
    assert_eq!(lost(HDD, MEMORY, metric::TPS, 20.0), [11]);
    assert_eq!(lost(SSD, MEMORY, metric::CHANGE_BUFFER_CARRIED_BYTES, 1e10), [10]);
    assert_eq!(lost(HDD, MEMORY, metric::INDEX_PAGES_WRITTEN, 9e9), [7]);
}

#[test]
fn a_buffer_that_stayed_in_the_pool_decides_nothing() {
    let mut rows = rows("mysql");
    change(&mut rows, HDD, DISK, metric::CHANGE_BUFFER_PAGES_READ, 0.0);
    change(&mut rows, HDD, DISK, metric::CHANGE_BUFFER_PAGES_WRITTEN, 0.0);
    assert_eq!(verdicts(&rows)[6], Verdict::Undecided);
}

#[test]
fn what_was_not_measured_is_not_claimed() {
    let ssd: Vec<Row> = rows("mysql").into_iter().filter(|row| row.get(MEDIUM) == SSD).collect();
    assert_eq!(verdicts(&ssd), [Verdict::Holds; 4]);
    let without: Vec<Row> = ssd.into_iter().filter(|row| row.get(BUFFERING) != MEMORY).collect();
    assert_eq!(verdicts(&without), [Verdict::Holds, Verdict::Lost, Verdict::Lost, Verdict::Lost]);
}

#[test]
fn runs_that_do_not_agree_decide_nothing() {
    for (ratios, verdict) in [
        (&[1.2, 1.1][..], Verdict::Holds),
        (&[1.2, 0.95], Verdict::Undecided),
        (&[1.01, 1.005], Verdict::Undecided),
        (&[0.9, 0.8], Verdict::Lost),
        (&[1.04], Verdict::Undecided),
        (&[1.08], Verdict::Holds),
        (&[], Verdict::Lost),
        (&[f64::NAN], Verdict::Lost),
    ] {
        assert_eq!(all_above(ratios, 1.0), verdict, "{ratios:?}");
    }
}

#[test]
fn settings_take_turns_and_cells_lie_on_their_devices() {
    let cells = InsertBuffer.cells(&plan(&[SubjectKind::Highwater, SubjectKind::Mysql]));
    assert_eq!(cells.len(), 2 * 2 * 3);
    let first: Vec<&str> = cells.iter().take(3).map(|cell| cell.get(BUFFERING)).collect();
    assert_eq!(first, BUFFERINGS);
    assert!(cells.iter().all(|cell| cell.device == if cell.get(MEDIUM) == SSD { SSD_PRESET } else { HDD_PRESET }));
    let plan = testing::plan(Scale::Quick, HDD_PRESET, &[SubjectKind::Highwater]);
    assert!(InsertBuffer.cells(&plan).iter().all(|cell| cell.get(MEDIUM) == HDD));
}

#[test]
fn each_subject_gets_the_setting_by_its_own_name() {
    let extra = |subject, buffering| settings(subject, buffering, Scale::Quick).extra;
    for (subject, buffering, name, value) in [
        (SubjectKind::Highwater, MEMORY, "change_buffering", "memory"),
        (SubjectKind::Mysql, OFF, "innodb_change_buffering", "none"),
        (SubjectKind::Mariadb, MEMORY, "innodb_change_buffering", "all"),
        (SubjectKind::MariadbHighwater, MEMORY, "highwater_change_buffering", "memory"),
        (SubjectKind::MariadbHighwater, OFF, "highwater_old_blocks_time_ms", "1"),
    ] {
        assert_eq!(extra(subject, buffering)[name], value);
    }
    let doublewrite = |subject| settings(subject, DISK, Scale::Quick).doublewrite;
    assert_eq!([SubjectKind::MariadbHighwater, SubjectKind::Mariadb].map(doublewrite), [true, false]);
    assert!(settings(SubjectKind::Highwater, DISK, Scale::Quick).options(None).is_ok());
}

#[test]
fn the_merge_ratio_needs_merges() {
    let mut measured = CellResult::default();
    for (metric, value) in [
        (metric::CHANGE_BUFFER_MERGED_INSERTS, 10.0),
        (metric::CHANGE_BUFFER_MERGED_DELETE_MARKS, 4.0),
        (metric::CHANGE_BUFFER_MERGED_DELETES, 2.0),
        (metric::CHANGE_BUFFER_MERGES, 0.0),
    ] {
        measured.put(metric, value);
    }
    put_merge_ratio(&mut measured);
    assert!(measured.value(metric::OPS_PER_MERGED_LEAF).is_nan());
    measured.put(metric::CHANGE_BUFFER_MERGES, 4.0);
    put_merge_ratio(&mut measured);
    let found = (measured.value(metric::CHANGE_BUFFER_OPS_MERGED), measured.value(metric::OPS_PER_MERGED_LEAF));
    assert_eq!(found, (16.0, 4.0));
}

#[test]
fn figures_show_the_paper_too() {
    let figures = InsertBuffer.figures(&rows("mysql"));
    let Figure::Table(throughput) = &figures[0] else { panic!("a table first") };
    // The paper has no memory on the hard disk.
    assert_eq!(throughput.rows.len(), 5 + 6);
    assert_eq!(throughput.rows[1][..5], ["SSD", "Paper: InnoDB", "disk: all", "946", "1.19"].map(String::from));
    let Figure::Chart(chart) = &figures[4] else { panic!("then charts") };
    assert_eq!((chart.lines.len(), chart.lines[1].points.len()), (2, 3));
}
