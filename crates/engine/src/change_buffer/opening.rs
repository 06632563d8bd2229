//! The change buffer at the opening: the tree of operations, the waiting operations, and those of dropped indexes.
//!
//! Rules
//! 1. After recovery no change is pending. One walk of the tree finds the waiting operations, before users use the
//!    pool; a leaf that recovery left in the pool is then marked as unmerged. A damaged page of the tree does not end
//!    the opening ([`super::damaged_tree`]).
//! 2. Waiting operations of indexes that are not in the catalog are removed before a page is freed: a crash came
//!    between the drop of an index and the end of [`ChangeBuffer::discard`].
//! 3. An opening in another mode than `disk` merges everything before the database is used; a read-only database merges
//!    the leaves that it reads.
//! 4. A full disk does not prevent an opening: without a page for a tree of operations nothing is buffered until the
//!    mode is set again.

use super::buffer::Buffer;
use super::damaged_tree::{Finding, IndexPlace};
use super::frames::BufferFrames;
use super::tree::OperationTree;
use super::{ChangeBuffer, Lost, policy};
use crate::config::{ChangeBuffering, Options};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::space::Space;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU8, AtomicU64};
use crate::sync::notify::Notify;
use crate::types::IndexId;
use std::collections::HashMap;
use std::sync::Arc;

impl ChangeBuffer {
    /// The change buffer of a recovered database; the pool asks it from now on.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn open(
        ctx: &Arc<Context>,
        space: &Arc<Space>,
        options: &Options,
        is_read_only: bool,
    ) -> Result<Arc<ChangeBuffer>> {
        let buffer = Arc::new(Buffer::new(ctx.stats.clone()));
        ctx.pool.set_pending(buffer.clone());
        let frames = ctx.pool.frame_count();
        let max_size = options.change_buffer_max_size;
        let changes = ChangeBuffer {
            ctx: ctx.clone(),
            space: space.clone(),
            buffer,
            frames: BufferFrames::default(),
            pool_share_bytes: policy::pool_share_bytes(frames * ctx.pool.page_bytes(), max_size),
            limit_pages: policy::limit_pages(frames, max_size),
            checkpoint_age_async_pct: AtomicU64::new(options.checkpoint_age_async_pct),
            mode: AtomicU8::new(0),
            lost: Mutex::new(Lost::new()),
            sweep_from: Mutex::new(0),
            wake: Notify::default(),
        };
        let mode = match OperationTree::open(ctx, space) {
            Some(tree) => changes.find_waiting(tree).map(|()| options.change_buffering),
            None if options.change_buffering == ChangeBuffering::Disk && !is_read_only => changes.begin_disk_mode(),
            None => Ok(options.change_buffering),
        }?;
        changes.store_mode(mode);
        Ok(Arc::new(changes))
    }

    /// The mode of a database for `disk` that has no tree yet (rule 4).
    fn begin_disk_mode(&self) -> Result<ChangeBuffering> {
        match self.provide_tree() {
            Ok(()) => Ok(ChangeBuffering::Disk),
            Err(Error::DiskFull { .. }) => Ok(ChangeBuffering::Off),
            Err(error) => Err(error),
        }
    }

    fn find_waiting(&self, tree: OperationTree) -> Result<()> {
        let mut finding = Finding::new(&self.buffer);
        tree.tree.walk(&self.ctx, &mut finding)?;
        *self.lost.lock() = finding.finish();
        self.buffer.set_operations(tree);
        for (page, leaf) in self.buffer.all_waiting() {
            self.ctx.pool.mark_unmerged(page, leaf.index);
        }
        Ok(())
    }

    /// Ends the opening, once the catalog says which indexes there are and the threads run: rules 2 and 3, and those of
    /// [`super::damaged_tree`].
    ///
    /// # Errors
    /// An I/O error. Damaged leaves are skipped: their changes stay pending.
    pub(crate) fn finish_opening(&self, indexes: &HashMap<IndexId, IndexPlace>, is_read_only: bool) -> Result<()> {
        debug_assert_eq!(
            (self.buffer.leaves(), self.buffer.bytes()),
            (0, 0),
            "rule 1: changes are pending after recovery"
        );
        let lost = std::mem::take(&mut *self.lost.lock());
        match lost.is_empty() {
            true => self.discard_of(|index| !indexes.contains_key(&index))?,
            false => self.give_up_lost(&lost, indexes, is_read_only)?,
        }
        if is_read_only || self.mode() == ChangeBuffering::Disk { Ok(()) } else { self.merge_all_sound() }
    }

    /// Forgets the buffered changes of the indexes that `is_gone` names.
    pub(super) fn discard_of(&self, is_gone: impl Fn(IndexId) -> bool) -> Result<()> {
        if self.buffer.discard(&is_gone)
            && let Some(operations) = self.buffer.operations()
        {
            let removed = operations.remove_of(&self.ctx, is_gone)?;
            self.ctx.stats.change_buffer_discarded_ops.add(removed);
        }
        Ok(())
    }
}
