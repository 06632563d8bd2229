//! Creating a database, and whether files that hold none may become one.
//!
//! Creation writes redo and doublewrite before it writes the first page of `data`, and what it writes differs from what
//! a database in use leaves: a redo log that was never started (generation 1), a doublewrite file of zeros. So a
//! crash during creation can be done again, but a database that lost its `data` is never overwritten.

use crate::config::{Options, PageStoreKind};
use crate::error::{Error, Result};
use crate::log::{Log, Remains};
use crate::space::header;
use crate::space::layout::EXTENT_PAGES;
use crate::store::{FileHeader, Kind, bootstrap};
use crate::types::PageNo;
use crate::{page, space};
use highwater_storage::StorageSet;

/// Extents of a new data file.
const FIRST_EXTENTS: u32 = 8;

/// Whether creation never finished.
///
/// # Errors
/// An I/O error.
pub(super) fn is_uncreated(storage: &StorageSet) -> Result<bool> {
    bootstrap::is_uncreated(storage, FIRST_EXTENTS * EXTENT_PAGES)
}

/// Creates a database: the redo log, then the store, whose page 0 is durable last.
///
/// # Errors
/// An I/O error.
pub(super) fn create(storage: &StorageSet, options: &Options) -> Result<()> {
    let kind = kind_of_store(options);
    let header = FileHeader { page_bytes: options.page_size as usize, database_id: random_id(), kind };
    Log::create(storage.redo.clone(), options.log_file_size, header.database_id)?;
    let mut map = vec![0; header.page_bytes];
    space::format_map_ops(|op| op.apply(&mut map).expect("a zeroed page takes an extent map"));
    page::header::seal(&mut map, PageNo(1));
    let first = header::new_page(header, FIRST_EXTENTS);
    bootstrap::create(storage, FIRST_EXTENTS * EXTENT_PAGES, &first, &map)
}

/// The kind of store that the options ask for.
pub(super) fn kind_of_store(options: &Options) -> Kind {
    match options.page_store {
        PageStoreKind::InPlace => Kind::InPlace,
        PageStoreKind::OutOfPlace => Kind::OutOfPlace { segment_bytes: options.segment_size },
    }
}

fn random_id() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library seeds this from the operating system's randomness.
    std::hash::RandomState::new().build_hasher().finish() | 1
}

/// Refuses if the other files show that the empty `data` had contents.
///
/// # Errors
/// [`Error::Corrupt`] if so, [`Error::Incompatible`] if redo or doublewrite hold something else, an I/O error.
pub(super) fn check_never_used(storage: &StorageSet) -> Result<()> {
    let (data, redo) = (storage.data.name(), storage.redo.name());
    match Log::remains(&*storage.redo)? {
        Remains::Nothing | Remains::NeverStarted => {}
        Remains::Used { database_id, durable_lsn } => {
            return Err(Error::Corrupt(format!(
                "{data} is empty, but {redo} is the redo log of database {database_id:016x}, which was in use up to \
                 LSN {durable_lsn} at least: the data file was lost; restore a backup of all files. Nothing was \
                 changed. To create a new database instead, remove the files in its folder, and the redo log"
            )));
        }
        Remains::Foreign => {
            return Err(Error::Incompatible(format!(
                "{data} is empty, but {redo} is not empty and is no new redo log; it is not overwritten"
            )));
        }
    }
    if let Some(used) = bootstrap::trace_of_use(storage)? {
        return Err(Error::Corrupt(format!(
            "{data} and {redo} are empty, but {used} is not: the database was lost; restore a backup of all files. \
             Nothing was changed. To create a new database instead, remove the files in its folder"
        )));
    }
    Ok(())
}

#[cfg(test)]
#[path = "creation_test.rs"]
mod tests;
