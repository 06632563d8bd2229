//! When a segment is used again.

use super::*;
use highwater_storage::{Request, TestDevice};

/// What is remembered of a device: the segments whose last block was written and not synced.
#[derive(Default)]
struct Watched {
    unsynced: Mutex<Vec<u64>>,
    /// Segments that were written or discarded while that was so.
    too_early: Mutex<Vec<u64>>,
    /// Footers that were written alone, as those of emptied segments are.
    cleared: AtomicU64,
}

impl Watched {
    fn note(&self, request: &Request<'_>) {
        let mut unsynced = self.unsynced.lock();
        match request {
            Request::Sync => unsynced.clear(),
            Request::Write { .. } | Request::Discard(_) => {
                let range = request.range();
                let segment = range.start / SEGMENT_BYTES;
                if unsynced.contains(&segment) {
                    self.too_early.lock().push(segment);
                }
                if segment > 0 && range.end.is_multiple_of(SEGMENT_BYTES) {
                    unsynced.push(segment);
                    self.cleared.fetch_add(u64::from(range.end - range.start == BLOCK_BYTES as u64), Relaxed);
                }
            }
            _ => {}
        }
    }
}

/// Else a power cut may leave a footer that lists what was overwritten or discarded.
#[test]
fn a_segment_is_used_again_when_its_footer_is_durable() {
    let storage = new_store();
    let watched = Arc::new(Watched::default());
    let notes = watched.clone();
    let watching = move |request: Request<'_>| {
        notes.note(&request);
        Ok(())
    };
    let devices = storage.map_data(|data| Arc::new(TestDevice::over(data).before(watching)));
    let store = open(&devices);
    let mut random = fastrand::Rng::with_seed(4);
    for lsn in 1..1000 {
        write(&*store, &some_pages(&mut random, NEW_PAGES, 60), lsn, FlushLane::FlushList).unwrap();
        let too_early = watched.too_early.lock();
        assert!(too_early.is_empty(), "LSN {lsn}: segments {too_early:?}");
    }
    assert!(watched.cleared.load(Relaxed) > 20);
}

/// The first batch of a segment's next life and the summary before its footer are lost, the footer is not: the headers
/// of the life before, with a gap where the lost batch was written in part, are no damage.
#[test]
fn a_power_cut_that_keeps_only_the_footer_of_a_life_loses_nothing() {
    let (storage, store) = new_store_of(512);
    let block_of = |storage: &StorageSet, at: u64| {
        let mut block = vec![0; BLOCK_BYTES];
        storage.data.read_at(at, &mut block).unwrap();
        block
    };
    let (segment, pages) = (1, (2..12).collect::<Vec<u32>>());
    let end = (segment + 1) * SEGMENT_BYTES - BLOCK_BYTES as u64;
    let identity = format::identity(77, segment);
    let footer = || format::parse_footer(&block_of(&storage, end), identity);
    let mut headers = Vec::new();
    let mut lsn = 0;
    while !footer().is_some_and(|footer| footer.is_free) {
        lsn += 1;
        write(&*store, &pages, lsn, FlushLane::FlushList).unwrap();
        let at = segment * SEGMENT_BYTES..end;
        let blocks = at.step_by(BLOCK_BYTES).map(|at| (at, block_of(&storage, at)));
        let is_header = |(at, block): &(u64, Vec<u8>)| {
            format::parse_header(block, identity, (at % SEGMENT_BYTES) as usize).is_some()
        };
        let found: Vec<_> = blocks.filter(is_header).collect();
        if found.len() > headers.len() {
            headers = found;
        }
    }
    drop(store);
    assert!(headers.len() > 3);
    let gap = headers.remove(1).0;
    headers.iter().for_each(|(at, block)| storage.data.write_at(*at, block, Placement::Other).unwrap());
    storage.data.write_at(gap, &[7; BLOCK_BYTES], Placement::Other).unwrap();
    let life = footer().unwrap().newest + 1;
    let next = format::footer_of(life, [0, life], life - 1, format::GroupTails::default(), &[1; 500]);
    let mut last = vec![0; BLOCK_BYTES];
    format::put_end(&mut last, identity, &next, &[2; 500]);
    storage.data.write_at(end, &last, Placement::Other).unwrap();
    let store = open_after(&storage, lsn, PageCompression::Lz4).unwrap();
    pages.iter().for_each(|page| assert_holds(&*store, *page, lsn, "the footer alone"));
    assert_sound(&*store, "the footer alone");
}
