//! Claims and figures of flush-neighbors: the paper's own figures as rows, and rows bent one value at a time.

use super::*;

fn plan() -> Plan {
    Plan { repetitions: 2, ..Plan::on_paper(Scale::Standard, "local", &[SubjectKind::Highwater, SubjectKind::Mysql]) }
}

/// Rows with the paper's own figures as if they had been measured, `auto` as good as option 0.
fn rows_of_the_paper(subject: &str) -> Vec<Row> {
    let mut rows = Vec::new();
    for (size, three) in SIZES.iter().zip(PAPER) {
        for (option, (flushed, tps)) in ["0", "1", "2", "auto"].iter().zip(three.into_iter().chain([three[0]])) {
            rows.push(Row {
                subject: subject.into(),
                setting: setting([("size", size.to_string()), ("flush_neighbors", option.to_string())]),
                measured: BTreeMap::from([("pages_flushed".into(), flushed), ("tps".into(), tps)]),
                repetitions: 1,
                ..Row::default()
            });
        }
    }
    rows
}

fn verdicts(rows: &[Row]) -> Vec<bool> {
    FlushNeighbors.claims(&plan(), rows).iter().map(|claim| claim.holds).collect()
}

fn change(rows: &mut [Row], size: &str, option: &str, name: &str, value: f64) {
    let row = rows.iter_mut().find(|row| row.get("size") == size && row.get("flush_neighbors") == option).unwrap();
    row.measured.insert(name.into(), value);
}

#[test]
fn the_papers_own_figures_show_its_claims() {
    assert_eq!(verdicts(&rows_of_the_paper("highwater")), [true; 4]);
    assert_eq!(verdicts(&rows_of_the_paper("mysql")), [true; 3]);
}

#[test]
fn each_claim_can_be_lost() {
    let rows = rows_of_the_paper("highwater");
    let with = |size: &str, option: &str, name: &str, value: f64| {
        let mut rows = rows.clone();
        change(&mut rows, size, option, name, value);
        verdicts(&rows)
    };
    assert_eq!(with("20 GB", "1", "pages_flushed", 9e9), [false, true, true, true]);
    assert_eq!(with("50 GB", "2", "pages_flushed", 9e9), [true, false, true, true]);
    assert_eq!(with("5 GB", "0", "tps", 1500.0), [true, true, false, true]);
    assert_eq!(with("5 GB", "auto", "tps", 1500.0), [true, true, true, false]);
    // Within 3 % in the mean: not told apart.
    assert!(with("5 GB", "0", "tps", 1900.0)[2]);
    // Within the spread of what was measured: not told apart either.
    let mut spread = rows.clone();
    change(&mut spread, "5 GB", "0", "tps", 1500.0);
    for row in &mut spread {
        row.spread.insert("tps".into(), [row.value("tps") * 0.9, row.value("tps") * 1.1]);
    }
    assert!(verdicts(&spread)[2]);
    let missing: Vec<Row> = rows.iter().filter(|row| row.get("size") != "10 GB").cloned().collect();
    assert_eq!(verdicts(&missing), [false, true, false, false]);
}

#[test]
fn cells_interleave_options_and_only_highwater_has_auto() {
    let cells = FlushNeighbors.cells(&plan()).unwrap();
    assert_eq!(cells.len(), 2 * 5 * (4 + 3));
    let first: Vec<&str> = cells.iter().take(7).map(|cell| cell.get("flush_neighbors")).collect();
    assert_eq!(first, ["0", "1", "2", "auto", "0", "1", "2"]);
    let ids: std::collections::BTreeSet<&String> = cells.iter().map(|cell| &cell.id).collect();
    assert_eq!(ids.len(), cells.len());
}

#[test]
fn figures_show_the_paper_beside() {
    let mut rows = rows_of_the_paper("mysql");
    for row in &mut rows {
        row.paper = FlushNeighbors.paper(&Cell::new(SubjectKind::Mysql, "local", row.setting.clone(), 0));
    }
    let figures = FlushNeighbors.figures(&rows);
    let Figure::Table(table) = &figures[0] else { panic!("a table first") };
    assert_eq!(table.rows[0][2..], table.rows[5][2..=4].iter().cloned().chain(["–".into()]).collect::<Vec<_>>());
    let Figure::Chart(chart) = &figures[2] else { panic!("then a chart") };
    assert_eq!(chart.lines[0].points, chart.lines[1].points);
}
