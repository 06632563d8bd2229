//! The LRU list: the resident pages by last use, and their eviction.
//!
//! | file | what |
//! |---|---|
//! | `list` | the LRU list with midpoint insertion |
//! | `recency` | [`Lru`]: the list and its clock; noting uses of pages |
//! | `evict` | clean pages and dirty ones at the tail of the list |
//! | `cache` | [`PageCache`]: resident pages, dirty or not, in the order of their use |
//! | `fix` | reaching a resident page, for the layers above |
//! | `demand` | the demand for frames per second |
//! | `victim` | the handling of a dirty least recently used page: one file for each policy |

mod cache;
mod demand;
mod evict;
mod fix;
mod list;
mod recency;
mod victim;

pub(super) use cache::PageCache;
pub(super) use demand::FrameDemand;
pub(super) use victim::{Victims, of as victims_of};
