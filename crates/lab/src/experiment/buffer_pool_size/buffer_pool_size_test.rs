//! Claims of buffer-pool-size: made-up rows of both outcomes.

use super::plan::{CLIENTS, MANY, ONE, ONE_SHARES, PAPER_LOG, POOL, SHARES, settings};
use super::*;
use crate::experiment::metric::Metric;
use crate::experiment::testing::{self, row};
use crate::experiment::{Scale, Verdict, setting};

/// Rows of the claimed shape; `change` may bend one value.
fn rows(change: impl Fn(usize, Metric) -> Option<f64>) -> Vec<Row> {
    let values: [(Metric, [f64; 5]); 7] = [
        (metric::LRU_LIST_PCT, [98.0, 90.0, 80.0, 66.0, 54.0]),
        (metric::DATA_READS_PER_S, [2683.0, 2400.0, 2200.0, 1900.0, 1725.0]),
        (metric::DATA_WRITES_PER_S, [2470.0, 2700.0, 2900.0, 3100.0, 3363.0]),
        (metric::LOG_WRITES_PER_S, PAPER_LOG),
        (metric::LOG_BYTES_PER_S, [1e6, 2e6, 3e6, 4e6, 5e6]),
        (metric::PAGES_READ, [50.0, 40.0, 30.0, 20.0, 10.0]),
        (metric::TRANSACTIONS, [10e3, 11e3, 12e3, 13e3, 14e3]),
    ];
    let one = |n: usize, clients: &str| {
        let values: Vec<_> = values.iter().map(|(metric, v)| (*metric, change(n, *metric).unwrap_or(v[n]))).collect();
        row("highwater", setting([(POOL, SHARES[n]), (CLIENTS, clients)]), &values)
    };
    let with_one = (0..5).filter(|n| ONE_SHARES.contains(&SHARES[*n]));
    (0..5).map(|n| one(n, MANY)).chain(with_one.map(|n| one(n, ONE))).collect()
}

fn verdicts(rows: &[Row]) -> Vec<bool> {
    testing::verdicts(&BufferPoolSize, rows)
}

#[test]
fn the_papers_shape_shows_every_claim() {
    assert_eq!(verdicts(&rows(|_, _| None)), [true; 7]);
}

#[test]
fn each_claim_can_be_lost() {
    let bent = |at: usize, which: Metric, value: f64| {
        verdicts(&rows(move |n, metric| (n == at && metric == which).then_some(value)))
    };
    assert_eq!(bent(4, metric::LRU_LIST_PCT, 99.0), [false, true, true, true, true, true, true]);
    assert_eq!(bent(0, metric::LRU_LIST_PCT, 84.0), [true, false, true, true, true, true, true]);
    assert_eq!(bent(4, metric::PAGES_READ, 900.0), [true, true, false, true, true, true, true]);
    assert_eq!(bent(4, metric::DATA_READS_PER_S, 9000.0), [true, true, true, false, true, true, true]);
    assert_eq!(bent(4, metric::DATA_WRITES_PER_S, 100.0), [true, true, true, true, false, true, true]);
    assert_eq!(bent(4, metric::LOG_WRITES_PER_S, 1.0), [true, true, true, true, true, false, true]);
    assert_eq!(bent(4, metric::LOG_BYTES_PER_S, 1.0), [true, true, true, true, true, true, false]);
    assert!(!bent(1, metric::LRU_LIST_PCT, f64::NAN)[0]);
}

#[test]
fn what_hardly_moved_decides_nothing() {
    let mut rows = rows(|n, metric| (metric == metric::LRU_LIST_PCT && n == 0).then_some(32.0));
    let mut verdicts = |value: &[(Metric, f64)]| {
        for row in &mut rows {
            row.measured.extend(value.iter().map(|(metric, value)| (metric.name().to_string(), *value)));
        }
        let plan = testing::plan(Scale::Quick, "local", &[SubjectKind::Mysql]);
        BufferPoolSize.claims(&plan, &rows).iter().map(|claim| claim.verdict).collect::<Vec<_>>()
    };
    let read = [(metric::PAGES_READ, 100.0), (metric::PAGES_FLUSHED, 1e6)];
    assert_eq!(verdicts(&[read[0], read[1], (metric::POOL_BYTES, 99.0 * 16384.0)])[1], Verdict::Lost);
    assert_eq!(verdicts(&[read[0], read[1], (metric::POOL_BYTES, 101.0 * 16384.0)])[..2], [Verdict::Undecided; 2]);
    assert_eq!(verdicts(&[(metric::PAGES_FLUSHED, 0.0)])[4], Verdict::Undecided);
    let few = verdicts(&[(metric::TRANSACTIONS, 60.0)]);
    assert_eq!((few[2], few[6]), (Verdict::Undecided, Verdict::Undecided));
}

#[test]
fn processors_explain_lost_claims_only_where_they_were_busy() {
    // The percentage at 75 %, data writes there, log writes there: what the explanation must say, if there is one.
    let data = "Data writes a second are";
    let log = "A log write is a group";
    for (busy, data_writes, log_writes, expected) in [
        (97.0, 3363.0, 43.0, None),
        (50.0, 100.0, 1.0, None),
        (f64::NAN, 100.0, 1.0, None),
        (97.0, 100.0, 43.0, Some((true, false))),
        (97.0, 3363.0, 1.0, Some((false, true))),
        (97.0, 100.0, 1.0, Some((true, true))),
    ] {
        let mut rows = rows(|n, metric| match metric {
            metric::DATA_WRITES_PER_S if n == 4 => Some(data_writes),
            metric::LOG_WRITES_PER_S if n == 4 => Some(log_writes),
            _ => None,
        });
        for (n, row) in rows.iter_mut().enumerate() {
            row.measured.insert(metric::CPU_PCT.name().into(), if n == 4 { busy } else { 40.0 });
        }
        let found = BufferPoolSize.explanations(&rows);
        assert_eq!(found.first().map(|text| (text.contains(data), text.contains(log))), expected, "{found:?}");
        assert!(found.iter().all(|text| text.contains("40.0, 40.0, 40.0, 40.0, 97.0 %")), "{found:?}");
    }
    let notes = BufferPoolSize.notes(&testing::plan(Scale::Quick, "local", &[SubjectKind::Highwater]));
    assert!(notes.iter().all(|note| !note.contains("processors were busy")), "{notes:?}");
}

#[test]
fn ratios_are_the_papers() {
    let settings = |share: &str, scale: Scale| {
        settings(&Cell::new(SubjectKind::Mysql, "local", setting([(POOL, share)]), 0), scale)
    };
    assert_eq!(settings("15 %", Scale::Full).buffer_pool_bytes, 1_500_000_000);
    assert_eq!(settings("75 %", Scale::Standard).buffer_pool_bytes, 375_000_000);
    assert_eq!(
        (settings("15 %", Scale::Full).log_bytes, settings("15 %", Scale::Full).lru_scan_depth),
        (96 << 20, 1024)
    );
}
