//! Flushing: which pages are dirty, and how dirty pages reach the store.
//!
//! | file | what |
//! |---|---|
//! | `reason` | why pages are flushed |
//! | `list` | the flush list |
//! | `neighbors`, `select` | what is flushed together |
//! | `bulk_loaded` | the pages that a load has filled |
//! | `in_flight` | where that is checked: a page is in one unfinished batch at most |
//! | `batches` | batches between uses, and how long they take |
//! | `starvation` | how often the oldest page was skipped |
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
