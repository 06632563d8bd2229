//! Buffer pool: frames, the pages in them, flushing and eviction.
//!
//! Terms: a *frame* is memory for one page; a page is *resident* when a frame holds it; *dirty* when its newest bytes
//! are not in the store.
//!
//! Rules
//! 1. A thread that waits for I/O or for a free frame holds no latch. A thread that loads a page holds no redo space,
//!    because `load` may merge buffered operations of the page, which takes redo space. A thread with latches makes
//!    only `try_*` calls. To these a page that another thread is reading, or that is unmerged, is missing. On a miss
//!    the thread releases everything, calls `load`, and starts again.
//! 2. A latched page stays in its frame, and so does a pinned page (an extent map that a mini-transaction will change
//!    at its commit). Any other page must be looked up again by its number, or by its frame and that frame's version if
//!    it has not changed.
//! 3. A page is written only after the redo up to its LSN is durable. The write uses a copy, so it holds no latch.
//! 4. A page that does not verify never becomes resident.
//! 5. An error while pages are written stops the database, because the state of the store is unknown.
//!
//! Lock order: mutex of deferred victims < LRU mutex; page latches (tree order) < log mutex < flush-list mutex; LRU
//! mutex < try-latch < page-table shard; the free-list mutex is last and alone.
//!
//! Differs from InnoDB: no buf_fix_count, no instances, no SX latch (pages are written from copies), inner tree pages
//! are read without latching at all.
//!
//! [`Pool`] consists of nested parts; each part uses only the parts within it. `tidy` checks their order.
//!
//! | folder or file | what |
//! |---|---|
//! | `frames` | [`frames::ResidentPages`]: frames, page table, free list, latches and latch-free views |
//! | `flush` | [`flush::PageFlusher`]: dirty pages, the flush list, writing batches |
//! | `pacing` | pages to flush, limit of users' redo |
//! | `lru` | [`lru::PageCache`]: LRU list, eviction, victim policies |
//! | `supply` | [`supply::FrameSupply`]: free frames; how many are in use |
//! | `pending` | changes of pages that are not resident: the change buffer, as the pool sees it |
//! | `load` | [`load::PageLoader`]: pages that are read, or made |
//! | `read_ahead` | pages that will be needed |
//! | `buffer_pool`, `calls` | [`Pool`]: what the layers above call |
//! | `cleaner` | the steps of the page cleaner and of the LRU flusher |

mod buffer_pool;
mod calls;
pub(crate) mod cleaner;
mod flush;
mod frame_list;
mod frames;
mod load;
mod lru;
pub(crate) mod pacing;
pub(crate) mod pending;
#[cfg(test)]
mod pool_test;
mod read_ahead;
mod supply;

pub(crate) use buffer_pool::Pool;
#[cfg(any(test, shuttle))]
pub(crate) use flush::FlushReason;
pub(crate) use frames::{
    Content, FrameNo, OptimisticPage, PageVersion, SharedPage, held_latches, release_freed_memory,
};
pub(crate) use read_ahead::ReadBuffer;
pub(crate) use supply::MIN_FRAMES;
