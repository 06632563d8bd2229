//! Flushing: the dirty pages, and their writes to the store.
//!
//! | file | what |
//! |---|---|
//! | `reason` | why pages are flushed |
//! | `list` | the flush list |
//! | `neighbors`, `select` | the pages that are flushed together |
//! | `bulk_loaded` | the pages that a load has filled |
//! | `in_flight` | the check that a page is in at most one unfinished batch |
//! | `batches` | batches between uses, and how long they take |
//! | `starvation` | skips of the oldest page |
//! | `flusher` | [`PageFlusher`]: all of these together; noting changes; how much is dirty |
//! | `write` | copy, redo, store, clean: the order of one batch |
//! | `oldest` | the pages that hold the checkpoint back |

mod batches;
mod bulk_loaded;
mod flusher;
mod in_flight;
mod list;
mod neighbors;
mod oldest;
mod reason;
mod select;
mod starvation;
mod write;

pub(super) use flusher::PageFlusher;
pub(crate) use reason::FlushReason;
