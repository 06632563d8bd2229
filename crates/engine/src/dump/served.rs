//! A dump of a database that another process has open: that process writes it, through the socket for readers.

use super::failed;
use super::{DumpReport, DumpedTable};
use crate::db::Reader;
use crate::error::Result;
use std::io::Write;

impl Reader {
    /// As [`Database::dump`](crate::Database::dump), for a database that another process has open. The dump has a
    /// snapshot of its own.
    ///
    /// ```
    /// use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let folder = dir.path();
    /// // In one process:
    /// let db = Database::open(folder, Options::default())?;
    /// let people = db.create_table("people", Schema::new().column("id", Type::U64).primary_key(&["id"]))?;
    /// db.transact(|txn| txn.insert(&people, &values![7u64]).map(drop))?;
    ///
    /// // In another one:
    /// let mut dump = Vec::new();
    /// assert_eq!(Database::open_reader(folder)?.dump(&mut dump)?.rows(), 1);
    /// # let other = tempfile::tempdir().unwrap();
    /// assert_eq!(Database::open(other.path(), Options::default())?.load(&dump[..])?.rows(), 1);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Database::dump`](crate::Database::dump) and [`Database::open_reader`](crate::Database::open_reader);
    /// [`Error::ReaderDisconnected`](crate::Error::ReaderDisconnected) if the other process closes the database. The
    /// output is then incomplete: a load refuses it.
    pub fn dump(&self, mut into: impl Write) -> Result<DumpReport> {
        let mut bytes = 0;
        let tables = self.receive_dump(&mut |part| {
            bytes += part.len() as u64;
            into.write_all(part).map_err(|error| failed("write", error))
        })?;
        into.flush().map_err(|error| failed("write", error))?;
        let tables = tables.into_iter().map(|(name, rows)| DumpedTable { name, rows }).collect();
        Ok(DumpReport { tables, bytes })
    }
}
