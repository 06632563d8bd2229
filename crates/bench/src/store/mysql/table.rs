//! Columns and keys of a table, read from the server's catalog.

use super::server_error;
use crate::error::Result;
use mysql::Conn;
use mysql::prelude::Queryable;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// A table's name, columns and keys. Clones share them.
#[derive(Clone, Debug)]
pub struct MysqlTable {
    about: Arc<About>,
}

#[derive(Debug)]
pub struct About {
    /// Number of the handle: a session's statements belong to a handle.
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) columns: Vec<String>,
    /// Position of the auto-increment column.
    pub(super) auto_increment: Option<usize>,
    /// Columns of each index; the primary key is `PRIMARY`.
    pub(super) indexes: BTreeMap<String, Vec<String>>,
}

impl std::ops::Deref for MysqlTable {
    type Target = About;

    fn deref(&self) -> &About {
        &self.about
    }
}

impl MysqlTable {
    /// Reads a table's definition from the catalog of the present database.
    pub(super) fn find(conn: &mut Conn, name: &str) -> Result<Option<MysqlTable>> {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        let statement = "SELECT COLUMN_NAME, EXTRA FROM information_schema.COLUMNS \
                         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? ORDER BY ORDINAL_POSITION";
        let columns: Vec<(String, String)> = conn.exec(statement, (name,)).map_err(server_error)?;
        if columns.is_empty() {
            return Ok(None);
        }
        let statement = "SELECT INDEX_NAME, COLUMN_NAME FROM information_schema.STATISTICS \
                         WHERE TABLE_SCHEMA = DATABASE() AND TABLE_NAME = ? ORDER BY INDEX_NAME, SEQ_IN_INDEX";
        let keys: Vec<(String, String)> = conn.exec(statement, (name,)).map_err(server_error)?;
        let mut indexes = BTreeMap::<String, Vec<String>>::new();
        for (index, column) in keys {
            indexes.entry(index).or_default().push(column);
        }
        let auto_increment = columns.iter().position(|(_, extra)| extra.contains("auto_increment"));
        let columns = columns.into_iter().map(|(column, _)| column).collect();
        let about = About { id: NEXT.fetch_add(1, Relaxed), name: name.into(), columns, auto_increment, indexes };
        Ok(Some(MysqlTable { about: Arc::new(about) }))
    }

    /// Columns of the primary key.
    pub(super) fn primary_key(&self) -> &[String] {
        self.indexes.get("PRIMARY").map_or(&[], Vec::as_slice)
    }
}
