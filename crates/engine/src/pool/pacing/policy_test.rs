//! The policy as tables, and in closed loops with a modelled load.

use super::*;
use crate::pool::pacing::pacing_model::{Load, Sample, run};

fn limits() -> Limits {
    Limits::new(&Options::default())
}

const MIB: u64 = 1 << 20;

fn at(now_s: f64, end: u64, age: u64, dirty: usize) -> Snapshot {
    Snapshot {
        now_s,
        end_lsn: Lsn(end),
        oldest_lsn: Lsn(end - age),
        held_lsn: Lsn(end - age),
        log_capacity_bytes: 100 * MIB,
        frames: 1000,
        dirty,
        flushed: 0,
    }
}

/// A pacer that has seen 10 MiB of redo and 1000 flushed pages per second for ten seconds at this age.
fn seasoned(age_mib: u64, dirty: usize) -> (AdaptiveFlusher, Snapshot) {
    let mut flusher = AdaptiveFlusher::new(limits());
    for tick in 0..=200_u64 {
        let seen = at(tick as f64 * 0.05, 1000 * MIB + tick * MIB / 2, age_mib * MIB, dirty);
        flusher.decide(&Snapshot { flushed: tick * 50, ..seen });
    }
    (flusher, Snapshot { flushed: 200 * 50, ..at(10.0, 1100 * MIB, age_mib * MIB, dirty) })
}

#[test]
fn flushing_follows_the_redo_rate() {
    let speeds: Vec<f64> = (0..=100).map(|pct| speed(f64::from(pct), &limits())).collect();
    assert!(speeds.is_sorted(), "more age must never mean less flushing: {speeds:?}");
    assert_eq!((speeds[5], speeds[10], speeds[60]), (0.0, 0.0, 1.0));
    assert!(speeds[30] < 0.2 && speeds[70] > 1.3);
}

#[test]
fn users_are_slowed_above_the_async_watermark_only_and_smoothly() {
    let limit = |age| {
        let (mut flusher, now) = seasoned(age, 100);
        flusher.decide(&now).user_redo_bytes_per_s
    };
    assert_eq!(limit(74), None);
    // A tenth of the age's bytes is freed by a hundred of the thousand dirty pages.
    let drain = |age: u64| (age * MIB * 10) as f64;
    let allowed: Vec<f64> = [75, 80, 85, 90, 95].map(|age| limit(age).unwrap() / drain(age)).to_vec();
    assert!((3.5..4.5).contains(&allowed[0]) && (0.2..0.3).contains(&allowed[3]), "{allowed:?}");
    assert!(allowed.windows(2).all(|w| w[0] > w[1] && w[1] > w[0] / 3.0), "no step: {allowed:?}");
    assert!(allowed[4] > 0.0, "never a stop");
}

#[test]
fn reasons_by_watermark() {
    let plan = |age| {
        let (mut flusher, now) = seasoned(age, 100);
        flusher.decide(&now)
    };
    assert!(plan(5).flush_before <= at(0.0, 1100 * MIB, 5 * MIB, 0).oldest_lsn);
    assert_eq!(plan(50).reason, FlushReason::CheckpointAge);
    assert_eq!((plan(80).reason, plan(80).flush_before), (FlushReason::CheckpointAge, Lsn(1100 * MIB)));
    assert_eq!(plan(91).reason, FlushReason::Sync);
}

/// At 2 MB of redo a second and a page in every 1 MB of it, less than a batch a step is due: it is collected first.
#[test]
fn due_pages_wait_for_a_batch() {
    let batches = |bytes_per_page: u64| {
        let mut flusher = AdaptiveFlusher::new(limits());
        let (mut oldest, mut batches, mut pages) = (960 * MIB, 0_u64, 0);
        for tick in 0..600_u64 {
            let end = 1000 * MIB + tick * MIB / 10;
            let dirty = ((end - oldest) / bytes_per_page) as usize;
            let plan = flusher.decide(&at(tick as f64 * 0.05, end, end - oldest, dirty));
            let due = plan.flush_before.0.saturating_sub(oldest) / bytes_per_page;
            (batches, pages) = (batches + u64::from(due > 0), pages + due);
            oldest += due * bytes_per_page;
        }
        (batches, pages / batches.max(1), (1060 * MIB - oldest) / MIB)
    };
    let (few, size, age) = batches(128 << 10);
    assert!(few > 3 && size >= 32 && age < 70, "{few} batches of {size}, age {age} MiB");
    let (many, size, age) = batches(4 << 10);
    assert!(many > 50 && size >= 32 && age < 70, "{many} batches of {size}, age {age} MiB");
    let (_, size, age) = batches(4 << 20);
    assert!(size < 32 && age < 70, "ten dirty pages need no batch of 32: {size}, age {age} MiB");
}

