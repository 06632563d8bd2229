//! Tests of `timing`.

use super::super::Ssd;
use super::super::config::SsdConfig;
use super::*;
use crate::model::{BlockModel, Request};
use fastrand::Rng;

fn geometry() -> Geometry {
    Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 1,
        blocks_per_plane: 100,
        pages_per_block: 64,
        page_bytes: 16384,
        dies_per_unit: 4,
    }
}

fn config() -> SsdConfig {
    let geometry = geometry();
    let mut config = SsdConfig { streams: 1, ..SsdConfig::simple(64, 0.1, 64) };
    config.capacity_blocks = (geometry.slots() as f64 / 1.15) as u32;
    config.geometry = geometry;
    config
}

fn timer() -> SsdTimer {
    SsdTimer::new(SsdTiming::default(), &geometry(), 0)
}

#[test]
fn an_idle_read_takes_sensing_and_transfer() {
    let mut timer = timer();
    let done = timer.read(1_000_000, [(0, 0)].into_iter(), 1);
    let expected = 1_000_000 + 8_000 + 60_000 + transfer_ns(1, 800) + transfer_ns(1, 3200);
    assert_eq!(done, expected);
}

/// Blocks of one program are sensed once, and each crosses the channel; blocks of another die do so concurrently.
#[test]
fn every_block_of_a_read_crosses_its_channel() {
    let done = timer().read(0, [(0, 0); 4].into_iter(), 4);
    assert_eq!(done, 8_000 + 60_000 + transfer_ns(4, 800) + transfer_ns(4, 3200));
    let on_two_dies = timer().read(0, [(0, 0), (0, 0), (0, 1), (0, 1)].into_iter(), 4);
    assert!(on_two_dies <= done, "{on_two_dies} and {done}");
}

#[test]
fn reads_of_two_dies_overlap_and_of_one_die_queue() {
    let two_dies = timer().read(0, [(0, 0), (0, 1)].into_iter(), 2);
    let one_die = timer().read(0, [(0, 0), (0, 4)].into_iter(), 2);
    assert!(one_die >= two_dies + 30_000, "{one_die} against {two_dies}");
}

#[test]
fn a_write_is_quick_and_a_flush_waits_for_the_program() {
    let mut timer = timer();
    timer.receive(0, 4);
    timer.program(0, 0, Cause::Host);
    let admitted = timer.admit();
    assert!(admitted < 20_000, "{admitted}");
    assert!(timer.drained(admitted) > 600_000);
}

#[test]
fn a_full_buffer_makes_the_host_wait() {
    let mut timer = timer();
    let mut admitted = 0;
    for i in 0..100 {
        timer.receive(0, 4);
        timer.program(0, i, Cause::Host);
        admitted = timer.admit();
    }
    // 25 programs a die of 0.6 ms, of which 2 per die fit the buffer.
    assert!(admitted > 22 * 600_000 && admitted < 26 * 620_000, "{admitted}");
}

#[test]
fn a_read_suspends_a_program() {
    let mut timer = timer();
    timer.receive(0, 4);
    timer.program(0, 0, Cause::Host);
    let done = timer.read(50_000, [(0, 0)].into_iter(), 1);
    assert!(done < 200_000, "waited {done} ns for a program of 600 us");
    assert!(timer.drained(0) > 660_000 + 8_000, "the program ends later by the time of the read");
}

#[test]
fn backlog_is_worked_off_when_idle_and_paid_in_shares_when_busy() {
    let mut idle = timer();
    idle.erase(0, 4 * 64 * 4);
    let done = idle.read(1_000_000_000, [(0, 0)].into_iter(), 1);
    assert!(done - 1_000_000_000 < 80_000, "after a second the erase is long over: {done}");

    let mut busy = timer();
    busy.erase(0, 1024);
    let mut ends = vec![];
    for i in 0..256 {
        busy.receive(0, 4);
        busy.program(1, i, Cause::Host);
        ends.push(busy.drained(0));
    }
    let longest = ends.windows(2).map(|w| w[1] - w[0]).max().unwrap();
    assert!(longest < 1_000_000, "no program pays for a whole erase: {longest}");
    assert!(busy.dies.iter().all(|d| d.backlog == 0), "the debt is settled when the freed space is used up");
}

/// Garbage collection must cost the host what it costs the flash: at a write amplification of W, throughput is about
/// 1/W.
#[test]
fn throughput_falls_with_write_amplification() {
    let rate = |random: bool| {
        let mut ssd = Ssd::new(config(), true).unwrap();
        let capacity = ssd.capacity_blocks();
        let mut rng = Rng::with_seed(1);
        let (mut now, mut at, mut start) = (0, (0, ssd.counters()), 0);
        for i in 0..6 * capacity {
            let lba = if random && i >= capacity { rng.u32(0..capacity) } else { i % capacity };
            now = ssd.submit(now, &Request::write(lba, 1, 0)).unwrap();
            if i == 3 * capacity {
                (at, start) = ((i, ssd.counters()), now);
            }
        }
        let written = f64::from(6 * capacity - at.0);
        (written / (now - start) as f64, ssd.counters().since(&at.1).write_amplification())
    };
    let ((sequential, one), (random, waf)) = (rate(false), rate(true));
    assert!((one - 1.0).abs() < 0.01 && waf > 3.0, "{one} {waf}");
    let slowdown = sequential / random;
    assert!(slowdown > 0.8 * waf && slowdown < 1.6 * waf, "slower by {slowdown} at a write amplification of {waf}");
}
