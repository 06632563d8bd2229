//! Claims of victim-policy, on made-up rows.

use super::plan::{POLICIES, POLICY};
use super::*;
use crate::experiment::testing::{self, row};
use crate::experiment::{Scale, Verdict, setting};

fn rows(tps: [f64; 3], waits: [f64; 3]) -> Vec<Row> {
    let one = |n: usize| {
        let values = [(metric::TPS, tps[n]), (metric::FREE_FRAME_WAIT_US_PER_TRANSACTION, waits[n])];
        let mut row = row("highwater", setting([(POLICY, POLICIES[n])]), &values);
        row.spread.insert(metric::TPS.name().into(), [tps[n] - 10.0, tps[n] + 10.0]);
        row
    };
    (0..3).map(one).collect()
}

fn verdicts(rows: &[Row]) -> Vec<bool> {
    testing::verdicts(&VictimPolicy, rows)
}

#[test]
fn claims_follow_the_rows() {
    assert_eq!(verdicts(&rows([100.0, 200.0, 300.0], [9.0, 5.0, 1.0])), [true; 4]);
    assert_eq!(verdicts(&rows([300.0, 200.0, 100.0], [1.0, 5.0, 9.0])), [false; 4]);
    // In order, but within the spread.
    let rows = rows([100.0, 110.0, 115.0], [9.0, 5.0, 1.0]);
    let plan = testing::plan(Scale::Quick, "local", &[SubjectKind::Highwater]);
    let claims = VictimPolicy.claims(&plan, &rows);
    let found: Vec<Verdict> = claims.iter().map(|claim| claim.verdict).collect();
    assert_eq!(found, [Verdict::Undecided, Verdict::Undecided, Verdict::Undecided, Verdict::Holds]);
}

#[test]
fn missing_rows_lose_every_claim() {
    assert_eq!(verdicts(&rows([100.0, 200.0, 300.0], [9.0, 5.0, 1.0])[..1]), [false; 4]);
}
