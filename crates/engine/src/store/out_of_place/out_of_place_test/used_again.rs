//! When a segment is used again.

use super::*;

/// A device that remembers the segments whose last block was written and not synced.
struct Watched {
    inner: Arc<dyn Device>,
    unsynced: Mutex<Vec<u64>>,
    /// Segments that were written or discarded while that was so.
    too_early: Mutex<Vec<u64>>,
    /// Footers that were written alone, as those of emptied segments are.
    cleared: AtomicU64,
}

impl Watched {
    fn note(&self, offset: u64, len: usize) {
        let segment = offset / SEGMENT_BYTES;
        let mut unsynced = self.unsynced.lock();
        if unsynced.contains(&segment) {
            self.too_early.lock().push(segment);
        }
        if segment > 0 && (offset + len as u64).is_multiple_of(SEGMENT_BYTES) {
            unsynced.push(segment);
            self.cleared.fetch_add(u64::from(len == BLOCK_BYTES), Relaxed);
        }
    }
}

impl Device for Watched {
    highwater_storage::pass_on!();

    fn set_len_bytes(&self, len: u64) -> highwater_storage::Result<()> {
        self.inner.set_len_bytes(len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> highwater_storage::Result<()> {
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> highwater_storage::Result<()> {
        self.note(offset, data.len());
        self.inner.write_at(offset, data, placement)
    }

    fn sync(&self) -> highwater_storage::Result<()> {
        self.unsynced.lock().clear();
        self.inner.sync()
    }

    fn discard(&self, offset: u64, len: u64) -> highwater_storage::Result<()> {
        self.note(offset, len as usize);
        self.inner.discard(offset, len)
    }
}

/// Else a power cut may leave a footer that lists what was overwritten or discarded.
#[test]
fn a_segment_is_used_again_when_its_footer_is_durable() {
    let storage = new_store();
    let mut watched = None;
    let devices = storage.map(|inner| {
        let (unsynced, too_early) = Default::default();
        let device = Arc::new(Watched { inner, unsynced, too_early, cleared: AtomicU64::new(0) });
        watched.get_or_insert(device.clone());
        device
    });
    let watched = watched.unwrap();
    let store = open(&devices);
    let mut random = fastrand::Rng::with_seed(4);
    for lsn in 1..1000 {
        write(&*store, &some_pages(&mut random, NEW_PAGES, 60), lsn, Lane::FlushList).unwrap();
        let too_early = watched.too_early.lock();
        assert!(too_early.is_empty(), "LSN {lsn}: segments {too_early:?}");
    }
    assert!(watched.cleared.load(Relaxed) > 20);
}
