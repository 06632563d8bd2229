//! Frames: the pool's memory, the page of each frame, and access to resident pages.
//!
//! | file | what |
//! |---|---|
//! | `memory` | memory in large pieces |
//! | `dirty` | the marks of a page that differs from the store |
//! | `frame` | the frames' memory, and the state of each |
//! | `page_table` | the frame of each resident page |
//! | `free_list` | frames that hold no page |
//! | `lookup` | from a page's number to its latched frame, and out of the page table again |
//! | `held_latches` | checks that a thread holds no latch |
//! | `guard`, `optimistic` | a page latched shared; a page seen without a latch |
//! | `resident` | [`ResidentPages`]: all of these together |
//! | `parent_check` | marks of tree pages that were compared with their parents |

mod dirty;
mod frame;
mod free_list;
mod guard;
pub(crate) mod held_latches;
mod lookup;
mod memory;
mod optimistic;
mod page_table;
mod parent_check;
mod resident;

pub(crate) use frame::{Content, FrameNo, Frames, NIL, NO_PAGE};
pub(crate) use guard::{PageVersion, SharedPage};
pub(crate) use memory::release_freed_memory;
pub(crate) use optimistic::OptimisticPage;
#[cfg(test)]
use page_table::PageTable;
#[cfg(test)]
pub(super) use page_table::meanwhile;
pub(crate) use parent_check::ParentCheck;
pub(super) use resident::ResidentPages;

use crate::sync;
use crate::sync::latch::Latch;

#[cfg(not(shuttle))]
const _: () = assert!(size_of::<frame::Frame>() == 64, "the state of a frame is one cache line");

#[cfg(test)]
mod frames_test;
