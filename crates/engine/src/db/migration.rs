//! Changing a table to match a schema.
//!
//! Rule: all changes are determined first, and an impossible change is an error before anything changes. No data are
//! lost: columns and indexes that the schema does not have are not dropped.

use super::database::Database;
use crate::error::{Error, Result};
use crate::table::table_change::Altered;
use crate::table::{Index, IndexDefinition, Schema, Table, TableChange, TableDefinition};

/// The result of [`Database::migrate`].
#[derive(Clone, Debug)]
pub struct Migration {
    /// The present table.
    pub table: Table,
    /// Whether there was none.
    pub created: bool,
    /// Changes of its columns and its attachment, which were applied together.
    pub changes: Vec<TableChange>,
    /// Indexes that were added, by name.
    pub indexes: Vec<String>,
}

impl Database {
    /// Makes a table what a schema says, from any earlier state: creates it, or adds the columns that it lacks, widens
    /// types, lets columns be NULL, lets rows expire or not, and then builds the indexes that are missing. A program
    /// that calls this for each of its tables when it starts needs no other migrations, but for columns that go or get
    /// another name ([`alter_table`](Self::alter_table)).
    ///
    /// Columns are changed together, atomically; then indexes are built one by one. After a crash the next call
    /// completes the migration. Indexes that the schema does not have stay.
    ///
    /// ```
    /// use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Database::open(dir.path(), Options::default())?;
    /// let first = Schema::new().column("id", Type::U64).column("mail", Type::Text(40)).primary_key(&["id"]);
    /// let people = db.migrate("people", first)?.table;
    /// db.transact(|txn| txn.insert(&people, &values![1u64, "ada@example.org"]).map(drop))?;
    ///
    /// // The next version of the program.
    /// let second = Schema::new()
    ///     .column("id", Type::U64)
    ///     .column("mail", Type::Text(200))
    ///     .column("active", Type::U8)
    ///     .default_value("active", 1u8)
    ///     .primary_key(&["id"])
    ///     .unique_index("by_mail", &["mail"]);
    /// let done = db.migrate("people", second)?;
    /// assert_eq!((done.changes.len(), &done.indexes[..]), (2, &["by_mail".to_string()][..]));
    /// assert_eq!(db.snapshot()?.get(&done.table, &values![1u64])?.unwrap().u64(2), 1);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Schema`] says what cannot be done: nothing is changed then. Those of
    /// [`create_table`](Self::create_table), [`alter_table`](Self::alter_table) and
    /// [`create_index`](Self::create_index): what was done before stays.
    pub fn migrate(&self, name: &str, schema: Schema) -> Result<Migration> {
        let wanted = schema.check(name)?;
        let table = match self.table(name) {
            Err(Error::NoSuchTable { .. }) => {
                let table = self.create_table(name, schema)?;
                return Ok(Migration { table, created: true, changes: Vec::new(), indexes: Vec::new() });
            }
            found => found?,
        };
        let present = table.shared.entry.lock().clone();
        let wrong = |reason: String| Error::Schema(format!("table {name}: {reason}"));
        let changes = changes_to(&present.definition, &wanted).map_err(wrong)?;
        let after = Altered::by(&present.definition, &present.columns, &changes).map_err(wrong)?.definition;
        let indexes = missing_indexes(&after, &wanted).map_err(wrong)?;
        let mut complete = after;
        complete.indexes.extend(indexes.iter().map(|index| (*index).clone()));
        if let Some(what) = complete.lacks(&wanted) {
            return Err(wrong(format!("it would have {what}")));
        }
        let table = if changes.is_empty() { table } else { self.alter_table(name, &changes)? };
        for index in &indexes {
            self.create_index_with(name, &index.name, Index::of(&wanted, index))?;
        }
        let indexes = indexes.into_iter().map(|index| index.name.clone()).collect();
        Ok(Migration { table, created: false, changes, indexes })
    }
}

/// The changes that make a table's columns those of the new schema.
///
/// # Errors
/// A change that is not supported.
fn changes_to(present: &TableDefinition, wanted: &TableDefinition) -> std::result::Result<Vec<TableChange>, String> {
    let mut changes = Vec::new();
    for (position, column) in present.columns.iter().enumerate() {
        match wanted.columns.get(position) {
            Some(other) if other.name == column.name => {}
            Some(other) => {
                let name = &column.name;
                return Err(format!("column number {position} is {name} and would be {}; {ORDER}", other.name));
            }
            None => return Err(format!("column {} would be dropped; {ORDER}", column.name)),
        }
    }
    for (column, after) in present.columns.iter().zip(&wanted.columns) {
        if column.ty != after.ty {
            changes.push(TableChange::widen_column(&column.name, after.ty));
        }
        match (column.nullable, after.nullable) {
            (true, false) => return Err(format!("column {} may be NULL, and would not be", column.name)),
            (false, true) => changes.push(TableChange::make_nullable(&column.name)),
            _ => {}
        }
    }
    changes.extend(wanted.columns[present.columns.len()..].iter().cloned().map(TableChange::AddColumn));
    if present.primary_key != wanted.primary_key {
        return Err("it has another primary key".to_string());
    }
    if present.auto_increment != wanted.auto_increment {
        return Err("it has another auto-increment column".to_string());
    }
    if present.expires != wanted.expires {
        let column = wanted.expires.map(|at| wanted.columns[at].name.clone());
        changes.push(TableChange::SetExpiry { column });
    }
    if present.attachment != wanted.attachment {
        changes.push(TableChange::SetAttachment(wanted.attachment.clone()));
    }
    if present.log_changes != wanted.log_changes {
        changes.push(TableChange::LogChanges(wanted.log_changes));
    }
    Ok(changes)
}

const ORDER: &str = "columns that go, or get another name, are changed by `alter_table` before";

/// The indexes of the new schema that the table does not have.
///
/// # Errors
/// One of these names is another one.
fn missing_indexes<'w>(
    present: &TableDefinition,
    wanted: &'w TableDefinition,
) -> std::result::Result<Vec<&'w IndexDefinition>, String> {
    let is_there = |index: &IndexDefinition| match present.index_position(&index.name) {
        None => Ok(false),
        Some(at) if present.indexes[at] == *index => Ok(true),
        Some(_) => Err(format!("index {} has other columns, or is unique or not; drop it first", index.name)),
    };
    let mut missing = Vec::new();
    for index in &wanted.indexes {
        if !is_there(index)? {
            missing.push(index);
        }
    }
    Ok(missing)
}
