//! The choice on made-up evidence; records; measuring on a device that answers at given speeds.

use super::*;
use crate::config::{FlushMethod, FlushNeighbors, Options};
use crate::testing::{open, small_options};
use highwater_storage::{AlignedBuf, Device, MemoryDevice, Request, StorageSet, TestDevice};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::time::Duration;

fn evidence(contiguous_us: u32, scattered_us: u32, at_depth_us: [u32; 3]) -> Evidence {
    let is_steady = true;
    Evidence { pages: 32, page_bytes: 16384, sync_us: 300, contiguous_us, scattered_us, at_depth_us, is_steady }
}

#[test]
fn neighbors_follow_from_what_a_place_costs() {
    use FlushNeighbors::{Contiguous, Extent, Off};
    let table = [
        ("a 7200 rpm disk", evidence(11_000, 270_000, [0; 3]), Extent, 32),
        ("a disk that sorts within a track", evidence(15_000, 110_000, [0; 3]), Contiguous, 32),
        ("an NVMe SSD", evidence(700, 900, [2400, 1000, 900]), Off, 128),
        ("a SATA SSD of one channel", evidence(2500, 5000, [5300, 5100, 5000]), Off, 8),
        ("flash that likes eight", evidence(2500, 5000, [9000, 5100, 5000]), Off, 8),
        ("a busy machine: times far apart, but no seek", evidence(200, 4000, [0; 3]), Off, 128),
        ("all slow: places do not matter", evidence(90_000, 110_000, [110_000; 3]), Off, 8),
        ("a memory card that collects", evidence(40_000, 400_000, [0; 3]), Contiguous, 32),
        ("nothing measured", Evidence::default(), Off, 128),
    ];
    for (what, evidence, flush_neighbors, write_depth) in table {
        assert_eq!(choose(&evidence), Choice { flush_neighbors, write_depth }, "{what}: {evidence}");
    }
}

#[test]
fn a_record_is_read_as_it_was_written_and_not_after_damage() {
    let record = ProbeRecord::new(
        "a disk with an ü and a name much longer than the sixty-four bytes available",
        FlushMethod::DSync,
        evidence(11_000, 270_000, [0; 3]),
    );
    let mut page = vec![0; 4096];
    assert_eq!(ProbeRecord::decode(&page), None);
    page[RECORD_AT..RECORD_AT + RECORD_BYTES].copy_from_slice(&record.encode());
    assert_eq!(ProbeRecord::decode(&page).as_ref(), Some(&record));
    for at in RECORD_AT..RECORD_AT + RECORD_BYTES {
        page[at] ^= 0x40;
        assert_eq!(ProbeRecord::decode(&page), None, "byte {at}");
        page[at] ^= 0x40;
    }
    assert_eq!(ProbeRecord::decode(&page[..RECORD_AT + 10]), None);
}

#[test]
fn a_record_is_about_one_device_used_one_way() {
    let record = ProbeRecord::new("device 8:1", FlushMethod::Direct, evidence(700, 900, [0; 3]));
    assert!(record.is_about("device 8:1", FlushMethod::Direct, 16384));
    assert!(!record.is_about("device 8:2", FlushMethod::Direct, 16384));
    assert!(!record.is_about("device 8:1", FlushMethod::Fsync, 16384));
    assert!(!record.is_about("device 8:1", FlushMethod::Direct, 4096));
}

#[test]
fn times_are_dates() {
    let at =
        |taken_unix_s| ProbeRecord { taken_unix_s, ..ProbeRecord::new("d", FlushMethod::Direct, Evidence::default()) };
    assert_eq!(at(0).date(), "1970-01-01 00:00 UTC");
    assert_eq!(at(951_782_400).date(), "2000-02-29 00:00 UTC");
    assert_eq!(at(1_767_225_599).date(), "2025-12-31 23:59 UTC");
}

/// Memory in which each place has a write time of its own: this many writes take it, the others take none.
fn paced(memory: MemoryDevice, place_ms: u64, slow_writes: &Arc<AtomicU32>) -> Arc<dyn Device> {
    let slow_writes = slow_writes.clone();
    let pause = move |request: Request<'_>| {
        let is_slow = || slow_writes.fetch_update(Relaxed, Relaxed, |left| left.checked_sub(1)).is_ok();
        if matches!(request, Request::Write { .. }) && is_slow() {
            std::thread::sleep(Duration::from_millis(place_ms));
        }
        Ok(())
    };
    Arc::new(TestDevice::over(Arc::new(memory)).before(pause).identified_as("the paced device"))
}

#[test]
fn an_arm_is_seen_and_the_region_is_released() {
    for (len, limit) in [(2 << 20, u64::MAX), (2 << 20, 4 << 20), (64 << 10, 64 << 10)] {
        let memory = MemoryDevice::limited(limit);
        memory.set_len_bytes(len).unwrap();
        let paced = paced(memory.clone(), 3, &Arc::new(AtomicU32::new(u32::MAX)));
        let region = Region::begin(&*paced, false).unwrap();
        let found = measure(&region, 1024).unwrap();
        region.end().unwrap();
        assert_eq!(choose(&found).flush_neighbors, FlushNeighbors::Extent, "{found}");
        assert_eq!(found.at_depth_us, [0; 3], "an arm needs no depths");
        assert_eq!(paced.len_bytes().unwrap(), len);
        assert_eq!(memory.discarded_bytes(), 0, "the room is reserved again");
        let mut start = AlignedBuf::zeroed(4096);
        paced.read_at(0, &mut start).unwrap();
        assert!(start.iter().all(|byte| *byte == start[0]), "what was written is discarded");
    }
}

