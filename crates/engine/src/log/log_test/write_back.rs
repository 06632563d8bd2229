//! What commits leave in the page cache goes to the device before the sync that comes once a second.

use super::*;
use parking_lot::Mutex;

/// A device that notes which ranges it is to begin with, or refuses.
#[derive(Clone)]
struct Noted {
    inner: MemoryDevice,
    begun: Arc<Mutex<Vec<(u64, u64)>>>,
    refuses: bool,
}

impl Device for Noted {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn len_bytes(&self) -> highwater_storage::Result<u64> {
        self.inner.len_bytes()
    }
    fn set_len_bytes(&self, len: u64) -> highwater_storage::Result<()> {
        self.inner.set_len_bytes(len)
    }
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> highwater_storage::Result<()> {
        self.inner.read_at(offset, buf)
    }
    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> highwater_storage::Result<()> {
        self.inner.write_at(offset, data, placement)
    }
    fn begin_write_back(&self, offset: u64, len: u64) -> highwater_storage::Result<()> {
        if self.refuses {
            // Whatever fails: beyond the end of the device.
            return self.inner.read_at(u64::MAX / 2, &mut [0]);
        }
        self.begun.lock().push((offset, len));
        Ok(())
    }
    fn sync(&self) -> highwater_storage::Result<()> {
        self.inner.sync()
    }
    fn discard(&self, offset: u64, len: u64) -> highwater_storage::Result<()> {
        self.inner.discard(offset, len)
    }
    fn alignment_bytes(&self) -> usize {
        self.inner.alignment_bytes()
    }
}

const SIZE: u64 = 4 << 20;

fn started_on(mode: FlushLog, refuses: bool) -> (Arc<Log>, Noted) {
    let device = Noted { inner: MemoryDevice::new(), begun: Arc::default(), refuses };
    Log::create(Arc::new(device.clone()), SIZE, ID).unwrap();
    let (log, scan) = open_as(Arc::new(device.clone()), mode).unwrap();
    log.start(scan.end_lsn).unwrap();
    (log, device)
}

/// Commits until the ring has been gone through twice.
#[test]
fn the_device_begins_with_whole_blocks_of_the_ring() {
    let (log, device) = started_on(FlushLog::Write, false);
    let mut newest = log.end_lsn();
    while newest.0 < 2 * SIZE {
        newest = append(&log, 5, 50_000);
        log.commit(newest, None).unwrap();
        if newest.0.saturating_sub(log.durable_lsn().0) > 5 << 19 {
            log.flush_to(newest).unwrap();
            log.checkpoint(newest).unwrap();
        }
    }
    let begun = device.begun.lock().clone();
    let bytes: u64 = begun.iter().map(|(_, len)| len).sum();
    assert!((SIZE..3 * SIZE).contains(&bytes), "{begun:?}");
    for (offset, len) in begun {
        let is_in_ring = offset >= format::RING_START && offset + len <= SIZE;
        assert!(is_in_ring && offset % format::BLOCK_BYTES == 0 && len % format::BLOCK_BYTES == 0, "{offset} {len}");
    }
}

#[test]
fn commits_that_wait_for_their_sync_need_none() {
    let (log, device) = started_on(FlushLog::Sync, false);
    for _ in 0..30 {
        let newest = append(&log, 5, 50_000);
        log.commit(newest, None).unwrap();
    }
    assert!(device.begun.lock().is_empty());
}

#[test]
fn a_failure_stops_the_database() {
    let (log, _) = started_on(FlushLog::Write, true);
    let failed = (0..60).find_map(|_| log.commit(append(&log, 5, 50_000), None).err());
    assert!(failed.is_some() && log.ring().poison().is_set());
}
