//! Transactions that are open at once, interleaved on one thread, and snapshots.

use super::choices::Choices;
use super::oracle::{Changes, Content, InDoubt, Model, Oracle, Rows, body, content, differs, text};
use crate::error::{Error, Result};
use highwater::{
    Database, Error as Engine, Isolation, ReadTxn, Savepoint, ScanIter, Table, TxnOptions, WriteTxn, values,
};

/// Ids that rows have.
const IDS: u64 = 300;
/// Values of the first text.
const FEW: u32 = 20;
/// Long rows that are written at once.
const FILLED: u64 = 24;

/// An open transaction.
pub struct Actor {
    txn: WriteTxn,
    options: TxnOptions,
    /// Commits that its snapshot sees.
    sees: Option<u64>,
    own: Changes,
    savepoints: Vec<(Savepoint, Changes)>,
}

/// What there is beside a transaction when it acts.
pub struct World<'a> {
    pub db: &'a Database,
    pub oracle: &'a Oracle,
    /// What the others have changed and not committed.
    pub others: &'a Changes,
    /// Whether many long rows are written at once, so that the file grows.
    pub fills: bool,
    /// Whether no other transaction is open: nothing is locked.
    pub is_alone: bool,
}

/// A snapshot that is held.
pub struct Snapshot {
    read: ReadTxn,
    sees: u64,
}

/// An error that a transaction may meet and go on: the statement was undone.
pub fn is_refusal(error: &Engine) -> bool {
    matches!(error, Engine::LockWaitTimeout | Engine::WriteConflict | Engine::DuplicateKey { .. })
}

fn random_content(rng: &mut Choices) -> Content {
    let body_bytes = if rng.u32(..12) == 0 { rng.u32(1000..9000) } else { rng.u32(..60) };
    Content { a: rng.u32(..FEW), b: rng.u32(..), body_bytes }
}

impl Actor {
    /// Begins one.
    ///
    /// # Errors
    /// The engine's.
    pub fn begin(db: &Database, rng: &mut Choices) -> Result<Actor> {
        let isolation = Isolation::ALL[rng.usize(..Isolation::ALL.len())];
        let first_committer_wins = rng.bool();
        let options = TxnOptions { isolation, first_committer_wins, ..TxnOptions::default() };
        let txn = db.begin_with(options.clone())?;
        Ok(Actor { txn, options, sees: None, own: Changes::new(), savepoints: Vec::new() })
    }

    /// What it has changed and not committed.
    pub fn own(&self) -> &Changes {
        &self.own
    }

    /// A random statement: a write, a read, a savepoint.
    ///
    /// # Errors
    /// The engine's; [`Error::Data`] for a wrong answer.
    pub fn act(&mut self, world: &World<'_>, rng: &mut Choices) -> Result<()> {
        let oracle = world.oracle;
        let Some(name) = rng.choice(oracle.tables.keys()).cloned() else { return Ok(()) };
        let (table, model) = (world.db.table(&name)?, &oracle.tables[&name]);
        match rng.u32(..10) {
            0 if world.fills => {
                let first = rng.u64(..IDS);
                (first..IDS.min(first + FILLED)).try_for_each(|id| {
                    let long = Content { body_bytes: rng.u32(8000..9000), ..random_content(rng) };
                    self.write(&table, model, world, (id, long), rng)
                })
            }
            0..=5 => {
                let row = (rng.u64(..IDS), random_content(rng));
                self.write(&table, model, world, row, rng)
            }
            6..=8 => self.read(&table, model, world, rng),
            _ => self.use_savepoint(rng),
        }
    }

    /// Whether its snapshot begins with a write too.
    fn writes_by_snapshot(&self) -> bool {
        self.options.first_committer_wins && self.options.isolation == Isolation::RepeatableRead
    }

    fn newest(&self, model: &Model, commits: u64, table: &Table, id: u64) -> Option<Content> {
        match self.own.get(&(table.name().to_string(), id)) {
            Some(content) => *content,
            None => model.newest(commits, id),
        }
    }

