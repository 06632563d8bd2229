//! The publication's claims.

use super::plan::{LRU_CLEAN, POLICIES, POLICY, RAW, WAR};
use crate::experiment::judge::{self, Judgment, Rows, list, number};
use crate::experiment::{Claim, Row, Verdict, metric};

/// LRU-C against stock MySQL, and against WAR.
pub(super) const PUBLISHED_OVER_RAW: f64 = 3.0;
pub(super) const PUBLISHED_OVER_WAR: f64 = 1.5;

pub(super) fn claims(rows: &[Row]) -> Vec<Claim> {
    judge::claims(
        rows,
        &[
            ("Throughput: lru-clean > war > raw, beyond the spread", &in_order),
            ("lru-clean is faster than raw beyond the spread of both", &|rows| {
                clean_against(rows, RAW, PUBLISHED_OVER_RAW)
            }),
            ("lru-clean is faster than war beyond the spread of both", &|rows| {
                clean_against(rows, WAR, PUBLISHED_OVER_WAR)
            }),
            ("User threads wait less for a frame with lru-clean than with raw", &waits_less),
        ],
    )
}

fn in_order(rows: &Rows<'_>) -> Judgment {
    let tps = rows.along(POLICY, POLICIES, metric::TPS);
    let verdict = judge::all(POLICIES.windows(2).map(|pair| beyond_the_spread(rows, pair[1], pair[0])));
    (verdict, format!("{} /s for raw, war, lru-clean", list(&tps)))
}

/// Speeds that differ by less count as equal.
const TOLERANCE: f64 = 0.03;

/// Whether a policy is faster than another.
fn beyond_the_spread(rows: &Rows<'_>, policy: &str, other: &str) -> Verdict {
    let row = |policy: &str| rows.find(&[(POLICY, policy)]);
    judge::above(row(other), row(policy), metric::TPS, TOLERANCE)
}

fn clean_against(rows: &Rows<'_>, other: &str, published: f64) -> Judgment {
    let tps = |policy: &str| rows.value(&[(POLICY, policy)], metric::TPS);
    let detail = format!("{} times {other} (published: {published} times)", number(tps(LRU_CLEAN) / tps(other)));
    (beyond_the_spread(rows, LRU_CLEAN, other), detail)
}

fn waits_less(rows: &Rows<'_>) -> Judgment {
    let waits = rows.along(POLICY, POLICIES, metric::FREE_FRAME_WAIT_US_PER_TRANSACTION);
    let [raw, _, clean] = waits;
    ((clean < raw).into(), format!("{} us a transaction for raw, war, lru-clean", list(&waits)))
}
