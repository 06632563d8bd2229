//! Merging runs.
//!
//! Rule: the runs are in a heap by their current entries, the smallest on top. Equal entries may be in either order.

use super::batch::BuildEntry;
use super::runs::{BLOCK_BYTES, RunReader, Runs};
use crate::error::Result;
use std::cmp::{Ordering, Reverse};
use std::collections::BinaryHeap;
use std::collections::binary_heap::PeekMut;

/// Gives all entries of the runs to `take`, in ascending order, with blocks of up to `memory_bytes` in memory. More
/// runs than that allows become longer ones first.
///
/// # Errors
/// Those of `take`, a damaged block, a full disk, another I/O error.
pub(super) fn merge(
    runs: &mut Runs<'_>,
    memory_bytes: usize,
    take: impl FnMut(BuildEntry<'_>) -> Result<()>,
) -> Result<()> {
    let at_once = (memory_bytes / BLOCK_BYTES).max(2);
    while runs.count() > at_once {
        // No more than are too many: then the last merge has as many as it can.
        let merged = runs.take((runs.count() - at_once + 1).clamp(2, at_once));
        debug_assert!(merged.len() >= 2, "a merge of {} runs makes no fewer", merged.len());
        let readers = merged.iter().map(|run| runs.reader(run)).collect::<Result<Vec<_>>>()?;
        let mut writer = runs.writer();
        merge_readers(readers, |entry| writer.push(entry))?;
        writer.finish()?;
        merged.iter().try_for_each(|run| runs.discard(run))?;
    }
    let last = runs.take(at_once);
    debug_assert!(runs.is_empty(), "{} runs are left out of the last merge", runs.count());
    merge_readers(last.iter().map(|run| runs.reader(run)).collect::<Result<_>>()?, take)
}

fn merge_readers(readers: Vec<RunReader>, mut take: impl FnMut(BuildEntry<'_>) -> Result<()>) -> Result<()> {
    let mut heap: BinaryHeap<Reverse<RunReader>> = readers.into_iter().map(Reverse).collect();
    while let Some(mut least) = heap.peek_mut() {
        take(least.0.entry())?;
        if !least.0.advance()? {
            PeekMut::pop(least);
        }
    }
    Ok(())
}

/// By their present entries.
impl Ord for RunReader {
    fn cmp(&self, other: &RunReader) -> Ordering {
        self.word().cmp(&other.word()).then_with(|| self.entry().key.cmp(other.entry().key))
    }
}

impl PartialOrd for RunReader {
    fn partial_cmp(&self, other: &RunReader) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for RunReader {
    fn eq(&self, other: &RunReader) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for RunReader {}
