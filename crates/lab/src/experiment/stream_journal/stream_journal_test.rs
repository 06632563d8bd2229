//! Tests of the claims of `stream-journal`, on made-up rows.

use super::plan::{JOURNAL, LARGE, MODE, MODES};
use super::*;
use crate::experiment::metric::{self, series};
use crate::experiment::{Verdict, testing};

fn plan(scale: Scale) -> Plan {
    testing::plan(scale, "simple-2gb", &[SubjectKind::Mysql])
}

/// Rows of every cell of a plan; `waf` and `nopm` by mode.
fn rows(plan: &Plan, waf: [f64; 3], nopm: [f64; 3]) -> Vec<Row> {
    let cells = StreamJournal.cells(plan);
    let row = |cell: &Cell| {
        let mode = MODES.iter().position(|m| m.name() == cell.get(MODE)).unwrap();
        let large = if cell.get(JOURNAL) == LARGE { 0.01 } else { 0.0 };
        let waf = waf[mode] - large;
        let measured = [
            (metric::WRITE_AMPLIFICATION, waf),
            (metric::NOPM, nopm[mode]),
            (metric::JOURNAL_WRITES_PER_BLOCK, 9.0),
            (metric::OTHER_WRITES_PER_BLOCK, 3.0),
        ];
        let mut row = testing::row("", cell.setting.clone(), &measured);
        row.series.insert(series::WAF_OVER_TIME.name().into(), vec![[1.0, 1.0], [2.0, waf], [3.0, waf]]);
        row.paper = StreamJournal.paper(cell);
        row
    };
    cells.iter().map(row).collect()
}

fn lost(plan: &Plan, rows: &[Row]) -> Vec<String> {
    StreamJournal.claims(plan, rows).into_iter().filter(|c| c.verdict == Verdict::Lost).map(|c| c.text).collect()
}

#[test]
fn the_documents_shape_holds_all_claims() {
    for scale in [Scale::Smoke, Scale::Quick, Scale::Standard] {
        let plan = plan(scale);
        let rows = rows(&plan, [2.681, 1.827, 1.662], [100.0, 130.0, 139.0]);
        assert_eq!(lost(&plan, &rows), Vec::<String>::new(), "{scale}");
        assert!(!StreamJournal.figures(&rows).is_empty());
    }
}

#[test]
fn another_shape_loses_the_claims_it_breaks() {
    let (quick, standard) = (plan(Scale::Quick), plan(Scale::Standard));
    let lost_quick = lost(&quick, &rows(&quick, [1.5, 1.827, 1.662], [0.0; 3]));
    assert!(lost_quick.iter().any(|c| c.starts_with("Write amplification, small")), "{lost_quick:?}");
    assert!(lost_quick.iter().any(|c| c.contains("(7 % spare flash)")), "{lost_quick:?}");
    let slow = lost(&standard, &rows(&standard, [2.681, 1.827, 1.662], [100.0, 130.0, 110.0]));
    assert!(slow.len() == 2 && slow.iter().all(|c| c.starts_with("New orders")), "{slow:?}");
    let crossing = lost(&standard, &rows(&standard, [2.681, 1.6, 1.662], [100.0, 130.0, 139.0]));
    assert!(crossing.iter().any(|c| c.contains("always lowest")), "{crossing:?}");
    assert!(lost(&standard, &[]).len() >= 6, "nothing measured, nothing holds");
}

/// Rows of Highwater's cells; `waf` and flash bytes by mode.
fn own_rows(plan: &Plan, waf: [f64; 6], bytes: [f64; 6]) -> Vec<Row> {
    let row = |cell: &Cell| {
        let mode = own::MODES.iter().position(|mode| *mode == cell.get(MODE)).unwrap();
        let large = if cell.get(JOURNAL) == LARGE { 0.05 } else { 0.0 };
        let measured = [
            (metric::WRITE_AMPLIFICATION, waf[mode] - large),
            (metric::DEVICE_MEDIA_BYTES_PER_TRANSACTION, bytes[mode]),
            (metric::TPS, 1e6 / bytes[mode]),
            (metric::CAPACITIES_WRITTEN, 1.0),
        ];
        testing::row("highwater", cell.setting.clone(), &measured)
    };
    StreamJournal.cells(plan).iter().map(row).collect()
}

#[test]
fn highwater_is_judged_by_its_own_modes() {
    let plan = testing::plan(Scale::Quick, "simple-2gb", &[SubjectKind::Highwater]);
    let bytes = [100.0, 90.0, 80.0, 50.0, 40.0, 30.0];
    let rows = own_rows(&plan, [2.6, 2.0, 1.7, 1.6, 1.5, 1.1], bytes);
    assert_eq!(rows.len(), 8, "two modes have two sizes of the journal");
    let claims = StreamJournal.claims(&plan, &rows);
    assert_eq!((claims.len(), lost(&plan, &rows)), (8, Vec::new()));
    assert!(claims.iter().all(|claim| claim.verdict == Verdict::Holds), "{claims:?}");
    assert!(!StreamJournal.figures(&rows).is_empty());
    let turned = own_rows(&plan, [2.0, 2.6, 1.7, 1.6, 1.5, 1.1], bytes);
    assert!(lost(&plan, &turned).iter().all(|text| text.starts_with("Write amplification")));
    assert_eq!(lost(&plan, &turned).len(), 2);
    let costly = own_rows(&plan, [2.6, 2.0, 1.7, 1.6, 1.5, 1.1], [100.0, 90.0, 80.0, 95.0, 40.0, 30.0]);
    assert_eq!(lost(&plan, &costly).len(), 1);
    let mut short = rows;
    for row in &mut short {
        row.measured.insert(metric::CAPACITIES_WRITTEN.name().into(), 0.1);
    }
    let verdicts = StreamJournal.claims(&plan, &short).into_iter().map(|claim| claim.verdict);
    assert!(verdicts.into_iter().all(|verdict| verdict == Verdict::Undecided));
}

#[test]
fn cells_differ_and_only_recorded_ones_are_replayed() {
    let ids = |scale| {
        let cells = StreamJournal.cells(&plan(scale));
        let ids: std::collections::BTreeSet<String> = cells.iter().map(|c| c.id.clone()).collect();
        assert_eq!(ids.len(), cells.len());
        ids.len()
    };
    assert_eq!((ids(Scale::Smoke), ids(Scale::Quick), ids(Scale::Standard)), (5, 15, 6));
    assert!(!StreamJournal.runs_subjects(Scale::Quick), "a replay needs no server");
    assert!(StreamJournal.runs_subjects(Scale::Standard));
}
