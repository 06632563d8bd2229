//! Creation, headers, checkpoints cut short.

use super::*;
use crate::log::format::LogGeometry;

#[test]
fn a_damaged_header_is_refused_or_the_other_one_used() {
    let device = new_device();
    let log = started(&device);
    log.flush_to(append(&log, 1, 100)).unwrap();
    drop(log);
    let newest = device.image()[..2 * 4096].to_vec();
    for at in (0..64).chain([100, 511, 512, 4095]) {
        let both = device.cut(0);
        both.damage(|b| [at, at + 4096].iter().for_each(|&i| b[i] ^= 0x40));
        let error = open_as(Arc::new(both), FlushLog::Sync).map(drop).unwrap_err();
        let foreign = at < 8;
        assert_eq!(matches!(error, Error::Incompatible(_)), foreign, "byte {at}: {error}");
        assert_eq!(matches!(error, Error::Corrupt(_)), !foreign, "byte {at}: {error}");
        let one = |slot: usize| {
            let one = device.cut(0);
            one.damage(|b| b[slot + at] ^= 0x40);
            open_as(Arc::new(one), FlushLog::Sync)
        };
        // The log was started once, so the newest header is the third.
        assert_eq!(one(0).unwrap().1.groups.len(), 1, "byte {at}");
        let error = one(4096).map(drop).unwrap_err();
        assert!(matches!(&error, Error::Corrupt(what) if what.contains("newest header")), "byte {at}: {error}");
    }
    assert_eq!(device.image()[..2 * 4096], newest[..], "a refused log is left as it was");
}

#[test]
fn files_that_are_no_log_of_this_database_are_refused() {
    let refuse = |device: MemoryDevice| open_as(Arc::new(device), FlushLog::Sync).map(drop).unwrap_err();
    for image in [vec![], vec![0; 100], vec![0; 8192], b"PK\x03\x04".repeat(5000)] {
        let error = refuse(MemoryDevice::holding(image));
        assert!(matches!(error, Error::Incompatible(_)), "{error}");
    }
    let other = MemoryDevice::new();
    Log::create(Arc::new(other.clone()), SMALL, ID + 1).unwrap();
    let error = refuse(other);
    assert!(matches!(&error, Error::Incompatible(what) if what.contains("belongs to database")), "{error}");
    for len in [SMALL as usize - 4096, 8192] {
        let cut = new_device();
        cut.damage(|bytes| bytes.resize(len, 0));
        let error = refuse(cut);
        assert!(matches!(&error, Error::Corrupt(what) if what.contains("was created with")), "{error}");
    }
    let longer = new_device();
    longer.damage(|bytes| bytes.resize(2 * SMALL as usize, 7));
    let (log, scan) = open_as(Arc::new(longer), FlushLog::Sync).unwrap();
    assert_eq!((log.geometry().capacity_bytes(), scan.groups.len()), (LogGeometry::new(SMALL).capacity_bytes(), 0));
    let error = Log::create(Arc::new(MemoryDevice::new()), SMALL - 1, ID).unwrap_err();
    assert!(matches!(error, Error::BadOption { .. }), "{error}");
    let error = Log::create(Arc::new(MemoryDevice::limited(1 << 20)), 4 << 20, ID).unwrap_err();
    assert!(matches!(&error, Error::Storage(e) if e.is_full()), "{error}");
}

#[test]
fn a_header_that_verifies_but_makes_no_sense_is_corrupt() {
    let device = new_device();
    let good = started(&device).writer().lock().header;
    let bad = [
        format::LogHeader { checkpoint_lsn: Lsn(0), ..good },
        format::LogHeader { checkpoint_lsn: Lsn(u64::MAX), ..good },
        format::LogHeader { size_bytes: 0, ..good },
        format::LogHeader { size_bytes: u64::MAX, ..good },
    ];
    for header in bad.map(|h| format::LogHeader { sequence: good.sequence + 1, ..h }) {
        let damaged = device.cut(0);
        damaged.damage(|b| header.encode(&mut b[header.offset() as usize..][..4096]));
        let error = open_as(Arc::new(damaged), FlushLog::Sync).map(drop).unwrap_err();
        assert!(matches!(error, Error::Corrupt(_)), "{header:?}: {error}");
    }
}

