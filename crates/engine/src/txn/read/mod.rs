//! Reading: views, the versions of a row, scans.
//!
//! | file | concept |
//! |---|---|
//! | `view.rs` | what a snapshot sees |
//! | `versions.rs` | a row's newest, visible or locked version |
//! | `scan.rs`, `scan_batch.rs`, `scan_seen.rs` | cursors over rows and entries |
//! | `entry_needed.rs` | which entries the versions of a row still need |

mod entry_needed;
mod scan;
mod scan_batch;
mod scan_seen;
mod versions;
mod view;

pub(crate) use entry_needed::EntryOf;
pub use scan::{Cursor, ScanOptions};
pub(crate) use versions::{resolve, resolve_unlocked, step_back, stored_row};
pub(crate) use view::{ReadView, ViewHandle, ViewList};
