//! The SSD model against what is known of write amplification, not only against itself.
//!
//! Terms: rho = user blocks / flash slots; a victim has the share x of its slots valid; write amplification = 1 / (1 -
//! x).
//!
//! - *FIFO* cleaning of uniform random overwrites: (1 - x) / -ln x = rho. It is the closed form with Lambert's W of P.
//!   Desnoyers, "Analytic Modeling of SSD Write Performance" (SYSTOR 2012, LRU cleaning), and of Xiang and Kurkoski,
//!   "An Improved Analytic Expression for Write Amplification in NAND Flash" (arXiv:1110.4245), whose abstract gives
//!   2.36 at 30 % overprovisioning.
//! - *Greedy* cleaning with b slots a unit: the mean-field limit of B. Van Houdt, "A Mean Field Model for a Class of
//!   Garbage Collection Algorithms in Flash-based Solid State Drives" (SIGMETRICS 2013), d -> infinity. In balance,
//!   units pass each level i of valid slots at one rate r, so their share at level i is r / (lambda i) down to the
//!   level j at which they are taken. With p the share of victims at j (the others are taken at j + 1): (b - j - 1 + p)
//!   / (H_b - H_(j+1) + p / (j + 1)) = rho b, and write amplification = b / (b - j - 1 + p). For b -> infinity it
//!   becomes the FIFO formula.

use fastrand::Rng;
use highwater_device::model::{BlockModel, Request};
use highwater_device::ssd::Ssd;
use highwater_device::ssd::config::SsdConfig;
use highwater_device::ssd::victim::VictimPolicy;

/// Solves (1 - x) / -ln x = rho by bisection.
fn fifo_write_amplification(rho: f64) -> f64 {
    let (mut low, mut high) = (1e-9, 1.0 - 1e-9);
    for _ in 0..200 {
        let x: f64 = (low + high) / 2.0;
        if (1.0 - x) / -x.ln() < rho { low = x } else { high = x }
    }
    1.0 / (1.0 - low)
}

fn harmonic(n: u32) -> f64 {
    (1..=n).map(|i| 1.0 / f64::from(i)).sum()
}

fn greedy_write_amplification(rho: f64, slots: u32) -> f64 {
    let b = f64::from(slots);
    let valid_share = |j: u32, p: f64| {
        let gained = b - f64::from(j) - 1.0 + p;
        gained / (harmonic(slots) - harmonic(j + 1) + p / f64::from(j + 1)) / b
    };
    // The share grows with j and falls with p; level j covers the range from p = 1 to p = 0.
    let j = (0..slots - 2).find(|j| valid_share(*j, 0.0) >= rho).unwrap_or(slots - 2);
    let (mut low, mut high) = (0.0, 1.0);
    for _ in 0..100 {
        let p = (low + high) / 2.0;
        if valid_share(j, p) > rho { low = p } else { high = p }
    }
    b / (b - f64::from(j) - 1.0 + low)
}

fn device(capacity: u32, spare: f64, slots: u32, policy: VictimPolicy, streams: u8) -> Ssd {
    let config = SsdConfig { streams, victim_policy: policy, ..SsdConfig::simple(capacity, spare, slots) };
    Ssd::new(config, false).unwrap()
}

/// Fills the device, overwrites until steady, then measures over `rounds` times the capacity.
fn steady_write_amplification(mut ssd: Ssd, rounds: u32, mut next: impl FnMut(&mut Rng) -> (u32, u8)) -> f64 {
    let capacity = ssd.capacity_blocks();
    let mut rng = Rng::with_seed(1);
    let write = |ssd: &mut Ssd, (lba, stream)| _ = ssd.submit(0, &Request::write(lba, 1, stream)).unwrap();
    (0..capacity).for_each(|lba| write(&mut ssd, (lba, 0)));
    (0..rounds * capacity).for_each(|_| write(&mut ssd, next(&mut rng)));
    let start = ssd.counters();
    (0..rounds * capacity).for_each(|_| write(&mut ssd, next(&mut rng)));
    ssd.counters().since(&start).write_amplification()
}

fn uniform(capacity: u32) -> impl FnMut(&mut Rng) -> (u32, u8) {
    move |rng| (rng.u32(0..capacity), 0)
}

#[track_caller]
fn assert_near(measured: f64, expected: f64, tolerance: f64, what: &str) {
    let off = measured / expected - 1.0;
    assert!(
        off.abs() < tolerance,
        "{what}: measured {measured:.4}, expected {expected:.4}, off by {:.2} %",
        off * 100.0
    );
}

