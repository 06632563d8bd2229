//! Tests of `replay`.

use super::*;
use crate::preset::DeviceConfig;
use crate::ssd::config::SsdConfig;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

const CAPACITY: u32 = 64 * 256;

fn device(streams: u8) -> DeviceConfig {
    DeviceConfig::Ssd(SsdConfig { streams, ..SsdConfig::simple(CAPACITY, 0.15, 64) })
}

/// A ring of 1,024 blocks rewritten round and round among random updates elsewhere.
fn ring_trace(folder: &Path) -> PathBuf {
    let (path, mut text, mut random) = (folder.join("ring.csv"), String::new(), 1u64);
    for i in 0..60_000u64 {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        writeln!(text, "{},W,{},2", i * 20, 4000 + i * 2 % 1024).unwrap();
        writeln!(text, "{},W,{},1", i * 20 + 1, 5100 + (random >> 33) % 11_000).unwrap();
        if i % 50 == 0 {
            writeln!(text, "{},F,0,0\n{},R,{},4", i * 20 + 2, i * 20 + 3, i % 4000).unwrap();
        }
    }
    std::fs::write(&path, text).unwrap();
    std::fs::write(folder.join("ring.files.csv"), "0,4000,a,0\n5024,11360,b,0\n").unwrap();
    path
}

fn replay(options: &ReplayOptions) -> Result<ReplayResult> {
    run(options, &mut |_| {})
}

#[test]
fn a_stream_for_the_ring_lowers_write_amplification() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = ReplayOptions::new(ring_trace(folder.path()), device(2));
    options.passes = 2;
    let mixed = replay(&options).unwrap();
    options.rules = vec!["1=journal".parse().unwrap()];
    let apart = replay(&options).unwrap();
    let journal = apart.ranges.iter().find(|r| r.name == "journal").unwrap();
    assert_eq!((journal.first_lba, journal.blocks, apart.journal_found), (4000, 1024, true));
    let (together, separate) = (mixed.totals.write_amplification, apart.totals.write_amplification);
    assert!(separate < 0.95 * together, "{separate} apart, {together} together");
    assert_eq!(apart.streams.len(), 2);
    assert!(apart.streams[1].write_amplification < 1.01, "a ring by itself needs no copies");
    assert_eq!(apart.streams[1].host_written_bytes, 120_000 * 4096);
    let ring = apart.groups.iter().find(|g| g.name == "journal").unwrap();
    assert_eq!((ring.bytes, ring.writes_per_block), (1024 * 4096, 117.1875));
}

#[test]
fn sums_agree() {
    let folder = tempfile::tempdir().unwrap();
    let result = replay(&ReplayOptions::new(ring_trace(folder.path()), device(2))).unwrap();
    let blocks = 180_000;
    assert_eq!(result.totals.host_written_bytes, blocks * 4096);
    assert_eq!(result.heat_written_blocks.iter().sum::<u64>(), blocks);
    assert_eq!(result.groups.iter().map(|g| g.written_bytes).sum::<u64>(), blocks * 4096);
    assert_eq!(result.age_totals.host_written_bytes, u64::from(CAPACITY) * 4096);
    assert_eq!(result.totals.flushes, 1200);
    assert_eq!(result.totals.host_read_bytes, 1200 * 4 * 4096);
    assert_eq!(result.samples.len() as u64, blocks / u64::from(CAPACITY / 10));
    assert!(result.timing.is_none());
    let json = serde_json::to_string(&result).unwrap();
    assert_eq!(serde_json::from_str::<ReplayResult>(&json).unwrap().totals, result.totals);
}

#[test]
fn timed_replays_report_latencies() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = ReplayOptions::new(ring_trace(folder.path()), device(2));
    options.pace = Pace::AsRecorded;
    let slow = replay(&options).unwrap();
    options.pace = Pace::QueueDepth(8);
    let fast = replay(&options).unwrap();
    let (slow_time, fast_time) = (slow.timing.unwrap(), fast.timing.unwrap());
    assert!(slow_time.device_s >= 1.19, "as recorded it takes at least as long as it took: {}", slow_time.device_s);
    assert_eq!(slow_time.write.requests, 120_000);
    assert_eq!(slow_time.flush.requests, 1200);
    assert!(fast_time.read.p50_us > 60.0 && fast_time.write.p50_us > 0.0);
    assert_eq!(slow.totals.media_written_bytes, fast.totals.media_written_bytes, "time does not change wear");
}

/// What waits in the write buffer at the end of the ageing belongs to no pass; what a pass finds waiting there, and
/// writes again, it absorbs.
#[test]
fn a_write_buffer_moves_nothing_from_one_count_to_another() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.csv");
    std::fs::write(&trace, (0..100).map(|i| format!("{i},W,{i},1\n")).collect::<String>()).unwrap();
    let mut options = ReplayOptions::new(&trace, device(2));
    options.write_buffer_bytes = Some(1000 * 4096);
    options.passes = 2;
    let result = replay(&options).unwrap();
    for pass in &result.passes {
        assert_eq!((pass.host_written_bytes, pass.waiting_bytes), (100 * 4096, 100 * 4096));
        assert_eq!(pass.media_written_bytes, 0, "nothing of the ageing");
    }
    assert_eq!(result.age_totals.media_written_bytes, u64::from(CAPACITY) * 4096);
    options.write_buffer_bytes = Some(u64::from(CAPACITY + 1) * 4096);
    assert!(replay(&options).unwrap_err().to_string().contains("--write-buffer must be at most"));
}

/// The speed is that of the trace: what the ageing wrote is not in it.
#[test]
fn speed_leaves_the_ageing_out() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("t.csv");
    std::fs::write(&trace, "1,W,5,1\n").unwrap();
    let speed = replay(&ReplayOptions::new(&trace, device(1))).unwrap().speed;
    assert!(speed.host_blocks_per_s <= 1.0 / 1e-6, "one block in a microsecond at the very best: {speed:?}");
}

#[test]
fn the_hard_disk_replays_too() {
    let folder = tempfile::tempdir().unwrap();
    let mut options = ReplayOptions::on_preset(ring_trace(folder.path()), "wd10ezex-1tb").unwrap();
    options.capacity_bytes = Some(1 << 30);
    options.pace = Pace::QueueDepth(1);
    let result = replay(&options).unwrap();
    assert_eq!(result.totals.write_amplification, 1.0);
    assert!(result.wear.is_none() && result.timing.unwrap().device_s > 10.0);
}

#[test]
fn bad_input_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.csv");
    let fails = |text: &str, rules: &[&str], streams: u8| {
        std::fs::write(&path, text).unwrap();
        let mut options = ReplayOptions::new(&path, device(streams));
        options.rules = rules.iter().map(|r| r.parse().unwrap()).collect();
        replay(&options).unwrap_err().to_string()
    };
    assert!(fails("1,W,5,1\n2,W,16383,2\n", &[], 1).contains("request 2: request of 2 blocks at LBA 16383"));
    assert!(fails("1,W,5,1\n", &["4=0-10"], 2).contains("stream 4"));
    assert!(fails("1,W,5,1\n", &["1=journal"], 2).contains("no range of that name"));
    assert!(fails("1,W,5,1\n", &["1=16000+500"], 2).contains("beyond"));
    assert!(fails("garbage", &[], 1).contains("neither"));
    assert!(fails("", &[], 1).contains("neither"));
    assert!(replay(&ReplayOptions::new("/nonexistent", device(1))).unwrap_err().to_string().contains("nonexistent"));
}
