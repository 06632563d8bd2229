//! Speed of the emulation: 4 KiB host writes per second and core at a write amplification of about 2, and the bytes of
//! memory it takes per 4 KiB of emulated capacity. The goal is 5 million a second and 16 bytes.
//!
//! `cargo bench -p highwater-device [-- GIB ...]`: emulated capacities, by default 2 and 32 GiB.

use fastrand::Rng;
use highwater_device::model::{BlockModel, Request};
use highwater_device::ssd::Ssd;
use highwater_device::ssd::config::SsdConfig;
use highwater_device::ssd::victim::VictimPolicy;
use std::time::Instant;

/// Overprovisioning at which uniform random overwrites have a write amplification of 2 under greedy cleaning.
const SPARE_FOR_TWO: f64 = 0.385;

fn main() {
    let sizes: Vec<u32> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let sizes = if sizes.is_empty() { vec![2, 32] } else { sizes };
    println!("{:>6} {:>14} {:>8} {:>6} {:>14} {:>12}", "GiB", "victims", "timed", "WAF", "writes/s", "bytes/block");
    for gib in sizes {
        measure(gib, VictimPolicy::Greedy, false);
        measure(gib, VictimPolicy::CostBenefit, false);
        measure(gib, VictimPolicy::Greedy, true);
    }
}

fn measure(gib: u32, victim_policy: VictimPolicy, timed: bool) {
    let capacity = gib << 18;
    let config = SsdConfig { victim_policy, streams: 2, ..SsdConfig::simple(capacity, SPARE_FOR_TWO, 1024) };
    let mut ssd = Ssd::new(config, timed).expect("a valid configuration");
    for lba in (0..capacity).step_by(1024) {
        submit(&mut ssd, Request::write(lba, 1024, 0));
    }
    let mut rng = Rng::with_seed(1);
    let mut overwrite = |ssd: &mut Ssd, writes: u32| {
        (0..writes).for_each(|_| submit(ssd, Request::write(rng.u32(0..capacity), 1, 0)));
    };
    overwrite(&mut ssd, 2 * capacity);
    let (start, writes) = (ssd.counters(), capacity.clamp(10_000_000, 40_000_000));
    let began = cpu_seconds();
    overwrite(&mut ssd, writes);
    let rate = f64::from(writes) / (cpu_seconds() - began);
    let amplification = ssd.counters().since(&start).write_amplification();
    let bytes = ssd.memory_bytes() as f64 / f64::from(capacity);
    println!(
        "{gib:>6} {:>14} {timed:>8} {amplification:>6.3} {rate:>14.0} {bytes:>12.2}",
        format!("{victim_policy:?}")
    );
}

/// Processor time of this thread, which other load does not lengthen; wall time where the system does not have it.
fn cpu_seconds() -> f64 {
    static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
    let spent = std::fs::read_to_string("/proc/thread-self/schedstat").ok();
    let ns = spent.and_then(|text| text.split(' ').next()?.parse::<f64>().ok());
    ns.map_or_else(|| START.get_or_init(Instant::now).elapsed().as_secs_f64(), |ns| ns / 1e9)
}

fn submit(ssd: &mut Ssd, request: Request) {
    ssd.submit(0, &request).expect("a request inside the device");
}
