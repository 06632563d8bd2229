//! The paper's claims.

use super::plan::{CLIENTS, MANY, ONE, ONE_SHARES, POOL, SHARES};
use crate::experiment::judge::{self, Judgment, Rows, below, climbs, falls, list, number, rate_tolerance};
use crate::experiment::metric::{self, Metric};
use crate::experiment::{Claim, Row, Verdict};

/// A step against the claimed direction of up to this share counts as noise.
const TOLERANCE: f64 = 0.10;
/// Of fewer pages nothing is said.
const MIN_PAGES: f64 = 1000.0;
/// Of fewer transactions nothing is said.
const MIN_TRANSACTIONS: f64 = 1000.0;
const PAGE_BYTES: f64 = 16384.0;
/// From this share on nearly everything is flushed from the LRU list, percent.
const NEARLY_ALL_PCT: f64 = 90.0;
/// A share below that by no more than this is too close to it to decide, percent.
const NEAR_PCT: f64 = 5.0;

pub(super) fn claims(rows: &[Row]) -> Vec<Claim> {
    judge::claims(
        rows,
        &[
            ("The LRU list's share of flushed pages falls, the flush list's rises with the pool", &lru_share_falls),
            ("At 15 % nearly everything is flushed from the LRU list (90 % and more)", &nearly_all_from_the_lru_list),
            ("Page reads per transaction fall with the pool", &reads_per_transaction_fall),
            ("Data reads per second are fewer at 75 % than at 15 %", &data_reads_shrink),
            ("One client: data writes per second are more at 75 % than at 15 %", &data_writes_grow),
            ("One client: log writes per second rise with the pool", &log_writes_rise),
            ("The log fills faster with a larger pool (the document's reason): bytes per second rise", &log_bytes_rise),
        ],
    )
}

/// A value of the five pools with many clients.
pub(super) fn by_pool(rows: &Rows<'_>, metric: Metric) -> [f64; 5] {
    SHARES.map(|share| rows.value(&[(POOL, share), (CLIENTS, MANY)], metric))
}

/// A value of the three pools that are measured with one client.
fn with_one(rows: &Rows<'_>, metric: Metric) -> [f64; 3] {
    ONE_SHARES.map(|share| rows.value(&[(POOL, share), (CLIENTS, ONE)], metric))
}

/// The verdict, unless so few pages were read that the smallest pool was not filled once: then nothing has to leave its
/// LRU list.
fn unless_still(rows: &Rows<'_>, verdict: Verdict, detail: String) -> Judgment {
    let smallest = |metric| rows.value(&[(POOL, SHARES[0]), (CLIENTS, MANY)], metric);
    let (read, pool) = (smallest(metric::PAGES_READ), smallest(metric::POOL_BYTES) / PAGE_BYTES);
    match read < pool {
        true => (Verdict::Undecided, format!("{} pages read into a pool of {}; {detail}", number(read), number(pool))),
        false => (verdict, detail),
    }
}

/// The verdict, unless many clients made too few transactions with one of the pools.
fn unless_few(rows: &Rows<'_>, verdict: Verdict, detail: String) -> Judgment {
    match by_pool(rows, metric::TRANSACTIONS).into_iter().fold(f64::INFINITY, f64::min) {
        least if least < MIN_TRANSACTIONS => {
            (Verdict::Undecided, format!("only {} transactions; {detail}", number(least)))
        }
        _ => (verdict, detail),
    }
}

/// The tolerance for rates with many clients, or with one.
fn tolerance(rows: &Rows<'_>, shares: &[&str], clients: &str) -> f64 {
    rate_tolerance(shares.iter().filter_map(|share| rows.find(&[(POOL, share), (CLIENTS, clients)])), TOLERANCE)
}

fn per_transaction(counts: &[f64], transactions: &[f64]) -> Vec<f64> {
    counts.iter().zip(transactions).map(|(count, transactions)| count / transactions).collect()
}

fn lru_share_falls(rows: &Rows<'_>) -> Judgment {
    let shares = by_pool(rows, metric::LRU_LIST_PCT);
    unless_still(rows, falls(&shares, TOLERANCE).into(), format!("LRU list {} % (paper: 98 to 54 %)", list(&shares)))
}

fn nearly_all_from_the_lru_list(rows: &Rows<'_>) -> Judgment {
    let [share, ..] = by_pool(rows, metric::LRU_LIST_PCT);
    let verdict = match share {
        share if share >= NEARLY_ALL_PCT => Verdict::Holds,
        share if share >= NEARLY_ALL_PCT - NEAR_PCT => Verdict::Undecided,
        _ => Verdict::Lost,
    };
    unless_still(rows, verdict, format!("{} % (paper: 98 %)", number(share)))
}

fn reads_per_transaction_fall(rows: &Rows<'_>) -> Judgment {
    let reads = per_transaction(&by_pool(rows, metric::PAGES_READ), &by_pool(rows, metric::TRANSACTIONS));
    unless_few(rows, falls(&reads, TOLERANCE).into(), format!("{} a transaction", list(&reads)))
}

fn data_reads_shrink(rows: &Rows<'_>) -> Judgment {
    let reads = by_pool(rows, metric::DATA_READS_PER_S);
    let [smallest, .., largest] = reads;
    (below(largest, smallest, tolerance(rows, &SHARES, MANY)), format!("{} /s (paper: 2,683 to 1,725)", list(&reads)))
}

fn data_writes_grow(rows: &Rows<'_>) -> Judgment {
    let writes = with_one(rows, metric::DATA_WRITES_PER_S);
    let [smallest, .., largest] = writes;
    let detail = format!(
        "{} /s, which is {} a transaction times {} transactions/s; many clients: {} /s (paper: 2,470 to 3,363)",
        list(&writes),
        list(&per_transaction(&with_one(rows, metric::PAGES_FLUSHED), &with_one(rows, metric::TRANSACTIONS))),
        list(&with_one(rows, metric::TPS)),
        list(&by_pool(rows, metric::DATA_WRITES_PER_S)),
    );
    let [least, ..] = with_one(rows, metric::PAGES_FLUSHED);
    let verdict = below(smallest, largest, tolerance(rows, &ONE_SHARES, ONE));
    if least < MIN_PAGES {
        (Verdict::Undecided, format!("only {} pages; {detail}", number(least)))
    } else {
        (verdict, detail)
    }
}

fn log_writes_rise(rows: &Rows<'_>) -> Judgment {
    let writes = with_one(rows, metric::LOG_WRITES_PER_S);
    let many = list(&by_pool(rows, metric::LOG_WRITES_PER_S));
    (
        climbs(&writes, tolerance(rows, &ONE_SHARES, ONE)),
        format!("{} /s; many clients: {many} /s (paper: 6 to 43)", list(&writes)),
    )
}

/// Whether data writes, and log writes, of many clients do not rise from the smallest to the largest pool.
pub(super) fn held_back(rows: &Rows<'_>) -> (bool, bool) {
    let is_held_back = |metric| {
        let [smallest, .., largest] = by_pool(rows, metric);
        below(smallest, largest, TOLERANCE) != Verdict::Holds
    };
    (is_held_back(metric::DATA_WRITES_PER_S), is_held_back(metric::LOG_WRITES_PER_S))
}

fn log_bytes_rise(rows: &Rows<'_>) -> Judgment {
    let megabytes = by_pool(rows, metric::LOG_BYTES_PER_S).map(|bytes| bytes / 1e6);
    unless_few(rows, climbs(&megabytes, tolerance(rows, &SHARES, MANY)), format!("{} MB/s", list(&megabytes)))
}