#[test]
fn busy_rounds_do_not_decide() {
    // A round is a write side by side, then each page apart, then one page. Rounds of slow writes look like an arm and
    // take longer than a probe may; the last of five is as the device is.
    let looks_fast = |busy_rounds| {
        let slow_writes = Arc::new(AtomicU32::new(busy_rounds * (PROBE_PAGES + 2)));
        let paced = paced(MemoryDevice::new(), 4, &slow_writes);
        paced.set_len_bytes(2 << 20).unwrap();
        let region = Region::begin(&*paced, false).unwrap();
        let found = measure(&region, 4096).unwrap();
        region.end().unwrap();
        println!("{busy_rounds} busy rounds: {found}");
        let is_off = choose(&found).flush_neighbors == FlushNeighbors::Off;
        assert!(!is_off || found.at_depth_us.iter().all(|us| *us > 0), "{found}");
        is_off
    };
    for busy_rounds in [1, 4] {
        // The test itself may lose the processor in the last round, but not each time.
        assert!((0..10).any(|_| looks_fast(busy_rounds)), "{busy_rounds} busy rounds");
    }
}

/// Two slow rounds before a fast one: the next opening looks again, finds the device at rest, and that is kept.
#[test]
fn a_measurement_of_a_busy_disk_is_not_kept_for_good() {
    let of_set = [(); 3].map(|()| Arc::new(AtomicU32::new(0)));
    let [data, redo, doublewrite] = of_set.each_ref().map(|slow_writes| paced(MemoryDevice::new(), 4, slow_writes));
    let set = StorageSet::of_devices(data, redo, doublewrite);
    let opened = |flush_neighbors, slow_writes| {
        of_set[2].store(slow_writes, Relaxed);
        let mut parts = open(set.clone(), Options { flush_neighbors, ..small_options() });
        of_set[2].store(0, Relaxed);
        parts.close().unwrap();
        parts.probe.clone()
    };
    assert_eq!(opened(FlushNeighbors::Off, 0), None);
    let busy = opened(FlushNeighbors::Auto, 2 * (PROBE_PAGES + 2)).unwrap();
    assert_eq!((busy.is_settled(), busy.measurements), (false, 1), "{busy}");
    assert!(busy.to_string().ends_with("; others used the disk: the next opening measures again"), "{busy}");
    let quiet = opened(FlushNeighbors::Auto, 0).unwrap();
    assert_eq!((quiet.is_settled(), quiet.measurements), (true, 2), "{quiet}");
    assert!(quiet.evidence.scattered_us <= busy.evidence.scattered_us, "{quiet}");
    assert_eq!(opened(FlushNeighbors::Auto, u32::MAX), Some(quiet), "a settled one is not measured again");
}

#[test]
fn measurements_end_when_they_agree_or_after_some() {
    let taken = |scattered_us| {
        let evidence = Evidence { is_steady: false, ..evidence(9000, scattered_us, [0, 0, 7]) };
        ProbeRecord::new("a disk", FlushMethod::Direct, evidence)
    };
    let first = taken(300_000);
    let second = taken(40_000).with_earlier(&first);
    assert_eq!((second.is_settled(), second.evidence.scattered_us), (false, 40_000));
    let third = taken(900_000).with_earlier(&second);
    assert_eq!((third.is_settled(), third.evidence.scattered_us, third.evidence.is_steady), (true, 40_000, false));
    assert!(taken(70_000).with_earlier(&second).evidence.is_steady, "it is what the previous one found");
    let deeper = Evidence { at_depth_us: [9, 0, 5], ..taken(1).evidence };
    assert_eq!(deeper.best_of(taken(1).evidence).at_depth_us, [9, 0, 5], "what one of them did not measure");
    for (one, other, same) in [(700, 1600, true), (11_000, 22_000, true), (11_000, 22_001, false), (0, 1001, false)] {
        assert_eq!((agree(one, other), agree(other, one)), (same, same), "{one} and {other}");
    }
}

#[test]
fn without_an_arm_depths_are_measured() {
    let memory = MemoryDevice::new();
    memory.set_len_bytes(2 << 20).unwrap();
    let region = Region::begin(&memory, false).unwrap();
    let found = measure(&region, 16384).unwrap();
    region.end().unwrap();
    assert_eq!(choose(&found).flush_neighbors, FlushNeighbors::Off, "{found}");
    assert!(found.sync_us > 0 && found.contiguous_us > 0 && found.scattered_us > 0);
}

#[test]
fn what_the_owner_had_stays_its_own_and_is_zeroed() {
    let memory = MemoryDevice::limited(32 << 20);
    memory.set_len_bytes((2 << 20) + 4096).unwrap();
    let region = Region::begin(&memory, false).unwrap();
    measure(&region, 4096).unwrap();
    memory.fill_up();
    region.end().unwrap();
    assert_eq!((memory.discarded_bytes(), memory.image()), (0, vec![0; (2 << 20) + 4096]));
}

/// Other programs may have appended to the file.
#[test]
fn bytes_behind_the_last_whole_block_are_cut_off() {
    for len in [(2 << 20) + 100, (20 << 20) + 4095] {
        let memory = MemoryDevice::named("memory", 4096);
        memory.set_len_bytes(len).unwrap();
        let region = Region::begin(&memory, true).unwrap();
        measure(&region, 4096).unwrap();
        region.end().unwrap();
        assert_eq!(memory.len_bytes().unwrap(), len / 4096 * 4096);
    }
}