    fn write(
        &mut self,
        table: &Table,
        model: &Model,
        world: &World<'_>,
        (id, new): (u64, Content),
        rng: &mut Choices,
    ) -> Result<()> {
        let (a, b, body) = (text(new.a), text(new.b), body(&new));
        let commits = world.oracle.commits;
        if self.writes_by_snapshot() {
            self.sees.get_or_insert(commits);
        }
        let before = self.newest(model, commits, table, id);
        let (is_insert, is_delete) = match rng.u32(..12) {
            0..=5 => (before.is_none(), false),
            6 | 7 => (true, false),
            8..=10 => (false, true),
            _ => (false, false),
        };
        let (result, after) = if is_insert {
            let row = values![id, a.as_str(), b.as_str(), body.as_str()];
            (self.txn.insert(table, &row).map(|_| true), Some(new))
        } else if is_delete {
            (self.txn.delete(table, &values![id]), None)
        } else {
            let columns = [(1, a.as_str().into()), (2, b.as_str().into()), (3, body.as_str().into())];
            (self.txn.update(table, &values![id], &columns), Some(new))
        };
        let name = (table.name().to_string(), id);
        let wrong = |what: &str| Err(Error::Data(format!("row {id} of table {} {what}", table.name())));
        match result {
            Ok(true) if is_insert && before.is_some() => return wrong("was inserted though it is there"),
            Ok(true) if !is_insert && before.is_none() => return wrong("was changed though there is none"),
            Ok(true) if world.others.contains_key(&name) => return wrong("was changed though another has changed it"),
            Ok(true) if self.is_changed_since_snapshot(model, commits, &name) => {
                return wrong("was changed though it is newer than the snapshot, and first committers win");
            }
            Ok(true) => drop(self.own.insert(name, after)),
            Ok(false) if before.is_some() => return wrong("was not found"),
            Ok(false) => {}
            Err(Engine::DuplicateKey { .. }) if is_insert && before.is_some() => {}
            Err(error) if is_refusal(&error) => {
                if world.is_alone && !self.writes_by_snapshot() {
                    return wrong(&format!("was refused though no other transaction is open: {error}"));
                }
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }

    /// Whether a row is certainly not what its snapshot saw, and it must not change it.
    fn is_changed_since_snapshot(&self, model: &Model, commits: u64, name: &(String, u64)) -> bool {
        let seen = self.sees.filter(|_| self.writes_by_snapshot() && !self.own.contains_key(name));
        seen.is_some_and(|sees| model.newest(sees, name.1) != model.newest(commits, name.1))
    }

    /// The rows that it must see in a plain or locking read.
    fn seen(&mut self, table: &Table, model: &Model, world: &World<'_>, locks: bool) -> Rows {
        let commits = world.oracle.commits;
        let mut dirty = None;
        let at = match self.options.isolation {
            _ if locks && !self.writes_by_snapshot() => commits,
            Isolation::RepeatableRead => *self.sees.get_or_insert(commits),
            Isolation::ReadUncommitted => {
                dirty = Some(world.others);
                commits
            }
            Isolation::ReadCommitted | Isolation::Serializable => commits,
        };
        let mut rows = model.at(at);
        for ((name, id), content) in dirty.into_iter().flatten().chain(&self.own) {
            match content {
                Some(content) if name == table.name() => drop(rows.insert(*id, *content)),
                None if name == table.name() => drop(rows.remove(id)),
                _ => {}
            }
        }
        rows
    }

    fn read(&mut self, table: &Table, model: &Model, world: &World<'_>, rng: &mut Choices) -> Result<()> {
        let (locks, saw) = (rng.u32(..4) == 0, self.sees);
        let rows = self.seen(table, model, world, locks);
        if rng.bool() {
            let id = rng.u64(..IDS);
            let found = match if locks {
                self.txn.get_for_update(table, &values![id])
            } else {
                self.txn.get(table, &values![id])
            } {
                Err(error) if is_refusal(&error) => return Ok(()),
                found => found?.map(|row| content(&row)).transpose()?,
            };
            let right = rows.get(&id).map(|content| (id, *content));
            return match found == right {
                true => Ok(()),
                false => Err(Error::Data(format!("table {}: row {id} is {found:?}, {right:?} is right", table.name()))),
            };
        }
        let index = index_of(model, rng);
        let scan = self.txn.scan(table).index(index);
        let Some(found) = rows_of(if locks { scan.for_share().iter() } else { scan.iter() })? else {
            // A plain read by an index that is too young is refused before there is a snapshot.
            self.sees = if locks { self.sees } else { saw };
            return Ok(());
        };
        differs(index, &found, &rows).map_or(Ok(()), |text| Err(wrong(table, &self.options, &text)))
    }

    fn use_savepoint(&mut self, rng: &mut Choices) -> Result<()> {
        if self.savepoints.is_empty() || rng.bool() {
            self.savepoints.push((self.txn.savepoint(), self.own.clone()));
            return Ok(());
        }
        let at = rng.usize(..self.savepoints.len());
        let (savepoint, own) = self.savepoints.swap_remove(at);
        self.savepoints.truncate(at);
        self.txn.rollback_to(savepoint)?;
        self.own = own;
        Ok(())
    }

    /// Commits it, mostly, or rolls it back.
    ///
    /// # Errors
    /// The engine's: then the commit is in doubt.
    pub fn end(self, oracle: &mut Oracle, rng: &mut Choices) -> Result<()> {
        if rng.u32(..4) == 0 {
            return Ok(self.txn.rollback()?);
        }
        oracle.in_doubt = Some(InDoubt::Transaction(self.own.clone()));
        self.txn.commit()?;
        oracle.in_doubt = None;
        oracle.committed(self.own);
        Ok(())
    }
}

impl Snapshot {
    /// Takes one, if there is a table: its first read decides what it sees.
    ///
    /// # Errors
    /// The engine's.
    pub fn take(db: &Database, oracle: &Oracle) -> Result<Option<Snapshot>> {
        let Some(name) = oracle.tables.keys().next() else { return Ok(None) };
        let mut read = db.snapshot()?;
        read.get(&db.table(name)?, &values![0])?;
        Ok(Some(Snapshot { read, sees: oracle.commits }))
    }

    /// Reads a table, if it is as old as the snapshot.
    ///
    /// # Errors
    /// The engine's; [`Error::Data`] for a wrong answer.
    pub fn look(&mut self, db: &Database, oracle: &Oracle, rng: &mut Choices) -> Result<()> {
        let Some((name, model)) = rng.choice(oracle.tables.iter()) else { return Ok(()) };
        let table = db.table(name)?;
        let index = index_of(model, rng);
        let Some(rows) = rows_of(self.read.scan(&table).index(index).iter())? else { return Ok(()) };
        let text = differs(index, &rows, &model.at(self.sees));
        text.map_or(Ok(()), |text| Err(Error::Data(format!("a snapshot of table {name}: {text}"))))
    }
}

/// The rows of a scan; `None` if the index is younger than the transaction, or a row or range is locked.
fn rows_of(scan: highwater::Result<ScanIter<'_>>) -> Result<Option<Vec<(u64, Content)>>> {
    let rows = scan.and_then(|rows| rows.collect::<highwater::Result<Vec<_>>>());
    match rows {
        Ok(rows) => Ok(Some(rows.iter().map(content).collect::<Result<Vec<_>>>()?)),
        Err(Engine::Usage(_)) => Ok(None),
        Err(error) if is_refusal(&error) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

fn index_of(model: &Model, rng: &mut Choices) -> &'static str {
    rng.choice(model.indexes.iter()).copied().filter(|_| rng.bool()).unwrap_or("PRIMARY")
}

fn wrong(table: &Table, options: &TxnOptions, text: &str) -> Error {
    Error::Data(format!("table {} under {}: {text}", table.name(), options.isolation.name()))
}
