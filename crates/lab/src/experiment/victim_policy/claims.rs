//! The publication's claims.

use super::plan::{LRU_CLEAN, POLICIES, POLICY, RAW, WAR};
use crate::experiment::judge::{self, Judgment, Rows, ascends, list, number};
use crate::experiment::{Claim, Row, metric};

/// LRU-C against stock MySQL, and against WAR.
pub(super) const PUBLISHED_OVER_RAW: f64 = 3.0;
pub(super) const PUBLISHED_OVER_WAR: f64 = 1.5;

pub(super) fn claims(rows: &[Row]) -> Vec<Claim> {
    judge::claims(
        rows,
        &[
            ("Throughput: lru-clean > war > raw", &in_order),
            ("lru-clean is faster than raw beyond the spread of both", &|rows| {
                beyond_the_spread(rows, RAW, PUBLISHED_OVER_RAW)
            }),
            ("lru-clean is faster than war beyond the spread of both", &|rows| {
                beyond_the_spread(rows, WAR, PUBLISHED_OVER_WAR)
            }),
            ("User threads wait less for a frame with lru-clean than with raw", &waits_less),
        ],
    )
}

fn in_order(rows: &Rows<'_>) -> Judgment {
    let tps = rows.along(POLICY, POLICIES, metric::TPS);
    (ascends(&tps).into(), format!("{} /s for raw, war, lru-clean", list(&tps)))
}

/// Whether lru-clean's slowest repetition is faster than the other's fastest.
fn beyond_the_spread(rows: &Rows<'_>, other: &str, published: f64) -> Judgment {
    let of = |policy: &str| rows.find(&[(POLICY, policy)]);
    let spread = |policy: &str| of(policy).and_then(|row| row.spread(metric::TPS));
    let tps = |policy: &str| rows.value(&[(POLICY, policy)], metric::TPS);
    let detail = format!("{} times {other} (published: {published} times)", number(tps(LRU_CLEAN) / tps(other)));
    let holds =
        matches!((spread(LRU_CLEAN), spread(other)), (Some([slowest, _]), Some([_, fastest])) if slowest > fastest);
    (holds.into(), detail)
}

fn waits_less(rows: &Rows<'_>) -> Judgment {
    let waits = rows.along(POLICY, POLICIES, metric::FREE_FRAME_WAIT_US_PER_TRANSACTION);
    let [raw, _, clean] = waits;
    ((clean < raw).into(), format!("{} us a transaction for raw, war, lru-clean", list(&waits)))
}