#[test]
fn the_formulas_give_published_figures() {
    assert_near(fifo_write_amplification(1.0 / 1.3), 2.36, 0.005, "Xiang and Kurkoski at 30 %");
    assert_near(greedy_write_amplification(0.8, 100_000), fifo_write_amplification(0.8), 0.001, "limit of large units");
    assert!(greedy_write_amplification(0.8, 32) < 0.97 * fifo_write_amplification(0.8), "small units do better");
}

#[test]
fn uniform_overwrites_under_fifo_match_the_closed_form() {
    const CAPACITY: u32 = 1 << 17;
    for spare in [0.08, 0.15, 0.3, 0.5, 1.0] {
        let ssd = device(CAPACITY, spare, 64, VictimPolicy::Fifo, 1);
        let rho = f64::from(CAPACITY) / ssd.config().geometry.slots() as f64;
        let measured = steady_write_amplification(ssd, 3, uniform(CAPACITY));
        assert_near(measured, fifo_write_amplification(rho), 0.05, &format!("FIFO, {spare} spare"));
    }
}

#[test]
fn uniform_overwrites_under_greedy_match_the_mean_field_limit() {
    const CAPACITY: u32 = 1 << 18;
    for (spare, slots) in [(0.08, 64), (0.15, 64), (0.15, 256), (0.3, 128), (0.5, 64), (1.0, 64)] {
        let ssd = device(CAPACITY, spare, slots, VictimPolicy::Greedy, 1);
        let rho = f64::from(CAPACITY) / ssd.config().geometry.slots() as f64;
        let measured = steady_write_amplification(ssd, 3, uniform(CAPACITY));
        let expected = greedy_write_amplification(rho, slots);
        assert_near(measured, expected, 0.05, &format!("greedy, {spare} spare, {slots} slots a unit"));
    }
}

/// For uniform random overwrites greedy is the best there is; cost-benefit pays a little for its regard of age.
#[test]
fn cost_benefit_is_close_to_greedy_when_all_data_is_alike() {
    const CAPACITY: u32 = 1 << 15;
    let run = |policy| steady_write_amplification(device(CAPACITY, 0.3, 64, policy, 1), 3, uniform(CAPACITY));
    let (greedy, cost_benefit) = (run(VictimPolicy::Greedy), run(VictimPolicy::CostBenefit));
    assert!(cost_benefit > 0.99 * greedy && cost_benefit < 1.15 * greedy, "{cost_benefit} against {greedy}");
}

#[test]
fn sequential_overwrites_need_no_copies() {
    const CAPACITY: u32 = 1 << 16;
    for policy in [VictimPolicy::Greedy, VictimPolicy::CostBenefit, VictimPolicy::Fifo] {
        let mut at = 0;
        let next = |_: &mut Rng| {
            at = (at + 1) % CAPACITY;
            (at, 0)
        };
        let measured = steady_write_amplification(device(CAPACITY, 0.1, 64, policy, 1), 3, next);
        assert_near(measured, 1.0, 0.0005, &format!("{policy:?}"));
    }
}

const HOT_BLOCKS: u32 = 1 << 14;
const ALL_BLOCKS: u32 = 1 << 17;
const SPARE: f64 = 0.2;

/// Nine of ten writes go to the hot eighth.
fn hot_and_cold(streams: u8) -> impl FnMut(&mut Rng) -> (u32, u8) {
    move |rng| match rng.u32(0..10) {
        0 => (rng.u32(HOT_BLOCKS..ALL_BLOCKS), 0),
        _ => (rng.u32(0..HOT_BLOCKS), streams - 1),
    }
}

/// Greedy cleaning takes victims of all streams at one level of valid slots, so each population gets spare flash in
/// proportion to its size: the two apart are two uniform devices with the same share of spare flash.
#[test]
fn hot_and_cold_in_two_streams_reach_the_populations_apart() {
    let alone = |blocks: u32| {
        let ssd = device(blocks, SPARE, 64, VictimPolicy::Greedy, 1);
        steady_write_amplification(ssd, 3, uniform(blocks))
    };
    let apart = 0.9 * alone(HOT_BLOCKS) + 0.1 * alone(ALL_BLOCKS - HOT_BLOCKS);
    let run = |streams: u8| {
        let ssd = device(ALL_BLOCKS, SPARE, 64, VictimPolicy::Greedy, 2);
        steady_write_amplification(ssd, 6, hot_and_cold(streams))
    };
    let (mixed, separated) = (run(1), run(2));
    assert_near(separated, apart, 0.05, "two streams against two devices");
    assert!(separated < 0.9 * mixed, "one stream {mixed}, two streams {separated}");
}
