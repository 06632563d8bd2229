//! A consumer of the change log: a copy of the tables that log their changes, and its position in the log. It continues
//! from the position in every life of the database.
//!
//! Rules
//! 1. The position advances when all changes of a transaction are applied. Applying a transaction again has no effect.
//! 2. A changed table is copied again from a snapshot, whose commits are first made durable.
//! 3. A consumer whose position was trimmed by age begins again with copies of all tables.
//! 4. The copy is compared only if no transaction is prepared, because the log is not readable beyond a prepared
//!    transaction.

use super::choices::Choices;
use super::content::{Content, content};
use super::expiring::{Briefs, EXPIRING, brief, differs, read_rows};
use super::found::{PREFIX, difference};
use super::played::{Played, call};
use highwater::{Change, ChangeKind, ChangeStream, Database, Error as Engine, Schema, Value};
use highwater_bench::{Error, Result};
use std::collections::BTreeMap;
use std::time::Duration;

/// Maximum number of changes of a partial read.
const CHANGES: usize = 60;

/// The consumer; the head of this file has its rules.
#[derive(Clone, Default)]
pub(super) struct Consumer {
    position: u64,
    tables: BTreeMap<String, BTreeMap<u64, Content>>,
    /// The rows of the table with expiry, including expired rows that are not yet removed.
    expiring: Briefs,
    /// Whether the log has ever had an age limit.
    was_bounded: bool,
}

/// Lets every other table log its changes.
pub(super) fn with_log(played: &Played, schema: Schema, indexes: usize) -> Schema {
    if indexes.is_multiple_of(2) { call!(played, Schema::log_changes(schema)) } else { schema }
}

impl Consumer {
    /// Notes whether the log has an age limit now: the consumer may miss trimmed changes much later.
    pub(super) fn note_bound(&mut self, db: &Database) {
        self.was_bounded |= db.options().change_log_expire_seconds > 0;
    }

    /// Consumes some or all changes, compares the copy, trims the log.
    ///
    /// # Errors
    /// The engine's; [`Error::Data`] for a copy that differs.
    pub(super) fn consume(&mut self, db: &Database, played: &Played, rng: &mut Choices) -> Result<()> {
        let takes_all = rng.u32(..4) > 0;
        match self.take(db, played, if takes_all { usize::MAX } else { rng.usize(..CHANGES) }) {
            Err(Error::Engine(Engine::ChangesTrimmed { .. })) if self.was_bounded => {
                return self.begin_again(db);
            }
            taken => taken?,
        }
        if takes_all && db.prepared().is_empty() {
            self.compare(db)?;
        }
        if rng.u32(..4) == 0 {
            let trimmed = call!(played, Database::trim_changes(db, self.position))?;
            if trimmed > self.position {
                return Err(Error::Data(format!("changes up to {trimmed} are trimmed, {} were read", self.position)));
            }
        }
        Ok(())
    }

    fn take(&mut self, db: &Database, played: &Played, most: usize) -> Result<()> {
        let mut stream = call!(played, Database::changes(db, self.position))?;
        let (mut of_transaction, mut taken) = (Vec::new(), 0);
        while taken < most && call!(played, ChangeStream::wait(&mut stream, Duration::ZERO))? {
            let Some(change) = stream.next().transpose()? else { break };
            let (sequence, is_last) = (change.sequence, change.ends_transaction);
            of_transaction.push(change);
            taken += 1;
            if is_last {
                if call!(played, ChangeStream::position(&stream)) != sequence || sequence <= self.position {
                    return Err(Error::Data(format!("transaction {sequence} follows {}", self.position)));
                }
                of_transaction.drain(..).try_for_each(|change| self.apply(db, &change))?;
                self.position = sequence;
            }
        }
        let last = call!(played, Database::last_change(db))?;
        match last < self.position {
            true => Err(Error::Data(format!("the last change is {last}, {} was read", self.position))),
            false => Ok(()),
        }
    }

    fn apply(&mut self, db: &Database, change: &Change) -> Result<()> {
        if change.kind == ChangeKind::TableChanged {
            return self.copy_again(db, &change.table);
        }
        let [Value::UInt(id)] = change.key[..] else {
            return Err(Error::Data(format!("a change has the key {:?}", change.key)));
        };
        if change.table == EXPIRING {
            match change.row.as_ref().map(brief) {
                Some((id, row)) => drop(self.expiring.insert(id, row)),
                None => drop(self.expiring.remove(&id)),
            }
            return Ok(());
        }
        let rows = self.tables.entry(change.table.clone()).or_default();
        match &change.row {
            Some(row) => {
                let (of_row, content) = content(row)?;
                rows.insert(id, content);
                if of_row != id {
                    return Err(Error::Data(format!("the change of row {id} has row {of_row}")));
                }
            }
            None => drop(rows.remove(&id)),
        }
        Ok(())
    }

    /// Begins again (rule 3). A failure changes nothing.
    fn begin_again(&mut self, db: &Database) -> Result<()> {
        let mut new = Consumer { position: db.last_change()?, was_bounded: true, ..Consumer::default() };
        for table in db.tables() {
            match table.name() {
                EXPIRING => new.expiring = read_rows(db, &mut db.snapshot()?, &table)?.0.into_iter().collect(),
                name if name.starts_with(PREFIX) && table.definition().log_changes => new.copy_again(db, name)?,
                _ => {}
            }
        }
        db.flush_log()?;
        *self = new;
        Ok(())
    }

    /// Copies a changed table (rule 2).
    fn copy_again(&mut self, db: &Database, name: &str) -> Result<()> {
        self.tables.remove(name);
        if db.has_table(name) {
            let rows =
                db.snapshot()?.scan(&db.table(name)?).iter()?.map(|row| content(&row?)).collect::<Result<_>>()?;
            db.flush_log()?;
            self.tables.insert(name.to_string(), rows);
        }
        Ok(())
    }

    /// Compares the copy with the tables (rule 4).
    fn compare(&self, db: &Database) -> Result<()> {
        let mut read = db.snapshot()?;
        for table in db.tables() {
            if !table.name().starts_with(PREFIX) || !table.definition().log_changes {
                continue;
            }
            let rows = read.scan(&table).iter()?.map(|row| content(&row?)).collect::<Result<Vec<_>>>()?;
            let copy: Vec<_> =
                self.tables.get(table.name()).into_iter().flatten().map(|(id, row)| (*id, *row)).collect();
            if let Some(text) = difference("the copy", &copy, &rows) {
                return Err(Error::Data(format!("the change log of {} up to {}: {text}", table.name(), self.position)));
            }
        }
        if !db.has_table(EXPIRING) {
            return Ok(());
        }
        let (rows, between) = read_rows(db, &mut read, &db.table(EXPIRING)?)?;
        match differs(&rows, &self.expiring, between) {
            Some(text) => Err(Error::Data(format!("the change log of {EXPIRING} up to {}: {text}", self.position))),
            None => Ok(()),
        }
    }
}
