//! Blocks that the device cannot read, until they are written again.

use super::*;
use highwater_storage::TestDevice;

/// The same disks as a power cut leaves them, with bad blocks in the data file.
fn with_bad(storage: &StorageSet, bad: &Range<u64>) -> StorageSet {
    let bad = Arc::new(Mutex::new(bad.clone()));
    storage.cut(0).map_data(|data| Arc::new(TestDevice::over(data).with_bad_blocks(bad)))
}

const LAST: u64 = 199;

/// A store with segments that are full, open, and free.
fn used_store() -> (StorageSet, u64) {
    let (storage, store) = new_store_of(1024);
    write(&*store, &(60..400).collect::<Vec<u32>>(), 1, FlushLane::FlushList).unwrap();
    for lsn in 2..=LAST {
        write(&*store, &(2..60).collect::<Vec<u32>>(), lsn, FlushLane::FlushList).unwrap();
    }
    drop(store);
    let segments = storage.data.len_bytes().unwrap() / SEGMENT_BYTES;
    (storage, segments)
}

fn assert_all(store: &dyn PageStore, newest: u64, when: &str) {
    (2..60).for_each(|page| assert_holds(store, page, newest, when));
    (60..400).for_each(|page| assert_holds(store, page, 1, when));
}

/// The headers say what the end of a segment does; a free one has nothing to say. Its blocks are used again.
#[test]
fn the_end_of_any_segment_may_be_bad() {
    let (storage, segments) = used_store();
    for segment in 1..segments {
        let end = (segment + 1) * SEGMENT_BYTES;
        let disks = with_bad(&storage, &(end - BLOCK_BYTES as u64..end));
        let store = open_after(&disks, LAST, PageCompression::Off).unwrap();
        assert_all(&*store, LAST, &format!("segment {segment}"));
        for lsn in LAST + 1..LAST + 20 {
            write(&*store, &(2..60).collect::<Vec<u32>>(), lsn, FlushLane::FlushList).unwrap();
        }
        drop(store);
        let store = open_after(&disks, LAST + 19, PageCompression::Off).unwrap();
        assert_all(&*store, LAST + 19, &format!("segment {segment}, again"));
    }
}

/// Any other bad block is found where it is read, or the store is not opened: no page is a wrong one.
#[test]
fn no_bad_block_makes_a_page_an_older_one() {
    let (storage, segments) = used_store();
    let (mut opened, mut refused) = (0, 0);
    for at in (SEGMENT_BYTES..segments * SEGMENT_BYTES).step_by(5 * BLOCK_BYTES) {
        let Ok(store) = open_after(&with_bad(&storage, &(at..at + BLOCK_BYTES as u64)), LAST, PageCompression::Off)
        else {
            refused += 1;
            continue;
        };
        opened += 1;
        for page in 2..400 {
            let mut bytes = AlignedBuf::zeroed(PAGE_BYTES);
            if store.read(PageNo(page), &mut bytes).is_ok() {
                assert_holds(&*store, page, if page < 60 { LAST } else { 1 }, &format!("byte {at}"));
            }
        }
    }
    assert!(opened > 50, "{opened} opened, {refused} refused");
}
