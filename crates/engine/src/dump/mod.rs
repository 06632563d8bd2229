//! Dumps: a whole database as one stream of bytes, and databases loaded from one.
//!
//! | file | what |
//! |---|---|
//! | `stream` | blocks: compressed, numbered, checksummed |
//! | `packing` | compression of blocks |
//! | `head` | the JSON forms of the head and the end; a table's is in `table/definition_form.rs` |
//! | `write` | a dump is written |
//! | `load` | a dump is read and loaded |
//! | `served` | a dump of a database that another process has open |
//!
//! Rules
//! 1. A dump has the rows of one snapshot, and the definitions that its transaction holds until the last row is
//!    written.
//! 2. Every later version reads format 1. A definition names types as text, a row has the bytes that its columns store
//!    (see [`raw`](crate::raw)): a new column type changes nothing here. A later format has another number. An unknown
//!    member is an error and is never ignored.
//! 3. Every byte is covered by a checksum, every block has a number, and the end says how many rows each table has. So
//!    a damaged or truncated dump, or a missing block in the middle, is an error that names the place.
//! 4. A load fills tables under the names [`UNFINISHED`]`N` and renames them after the end of the dump is read and all
//!    indexes are built. If it fails, it drops them. So a table of the dump never appears in part.
//! 5. Every length is checked before memory is allocated for it.

mod head;
mod load;
mod packing;
mod served;
mod stream;
mod write;

pub use load::Dump;

use crate::error::Error;
use highwater_storage::StorageError;

/// The beginning of the names of tables that a load has not finished. A load refuses to begin while there are such
/// tables: another one runs, or one was interrupted by a crash and its tables are to be dropped.
pub const UNFINISHED: &str = "highwater_load/";

/// A table of a dump.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpedTable {
    /// Name.
    pub name: String,
    /// Rows.
    pub rows: u64,
}

/// The result of a dump or a load.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DumpReport {
    /// Tables in the order of the dump: by name.
    pub tables: Vec<DumpedTable>,
    /// Bytes of the dump.
    pub bytes: u64,
}

impl DumpReport {
    /// Rows of all tables.
    pub fn rows(&self) -> u64 {
        self.tables.iter().map(|table| table.rows).sum()
    }
}

/// The error of an operation on the dump's file.
fn failed(operation: &'static str, source: std::io::Error) -> Error {
    Error::Storage(StorageError { operation, device: "the dump".to_string(), offset: 0, len: 0, source })
}
