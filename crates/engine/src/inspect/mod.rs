//! Inspecting the files of a database without opening it, and its state in memory. For programs that show or check a
//! database: the commands `check` and `inspect`, the laboratory.
//!
//! Rules
//! 1. Nothing is written.
//! 2. Damage is not an error: an unreadable part is described in words, and the rest is shown.
//!
//! | file | what |
//! |---|---|
//! | `file` | a data file: its header, extents, sizes of trees |
//! | `catalog` | the tables of a data file |
//! | `page` | one page, taken apart |
//! | `log` | a redo log: headers and groups |
//! | `op` | a group of redo as text |
//! | `scan` | each page of a data file that cannot be opened |

mod catalog;
mod file;
mod log;
mod op;
mod page;
mod scan;
mod table;

pub use crate::check::OnProgress;
pub use crate::log::format::LogHeader;
pub use crate::log::{LogDamage, RecoveryScan, Window};
pub use crate::page::PageType;
pub use crate::probe::{Choice, Chosen, DEPTHS, Evidence, ProbeRecord};
pub use crate::space::Extent;
pub use crate::space::layout::SpaceLayout;
pub use crate::store::{FileHeader, PageLocation, StoreKind, StoreSegment, StoreSegments};
pub use crate::table::RowLayouts;
pub use crate::table::covered::CoveredLayout;
pub use crate::table::key::{KeyLayout, KeyPart};
pub use crate::types::{Lsn, SegmentId};
pub use file::{ExtentUse, RawFile, SegmentUse, TreeSize};
pub use log::{LogInfo, look};
pub use op::{OpInfo, operations};
pub use page::{NodeInfo, PageContents, PageInfo, UndoInfo, UndoStreamInfo};
pub use scan::scan;
pub use table::{RawTable, RawTree};

/// Lengths of a pool's lists and of the history list, at one moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListLengths {
    /// Frames of the pool.
    pub frames: usize,
    /// Frames that hold no page.
    pub free: usize,
    /// Pages in the LRU list.
    pub lru: usize,
    /// Pages that differ from the data file.
    pub dirty: usize,
    /// Ended transactions that are not purged yet.
    pub history: u64,
}