#[test]
fn the_dirty_share_is_held_gradually() {
    let rate = |dirty| seasoned(1, dirty).0.extra_rate(&at(10.0, 1100 * MIB, MIB, dirty)).0;
    assert_eq!((rate(100), rate(500)), (0.0, 0.0));
    assert!(rate(600) > 0.0 && rate(600) < rate(700) && rate(700) < rate(750));
    assert_eq!((rate(750), rate(1000)), (2000.0, 2000.0));
}

#[test]
fn idle_time_is_used_gently() {
    let mut flusher = AdaptiveFlusher::new(limits());
    let mut flushed = 0;
    for tick in 0..=220 {
        let plan = flusher.decide(&at(f64::from(tick) * 0.05, 1000 * MIB, MIB, 400));
        assert_eq!(plan.pages_reason, FlushReason::Idle);
        flushed += plan.pages;
    }
    assert!((1900..=2010).contains(&flushed), "ten seconds of a tenth of io_capacity: {flushed}");
}

#[test]
fn free_frames_follow_the_demand() {
    let rows = [(0.0, 0, 64), (1000.0, 2000, 64), (20_000.0, 5000, 600), (1e6, 5000, 1024), (20_000.0, 100_000, 1024)];
    for (demand, batch_us, expected) in rows {
        assert_eq!(free_target(demand, batch_us, 65_536, 1024), expected, "{demand} {batch_us}");
    }
    assert_eq!(free_target(20_000.0, 5000, 16_384, 1024), 256, "a 64th of the pool");
    assert_eq!(free_target(1e6, 5000, 256, 64), 32);
    assert_eq!(free_target(0.0, 0, 64, 16), 8);
}

#[test]
fn batches_shrink_on_slow_devices() {
    assert_eq!([0, 20_000, 40_000, 10_000_000].map(|us| batch_pages(128, us, 20_000)), [128, 128, 64, 8]);
}

/// The worst second's throughput over the median's, the first ten seconds left out.
fn worst_to_median(samples: &[Sample]) -> f64 {
    let mut rates: Vec<f64> = samples.iter().skip(10).map(|s| s.redo_bytes_per_s).collect();
    rates.sort_by(f64::total_cmp);
    rates[0] / rates[rates.len() / 2]
}

#[test]
fn no_stall_when_users_outrun_the_device() {
    for device_pages_per_s in [2_000.0, 8_000.0, 20_000.0] {
        let load = Load { device_pages_per_s, ..Load::default() };
        let samples = run(&load, limits(), 120);
        let worst = worst_to_median(&samples);
        let oldest = samples.iter().map(|s| s.age_pct).fold(0.0, f64::max);
        assert!(worst >= 0.5, "worst second {worst:.2} of the median at {device_pages_per_s} pages/s");
        assert!(oldest < limits().sync_pct, "sync flush at {oldest:.1} % with {device_pages_per_s} pages/s");
    }
}

#[test]
fn a_burst_is_taken_without_a_stop() {
    let load = Load { burst_factor: 8.0, offered_bytes_per_s: 2e6, device_pages_per_s: 20_000.0, ..Load::default() };
    let samples = run(&load, limits(), 120);
    assert!(samples.iter().all(|s| s.age_pct < limits().sync_pct));
    let calm = samples.iter().skip(10).map(|s| s.redo_bytes_per_s).fold(f64::MAX, f64::min);
    assert!(calm >= 1.9e6, "the calm load is never slowed: {calm}");
}

#[test]
fn without_pacing_the_model_does_stall() {
    let load = Load { device_pages_per_s: 2_000.0, pacing: false, ..Load::default() };
    let samples = run(&load, limits(), 120);
    assert!(worst_to_median(&samples) < 0.5 || samples.iter().any(|s| s.age_pct >= limits().sync_pct));
}

#[test]
fn users_are_slowed_for_pending_changes_that_hold_the_checkpoint_back_and_pages_are_not_flushed_for_them() {
    let (mut flusher, seen) = seasoned(5, 100);
    let now = Snapshot { held_lsn: Lsn(1012 * MIB), ..seen };
    let plan = flusher.decide(&now);
    assert!(plan.user_redo_bytes_per_s.is_some(), "{plan:?}");
    assert!(plan.flush_before <= now.oldest_lsn, "{plan:?}");
}
