//! Random schema changes: tables and indexes are created, changed, dropped and rebuilt. Transactions that use them may
//! block a change, which then fails.

use super::actor::is_refusal;
use super::choices::Choices;
use super::consumer::with_log;
use super::content::{KnownIndex, NOTE, ONE_C, OWN_COLUMNS, Rows, extra_column, id_key, schema};
use super::found::PREFIX;
use super::oracle::{Change, indexes_of};
use super::played::call;
use super::player::Player;
use super::scan::random_index;
use highwater::raw::{RawRow, RawTable};
use highwater::{BuildProgress, Database, Error as Engine, Table, TableChange, Type, WriteTxn, values};
use highwater_bench::{Error, Result};
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of tables.
const TABLES: usize = 4;
/// Maximum number of columns of a table.
const MAX_COLUMNS: usize = OWN_COLUMNS + 3;

/// Whether two rows have the same value in the unique column.
fn has_duplicates(rows: &Rows) -> bool {
    let mut seen = BTreeSet::new();
    !rows.values().filter_map(|content| content.c).all(|c| seen.insert(c))
}

/// Whether a schema change failed because transactions that use the table block it.
fn is_refused_here(error: &Engine) -> bool {
    is_refusal(error) || matches!(error, Engine::TableInPrepared { .. })
}

impl Player {
    /// Makes a random schema change.
    ///
    /// # Errors
    /// The engine's; [`Error::Data`] for a wrong answer.
    pub(super) fn change_schema(&mut self, db: &Database, rng: &mut Choices) -> Result<()> {
        let count = self.oracle.tables.len();
        let table = rng.choice(self.oracle.tables.keys()).cloned();
        let index = random_index(rng);
        match (table, rng.u32(..8)) {
            (None, _) | (_, 0 | 1) if count < TABLES => self.create_table(db, rng),
            (Some(name), 2 | 3) if count > 1 => {
                // It waits for no transaction.
                let impatient = call!(self.played, Database::with_lock_wait_timeout(db, Duration::ZERO));
                let dropped = call!(self.played, Database::drop_table(&impatient, &name));
                self.changed(Change::DropTable(name), dropped)
            }
            (Some(name), 5) if rng.bool() => self.rename_or_truncate(db, name, rng),
            (Some(name), 6) if rng.bool() => self.alter_table(db, &name, rng),
            (Some(name), 7) if self.oracle.tables[&name].indexes.contains(index.name) => {
                match call!(self.played, Database::rebuild_index(db, &name, index.name)) {
                    Err(error) if !is_refused_here(&error) => Err(error.into()),
                    _ => Ok(()),
                }
            }
            (Some(name), _) if self.oracle.tables[&name].indexes.contains(index.name) => {
                let dropped = call!(self.played, Database::drop_index(db, &name, index.name));
                self.changed(Change::DropIndex(name, index.name), dropped)
            }
            (Some(name), _) => {
                let rows = self.oracle.tables[&name].at(self.oracle.commits);
                let has_duplicates = index.name == ONE_C && has_duplicates(&rows);
                let created = match rng.bool() {
                    true if !index.is_plain() => {
                        let made = index.made(&self.played);
                        call!(self.played, Database::create_index_with(db, &name, index.name, made))
                    }
                    false if !index.is_plain() => self.create_raw_index(db, &name, &index),
                    true => {
                        call!(self.played, Database::create_index(db, &name, index.name, index.columns, index.unique))
                    }
                    false => self.create_index_concurrently(db, &name, &index, rows.keys().copied().collect(), rng),
                };
                let is_wrong = match &created {
                    Ok(()) => has_duplicates,
                    Err(error) => matches!(error, Engine::DuplicateKey { .. }) && !has_duplicates,
                };
                if is_wrong {
                    return Err(Error::Data(format!(
                        "a unique index of table {name} was created, or was not: {created:?}"
                    )));
                }
                self.changed(Change::CreateIndex(name, index.name), created)
            }
            (None, _) => Ok(()),
        }
    }

    /// Builds an index by the raw API.
    fn create_raw_index(&self, db: &Database, name: &str, index: &KnownIndex) -> highwater::Result<()> {
        let table = RawTable::from(db.table(name)?);
        let (made, mut duplicate) = (index.made(&self.played), RawRow::default());
        call!(self.played, RawTable::create_index(&table, db, index.name, &made, &mut duplicate))
    }

    /// Builds an index while a transaction deletes rows, some of them after a savepoint, and is rolled back.
    fn create_index_concurrently(
        &self,
        db: &Database,
        name: &str,
        index: &KnownIndex,
        mut ids: Vec<u64>,
        rng: &mut Choices,
    ) -> highwater::Result<()> {
        let (columns, unique) = (index.columns, index.unique);
        let table = db.table(name)?;
        ids.truncate(1 + rng.usize(..8));
        let meanwhile = &mut |_: BuildProgress| {
            let mut txn = db.begin()?;
            let delete = |txn: &mut WriteTxn, id: &u64| match txn.delete(&table, &values![*id]) {
                Err(error) if is_refusal(&error) => Ok(()),
                done => done.map(drop),
            };
            let half = ids.len() / 2;
            ids[..half].iter().try_for_each(|id| delete(&mut txn, id))?;
            let savepoint = txn.savepoint();
            ids[half..].iter().try_for_each(|id| delete(&mut txn, id))?;
            txn.rollback_to(savepoint)?;
            txn.rollback()
        };
        call!(self.played, Database::create_index_with_progress(db, name, index.name, columns, unique, meanwhile))
    }

