//! Schedules on Highwater, in this process. A statement that names rows by their values is a locking scan, then a
//! change of each row that matches.

use super::play::{Client, Rows, Subject};
use super::script::{Operation, Which};
use crate::isolation::Setting;
use highwater::{Database, Options, Schema, Table, Type, ValueRef, WriteTxn, values};
use highwater_bench::Result;
use highwater_storage::StorageSet;
use std::time::Duration;

const VALUE: usize = 1;
const INDEX: &str = "by_value";

/// A database in memory.
pub struct Highwater {
    db: Database,
    tables: u32,
    table: Option<Table>,
}

impl Highwater {
    /// Creates a database.
    ///
    /// # Errors
    /// The engine's.
    pub fn open() -> Result<Highwater> {
        let options = Options { buffer_pool_size: 4 << 20, log_file_size: 4 << 20, ..Options::default() };
        Ok(Highwater { db: Database::open_storage(StorageSet::memory(), options)?, tables: 0, table: None })
    }

    fn table(&self) -> Result<Table> {
        let missing = || highwater::Error::Usage("there is no table yet".into());
        Ok(self.table.clone().ok_or_else(missing)?)
    }
}

impl Subject for Highwater {
    type Client = Session;
    // The number of waits is exact, but a deadlock is looked for just after a wait has begun.
    const STEADY: Duration = Duration::from_millis(5);

    fn prepare(&mut self, indexed: bool) -> Result<()> {
        self.tables += 1;
        let mut schema = Schema::new().column("id", Type::I64).column("value", Type::I64).primary_key(&["id"]);
        if indexed {
            schema = schema.index(INDEX, &["value"]);
        }
        let table = self.db.create_table(&format!("test{}", self.tables), schema)?;
        let mut txn = self.db.begin()?;
        txn.insert(&table, &values![1i64, 10i64])?;
        txn.insert(&table, &values![2i64, 20i64])?;
        txn.commit()?;
        self.table = Some(table);
        Ok(())
    }

    fn begin(&self, setting: Setting) -> Result<Session> {
        Ok(Session { table: self.table()?, txn: Some(self.db.begin_with(setting.options())?) })
    }

    fn waiting(&self) -> Result<u64> {
        Ok(self.db.stats().row_lock_current_waits)
    }
}

/// A session with its transaction.
pub struct Session {
    table: Table,
    txn: Option<WriteTxn>,
}

impl Session {
    fn txn(&mut self) -> Result<(&Table, &mut WriteTxn)> {
        let ended = || highwater::Error::Usage("the transaction has ended".into());
        Ok((&self.table, self.txn.as_mut().ok_or_else(ended)?))
    }

    /// Finds the rows, and locks them if `to_change`.
    fn find(&mut self, which: Which, to_change: bool) -> Result<Rows> {
        let (table, txn) = self.txn()?;
        let (low, high) = match which {
            Which::Between(low, high) => (low, high),
            _ => (i64::MIN, i64::MAX),
        };
        let (low, high) = ([ValueRef::Int(low)], [ValueRef::Int(high)]);
        let mut scan = txn.scan(table).from(&low).to(&high);
        if matches!(which, Which::Between(..)) {
            scan = scan.index(INDEX);
        }
        if to_change {
            scan = scan.for_update();
        }
        let (mut rows, mut found) = (Rows::new(), scan.iter()?);
        while let Some(row) = found.next_ref()? {
            let (id, value) = (row.i64(0), row.i64(VALUE));
            let matches = match which {
                Which::All | Which::Between(..) => true,
                Which::Value(wanted) => value == wanted,
                Which::DivisibleBy(number) => value % number == 0,
            };
            if matches {
                rows.push((id, value));
            }
        }
        rows.sort_unstable();
        Ok(rows)
    }

    fn write(&mut self, id: i64, value: i64) -> Result<()> {
        let (table, txn) = self.txn()?;
        txn.update(table, &values![id], &[(VALUE, ValueRef::Int(value))])?;
        Ok(())
    }
}

impl Client for Session {
    fn step(&mut self, operation: Operation) -> Result<Rows> {
        match operation {
            Operation::Read(id) => {
                let (table, txn) = self.txn()?;
                let row = txn.get(table, &values![id])?;
                return Ok(row.map(|row| (id, row.i64(VALUE))).into_iter().collect());
            }
            Operation::ReadWhere(which) => return self.find(which, false),
            Operation::Write(id, value) => self.write(id, value)?,
            Operation::WriteWhere(which, value) => {
                for (id, _) in self.find(which, true)? {
                    self.write(id, value)?;
                }
            }
            Operation::AddToAll(number) => {
                for (id, value) in self.find(Which::All, true)? {
                    self.write(id, value + number)?;
                }
            }
            Operation::Insert(id, value) => {
                let (table, txn) = self.txn()?;
                txn.insert(table, &values![id, value])?;
            }
            Operation::DeleteWhere(which) => {
                for (id, _) in self.find(which, true)? {
                    let (table, txn) = self.txn()?;
                    txn.delete(table, &values![id])?;
                }
            }
            Operation::Commit => self.txn.take().map_or(Ok(()), WriteTxn::commit)?,
            Operation::Abort => self.txn.take().map_or(Ok(()), WriteTxn::rollback)?,
        }
        Ok(Rows::new())
    }

    fn roll_back(&mut self) {
        self.txn = None;
    }
}
