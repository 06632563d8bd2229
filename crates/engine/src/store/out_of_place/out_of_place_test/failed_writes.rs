//! A write that fails lets nothing be acknowledged after it.

use super::*;
use highwater_storage::{FaultKind, Operation};

/// A batch is appended, the first of its segment or a later one, or the segment is sealed; that fails. Another thread
/// writes before the first has reported its error.
#[test]
fn nothing_is_acknowledged_behind_a_write_that_failed() {
    let whole_segment = SEGMENT_BYTES as u32 / PAGE_BYTES as u32 - 2;
    for before in [0, 1, whole_segment] {
        let (memory, faults) = (MemoryDevice::new(), Faults::new());
        memory.set_len_bytes(4 * SEGMENT_BYTES).unwrap();
        let store = open_on(&faults.wrap(Arc::new(memory.clone())), geometry());
        let first: Vec<u32> = (20..20 + before).collect();
        if before > 0 {
            write(&store, &first, 1, FlushLane::FlushList).unwrap();
        }
        faults.fail(Operation::Write, 1, FaultKind::ErrorOnce);
        assert!(append(&store, 2..12, 2).is_err());
        let error = write(&store, &[15], 3, FlushLane::FlushList).unwrap_err();
        assert!(matches!(error, Error::Poisoned(_)), "behind {before} pages: {error}");
        drop(store);
        let store = open_on(&(Arc::new(memory.cut(0)) as Arc<dyn Device>), geometry());
        first.iter().for_each(|page| assert_holds(&store, *page, 1, "before the failure"));
    }
}