    fn rename_or_truncate(&mut self, db: &Database, name: String, rng: &mut Choices) -> Result<()> {
        // It waits for no transaction.
        let impatient = call!(self.played, Database::with_lock_wait_timeout(db, Duration::ZERO));
        if rng.bool() {
            let truncated = call!(self.played, Database::truncate_table(&impatient, &name));
            return self.changed(Change::TruncateTable(name), truncated.map(drop));
        }
        self.tables_made += 1;
        let to = format!("{PREFIX}{}", self.tables_made);
        let before = call!(self.played, Database::table(db, &name))?;
        let renamed = call!(self.played, Database::rename_table(&impatient, &name, &to));
        if let Ok(after) = &renamed {
            let ids = [&before, after].map(|table| call!(self.played, Table::create_id(table)));
            let stale = db.snapshot()?.get(&before, &id_key(0));
            if ids[0] != ids[1] || !matches!(stale, Err(Engine::TableChanged { .. })) {
                return Err(Error::Data(format!("{name} is {to} now: create ids {ids:?}, its old handle: {stale:?}")));
            }
        }
        self.changed(Change::RenameTable(name, to), renamed.map(drop))
    }

    /// Makes a random change of a table's columns, or of another part of its definition.
    fn alter_table(&mut self, db: &Database, name: &str, rng: &mut Choices) -> Result<()> {
        let table = call!(self.played, Database::table(db, name))?;
        let (columns, is_plain) = (table.columns(), self.oracle.tables[name].indexes.is_empty());
        let longer = |column: usize| match columns[column].ty {
            Type::Text(bytes) => TableChange::widen_column(&columns[column].name, Type::Text(bytes + 7)),
            Type::Json(bytes) => TableChange::widen_column(&columns[column].name, Type::Json(bytes + 7)),
            _ => TableChange::SetAttachment(b"altered".to_vec()),
        };
        let change = match rng.u32(..9) {
            0 if columns.len() < MAX_COLUMNS => TableChange::AddColumn(extra_column(self.acknowledged)),
            1 if columns.len() > OWN_COLUMNS => TableChange::drop_column(&columns[OWN_COLUMNS].name),
            2 if is_plain => TableChange::widen_column("c", Type::U64),
            3 => longer([1, 2, NOTE][rng.usize(..3)]),
            4 if columns.len() > OWN_COLUMNS => {
                TableChange::rename_column(&columns[OWN_COLUMNS].name, &format!("z{}", self.acknowledged))
            }
            5 if columns.len() > OWN_COLUMNS => {
                TableChange::widen_column(&columns[OWN_COLUMNS].name, [Type::U32, Type::U64][rng.usize(..2)])
            }
            6 => TableChange::make_nullable("note"),
            7 => TableChange::LogChanges(rng.bool()),
            _ => longer(4),
        };
        // It waits for no transaction.
        let impatient = call!(self.played, Database::with_lock_wait_timeout(db, Duration::ZERO));
        match call!(self.played, Database::alter_table(&impatient, name, &[change])) {
            Ok(table) => {
                self.acknowledged += 1;
                self.expect_columns(&table)
            }
            // The names or the layouts are used up.
            Err(error) if is_refused_here(&error) || matches!(error, Engine::Schema(_)) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    fn create_table(&mut self, db: &Database, rng: &mut Choices) -> Result<()> {
        self.tables_made += 1;
        let name = format!("{PREFIX}{}", self.tables_made);
        let indexes = indexes_of(rng.u32(..));
        let schema = with_log(&self.played, schema(&self.played, &indexes), indexes.len());
        let created = match rng.u32(..3) {
            0 => call!(self.played, Database::create_table(db, &name, schema)),
            1 => call!(self.played, Database::migrate(db, &name, schema)).map(|done| done.table),
            _ => call!(self.played, Database::table_or_create(db, &name, schema)),
        };
        if let Ok(table) = &created {
            self.expect_columns(table)?;
        }
        self.changed(Change::CreateTable(name, indexes), created.map(drop))
    }

    fn expect_columns(&self, table: &Table) -> Result<()> {
        let columns = call!(self.played, Table::columns(table));
        for (position, column) in columns.iter().enumerate() {
            if call!(self.played, Table::column(table, &column.name))? != position {
                return Err(Error::Data(format!("column {} of table {}", column.name, table.name())));
            }
        }
        let names = columns.iter().take(OWN_COLUMNS).map(|column| column.name.as_str());
        match names.eq(["id", "a", "b", "c", "body", "note"]) {
            true => Ok(()),
            false => Err(Error::Data(format!("table {} has the columns {columns:?}", table.name()))),
        }
    }

    pub(super) fn changed(&mut self, change: Change, done: highwater::Result<()>) -> Result<()> {
        match done {
            Ok(()) => {
                self.oracle.acknowledged(change);
                // Schema changes are durable when they return.
                self.oracle.is_durable();
                self.acknowledged += 1;
                Ok(())
            }
            Err(error) if is_refused_here(&error) => Ok(()),
            Err(error) => {
                self.oracle.in_doubt = Some(change);
                Err(error.into())
            }
        }
    }
}