#[test]
fn a_crash_at_any_write_of_a_checkpoint_leaves_a_usable_log() {
    for crash_at in 0..8 {
        let (device, faults) = (new_device(), Faults::new());
        let (log, scan) = open_as(faults.wrap(Arc::new(device.clone())), FlushLog::Sync).unwrap();
        log.start(scan.end_lsn).unwrap();
        let first = append(&log, 1, 100);
        log.flush_to(first).unwrap();
        faults.power_off_after(crash_at);
        let _ = log.checkpoint(first);
        let second = log.reserve(100).map(|room| log.append(room, &payload(2, 100), |_, _| {}));
        let acknowledged = second.as_ref().is_ok_and(|&lsn| log.flush_to(lsn).is_ok());
        for seed in 0..40 {
            let (_, scan) = open(&device.cut(seed));
            let found = payloads(&scan);
            let (all, rest) = ([payload(1, 100), payload(2, 100)], [payload(2, 100)]);
            let is_prefix =
                if scan.checkpoint_lsn == first { rest.starts_with(&found) } else { all.starts_with(&found) };
            assert!(is_prefix && (scan.checkpoint_lsn == first || !found.is_empty()), "crash {crash_at} seed {seed}");
            assert!(
                !acknowledged || second.as_ref().is_ok_and(|&lsn| lsn == scan.end_lsn),
                "crash {crash_at} seed {seed}"
            );
        }
    }
}

/// What either header needs is not discarded, so that one of them may be lost.
#[test]
fn both_headers_find_their_redo_on_a_device_that_prefers_discards() {
    let device = new_device();
    let (log, scan) = open_preferring_discards(&device);
    log.start(scan.end_lsn).unwrap();
    let mut starts: Vec<Lsn> = Vec::new();
    for n in 0..400 {
        starts.push(log.end_lsn());
        log.flush_to(append(&log, n, 1000)).unwrap();
        let (older, newer) = (log.checkpoint_lsn(), starts[starts.len().saturating_sub(1 + n as usize % 7)]);
        if newer <= older || n % 3 > 0 {
            continue;
        }
        log.checkpoint(newer).unwrap();
        let sequence = log.writer().header().sequence;
        let damaged = device.cut(n);
        damaged.damage(|bytes| bytes[(sequence % 2) as usize * 4096 + 20] ^= 1);
        for (device, from) in [(device.cut(n), newer), (damaged, older)] {
            let (_, scan) = open(&device);
            let first = starts.iter().position(|start| *start == from);
            assert_eq!((scan.checkpoint_lsn, scan.end_lsn), (from, log.end_lsn()), "group {n}");
            assert_eq!(Some(starts.len() - scan.groups.len()), first, "group {n}");
        }
    }
}

#[test]
fn the_ring_is_discarded_lap_by_lap() {
    let device = new_device();
    let counted = Counted::new(preferring_discards(Arc::new(device.clone())));
    let (log, scan) = open_as(counted.clone(), FlushLog::Sync).unwrap();
    log.start(scan.end_lsn).unwrap();
    let first = log.end_lsn();
    for n in 0..400 {
        let end = append(&log, n, 1000);
        log.checkpoint(end).unwrap();
    }
    let laps = (log.end_lsn().0 - first.0) / log.geometry().lap();
    let (ring, discarded) = (log.geometry().ring_bytes(), counted.counts().discarded_bytes);
    assert!(laps > 5 && (laps * ring..=(laps + 2) * ring).contains(&discarded), "{laps} laps, {discarded} bytes");
}

#[test]
fn creation_is_quick_and_whole() {
    let folder = tempfile::tempdir().unwrap();
    let set = highwater_storage::StorageSet::open_dir(folder.path(), None, Default::default(), true).unwrap();
    let since = Instant::now();
    Log::create(set.redo.clone(), 8 << 20, ID).unwrap();
    assert!(since.elapsed() < Duration::from_secs(20));
    let (log, scan) = open_as(set.redo.clone(), FlushLog::Sync).unwrap();
    log.start(scan.end_lsn).unwrap();
    let ends: Vec<Lsn> = (0..10).map(|n| append(&log, n, 300_000)).collect();
    log.commit(ends[9], None).unwrap();
    let (_, scan) = open_as(set.redo.clone(), FlushLog::Sync).unwrap();
    assert_eq!(scan.end_lsn, ends[9]);
}
