//! Part of the crash test: a consumer of the change log, which keeps a copy of the tables that log their changes in
//! another database.
//!
//! Rules
//! 1. One transaction of the copy stores the changes of a transaction and its number, so after any kill both exist, or
//!    neither.
//! 2. A changed table is copied again from a snapshot, whose commits are first made durable. Later changes that the
//!    snapshot already shows are applied again.
//! 3. A row of the copy has the row as text, and its expiry time.

use super::expiring::{EXPIRING, UNTIL, now};
use super::readers::is_passing;
use highwater::{
    Change, ChangeKind, Database, DateTime, Error as Engine, Options, Reader, Row, Schema, Table, Type, Value,
    WriteTxn, values,
};
use highwater_bench::{Error, Result};
use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

const ROWS: &str = "rows";
const POSITION: &str = "position";
/// Pause before the next attempt to connect to a process that does not serve readers.
const PAUSE: Duration = Duration::from_millis(5);

/// The copy; the head of this file has its rules.
pub struct ChangeCopy {
    db: Database,
    /// table, id | until, row
    rows: Table,
    /// 0 | number
    position: Table,
}

/// A row: its id, its expiry time, the row as text.
type Copied = (u64, Option<DateTime>, String);

/// The source of a copied table.
enum Source<'a> {
    Own(&'a Database),
    Other(&'a Reader),
}

fn copied(row: highwater::Result<Row>) -> Result<Copied> {
    let row = row?;
    let until = row.names().any(|name| name == UNTIL) && !row.is_null(UNTIL);
    Ok((row.u64("id"), until.then(|| row.datetime(UNTIL)), format!("{:?}", row.to_values())))
}

fn rows_in(db: &Database, table: &str) -> Result<Vec<Copied>> {
    let table = db.table(table)?;
    db.snapshot()?.scan(&table).iter()?.map(copied).collect()
}

impl Source<'_> {
    /// The rows of a table (rule 2); none if the table does not exist.
    fn rows_of(&self, table: &str) -> Result<Vec<Copied>> {
        let rows = match self {
            Source::Own(db) => rows_in(db, table),
            Source::Other(reader) => {
                let mut snapshot = reader.snapshot()?;
                let rows = snapshot.scan(table).iter();
                rows.map_err(Error::from).and_then(|rows| rows.map(copied).collect())
            }
        };
        let rows = match rows {
            Err(Error::Engine(Engine::NoSuchTable { .. })) => Vec::new(),
            rows => rows?,
        };
        match self {
            Source::Own(db) => db.flush_log()?,
            Source::Other(reader) => reader.flush_log()?,
        }
        Ok(rows)
    }
}

impl ChangeCopy {
    /// Opens the copy in a folder; creates it if it does not exist.
    ///
    /// # Errors
    /// The engine's.
    pub fn open(folder: &Path) -> Result<ChangeCopy> {
        let options = Options { buffer_pool_size: 8 << 20, log_file_size: 16 << 20, ..Options::default() };
        let db = Database::open(folder, options)?;
        let rows = Schema::new().column("table", Type::Text(100)).column("id", Type::U64);
        let rows = rows.nullable(UNTIL, Type::DateTime).column("row", Type::Text(20_000)).primary_key(&["table", "id"]);
        let position = Schema::new().column("id", Type::U64).column("number", Type::U64).primary_key(&["id"]);
        let (rows, position) = (db.table_or_create(ROWS, rows)?, db.table_or_create(POSITION, position)?);
        Ok(ChangeCopy { db, rows, position })
    }

    /// Number of the last transaction whose changes the copy has.
    ///
    /// # Errors
    /// The engine's.
    pub fn position(&self) -> Result<u64> {
        let position = self.db.snapshot()?.get(&self.position, &values![0u64])?;
        Ok(position.map_or(0, |row| row.u64("number")))
    }

    /// Follows a database that other processes open in a folder, one after another. Returns only with an error.
    /// `loses_power`: the folder's disk loses power.
    ///
    /// # Errors
    /// The engine's, except those that the end of the other process or a changed table explains; [`Error::Data`] for an
    /// impossible change.
    pub fn follow(&self, folder: &Path, loses_power: bool) -> Result<()> {
        loop {
            match self.follow_process(folder) {
                Err(Error::Engine(error)) if is_passing(&error, loses_power) => std::thread::sleep(PAUSE),
                ended => return ended,
            }
        }
    }

    fn follow_process(&self, folder: &Path) -> Result<()> {
        let reader = Database::open_reader(folder)?;
        let mut changes = reader.changes(self.position()?)?;
        loop {
            self.take(&mut changes, &Source::Other(&reader))?;
            changes.wait(Duration::from_secs(1))?;
        }
    }

    /// Applies all changes that the log of `db` has.
    ///
    /// # Errors
    /// The engine's; [`Error::Data`] for an impossible change.
    pub fn catch_up(&self, db: &Database) -> Result<()> {
        self.take(&mut db.changes(self.position()?)?, &Source::Own(db))
    }

    fn take(&self, changes: &mut dyn Iterator<Item = highwater::Result<Change>>, source: &Source<'_>) -> Result<()> {
        let (mut of_transaction, mut position) = (Vec::new(), self.position()?);
        for change in changes {
            let change = change?;
            let (sequence, is_last) = (change.sequence, change.ends_transaction);
            of_transaction.push(change);
            if is_last {
                if sequence <= position {
                    return Err(Error::Data(format!("change log: transaction {sequence} follows {position}")));
                }
                self.apply(&of_transaction, sequence, source)?;
                of_transaction.clear();
                position = sequence;
            }
        }
        match of_transaction.first() {
            None => Ok(()),
            Some(change) => Err(Error::Data(format!("change log: transaction {} has no end", change.sequence))),
        }
    }

