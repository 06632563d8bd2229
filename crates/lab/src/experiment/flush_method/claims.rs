//! The document's claims.

use super::plan::{FSYNC, METHOD, O_DIRECT, POOL, POOLS, distinct_pools, pools};
use crate::experiment::judge::{self, Judgment, Rows, above, below, list, number, rate_tolerance};
use crate::experiment::{Claim, Plan, Row, Verdict, metric};

/// The document: from this pool on O_DIRECT wins.
const CROSSOVER: &str = "128 MB";

pub(super) fn claims(plan: &Plan, rows: &[Row]) -> Vec<Claim> {
    let fsync_wins = |rows: &Rows<'_>| wins(rows, &around_crossover(plan, rows.subject).0, FSYNC, O_DIRECT);
    let direct_wins = |rows: &Rows<'_>| wins(rows, &around_crossover(plan, rows.subject).1, O_DIRECT, FSYNC);
    let gains = |rows: &Rows<'_>| {
        let (below, above) = around_crossover(plan, rows.subject);
        gains(rows, &[below, above].concat())
    };
    let judged: [judge::Judged<'_>; 3] = [
        ("With a pool below a quarter of the data fdatasync is faster than O_DIRECT", &fsync_wins),
        ("From a pool of a quarter of the data on O_DIRECT is faster than fdatasync", &direct_wins),
        ("The ratio O_DIRECT : fdatasync is larger with the largest pool than with the smallest", &gains),
    ];
    let is_below_measured = pools(plan.scale)[0] != CROSSOVER;
    judge::claims(rows, if is_below_measured { &judged } else { &judged[1..] })
}

/// The pools that are measured on a subject, below the document's crossover and from it on.
fn around_crossover(plan: &Plan, subject: &str) -> (Vec<&'static str>, Vec<&'static str>) {
    let distinct = subject.parse().map_or(Vec::new(), |subject| distinct_pools(plan, subject).0);
    let place = |pool: &str| POOLS.iter().position(|one| *one == pool);
    distinct.into_iter().partition(|pool| place(pool) < place(CROSSOVER))
}

pub(super) fn rate(rows: &Rows<'_>, pool: &str, method: &str) -> f64 {
    rows.value(&[(POOL, pool), (METHOD, method)], metric::LOAD_MB_PER_S)
}

/// Speeds that differ by less count as equal.
const TOLERANCE: f64 = 0.05;

/// Whether one method is faster than the other with each of the pools.
fn wins(rows: &Rows<'_>, pools: &[&str], winner: &str, loser: &str) -> Judgment {
    if pools.is_empty() {
        return (Verdict::Lost, "no such pool is measured: the least pool of this subject is larger".into());
    }
    let row = |pool: &str, method| rows.find(&[(POOL, pool), (METHOD, method)]);
    let measured = pools.iter().flat_map(|pool| [winner, loser].map(|method| row(pool, method)));
    let tolerance = rate_tolerance(measured.flatten(), TOLERANCE);
    let faster = |pool: &&str| above(row(pool, loser), row(pool, winner), metric::LOAD_MB_PER_S, tolerance);
    let verdict = judge::all(pools.iter().map(faster));
    let shown = pools.iter().map(|pool| {
        format!("{pool}: {} against {}", number(rate(rows, pool, winner)), number(rate(rows, pool, loser)))
    });
    (verdict, shown.collect::<Vec<_>>().join("; ") + " MB/s")
}

fn gains(rows: &Rows<'_>, pools: &[&str]) -> Judgment {
    if pools.len() < 2 {
        return (Verdict::Lost, format!("{} pool is measured: nothing to compare", pools.len()));
    }
    let ratios: Vec<f64> = pools.iter().map(|pool| rate(rows, pool, O_DIRECT) / rate(rows, pool, FSYNC)).collect();
    (below(ratios[0], ratios[ratios.len() - 1], TOLERANCE), format!("O_DIRECT is {} times fdatasync", list(&ratios)))
}
