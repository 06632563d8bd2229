//! The paper's claims.

use super::plan::{POOL, SHARES};
use crate::experiment::judge::{self, Judgment, Rows, falls, list, number, rises};
use crate::experiment::metric::{self, Metric};
use crate::experiment::{Claim, Row};

/// A step against the claimed direction of up to this share counts as noise.
const TOLERANCE: f64 = 0.10;
/// From this share on nearly everything is flushed from the LRU list, percent.
const NEARLY_ALL_PCT: f64 = 90.0;

pub(super) fn claims(rows: &[Row]) -> Vec<Claim> {
    judge::claims(
        rows,
        &[
            ("The LRU list's share of flushed pages falls, the flush list's rises with the pool", &lru_share_falls),
            ("At 15 % nearly everything is flushed from the LRU list (90 % and more)", &nearly_all_from_the_lru_list),
            ("Page reads per transaction fall with the pool", &reads_per_transaction_fall),
            ("Data reads per second are fewer at 75 % than at 15 %", &data_reads_shrink),
            ("Data writes per second are more at 75 % than at 15 %", &data_writes_grow),
            ("Log writes per second rise with the pool", &log_writes_rise),
            ("The log fills faster with a larger pool (the document's reason): bytes per second rise", &log_bytes_rise),
        ],
    )
}

pub(super) fn by_pool(rows: &Rows<'_>, metric: Metric) -> [f64; 5] {
    rows.along(POOL, SHARES, metric)
}

fn per_transaction(rows: &Rows<'_>, metric: Metric) -> Vec<f64> {
    let transactions = by_pool(rows, metric::TRANSACTIONS);
    by_pool(rows, metric).iter().zip(transactions).map(|(count, transactions)| count / transactions).collect()
}

fn lru_share_falls(rows: &Rows<'_>) -> Judgment {
    let shares = by_pool(rows, metric::LRU_LIST_PCT);
    (falls(&shares, TOLERANCE).into(), format!("LRU list {} % (paper: 98 to 54 %)", list(&shares)))
}

fn nearly_all_from_the_lru_list(rows: &Rows<'_>) -> Judgment {
    let [share, ..] = by_pool(rows, metric::LRU_LIST_PCT);
    ((share >= NEARLY_ALL_PCT).into(), format!("{} % (paper: 98 %)", number(share)))
}

fn reads_per_transaction_fall(rows: &Rows<'_>) -> Judgment {
    let reads = per_transaction(rows, metric::PAGES_READ);
    (falls(&reads, TOLERANCE).into(), format!("{} a transaction", list(&reads)))
}

fn data_reads_shrink(rows: &Rows<'_>) -> Judgment {
    let reads = by_pool(rows, metric::DATA_READS_PER_S);
    let [smallest, .., largest] = reads;
    ((smallest > largest).into(), format!("{} /s (paper: 2,683 to 1,725)", list(&reads)))
}

pub(super) fn data_writes_grow(rows: &Rows<'_>) -> Judgment {
    let writes = by_pool(rows, metric::DATA_WRITES_PER_S);
    let [smallest, .., largest] = writes;
    let detail = format!(
        "{} /s (paper: 2,470 to 3,363), which is {} a transaction times {} transactions/s",
        list(&writes),
        list(&per_transaction(rows, metric::PAGES_FLUSHED)),
        list(&by_pool(rows, metric::TPS))
    );
    ((smallest < largest).into(), detail)
}

pub(super) fn log_writes_rise(rows: &Rows<'_>) -> Judgment {
    let writes = by_pool(rows, metric::LOG_WRITES_PER_S);
    (rises(&writes, TOLERANCE).into(), format!("{} /s (paper: 6 to 43)", list(&writes)))
}

fn log_bytes_rise(rows: &Rows<'_>) -> Judgment {
    let megabytes = by_pool(rows, metric::LOG_BYTES_PER_S).map(|bytes| bytes / 1e6);
    (rises(&megabytes, TOLERANCE).into(), format!("{} MB/s", list(&megabytes)))
}
