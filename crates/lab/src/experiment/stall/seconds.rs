//! The series of a run with a value for each second.

use crate::experiment::CellResult;
use crate::experiment::aggregate::median;
use crate::experiment::metric::{self, series};
use highwater_bench::result::Interval;

/// In an undisturbed second the hypervisor withheld at most this much of the processors' time.
pub(super) const UNDISTURBED_PCT: f64 = 10.0;
/// The last second may end this much early.
const LATEST_END: f64 = 0.1;

/// Throughput, checkpoint age and flushing of each second.
pub(super) fn put(measured: &mut CellResult, intervals: &[Interval]) {
    let tps = by_second(intervals, |i| i.tps * i.length_s);
    measured.put_series(series::TPS, points(&tps));
    let flushed = by_second(intervals, |i| i.pages.flushed.unwrap_or(0) as f64);
    measured.put_series(series::FLUSHED, points(&flushed));
    let ages = intervals.iter().map(|i| [i.at_s, i.checkpoint_age_bytes.unwrap_or(0) as f64]).collect();
    measured.put_series(series::CHECKPOINT_AGE_BYTES, ages);
    measured.put(metric::SECONDS, tps.len() as f64);
    let Some(worst) = least(&tps) else { return };
    measured.put(metric::TPS_MEDIAN_SECOND, median_of(&tps));
    measured.put(metric::TPS_WORST_SECOND, tps[worst]);
    put_log_syncs(measured, intervals, worst);
    put_withheld(measured, intervals, &tps, worst);
}

/// Values of the seconds, at their ends.
fn points(seconds: &[f64]) -> Vec<[f64; 2]> {
    seconds.iter().enumerate().map(|(n, value)| [n as f64 + 1.0, *value]).collect()
}

/// The amount in each whole second. Samples on a busy machine are late, so the amount of an interval is spread evenly
/// over it; each second then has its share.
pub(super) fn by_second(intervals: &[Interval], amount: impl Fn(&Interval) -> f64) -> Vec<f64> {
    let end_s = intervals.last().map_or(0.0, |i| i.at_s);
    let mut seconds = vec![0.0; (end_s + LATEST_END).floor() as usize];
    for interval in intervals {
        let (mut from, to) = ((interval.at_s - interval.length_s).max(0.0), interval.at_s);
        while from < to {
            let end = (from.floor() + 1.0).min(to);
            if let Some(second) = seconds.get_mut(from as usize) {
                *second += amount(interval) * (end - from) / interval.length_s;
            }
            from = end;
        }
    }
    seconds
}

/// Index of the least value.
fn least(values: &[f64]) -> Option<usize> {
    (0..values.len()).min_by(|a, b| values[*a].total_cmp(&values[*b]))
}

fn median_of(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    median(&sorted)
}

/// Adds the mean time of a log sync in each second, if the subject counts it. A second in which no sync ended has no
/// value.
fn put_log_syncs(measured: &mut CellResult, intervals: &[Interval], worst: usize) {
    if intervals.iter().all(|i| i.log_sync_us.unwrap_or(0) == 0) {
        return;
    }
    let by_second = |count: fn(&Interval) -> Option<u64>| by_second(intervals, |i| count(i).unwrap_or(0) as f64);
    let (syncs, us) = (by_second(|i| i.log_syncs), by_second(|i| i.log_sync_us));
    let mean_us = |second: usize| (syncs[second] > 0.0).then(|| us[second] / syncs[second]);
    let means: Vec<[f64; 2]> = (0..syncs.len()).filter_map(|n| Some([n as f64 + 1.0, mean_us(n)?])).collect();
    measured.put(metric::LOG_SYNCS_WORST_SECOND, syncs[worst]);
    measured.put(metric::LOG_SYNC_US_WORST_SECOND, mean_us(worst).unwrap_or(f64::NAN));
    measured.put(metric::LOG_SYNC_US_MEDIAN_SECOND, median_of(&means.iter().map(|[_, us]| *us).collect::<Vec<_>>()));
    measured.put_series(series::LOG_SYNC_US, means);
}

/// Puts the share of processor time that the hypervisor withheld in the worst second, and the worst second in which it
/// withheld little, if the kernel reports it.
fn put_withheld(measured: &mut CellResult, intervals: &[Interval], tps: &[f64], worst: usize) {
    if intervals.iter().any(|i| i.cpu_withheld_pct.is_none()) {
        return;
    }
    let withheld = by_second(intervals, |i| i.cpu_withheld_pct.unwrap_or(0.0) * i.length_s);
    let undisturbed: Vec<f64> = (0..tps.len()).filter(|n| withheld[*n] <= UNDISTURBED_PCT).map(|n| tps[n]).collect();
    measured.put(metric::CPU_WITHHELD_PCT_WORST_SECOND, withheld[worst]);
    measured.put(metric::SECONDS_UNDISTURBED, undisturbed.len() as f64);
    measured.put(metric::TPS_WORST_SECOND_UNDISTURBED, least(&undisturbed).map_or(f64::NAN, |n| undisturbed[n]));
    measured.put_series(series::CPU_WITHHELD_PCT, points(&withheld));
}
