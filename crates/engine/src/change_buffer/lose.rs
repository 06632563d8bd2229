//! Pending changes of a leaf that cannot be read, when the checkpoint has to pass them and the log has no space to
//! carry them forward.
//!
//! Rules
//! 1. Such a leaf becomes a lost page ([`crate::page::lost`]), with the LSN of its last pending change. This replaces
//!    the merge. It needs no redo, so the checkpoint advances even when the log is full.
//! 2. The lost page is durable before its changes are dropped. After a crash before that, recovery finds their redo and
//!    makes the leaf a lost page in the same way ([`crate::recovery`], rule 4).
//! 3. No change becomes pending meanwhile, because the leaf is in the page table while it is being read and written.
//! 4. The leaf is read once more before that, because a failed read may succeed now. A readable leaf is merged.
//! 5. Changes of a page that is already lost are dropped when that is detected.

use super::ChangeBuffer;
use super::buffer::Buffer;
use crate::error::{Error, Result};
use crate::page::lost;
use crate::types::PageNo;

impl ChangeBuffer {
    /// Merges a leaf, or loses it if it cannot be read.
    ///
    /// # Errors
    /// An I/O error that is no failed read, no free frame; a page that is newer than the log.
    pub(super) fn merge_or_lose(&self, page: PageNo) -> Result<()> {
        let lose = |error: &Error, bytes: &mut [u8]| self.buffer.lose(page, error, bytes);
        let discard = || self.buffer.discard_leaf(&mut self.buffer.lock(page), page);
        match self.ctx.pool.load_or_lose(page, lose, discard) {
            Err(error) if error.is_damage() && !error.is_beyond_log() => Ok(()),
            merged => merged,
        }
    }
}

impl Buffer {
    /// Makes the bytes those of a lost page, if changes are pending for it and `error` is damage of the page alone.
    fn lose(&self, page: PageNo, error: &Error, bytes: &mut [u8]) -> bool {
        if !error.is_damage() || error.is_beyond_log() {
            return false;
        }
        let mut shard = self.lock(page);
        shard.break_watches(page);
        if error.is_lost() {
            self.discard_leaf(&mut shard, page);
            return false;
        }
        let Some(leaf) = shard.leaves.get(&page) else { return false };
        let reason = format!(
            "it could not be read when {} buffered changes of index {} had to be applied ({error})",
            leaf.count, leaf.index.0
        );
        lost::format(bytes, leaf.index.0, leaf.redo.end, &reason);
        true
    }
}
