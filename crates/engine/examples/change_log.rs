//! A copy of a table in another database, kept by a consumer of the change log. The copy and the position up to which
//! it goes are one transaction of the other database: so the consumer can be killed at any moment.
//!
//! ```text
//! cargo run --release --example change_log
//! ```

use highwater::{Change, ChangeKind, ChangeStream, Database, Result, Row, Schema, Type, WriteTxn, values};
use std::thread;
use std::time::Duration;

const WRITES: u64 = 2_000;

fn schema() -> Schema {
    Schema::new().column("id", Type::U64).column("cents", Type::I64).primary_key(&["id"])
}

/// What the consumer has: the copy, and a table with its position.
struct Copy {
    db: Database,
}

impl Copy {
    fn open() -> Result<Copy> {
        let db = Database::in_memory()?;
        db.create_table("accounts", schema())?;
        db.create_table("position", Schema::new().column("id", Type::U8).column("at", Type::U64).primary_key(&["id"]))?;
        Ok(Copy { db })
    }

    fn position(&self) -> Result<u64> {
        let row = self.db.snapshot()?.get(&self.db.table("position")?, &values![0])?;
        Ok(row.map_or(0, |row| row.u64("at")))
    }

    /// Takes transactions until there are none for a while, or the consumer dies in the middle of one.
    fn follow(&self, source: &Database, dies_after: usize) -> Result<()> {
        let mut changes = source.changes(self.position()?)?;
        for _ in 0..dies_after {
            if !changes.wait(Duration::from_millis(50))? {
                break;
            }
            self.apply_next(source, &mut changes)?;
        }
        Ok(())
    }

    fn apply_next(&self, source: &Database, changes: &mut ChangeStream) -> Result<()> {
        let mut txn = self.db.begin()?;
        for change in changes.by_ref() {
            let change = change?;
            self.apply(source, &mut txn, &change)?;
            if change.ends_transaction {
                txn.replace(&self.db.table("position")?, &values![0, change.sequence])?;
                break;
            }
        }
        txn.commit()
    }

    fn apply(&self, source: &Database, txn: &mut WriteTxn, change: &Change) -> Result<()> {
        let accounts = self.db.table("accounts")?;
        let put = |txn: &mut WriteTxn, row: &Row| txn.replace(&accounts, &row.values().collect::<Vec<_>>()).map(drop);
        match (change.kind, &change.row) {
            (ChangeKind::TableChanged, _) => {
                // What the table has become is not in the log: it is copied again.
                txn.scan(&accounts).delete()?;
                let mut read = source.snapshot()?;
                for row in read.scan(&source.table(&change.table)?).iter()? {
                    put(txn, &row?)?;
                }
                source.flush_log()
            }
            (_, Some(row)) => put(txn, row),
            (_, None) => {
                let key: Vec<_> = change.key.iter().map(|value| value.as_ref()).collect();
                txn.delete(&accounts, &key).map(drop)
            }
        }
    }

    fn rows(db: &Database) -> Result<Vec<Row>> {
        db.snapshot()?.scan(&db.table("accounts")?).iter()?.collect()
    }
}

fn main() -> Result<()> {
    let source = Database::in_memory()?;
    let accounts = source.create_table("accounts", schema().log_changes())?;
    let copy = Copy::open()?;
    thread::scope(|scope| {
        let writer = scope.spawn(|| {
            (0..WRITES).try_for_each(|n| {
                source.transact(|txn| {
                    txn.replace(&accounts, &values![n % 97, n as i64])?;
                    txn.delete(&accounts, &values![n * 31 % 97]).map(drop)
                })
            })
        });
        let mut lives = 0;
        while !writer.is_finished() {
            copy.follow(&source, 50)?;
            lives += 1;
        }
        writer.join().expect("the writer does not panic")?;
        copy.follow(&source, usize::MAX)?;
        println!("{lives} lives of the consumer, {} rows", Copy::rows(&source)?.len());
        Ok::<(), highwater::Error>(())
    })?;
    assert_eq!(Copy::rows(&copy.db)?, Copy::rows(&source)?);

    let accounts = source.truncate_table("accounts")?;
    source.transact(|txn| txn.insert(&accounts, &values![1, 100]).map(drop))?;
    copy.follow(&source, usize::MAX)?;
    assert_eq!(Copy::rows(&copy.db)?, Copy::rows(&source)?);
    println!("after a truncation the copy has {} row", Copy::rows(&copy.db)?.len());
    source.trim_changes(copy.position()?)?;
    Ok(())
}
