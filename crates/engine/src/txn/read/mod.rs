//! Reading: views, the versions of a row, scans.
//!
//! | file | concept |
//! |---|---|
//! | `view.rs`, `views.rs` | read views; the list of all views |
//! | `get.rs` | one row: by the snapshot, or the newest version with a lock |
//! | `versions.rs` | a row's newest version, and the way back to the visible one |
//! | `scan.rs`, `scan_options.rs`, `scan_batch.rs`, `visible_entries.rs` | cursors over rows and entries |
//! | `entry_visibility.rs`, `entry_history.rs`, `own_versions.rs` | the entries that the versions of a row still need |

mod entry_history;
mod entry_visibility;
mod get;
mod own_versions;
mod row_prefetcher;
mod scan;
mod scan_batch;
mod scan_in_place;
mod scan_options;
mod scan_read_ahead;
mod versions;
mod view;
mod views;
mod visible_entries;

use super::{active, atomic};

#[cfg(test)]
mod view_test;

pub(crate) use entry_history::Histories;
pub(crate) use entry_visibility::EntryOf;
pub(crate) use own_versions::{OwnVersions, Version};
pub(crate) use scan::{EntryFilter, RowCursor};
pub(crate) use scan_in_place::{RowInPlace, RowVisitor};
pub(crate) use scan_options::ScanOptions;
pub(crate) use versions::{StoredRow, resolve};
pub(crate) use view::{ReadView, ViewHandle};
pub(crate) use views::Views;
