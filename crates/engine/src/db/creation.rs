//! Creating a database, and the check whether existing files may become one.
//!
//! Creation writes redo and doublewrite before the first page of `data`, in a state that no used database has: a redo
//! log that was never started (generation 1), a doublewrite file of zeros. So an interrupted creation can be repeated,
//! but a database that lost its `data` is never overwritten.

use super::open_overrides::{NEW_LOG_BYTES, OpenOverrides};
use crate::config::{Options, PageStoreKind};
use crate::error::{Error, Result};
use crate::log::{Log, LogRemains};
use crate::probe::{NEW_DATABASE_AT, RECORD_AT};
use crate::space::header;
use crate::space::layout::EXTENT_PAGES;
use crate::store::{FileHeader, StoreKind, bootstrap};
use crate::types::PageNo;
use crate::{page, space};
use highwater_storage::StorageSet;

/// A redo log that shrinks when its database is closed keeps this part of the data file's size: a large database begins
/// its next life with a large ring.
const LOG_PART_AT_REST: u64 = 4;
/// Extents of a new data file.
const FIRST_EXTENTS: u32 = 8;

/// Whether creation never finished.
///
/// # Errors
/// An I/O error.
pub(super) fn is_uncreated(storage: &StorageSet) -> Result<bool> {
    bootstrap::is_uncreated(storage, FIRST_EXTENTS * EXTENT_PAGES)
}

/// Bytes of redo log that are worth keeping when a database is closed.
pub(super) fn log_bytes_at_rest(data_bytes: u64) -> u64 {
    (data_bytes / LOG_PART_AT_REST).max(NEW_LOG_BYTES)
}

/// The parameters of a new database.
pub(super) struct CreationPlan {
    pub header: FileHeader,
    log_bytes: u64,
    /// Bytes of page 0 after its header, and their offset.
    records: Vec<(usize, Vec<u8>)>,
}

/// Plans a new database: what is `auto` is chosen.
///
/// # Errors
/// An I/O error.
pub(super) fn plan(storage: &StorageSet, options: &Options, overrides: &OpenOverrides) -> Result<CreationPlan> {
    let (chosen, probe) = super::probe::choose(storage, options)?;
    let kind = match chosen.page_store {
        PageStoreKind::OutOfPlace => StoreKind::OutOfPlace { segment_bytes: options.segment_size },
        _ => StoreKind::InPlace,
    };
    bootstrap::check_kind(storage, kind)?;
    let page_bytes = chosen.page_bytes as usize;
    let header = FileHeader { page_bytes, database_id: overrides.database_id, kind };
    // A block device is used as it is.
    let first_bytes = if storage.redo.has_fixed_len() { u64::MAX } else { overrides.new_log_bytes };
    let log_bytes = first_bytes.min(options.log_file_size);
    let mut records = vec![(NEW_DATABASE_AT, chosen.encode())];
    // An opening would find that it is about another page size, and measure again.
    if let Some(probe) = probe.filter(|probe| probe.evidence.page_bytes as usize == page_bytes) {
        records.push((RECORD_AT, probe.encode().to_vec()));
    }
    Ok(CreationPlan { header, log_bytes, records })
}

/// Creates a database: the redo log, then the store, whose page 0 is durable last.
///
/// # Errors
/// An I/O error.
pub(super) fn create(storage: &StorageSet, plan: &CreationPlan) -> Result<()> {
    let CreationPlan { header, log_bytes, records } = plan;
    Log::create(storage.redo.clone(), *log_bytes, header.database_id)?;
    let mut map = vec![0; header.page_bytes];
    space::format_map_ops(|op| op.apply(&mut map).expect("a zeroed page takes an extent map"));
    page::header::stamp(&mut map, PageNo(1));
    let first = header::new_page(*header, FIRST_EXTENTS, records);
    bootstrap::create(storage, FIRST_EXTENTS * EXTENT_PAGES, &first, &map)
}

/// Refuses if the other files show that the empty `data` had contents.
///
/// # Errors
/// [`Error::Corrupt`] if so, [`Error::Incompatible`] if redo or doublewrite hold something else, an I/O error.
pub(super) fn check_never_used(storage: &StorageSet) -> Result<()> {
    let (data, redo) = (storage.data.name(), storage.redo.name());
    match Log::remains(&*storage.redo)? {
        LogRemains::Nothing | LogRemains::NeverStarted => {}
        LogRemains::Used { database_id, durable_lsn } => {
            return Err(Error::Corrupt(format!(
                "{data} is empty, but {redo} is the redo log of database {database_id:016x}, which was in use up to \
                 LSN {durable_lsn} at least: the data file was lost; restore a backup of all files. Nothing was \
                 changed. To create a new database instead, remove the files in its folder, and the redo log"
            )));
        }
        LogRemains::Foreign => {
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
