//! The threads that write pages: the page cleaner (for the log and the share of dirty pages) and the LRU flusher (for
//! free frames).
//!
//! | file | what |
//! |---|---|
//! | `page_cleaner` | one step of the page cleaner; the checkpoint |
//! | `lru_flusher` | one step of the LRU flusher |

mod lru_flusher;
mod page_cleaner;

pub(crate) use lru_flusher::LruFlusher;
#[cfg(test)]
pub(crate) use page_cleaner::flush;
pub(crate) use page_cleaner::{Cleaner, checkpoint, checkpoint_target};
