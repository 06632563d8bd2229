//! Tests of the claims of `journal-power-cut`, on made-up rows.

use super::claims::detail;
use super::cycle::Aftermath;
use super::plan::{MODE, MODES, measured};
use super::*;
use crate::experiment::{Scale, Verdict, metric, testing};

fn plan(scale: Scale) -> Plan {
    testing::plan(scale, "samsung-850-pro-256gb", &[SubjectKind::Mysql])
}

/// Rows of every cell: of a hundred databases `damaged` by mode, and commits lost in `lost` of those with DJ.
fn rows(scale: Scale, damaged: [usize; 3], lost: usize) -> Vec<Row> {
    let row = |cell: &Cell| {
        let mode = MODES.iter().position(|m| m.name() == cell.get(MODE)).unwrap();
        let aftermath = |n: usize| Aftermath {
            torn_pages: u64::from(n < damaged[mode]),
            damage: (n < damaged[mode]).then(|| "page 7 is torn".to_string()),
            lost: if mode == 2 && n >= 100 - lost { vec!["client 1".into()] } else { Vec::new() },
        };
        let found = measured(&(0..100).map(aftermath).collect::<Vec<_>>());
        Row { setting: cell.setting.clone(), measured: found.values, info: found.info, ..Row::default() }
    };
    JournalPowerCut.cells(&plan(scale)).iter().map(row).collect()
}

fn lost_claims(scale: Scale, rows: &[Row]) -> Vec<String> {
    JournalPowerCut
        .claims(&plan(scale), rows)
        .into_iter()
        .filter(|c| c.verdict == Verdict::Lost)
        .map(|c| c.text)
        .collect()
}

#[test]
fn claims_follow_the_rows() {
    for scale in [Scale::Quick, Scale::Standard] {
        assert_eq!(lost_claims(scale, &rows(scale, [0, 3, 0], 0)), Vec::<String>::new());
        let data = lost_claims(scale, &rows(scale, [0, 3, 1], 0));
        assert!(!data.is_empty() && data.iter().all(|c| c.contains("data journaling")), "{data:?}");
        let safe = lost_claims(scale, &rows(scale, [0, 0, 0], 0));
        assert!(!safe.is_empty() && safe.iter().all(|c| c.starts_with("Without doublewrite")), "{safe:?}");
        let doublewrite = lost_claims(scale, &rows(scale, [1, 3, 0], 0));
        assert!(doublewrite.iter().all(|c| c.starts_with("Ordered journaling with doublewrite")), "{doublewrite:?}");
        let commits = lost_claims(scale, &rows(scale, [0, 3, 0], 2));
        assert_eq!(commits, ["No acknowledged commit is missing from a sound database"]);
    }
    assert_eq!(rows(Scale::Standard, [0; 3], 0).len(), 9);
    assert_eq!(rows(Scale::Smoke, [0; 3], 0).len(), 1);
}

#[test]
fn few_cuts_show_damage_but_not_that_there_is_none() {
    let mut rows = rows(Scale::Quick, [0, 3, 1], 0);
    let mut verdicts = |cuts: f64, damaged: f64| {
        for row in &mut rows {
            row.measured.insert(metric::CUTS.name().into(), cuts);
        }
        rows[1].measured.insert(metric::DAMAGED_DATABASES.name().into(), damaged);
        let claims = JournalPowerCut.claims(&plan(Scale::Quick), &rows);
        claims.iter().map(|claim| claim.verdict).collect::<Vec<_>>()
    };
    use Verdict::{Holds, Lost, Undecided};
    assert_eq!(verdicts(12.0, 3.0), [Undecided, Lost, Holds, Undecided]);
    assert_eq!(verdicts(12.0, 0.0)[2], Lost);
    assert_eq!(verdicts(4.0, 0.0)[2], Undecided);
    assert_eq!(verdicts(100.0, 3.0), [Holds, Lost, Holds, Holds]);
}

#[test]
fn the_table_has_a_line_a_row() {
    let rows = rows(Scale::Standard, [0, 3, 1], 0);
    let Figure::Table(table) = &JournalPowerCut.figures(&rows)[0] else { panic!() };
    assert_eq!((table.rows.len(), table.head.len(), table.rows[1][3].as_str()), (9, table.rows[0].len(), "3"));
    assert!(detail(&rows[1]).contains("3 of 100 damaged, 3 with torn pages; first: page 7"));
}
