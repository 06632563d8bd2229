//! Tests of `ftl`.

use super::super::config::{CopyBack, SsdConfig};
use super::super::listener::Silent;
use super::*;
use fastrand::Rng;

fn config() -> SsdConfig {
    SsdConfig { streams: 4, ..SsdConfig::simple(64 * 64, 0.3, 64) }
}

fn ftl(config: &SsdConfig) -> Ftl {
    config.validate().unwrap();
    Ftl::new(config).unwrap()
}

/// Rules 1 to 3 of the file header, checked slot by slot.
fn check(ftl: &Ftl) {
    let mut named = vec![false; ftl.reverse.len()];
    for (lba, slot) in ftl.map.iter().enumerate().filter(|(_, slot)| **slot != NONE) {
        assert!(!std::mem::replace(&mut named[*slot as usize], true), "slot {slot} named twice");
        assert_eq!(ftl.reverse[*slot as usize], lba as u32);
    }
    for (slot, named) in named.iter().enumerate() {
        assert_eq!(ftl.valid[slot / 64] >> (slot % 64) & 1 == 1, *named, "validity of slot {slot}");
    }
    for (number, unit) in ftl.units.iter().enumerate() {
        let first = number * ftl.slots_per_unit as usize;
        let valid = named[first..first + ftl.slots_per_unit as usize].iter().filter(|n| **n).count();
        assert_eq!(unit.valid as usize, valid, "valid slots of unit {number}");
        assert!(unit.state != UnitState::Free || valid == 0);
        assert_eq!(ftl.free.contains(&(number as u32)), unit.state == UnitState::Free);
    }
}

fn churn(ftl: &mut Ftl, writes: u32, seed: u64) {
    let mut rng = Rng::with_seed(seed);
    for i in 0..writes {
        let lba = rng.u32(0..ftl.capacity_blocks() - 8);
        match rng.u32(0..20) {
            0 => ftl.trim(lba, rng.u32(1..8)),
            1 => ftl.pad(&mut Silent),
            _ => ftl.write(lba, rng.u32(1..8), (lba % 4) as u8, &mut Silent),
        }
        if i % 997 == 0 {
            check(ftl);
        }
    }
    check(ftl);
}

#[test]
fn the_map_stays_true_under_every_policy() {
    for victim_policy in [VictimPolicy::Greedy, VictimPolicy::CostBenefit, VictimPolicy::Fifo] {
        for copy_back in [CopyBack::Separate, CopyBack::Shared] {
            churn(&mut ftl(&SsdConfig { victim_policy, copy_back, ..config() }), 20_000, 7);
        }
    }
}

#[test]
fn a_striped_geometry_works_too() {
    let mut config = config();
    config.geometry = super::super::geometry::Geometry {
        channels: 2,
        dies_per_channel: 2,
        planes_per_die: 2,
        blocks_per_plane: 48,
        pages_per_block: 4,
        page_bytes: 16384,
        dies_per_unit: 2,
    };
    config.streams = 2;
    let mut ftl = ftl(&config);
    let mut rng = Rng::with_seed(3);
    for _ in 0..50_000 {
        ftl.write(rng.u32(0..4096), 1, rng.u8(0..2), &mut Silent);
    }
    check(&ftl);
    assert!(ftl.counters().copied_blocks() > 0);
}

/// Streams never share an erase unit while copies are separate.
#[test]
fn units_hold_one_stream() {
    let mut ftl = ftl(&config());
    let mut stream_of = vec![0u8; 4096];
    let mut rng = Rng::with_seed(5);
    for _ in 0..60_000 {
        let (lba, stream) = (rng.u32(0..4096), rng.u8(0..4));
        stream_of[lba as usize] = stream;
        ftl.write(lba, 1, stream, &mut Silent);
    }
    for (lba, slot) in ftl.map.iter().enumerate().filter(|(_, s)| **s != NONE) {
        let unit = &ftl.units[(slot / ftl.slots_per_unit) as usize];
        assert_eq!(unit.stream, stream_of[lba], "lba {lba}");
    }
}

#[test]
fn shared_copies_mix_streams_and_are_counted_apart() {
    let mut ftl = ftl(&SsdConfig { copy_back: CopyBack::Shared, ..config() });
    let mut rng = Rng::with_seed(5);
    for _ in 0..60_000 {
        let lba = rng.u32(0..4096);
        ftl.write(lba, 1, (lba % 4) as u8, &mut Silent);
    }
    assert!(ftl.counters().streams[SHARED].copied_blocks > 0);
    assert_eq!(ftl.counters().streams[SHARED].host_blocks, 0);
}

#[test]
fn trimmed_blocks_are_not_copied() {
    let run = |trim: bool| {
        let mut ftl = ftl(&config());
        ftl.write(0, 4096, 0, &mut Silent);
        if trim {
            ftl.trim(2048, 2048);
        }
        let mut rng = Rng::with_seed(1);
        (0..40_000).for_each(|_| ftl.write(rng.u32(0..2048), 1, 0, &mut Silent));
        (ftl.counters().copied_blocks(), ftl.counters().trimmed_blocks)
    };
    let ((full, _), (trimmed, count)) = (run(false), run(true));
    assert_eq!(count, 2048);
    assert!(trimmed * 3 < full, "{trimmed} copied with trim, {full} without");
}

#[test]
fn padding_fills_the_open_program_only() {
    let mut config = config();
    config.geometry.page_bytes = 4 * 4096;
    config.geometry.pages_per_block = 16;
    let mut ftl = ftl(&config);
    ftl.pad(&mut Silent);
    ftl.write(0, 6, 1, &mut Silent);
    ftl.pad(&mut Silent);
    ftl.pad(&mut Silent);
    assert_eq!(ftl.counters().streams[1].padded_blocks, 2);
    assert_eq!(ftl.locate(5), Some((0, 1)));
    ftl.write(6, 1, 1, &mut Silent);
    assert_eq!(ftl.locate(6), Some((0, 2)));
    check(&ftl);
}

#[test]
fn wear_is_level_enough() {
    let mut ftl = ftl(&SsdConfig { streams: 1, ..config() });
    churn_uniform(&mut ftl, 400_000);
    let (min, max) = (ftl.erases().iter().min().unwrap(), ftl.erases().iter().max().unwrap());
    assert!(*min * 2 > *max, "erases from {min} to {max}");
}

fn churn_uniform(ftl: &mut Ftl, writes: u32) {
    let mut rng = Rng::with_seed(9);
    let capacity = ftl.capacity_blocks();
    (0..writes).for_each(|_| ftl.write(rng.u32(0..capacity), 1, 0, &mut Silent));
}

#[test]
fn memory_stays_under_sixteen_bytes_a_block() {
    for (capacity, spare, unit) in [(1 << 19, 0.15, 1024), (1 << 20, 0.28, 4096), (1 << 16, 0.07, 256)] {
        let config = SsdConfig { streams: 1, ..SsdConfig::simple(capacity, spare, unit) };
        let per_block = ftl(&config).memory_bytes() as f64 / f64::from(capacity);
        assert!(per_block < 12.0, "{per_block} bytes per 4 KiB block");
    }
}
