//! Tests of `ssd`.

use super::config::SsdConfig;
use super::*;
use crate::promises::Promises;

fn config() -> SsdConfig {
    let mut config = SsdConfig { streams: 2, ..SsdConfig::simple(4096, 0.3, 64) };
    config.geometry.page_bytes = 4 * 4096;
    config.geometry.pages_per_block = 16;
    config
}

fn buffered(power_loss_protection: bool) -> Ssd {
    let promises = if power_loss_protection { Promises::protected(4096) } else { Promises::default() };
    Ssd::new(SsdConfig { write_buffer_blocks: 16, power_loss_protection, promises, ..config() }, false).unwrap()
}

fn submit(ssd: &mut Ssd, request: Request) {
    ssd.submit(0, &request).unwrap();
}

#[test]
fn requests_beyond_the_device_or_its_streams_change_nothing() {
    let mut ssd = Ssd::new(config(), false).unwrap();
    let before = ssd.counters();
    let beyond = ssd.submit(0, &Request::write(4095, 2, 0)).unwrap_err();
    assert_eq!(beyond.to_string(), "request of 2 blocks at LBA 4095 goes beyond the device's 4096 blocks of 4 KiB");
    let wrap = ssd.submit(0, &Request::write(u32::MAX, u32::MAX, 0));
    assert!(matches!(wrap, Err(DeviceError::OutOfRange { .. })));
    let stream = ssd.submit(0, &Request::write(0, 1, 2)).unwrap_err();
    assert_eq!(stream.to_string(), "stream 2 asked for, but the device has 2 (0 to 1)");
    assert_eq!(ssd.counters(), before);
}

#[test]
fn rewrites_in_the_buffer_do_not_reach_the_flash() {
    let mut ssd = buffered(true);
    for _ in 0..10 {
        submit(&mut ssd, Request::write(5, 2, 0));
    }
    assert_eq!((ssd.counters().host_blocks(), ssd.counters().media_blocks()), (20, 0));
    assert_eq!((ssd.counters().absorbed_blocks, ssd.counters().waiting_blocks), (18, 2));
    assert!(ssd.holds(5) && !ssd.holds(7));
}

/// More memory than there is must be refused, not end the process.
#[test]
fn a_device_too_large_for_memory_is_refused() {
    let too_large = |config: SsdConfig| Ssd::new(config, false).map(|_| ()).unwrap_err().to_string();
    let buffer = SsdConfig { write_buffer_blocks: 4097, ..config() };
    assert!(too_large(buffer).contains("--write-buffer"), "a buffer larger than the device");
    let error = table::table(usize::MAX / 64, 0u64).unwrap_err().to_string();
    assert!(error.contains("GiB of memory") && error.contains("--capacity"), "{error}");
}

#[test]
fn a_flush_costs_padding_without_protection_and_nothing_with_it() {
    for (protected, media) in [(false, 4), (true, 0)] {
        let mut ssd = buffered(protected);
        submit(&mut ssd, Request::write(0, 1, 0));
        submit(&mut ssd, Request::flush());
        assert_eq!(ssd.counters().media_blocks(), media);
        assert_eq!(ssd.counters().flushes, 1);
    }
}

#[test]
fn a_power_cut_empties_a_volatile_buffer() {
    for (protected, kept) in [(false, false), (true, true)] {
        let mut ssd = buffered(protected);
        submit(&mut ssd, Request::write(0, 4, 0));
        submit(&mut ssd, Request::flush());
        submit(&mut ssd, Request::write(100, 4, 0));
        ssd.power_cut();
        assert!(ssd.holds(0));
        assert_eq!(ssd.holds(100), kept);
    }
}

#[test]
fn trim_reaches_buffer_and_flash() {
    let mut ssd = buffered(true);
    for lba in (0..64).step_by(4) {
        submit(&mut ssd, Request::write(lba, 4, 0));
    }
    submit(&mut ssd, Request::discard(0, 64));
    assert!((0..64).all(|lba| !ssd.holds(lba)));
    assert_eq!(ssd.counters().trimmed_blocks, 48, "those that were on flash");
}

#[test]
fn fdp_counters_add_up() {
    let mut ssd = Ssd::new(config(), false).unwrap();
    for round in 0..8 {
        for lba in 0..4096 {
            submit(&mut ssd, Request::write((lba * 1237 + round) % 4096, 1, (lba % 2) as u8));
        }
    }
    let counters = ssd.counters();
    assert_eq!(counters.hbmw(), 8 * 4096 * 4096);
    assert_eq!(counters.mbmw(), counters.hbmw() + counters.copied_blocks() * 4096);
    assert!(counters.mbe() > 0 && counters.mbe() <= counters.mbmw());
    assert_eq!(ssd.wear().unwrap().units, 84);
}
