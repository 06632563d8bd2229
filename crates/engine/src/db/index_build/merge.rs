//! Merging runs.
//!
//! Rule: the runs form a heap by their present entries; the least is at the top. Of equal entries either comes first.

use super::batch::Entry;
use super::runs::{BLOCK_BYTES, RunReader, Runs};
use crate::error::Result;

/// Gives all entries of the runs to `take`, in ascending order, with blocks of up to `memory_bytes` in memory. More
/// runs than that allows become longer ones first.
///
/// # Errors
/// Those of `take`, a damaged block, a full disk, another I/O error.
pub(super) fn merge(runs: &mut Runs<'_>, memory_bytes: usize, take: impl FnMut(Entry<'_>) -> Result<()>) -> Result<()> {
    let at_once = (memory_bytes / BLOCK_BYTES).max(2);
    while runs.count() > at_once {
        // No more than are too many: then the last merge has as many as it can.
        let merged = runs.take((runs.count() - at_once + 1).clamp(2, at_once));
        let readers = merged.iter().map(|run| runs.reader(run)).collect::<Result<Vec<_>>>()?;
        let mut writer = runs.writer();
        merge_readers(readers, |entry| writer.push(entry))?;
        writer.finish()?;
        merged.iter().try_for_each(|run| runs.discard(run))?;
    }
    let last = runs.take(at_once);
    merge_readers(last.iter().map(|run| runs.reader(run)).collect::<Result<_>>()?, take)
}

fn merge_readers(mut readers: Vec<RunReader>, mut take: impl FnMut(Entry<'_>) -> Result<()>) -> Result<()> {
    for parent in (0..readers.len() / 2).rev() {
        sift_down(&mut readers, parent);
    }
    while let Some(least) = readers.first_mut() {
        take(least.entry())?;
        if !least.advance()? {
            readers.swap_remove(0);
        }
        sift_down(&mut readers, 0);
    }
    Ok(())
}

/// Moves a reader down to where no child is less.
fn sift_down(readers: &mut [RunReader], mut at: usize) {
    loop {
        let mut least = at;
        for child in [2 * at + 1, 2 * at + 2] {
            if child < readers.len() && is_less(&readers[child], &readers[least]) {
                least = child;
            }
        }
        if least == at {
            return;
        }
        readers.swap(at, least);
        at = least;
    }
}

fn is_less(a: &RunReader, b: &RunReader) -> bool {
    a.word() < b.word() || a.word() == b.word() && a.entry().key < b.entry().key
}
