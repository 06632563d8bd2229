//! Tests of `memory`.

use super::*;
use crate::power_cut::SECTOR_BYTES;
use crate::{Device, Placement};

const SEEDS: std::ops::Range<u64> = 0..300;

fn device_of(len: u64) -> MemoryDevice {
    let device = MemoryDevice::new();
    device.set_len_bytes(len).unwrap();
    device.sync().unwrap();
    device
}

#[test]
fn synced_bytes_survive_every_cut() {
    let device = device_of(4096);
    device.write_at(0, &[7; 4096], Placement::Other).unwrap();
    device.sync().unwrap();
    assert!(SEEDS.clone().all(|seed| device.power_cut(seed) == vec![7; 4096]));
    assert_eq!(device.unsynced_changes(), 0);
}

#[test]
fn an_unsynced_write_is_kept_lost_or_torn_by_sectors() {
    let device = device_of(4096);
    device.write_at(0, &[7; 4096], Placement::Other).unwrap();
    let (mut kept, mut lost, mut torn) = (0, 0, 0);
    for seed in SEEDS {
        let image = device.power_cut(seed);
        for sector in image.chunks(SECTOR_BYTES as usize) {
            assert!(sector.iter().all(|&b| b == sector[0]), "a sector is never torn");
        }
        match image.iter().filter(|&&b| b == 7).count() {
            4096 => kept += 1,
            0 => lost += 1,
            _ => torn += 1,
        }
    }
    assert!(kept > 20 && lost > 20 && torn > 20, "{kept} {lost} {torn}");
}

#[test]
fn unsynced_writes_land_in_any_order() {
    let device = device_of(512);
    device.write_at(0, &[1; 512], Placement::Other).unwrap();
    device.write_at(0, &[2; 512], Placement::Other).unwrap();
    let survivors: std::collections::BTreeSet<u8> = SEEDS.map(|seed| device.power_cut(seed)[0]).collect();
    assert_eq!(survivors, [0, 1, 2].into());
    assert_eq!(device.image(), vec![2; 512]);
}

#[test]
fn an_unsynced_length_may_be_lost_with_the_bytes_beyond_it() {
    let device = device_of(512);
    device.set_len_bytes(1024).unwrap();
    device.write_at(512, &[9; 512], Placement::Other).unwrap();
    let lens: std::collections::BTreeSet<usize> = SEEDS.map(|seed| device.power_cut(seed).len()).collect();
    assert_eq!(lens, [512, 1024].into());
}

#[test]
fn a_cut_is_repeatable_and_leaves_the_device_alone() {
    let device = device_of(4096);
    device.write_at(100, &[3; 2000], Placement::Other).unwrap();
    // One that loses something: what a seed chooses is not the same on processors of 32 bits.
    let seed = SEEDS.into_iter().find(|seed| device.power_cut(*seed) != device.image()).unwrap();
    let first = device.cut(seed);
    assert_eq!(first.image(), device.power_cut(seed));
    assert_eq!(first.unsynced_changes(), 0);
    assert_eq!(device.image()[100..2100], [3; 2000]);
    device.sync().unwrap();
    assert_ne!(first.image(), device.image());
}

#[test]
fn limits_are_errors() {
    let device = MemoryDevice::limited(1000);
    assert!(device.set_len_bytes(1001).unwrap_err().is_full());
    device.set_len_bytes(1000).unwrap();
    assert!(device.read_at(999, &mut [0; 2]).is_err());
    assert!(device.read_at(u64::MAX, &mut [0; 2]).is_err());
    assert!(device.write_at(999, &[0; 2], Placement::Other).is_err());
    assert!(device.discard(999, 2).is_err());
    let aligned = MemoryDevice::named("aligned", 4096);
    assert!(aligned.write_at(0, &[0; 100], Placement::Other).is_err());
}

#[test]
fn discarded_blocks_are_room_for_others_until_they_are_reserved_again() {
    let device = MemoryDevice::limited(8 * 4096);
    device.set_len_bytes(8 * 4096).unwrap();
    device.discard(0, 4 * 4096).unwrap();
    device.reserve(0, 4096).unwrap();
    device.fill_up();
    device.write_at(0, &[1; 4096], Placement::Other).unwrap();
    assert!(device.write_at(4096, &[1; 4096], Placement::Other).unwrap_err().is_full());
    assert!(device.reserve(4096, 4096).unwrap_err().is_full());
    device.others_leave();
    device.reserve(4096, 3 * 4096).unwrap();
    device.fill_up();
    device.write_at(4096, &[1; 3 * 4096], Placement::Other).unwrap();
}

#[test]
fn growth_reads_as_zeros_also_after_a_cut_of_the_length() {
    let device = device_of(1024);
    device.write_at(0, &[5; 1024], Placement::Other).unwrap();
    device.set_len_bytes(100).unwrap();
    device.set_len_bytes(1024).unwrap();
    device.sync().unwrap();
    let image = device.cut(0).image();
    assert!(image[..100].iter().all(|&b| b == 5) && image[100..].iter().all(|&b| b == 0));
}

#[test]
fn a_cut_keeps_what_the_caller_says() {
    let device = device_of(4096);
    device.write_at(0, &[7; 2048], Placement::Other).unwrap();
    device.write_at(1024, &[8; 2048], Placement::Other).unwrap();
    device.set_len_bytes(8192).unwrap();
    let unsynced = device.unsynced();
    assert_eq!(unsynced, [0..2048, 1024..3072, 8192..8192]);
    assert_eq!(device.cut_to(&[vec![], vec![], vec![]]).image(), vec![0; 4096]);
    let all = unsynced.iter().map(|range| vec![range.clone()]).collect::<Vec<_>>();
    assert_eq!(device.cut_to(&all).image(), device.image());
    let part = |range: std::ops::Range<u64>| vec![range];
    let torn = device.cut_to(&[part(0..2048), part(2560..3072), vec![]]).image();
    assert_eq!(torn, [vec![7; 2048], vec![0; 512], vec![8; 512], vec![0; 1024]].concat());
}
