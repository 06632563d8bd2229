//! Damaged logs are refused, torn ones are not.

use crate::config::FlushLog;
use crate::error::Error;
use crate::log::format::LogGeometry;
use crate::log::log_test::{ID, append, found, open_as, payload};
use crate::log::*;
use crate::types::Lsn;
use format::{BLOCK_BYTES, DATA_BYTES, MARK_BYTES, RING_START};
use highwater_storage::MemoryDevice;
use std::sync::Arc;

/// A log whose ring has this many blocks.
fn log_of(blocks: u64) -> (MemoryDevice, Arc<Log>) {
    let device = MemoryDevice::named("redo", BLOCK_BYTES as usize);
    Log::create(Arc::new(device.clone()), RING_START + blocks * BLOCK_BYTES, ID).unwrap();
    let (log, scan) = open_as(Arc::new(device.clone()), FlushLog::Sync).unwrap();
    log.start(scan.end_lsn).unwrap();
    (device, log)
}

/// Commits groups of up to `max` bytes; their ends.
fn commits(log: &Log, count: u64, max: u64) -> Vec<Lsn> {
    let commit = |n: u64| {
        let lsn = append(log, n, 1 + (n * 131 % max) as usize);
        log.flush_to(lsn).unwrap();
        lsn
    };
    (0..count).map(commit).collect()
}

/// The LSN of a byte of the file, if it is one of a group in the ring's first lap.
fn lsn_at(offset: u64) -> Option<Lsn> {
    let (block, byte) = ((offset - RING_START) / BLOCK_BYTES, (offset - RING_START) % BLOCK_BYTES);
    (byte >= MARK_BYTES).then(|| Lsn(block * DATA_BYTES + byte - MARK_BYTES))
}

/// What opening returns for the file with one byte changed: the damage that `look` finds too, or the groups.
fn with_flip(image: &[u8], offset: usize) -> std::result::Result<u64, LogDamage> {
    let mut bytes = image.to_vec();
    bytes[offset] ^= 0x10;
    let device = MemoryDevice::holding(bytes);
    let scan = crate::inspect::look(&device).unwrap().scan.unwrap();
    match (Log::open(Arc::new(device), 1 << 20, FlushLog::Sync, ID, None, Arc::default(), Arc::default()), scan.damage)
    {
        (Ok((_, opened)), None) => {
            assert_eq!(opened, scan);
            Ok(scan.groups)
        }
        (Err(Error::Corrupt(text)), Some(damage)) => {
            assert!(text.contains("redo is damaged") || text.contains("memory is damaged"), "{text}");
            Err(damage)
        }
        (opened, damage) => panic!("byte {offset}: {:?}, {damage:?}", opened.map(|(_, scan)| scan)),
    }
}

/// Every byte between checkpoint and end changed, one at a time: `newest_mark` says from where on that counts as a torn
/// write.
fn every_flip_is_reported_below(newest_mark: Lsn, device: &MemoryDevice, ends: &[Lsn], checkpoint: Lsn) {
    let (image, end) = (device.image(), ends[ends.len() - 1]);
    let geometry = LogGeometry::new(image.len() as u64);
    for offset in geometry.offset_of(checkpoint) - MARK_BYTES..geometry.offset_of(end) {
        let result = with_flip(&image, offset as usize);
        let Some(lsn) = lsn_at(offset) else {
            assert_eq!(result, Ok(ends.len() as u64), "byte {offset} is one of a mark: nothing is lost");
            continue;
        };
        let whole = ends.iter().filter(|end| **end <= lsn).count();
        let start = if whole == 0 { checkpoint } else { ends[whole - 1] };
        if lsn < newest_mark {
            let damage = LogDamage {
                offset: geometry.offset_of(start),
                lsn: start,
                durable_lsn: newest_mark,
                header_lost: false,
            };
            assert_eq!(result, Err(damage), "byte {offset}");
        } else {
            assert_eq!(result, Ok(whole as u64), "byte {offset}");
        }
    }
}