    /// Applies the changes of a transaction (rule 1).
    fn apply(&self, changes: &[Change], sequence: u64, source: &Source<'_>) -> Result<()> {
        let mut txn = self.db.begin()?;
        for change in changes {
            let name = change.table.as_str();
            if change.kind == ChangeKind::TableChanged {
                txn.scan(&self.rows).prefix(&values![name]).delete()?;
                let rows = source.rows_of(name)?;
                rows.into_iter().try_for_each(|row| self.put(&mut txn, name, row))?;
                continue;
            }
            let [Value::UInt(id)] = change.key[..] else {
                return Err(Error::Data(format!("change log: a row of {name} has the key {:?}", change.key)));
            };
            match &change.row {
                Some(row) => self.put(&mut txn, name, copied(Ok(row.clone()))?)?,
                None => drop(txn.delete(&self.rows, &values![name, id])?),
            }
        }
        txn.replace(&self.position, &values![0u64, sequence])?;
        Ok(txn.commit()?)
    }

    fn put(&self, txn: &mut WriteTxn, table: &str, (id, until, row): Copied) -> Result<()> {
        txn.replace(&self.rows, &values![table, id, until, row.as_str()])?;
        Ok(())
    }

    /// Differences between the copy and the tables that log their changes: of each table the first row that is missing,
    /// extra or different, as text.
    ///
    /// # Errors
    /// The engine's.
    pub fn differences(&self, db: &Database) -> Result<Vec<String>> {
        let (mut problems, mut tables) = (Vec::new(), 0);
        for table in db.tables().iter().filter(|table| table.definition().log_changes) {
            tables += 1;
            let name = table.name();
            let rows = db.snapshot()?.scan(table).iter()?.map(copied).collect::<Result<Vec<_>>>()?;
            let by_id = |rows: Vec<Copied>| {
                rows.into_iter().map(|(id, until, row)| (id, (until, row))).collect::<BTreeMap<_, _>>()
            };
            let mut read = self.db.snapshot()?;
            let copy = read.scan(&self.rows).prefix(&values![name]).iter()?.map(|row| {
                let row = row?;
                let until = (!row.is_null(UNTIL)).then(|| row.datetime(UNTIL));
                Ok((row.u64("id"), until, row.str("row").to_string()))
            });
            let (rows, copy) = (by_id(rows), by_id(copy.collect::<Result<Vec<_>>>()?));
            // An expired row is in the copy until it is removed, and is not read.
            let expired = |until: Option<DateTime>| name == EXPIRING && until.is_some_and(|until| until <= now());
            let ids = rows.keys().chain(copy.keys().filter(|id| !rows.contains_key(id)));
            let differs = ids.filter(|id| match (rows.get(id), copy.get(id)) {
                (None, Some((until, _))) => !expired(*until),
                (row, copied) => row != copied,
            });
            let position = self.position()?;
            problems.extend(differs.take(1).map(|id| {
                let (row, copied) = (rows.get(id), copy.get(id));
                format!("the copy by the change log, at {position}: table {name}, row {id} is {copied:?}, not {row:?}")
            }));
        }
        if tables == 0 {
            problems.push("no table logs its changes".to_string());
        }
        Ok(problems)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Instant;

    /// Maximum wait of a test for the expiry thread.
    const LIMIT: Duration = Duration::from_secs(60);

    /// Catches up until the copy is equal. One attempt is not enough, because while the expiry thread commits, the log
    /// is readable only up to its transaction.
    fn until_equal(copy: &ChangeCopy, db: &Database) -> Result<()> {
        let begun = Instant::now();
        loop {
            copy.catch_up(db)?;
            let differences = copy.differences(db)?;
            if differences.is_empty() {
                return Ok(());
            }
            assert!(begun.elapsed() < LIMIT, "{differences:?}");
            std::thread::sleep(PAUSE);
        }
    }

    #[test]
    fn a_copy_that_misses_a_row_or_has_one_too_many_is_found() -> Result<()> {
        let folder = tempfile::tempdir().expect("a folder");
        let (db, copy) = (Database::in_memory()?, ChangeCopy::open(folder.path())?);
        let schema = Schema::new().column("id", Type::U64).nullable(UNTIL, Type::DateTime).primary_key(&["id"]);
        let table = db.create_table("kept", schema.clone().log_changes())?;
        let schema = schema.log_changes().index("by_until", &[UNTIL]).expires(UNTIL);
        let expiring = db.create_table(EXPIRING, schema)?;
        for id in 0..5u64 {
            let past = DateTime::from_unix_us(id as i64);
            db.transact(|txn| {
                txn.insert(&table, &values![id, past])?;
                txn.insert(&expiring, &values![id, past])?;
                txn.insert(&expiring, &values![100 + id, null])
            })?;
        }
        let last = db.last_change()?;
        until_equal(&copy, &db)?;
        assert!(copy.position()? >= last);
        drop(copy);
        let copy = ChangeCopy::open(folder.path())?;
        db.transact(|txn| txn.delete(&table, &values![3u64]))?;
        assert!(copy.differences(&db)?[0].contains("table kept, row 3 is Some"));
        until_equal(&copy, &db)?;
        copy.db.transact(|txn| txn.delete(&copy.rows, &values![EXPIRING, 102u64]))?;
        assert!(copy.differences(&db)?[0].contains("row 102 is None"));
        db.truncate_table(EXPIRING)?;
        until_equal(&copy, &db)?;
        Ok(())
    }
}
