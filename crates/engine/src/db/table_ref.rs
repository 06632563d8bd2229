//! Tables as arguments of calls: by handle or by name.

use super::changes::CHANGE_LOG;
use super::database::DatabaseInner;
use crate::error::{Error, Result};
use crate::table::Table;
use crate::table::handle::TableShared;
use std::sync::Arc;

/// A table, by its handle or its name: the parameter of calls that change a table as a whole. It is converted from
/// both, so `db.drop_table("log")` and `db.drop_table(&log)` are both right. By a handle that is no longer valid such a
/// call is [`Error::TableChanged`] or [`Error::TableDropped`], as any other.
///
/// ```
/// # use highwater::{Database, Options, Schema, Type};
/// # let dir = tempfile::tempdir().unwrap();
/// # let db = Database::open(dir.path(), Options::default())?;
/// let schema = Schema::new().column("id", Type::U64).column("mail", Type::Text(80)).primary_key(&["id"]);
/// let users = db.create_table("users", schema)?;
/// db.create_index(&users, "by_mail", &["mail"], true)?;
/// db.drop_index("users", "by_mail")?;
/// # Ok::<(), highwater::Error>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub enum TableRef<'t> {
    /// The table of this name.
    Name(&'t str),
    /// The table of this handle.
    Handle(&'t Table),
}

impl<'t> From<&'t str> for TableRef<'t> {
    fn from(name: &'t str) -> TableRef<'t> {
        TableRef::Name(name)
    }
}

impl<'t> From<&'t String> for TableRef<'t> {
    fn from(name: &'t String) -> TableRef<'t> {
        TableRef::Name(name)
    }
}

impl<'t> From<&'t Table> for TableRef<'t> {
    fn from(table: &'t Table) -> TableRef<'t> {
        TableRef::Handle(table)
    }
}

impl DatabaseInner {
    /// The table that is meant.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`]; of a handle [`Error::TableDropped`], [`Error::TableChanged`], [`Error::Usage`] if it is
    /// of another database.
    pub(super) fn table_of(&self, table: TableRef<'_>) -> Result<Arc<TableShared>> {
        match table {
            TableRef::Name(name) => self.table_named(name),
            TableRef::Handle(table) => {
                self.check_owns(&table.shared)?;
                table.shared.lock.check(&table.shared.name)?;
                Ok(table.shared.clone())
            }
        }
    }

    /// The table of a name; the change log cannot be opened as one.
    ///
    /// # Errors
    /// [`Error::NoSuchTable`].
    pub(super) fn table_named(&self, name: &str) -> Result<Arc<TableShared>> {
        match name {
            CHANGE_LOG => Err(Error::NoSuchTable { table: name.to_string() }),
            _ => self.registry.get(name),
        }
    }

    /// Refuses a table of another database.
    pub(super) fn check_owns(&self, table: &TableShared) -> Result<()> {
        match self.owns(table) {
            true => Ok(()),
            false => Err(Error::Usage(format!("table {} belongs to another database", table.name))),
        }
    }
}
