//! Change buffer: changes of non-unique secondary indexes whose leaves are not in the pool.
//!
//! Terms
//! - *pending change*: a change that is in the log and not in its leaf. *Merging* applies a leaf's pending changes when
//!   the leaf is read; they are *carried forward* when they are logged again, so that a checkpoint can pass their first
//!   redo.
//! - *waiting operation*: a change in the tree of mode `disk` and not in its leaf.
//! - *watch*: shows purge whether a leaf was changed or read since the watch began.
//!
//! Why it is correct (mode `memory`). The redo of a pending change is a page operation of its leaf like any other, but
//! one that names its record by key, so that it can be logged without the leaf. The buffer holds operations that are
//! logged and not applied yet, and merging applies them; it logs nothing. So recovery does not know the buffer: it
//! applies each operation to its page if the page's LSN is lower. This needs the following rules.
//!
//! Rules
//! 1. Operations of a leaf are logged in the order in which they are applied. A change becomes pending, and is logged,
//!    under the leaf's shard lock while the leaf is not in the pool and its parent is unchanged; a leaf that is read
//!    enters the page table and is then merged, under the same lock, before another thread sees it
//!    ([`crate::pool::pending`]). So the log has no other operation of the leaf between the first pending change and
//!    the merge.
//! 2. The log keeps the redo of a pending change: it holds the checkpoint back, then the dirty leaf does.
//! 3. Carrying forward logs all pending changes of the leaf again, as one operation. Recovery may apply both copies, or
//!    the second copy and a part of the first, with the same result ([`crate::page::node::LeafChange`], rule 2). The
//!    second copy is durable before a checkpoint passes the first.
//! 4. A leaf takes its pending changes without a split: the extent map has a lower bound of its free space
//!    ([`crate::space`]'s free classes), which each change lowers by its size, in its own mini-transaction.
//! 5. Unique indexes are not buffered: an insertion must see its neighbours.
//! 6. When an index is dropped its pending changes are discarded, after the drop is durable and before a page of it is
//!    freed ([`ChangeBuffer::discard`]). A single page is freed only while it is in the pool, so it has no pending
//!    changes. A merge also compares the index.
//!
//! Mode `disk` is InnoDB's design: operations wait in a B+tree in the pool ([`tree`]). Mini-transactions move them from
//! there to their leaf ([`merge`]), before another thread sees the leaf in the pool ([`crate::pool::pending`]). So
//! recovery needs no rule for them, and they do not hold the checkpoint back. Rules 4 to 6 hold for them too. A leaf
//! never has both kinds: a change in one mode reads a leaf that has changes of the other.
//!
//! Memory: a share of the pool (`change_buffer_max_size`), whose frames are reserved for it. A thread that finds the
//! buffer full merges some leaves itself.
//!
//! Lock order: page latches of other pages (of the tree of operations, then of an unmerged leaf) and the parent's
//! version, then one shard lock, then the extent map's latch, the log, the flush list. No I/O and no wait for redo or
//! frames under a shard lock.
//!
//! Differs from InnoDB (`ibuf0ibuf`): the pending changes are not pages, so they cost no page I/O; removals may leave a
//! leaf empty until it is next changed in the pool.
//!
//! | file | what |
//! |---|---|
//! | `buffer` | the pending changes in memory: shards, leaves, merging, watches |
//! | `policy` | the choice of merging or carrying forward: pure functions |
//! | `add` | making a change pending |
//! | `tree` | the tree of operations |
//! | `wait` | making an operation wait in the tree |
//! | `lose` | the loss of changes of an unreadable leaf |
//! | `merge` | merging the operations that wait for a leaf |
//! | `opening`, `damaged_tree` | the opening; the consequences of a damaged tree of operations |
//! | `inspect` | calls for the check of a database |
//! | `steps` | one step of the background thread; merging everything |
//! | `frames` | the memory reserved in the pool |

mod add;
mod buffer;
mod damaged_tree;
mod frames;
mod inspect;
mod lose;
mod merge;
mod opening;
pub(crate) mod policy;
mod steps;
mod tree;
mod wait;

#[cfg(test)]
mod change_buffer_test;

pub(crate) use add::{Added, PendingChange, Reached};
pub(crate) use damaged_tree::IndexPlace;
pub(crate) use tree::Operation;

use crate::btree::BTree;
use crate::config::{ChangeBuffering, Options};
use crate::context::Context;
use crate::error::Result;
use crate::space::Space;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU8, AtomicU64, Ordering::Relaxed};
use crate::sync::notify::Notify;
use crate::types::{IndexId, PageNo};
use buffer::Buffer;
use frames::BufferFrames;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// The numbers of leaves whose operations are lost.
type Lost = Vec<RangeInclusive<PageNo>>;

/// The change buffer of one database.
pub(crate) struct ChangeBuffer {
    ctx: Arc<Context>,
    space: Arc<Space>,
    buffer: Arc<Buffer>,
    frames: BufferFrames,
    /// Share of the pool that pending changes may take, in bytes.
    pool_share_bytes: usize,
    /// Most pages of the tree of operations.
    limit_pages: usize,
    /// The option of this name: what decides when pending changes are due.
    checkpoint_age_async_pct: AtomicU64,
    /// A [`ChangeBuffering`]; 0 = off.
    mode: AtomicU8,
    /// The changes that the opening found to be lost, until it ends.
    lost: Mutex<Lost>,
    /// Page number at which the next sweep for leaves to merge begins.
    sweep_from: Mutex<u32>,
    wake: Notify,
}

impl ChangeBuffer {
    /// Whether changes of this tree may become pending.
    #[inline]
    pub(crate) fn takes(&self, tree: &BTree) -> bool {
        tree.has_free_classes() && self.mode.load(Relaxed) != 0
    }

    /// Changes when pending changes are due, to what the options say.
    pub(crate) fn set_options(&self, options: &Options) {
        self.checkpoint_age_async_pct.store(options.checkpoint_age_async_pct, Relaxed);
        self.wake.wake();
    }

    /// Changes the mode. What is buffered is merged first; meanwhile nothing is buffered, and nothing is from then on
    /// if that fails.
    ///
    /// # Errors
    /// An I/O error, a damaged leaf, a full disk.
    pub(crate) fn set_mode(&self, mode: ChangeBuffering) -> Result<()> {
        if self.mode() == mode {
            return Ok(());
        }
        self.store_mode(ChangeBuffering::Off);
        self.merge_all()?;
        if mode == ChangeBuffering::Disk {
            self.provide_tree()?;
        }
        self.store_mode(mode);
        Ok(())
    }

    /// Merges what is buffered, but for damaged leaves; nothing is buffered from then on.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn end_buffering(&self) -> Result<()> {
        self.store_mode(ChangeBuffering::Off);
        self.merge_all_sound()
    }

    /// Discards the buffered changes of a dropped index. The caller has made the drop durable, no thread uses the
    /// index, and its pages have not been freed; they must not be after an error.
    ///
    /// # Errors
    /// A damaged page of the tree of operations, an I/O error.
    pub(crate) fn discard(&self, index: IndexId) -> Result<()> {
        self.discard_of(|gone| gone == index)
    }

    /// The notification that wakes the thread of [`ChangeBuffer::step`].
    pub(crate) fn wake(&self) -> &Notify {
        &self.wake
    }
}
