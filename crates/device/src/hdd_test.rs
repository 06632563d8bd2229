//! Tests of `hdd`.

use super::*;
use fastrand::Rng;

fn disk(cache_blocks: u32) -> Hdd {
    Hdd::new(HddConfig { cache_blocks, ..wd10ezex() }, true).unwrap()
}

/// Seeded random places all over the disk.
fn places(n: u32) -> impl Iterator<Item = u32> {
    let mut rng = Rng::with_seed(1);
    (0..n).map(move |_| rng.u32(0..244_000_000))
}

#[test]
fn seek_curve_meets_the_data_sheet() {
    let hdd = disk(0);
    let near = |ns: u64, ms: f64| assert!((ns as f64 / 1e6 - ms).abs() < 0.05, "{ns} ns, not {ms} ms");
    near(hdd.seek_ns(1e-9), 1.0);
    near(hdd.seek_ns(1.0 / 3.0), 8.9);
    near(hdd.seek_ns(1.0), 18.0);
    assert_eq!(hdd.seek_ns(0.0), 0);
}

#[test]
fn random_reads_take_seek_plus_half_a_turn() {
    let mut hdd = disk(0);
    let mut now = 0;
    for lba in places(2000) {
        now = hdd.submit(now, &Request::read(lba, 4)).unwrap();
    }
    let ms = now as f64 / 1e6 / 2000.0;
    assert!((11.5..14.0).contains(&ms), "{ms} ms a random read; 8.9 + 4.17 + transfer is expected");
}

#[test]
fn sequential_reads_run_at_media_speed() {
    for (first, mb_per_s) in [(0, 180.0), (244_000_000, 85.0)] {
        let mut hdd = disk(0);
        let mut now = hdd.submit(0, &Request::read(first, 1)).unwrap();
        let start = now;
        for i in 0..1000 {
            now = hdd.submit(now, &Request::read(first + 1 + i * 64, 64)).unwrap();
        }
        let speed = 64_000.0 * 4096.0 / 1e6 / ((now - start) as f64 / 1e9);
        assert!((speed / mb_per_s - 1.0).abs() < 0.2, "{speed} MB/s, not {mb_per_s}");
    }
}

/// When the next block in order comes after the flush of the last one, its sector has passed by.
#[test]
fn a_flushed_write_costs_a_turn_wherever_it_goes() {
    for step in [0, 1, 8] {
        let mut hdd = disk(8192);
        let mut now = 0;
        for i in 0..100 {
            now = hdd.submit(now, &Request::write(1000 + i * step, 1, 0)).unwrap();
            now = hdd.submit(now, &Request::flush()).unwrap();
        }
        let turns = now as f64 / hdd.revolution_ns / 100.0;
        assert!((0.8..1.1).contains(&turns), "{turns} turns for a flushed write every {step} blocks");
    }
}

#[test]
fn sequential_writes_without_flush_run_at_media_speed() {
    let mut hdd = disk(8192);
    let mut now = 0;
    for i in 0..2000 {
        now = hdd.submit(now, &Request::write(i * 64, 64, 0)).unwrap();
    }
    let done = hdd.submit(now, &Request::flush()).unwrap();
    let speed = 2000.0 * 64.0 * 4096.0 / 1e6 / (done as f64 / 1e9);
    assert!((speed / 180.0 - 1.0).abs() < 0.05, "{speed} MB/s, not 180");
}

#[test]
fn the_cache_makes_writes_quick_until_a_flush() {
    let mut hdd = disk(8192);
    let mut now = 0;
    for lba in places(100) {
        now = hdd.submit(now, &Request::write(lba, 4, 0)).unwrap();
    }
    let cached = now;
    assert!(cached < 100_000_000, "100 cached writes took {cached} ns");
    let flushed = hdd.submit(now, &Request::flush()).unwrap();
    let uncached = {
        let mut hdd = disk(0);
        places(100).fold(0, |now, lba| hdd.submit(now, &Request::write(lba, 4, 0)).unwrap())
    };
    assert!(flushed > cached + 300_000_000, "a flush writes what was cached");
    assert!(flushed < uncached * 2 / 3, "elevator order ({flushed}) beats arrival order ({uncached})");
}

#[test]
fn a_full_cache_makes_the_host_wait() {
    let mut hdd = disk(16);
    let mut now = 0;
    for lba in places(50) {
        now = hdd.submit(now, &Request::write(lba, 4, 0)).unwrap();
    }
    assert!(now > 100_000_000, "{now}");
}

#[test]
fn idle_time_empties_the_cache() {
    let mut hdd = disk(8192);
    for lba in places(20) {
        hdd.submit(0, &Request::write(lba, 4, 0)).unwrap();
    }
    let later = 10_000_000_000;
    let flushed = hdd.submit(later, &Request::flush()).unwrap();
    assert!(flushed - later < 1_000_000, "{}", flushed - later);
}

#[test]
fn bad_requests_and_values_are_refused() {
    let mut hdd = disk(0);
    assert!(hdd.submit(0, &Request::read(244_190_646, 1)).unwrap_err().to_string().contains("beyond"));
    assert!(hdd.submit(0, &Request::write(0, 1, 1)).unwrap_err().to_string().contains("stream 1"));
    assert!(Hdd::new(HddConfig { average_seek_ns: 0, ..wd10ezex() }, true).is_err());
}
