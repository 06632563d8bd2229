//! Frames: the pool's memory, which page is in which frame, and how a page is reached.
//!
//! | file | what |
//! |---|---|
//! | `memory` | memory in large pieces |
//! | `frame` | the frames' memory, and the state of each |
//! | `page_table` | which frame holds a page |
//! | `free_list` | frames that hold no page |
//! | `load`, `load_runs` | bringing pages in: one, or many at once |
//! | `lose` | overwriting a page that cannot be read |
//! | `lookup` | from a page's number to its latched frame, and out of the page table again |
//! | `fix` | reaching a resident page, for the layers above |
//! | `held_latches` | which threads must hold no latch |
//! | `guard`, `optimistic` | a page latched shared; a page seen without a latch |
//! | `parent_check` | which tree pages were compared with their parents |

mod fix;
mod frame;
mod free_list;
mod guard;
pub mod held_latches;
mod load;
mod load_runs;
mod lookup;
mod lose;
mod memory;
mod optimistic;
mod page_table;
mod parent_check;

pub use frame::{Content, FrameNo, Frames, NIL, NO_PAGE, no_memory};
pub use free_list::FreeList;
pub use guard::{PageVersion, SharedPage};
pub use memory::release_freed_memory;
pub use optimistic::OptimisticPage;
pub use page_table::PageTable;
#[cfg(test)]
pub use page_table::meanwhile;

use crate::sync;
use crate::sync::latch::Latch;

#[cfg(not(shuttle))]
const _: () = assert!(size_of::<frame::Frame>() == 64, "the state of a frame is one cache line");

#[cfg(test)]
mod frames_test;