#[test]
fn a_flip_anywhere_below_the_newest_mark_is_reported() {
    let (device, log) = log_of(16);
    let checkpoint = log.checkpoint_lsn();
    let ends = commits(&log, 60, 700);
    // The last write noted what was durable when it began.
    every_flip_is_reported_below(ends[58], &device, &ends, checkpoint);
    log.mark_durable().unwrap();
    every_flip_is_reported_below(ends[59], &device, &ends, checkpoint);
    let syncs = log.ring().stats().log_syncs.get();
    log.mark_durable().unwrap();
    assert_eq!(log.ring().stats().log_syncs.get(), syncs, "once is enough");
}

#[test]
fn damage_of_many_blocks_is_reported() {
    let (device, log) = log_of(64);
    let ends = commits(&log, 300, 900);
    for (from, to) in [(0, 10), (5, 30), (1, 31)] {
        let damaged = device.cut(0);
        damaged.damage(|b| {
            b[(RING_START + from * BLOCK_BYTES) as usize..(RING_START + to * BLOCK_BYTES) as usize].fill(0)
        });
        let error = open_as(Arc::new(damaged), FlushLog::Sync).map(drop).unwrap_err().to_string();
        let part = format!("durable up to LSN {}", ends[298]);
        assert!(error.contains("redo is damaged at byte") && error.contains(&part), "{error}");
    }
}

/// Nine blocks written and not synced: a power cut may keep any of them. Groups that verify are after the hole, and
/// nothing is wrong.
#[test]
fn any_part_of_what_was_not_synced_may_be_missing() {
    let (device, log) = log_of(32);
    let ends = commits(&log, 20, 300);
    let synced = device.image();
    for n in 20..60 {
        let lsn = append(&log, n, 800);
        log.write_to(lsn).unwrap();
    }
    let written = device.image();
    let changed: Vec<usize> =
        (0..written.len() / 4096).filter(|b| written[b * 4096..][..4096] != synced[b * 4096..][..4096]).collect();
    assert!(changed.len() >= 9, "{changed:?}");
    for kept in 0..1 << changed.len().min(10) {
        let mut image = synced.clone();
        for (bit, block) in changed.iter().enumerate().filter(|(bit, _)| kept >> bit & 1 == 1) {
            // Every other one torn.
            let bytes = if bit % 2 == 0 { 4096 } else { 512 };
            image[block * 4096..][..bytes].copy_from_slice(&written[block * 4096..][..bytes]);
        }
        let (log, scan) = Log::open(
            Arc::new(MemoryDevice::holding(image)),
            1 << 20,
            FlushLog::Sync,
            ID,
            None,
            Arc::default(),
            Arc::default(),
        )
        .unwrap();
        assert!(scan.end_lsn >= ends[19]);
        let groups = found(&log, &scan).groups;
        assert_eq!(groups[19], (ends[19], payload(19, 1 + 19 * 131 % 300)));
    }
}

/// The older header would have the log begin where the ring holds newer redo by now.
#[test]
fn a_lost_newest_header_is_noticed_wherever_the_ring_is() {
    let (device, log) = log_of(24);
    let (mut refused, mut opened) = (0, 0);
    for n in 0..800 {
        let lsn = append(&log, n, 700);
        log.flush_to(lsn).unwrap();
        if n % 100 == 99 {
            log.checkpoint(lsn).unwrap();
        }
        let header = log.writer().header();
        let damaged = device.cut(n);
        damaged.damage(|bytes| bytes[header.offset() as usize + 50] ^= 1);
        match open_as(Arc::new(damaged), FlushLog::Sync) {
            Ok((_, scan)) => {
                assert_eq!(scan.end_lsn, lsn);
                opened += 1;
            }
            Err(Error::Corrupt(_)) => refused += 1,
            Err(error) => panic!("{error}"),
        }
    }
    assert!(refused > 100 && opened > 100, "{refused} {opened}");
}
