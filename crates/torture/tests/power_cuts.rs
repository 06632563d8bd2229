//! A few hundred power cuts of a database with pending changes; `highwater torture power` makes thousands.

use highwater::Options;
use highwater::config::{ChangeBuffering, PageSize};
use highwater_torture::power_cuts::{Tally, Trial};

fn survives(change_buffering: ChangeBuffering, page_size: u64, seeds: std::ops::Range<u64>, lives: u32) -> Tally {
    let options = Options {
        page_size: PageSize::Bytes(page_size),
        buffer_pool_size: 1 << 20,
        log_file_size: 4 << 20,
        log_buffer_size: 1 << 20,
        cleaner_interval_ms: 5,
        change_buffering,
        ..Options::default()
    };
    let mut all = Tally::default();
    for seed in seeds {
        let mut trial = Trial::new(options.clone(), seed).unwrap();
        for _ in 0..lives {
            trial.live().unwrap_or_else(|error| panic!("seed {seed}: {error}"));
        }
        all.add(&trial.tally);
    }
    println!("{all:?}");
    all
}

#[test]
fn changes_buffered_in_memory_survive_power_cuts() {
    let all = survives(ChangeBuffering::Memory, 4096, 0..8, 12);
    assert!(all.cuts == 96 && all.recovery_cuts > 40, "{all:?}");
    assert!(all.buffered > 5000 && all.merges > 500 && all.carried > 500, "{all:?}");
}

#[test]
fn the_smallest_pool_survives_power_cuts() {
    let all = survives(ChangeBuffering::Memory, 16384, 100..103, 12);
    assert!(all.buffered > 500 && all.merges > 50, "{all:?}");
}

#[test]
fn changes_buffered_on_disk_survive_power_cuts() {
    let all = survives(ChangeBuffering::Disk, 4096, 200..206, 12);
    assert!(all.buffered > 3000 && all.merges > 300, "{all:?}");
}

#[test]
fn indexes_without_buffering_survive_power_cuts() {
    // The player switches buffering on now and then.
    let all = survives(ChangeBuffering::Off, 4096, 300..302, 10);
    assert!(all.cuts == 20 && all.buffered < 5000, "{all:?}");
}
