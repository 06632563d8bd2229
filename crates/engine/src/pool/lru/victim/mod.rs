//! Victim policies: the handling of a dirty least recently used page when a frame is needed. Each policy is a file of
//! its own after [`Victims`].
//!
//! | policy | a thread that finds no clean victim | frames are kept free |
//! |---|---|---|
//! | `raw` (InnoDB's read after write) | writes the dirty page at the tail, then reads | a round a second |
//! | `war` (write after read) | leaves the dirty page in its frame and reads into another one | a round a second |
//! | `lru_clean` (the default) | waits for the LRU flusher | ahead of demand |

mod lru_clean;
mod raw;
mod victims;
mod war;

use crate::config::VictimPolicy;
use lru_clean::LruClean;
use raw::Raw;
pub(crate) use victims::Victims;
use war::War;

/// The policy of the option, for a pool of `frames`.
pub(crate) fn of(policy: VictimPolicy, frames: usize) -> Box<dyn Victims> {
    match policy {
        VictimPolicy::Raw => Box::new(Raw),
        VictimPolicy::War => Box::new(War::new(frames)),
        VictimPolicy::LruClean => Box::new(LruClean),
    }
}
