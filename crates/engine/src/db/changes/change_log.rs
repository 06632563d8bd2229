//! The change log: its table, its numbers, and writes to it.

use super::entry::{Entry, put, sequence_in};
use super::sequences::Sequences;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::sync::poison::{OnStop, Poison};
use crate::sync::{Condvar, Mutex};
use crate::table::catalog::Catalog;
use crate::table::handle::{Registry, TableShared};
use crate::table::version::TableVersion;
use crate::table::{Schema, Table, Type, ValueRef};
use crate::txn::{Access, ChangedRow, RowOp, Txn, TxnOptions, TxnSystem};
use crate::types::TableId;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

/// Name of the table that is the change log.
pub(crate) const CHANGE_LOG: &str = "highwater.changes";

/// Bytes of changes in a row of the table, at most; less in pages smaller than 16 KiB.
const MAX_PART_BYTES: usize = 2048;
/// A row of the table takes this part of a page.
const PARTS_PER_PAGE: usize = 8;

/// See the module.
pub(in crate::db) struct ChangeLog {
    ctx: Arc<Context>,
    /// Its table, from when a table first logs its changes.
    table: OnceLock<Table>,
    /// The damage that makes the log unusable.
    damage: OnceLock<String>,
    sequences: Mutex<Sequences>,
    /// A number has ended.
    ended: Condvar,
}

impl OnStop for ChangeLog {
    fn stopped(&self) {
        let _sequences = self.sequences.lock();
        self.ended.notify_all();
    }

    fn interrupted(&self) {
        self.stopped();
    }
}

/// The number of a transaction that has not ended.
pub(in crate::db) struct OpenSequence {
    log: Arc<ChangeLog>,
    number: u64,
}

impl Drop for OpenSequence {
    fn drop(&mut self) {
        self.log.sequences.lock().end(self.number);
        self.log.ended.notify_all();
    }
}

/// The log is opened.
impl ChangeLog {
    pub(in crate::db) fn open(ctx: &Arc<Context>, registry: &Registry) -> Arc<ChangeLog> {
        let log = Arc::new(ChangeLog {
            ctx: ctx.clone(),
            table: OnceLock::new(),
            damage: OnceLock::new(),
            sequences: Mutex::default(),
            ended: Condvar::new(),
        });
        if let Ok(shared) = registry.get(CHANGE_LOG) {
            let _ = log.table.set(Table { shared });
        }
        let poison: &Arc<Poison> = &ctx.poison;
        poison.wake_on_stop(&log);
        log
    }

    /// Takes the number again that a prepared transaction had before the opening. If its undo is damaged the log is not
    /// read at all until it has ended.
    pub(in crate::db) fn adopt(self: &Arc<Self>, system: &TxnSystem, txn: &Txn) -> Result<Option<OpenSequence>> {
        let Some(table) = self.table.get() else { return Ok(None) };
        let id = table.shared.current.read().id;
        let number = match txn.changed_rows().first_key_of(system, id) {
            Ok(None) => return Ok(None),
            Ok(Some(key)) => sequence_in(&key).filter(|number| *number > 0).unwrap_or(1),
            Err(error) if error.is_damage() => 1,
            Err(error) => return Err(error),
        };
        self.sequences.lock().take_again(number);
        Ok(Some(OpenSequence { log: self.clone(), number }))
    }

    /// Continues the numbers after the last one of the table. If that cannot be read, calls that use the log fail, but
    /// the opening does not.
    pub(super) fn go_on_behind(&self, last: Result<u64>) -> Result<()> {
        match last {
            Ok(last) => self.sequences.lock().go_on_behind(last),
            Err(error) if error.is_damage() => drop(self.damage.set(error.to_string())),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Makes its table, if there is none. The caller holds the schema mutex.
    pub(super) fn create(&self, catalog: &Arc<Catalog>, registry: &Registry) -> Result<()> {
        if self.table.get().is_some() {
            return Ok(());
        }
        let schema = Schema::new().column("sequence", Type::U64).column("part", Type::U32);
        let schema = schema.column("bytes", Type::Binary(MAX_PART_BYTES as u32)).primary_key(&["sequence", "part"]);
        let entry = catalog.create_table(schema.check(CHANGE_LOG)?)?;
        let shared = TableShared::open(catalog, entry);
        registry.add(shared.clone());
        let _ = self.table.set(Table { shared });
        Ok(())
    }
}

/// The log is read.
impl ChangeLog {
    /// Its table, if there is one.
    ///
    /// # Errors
    /// It cannot be read.
    pub(super) fn table(&self) -> Result<Option<&Table>> {
        match self.damage.get() {
            Some(damage) => Err(Error::Corrupt(format!("the change log: {damage}"))),
            None => Ok(self.table.get()),
        }
    }

    /// The last number that was taken.
    pub(super) fn last(&self) -> u64 {
        self.sequences.lock().last()
    }

    /// Up to which number every transaction has ended; all of that is durable.
    pub(super) fn readable(&self, is_read_only: bool) -> Result<u64> {
        let ended = self.sequences.lock().ended();
        // After the look: the ends of those transactions are in the redo log.
        if !is_read_only {
            self.ctx.log.flush_to(self.ctx.log.end_lsn())?;
        }
        Ok(ended)
    }

    /// Waits until transactions beyond `ended` have ended; false after the deadline.
    pub(super) fn wait_beyond(&self, ended: u64, deadline: Instant, check: impl Fn() -> Result<()>) -> Result<bool> {
        let mut sequences = self.sequences.lock();
        while sequences.ended() <= ended {
            check()?;
            if self.ended.wait_until(&mut sequences, deadline).timed_out() {
                return Ok(sequences.ended() > ended);
            }
        }
        Ok(true)
    }
}

/// The log is written.
impl ChangeLog {
    /// Writes what the transaction has changed, if anything (rule 1 of the module). The number is open until it is
    /// dropped.
    pub(in crate::db) fn append(self: &Arc<Self>, system: &TxnSystem, txn: &mut Txn) -> Result<Option<OpenSequence>> {
        let (mut rows, mut writer) = (txn.changed_rows(), None);
        while let Some(row) = rows.next(system, txn)? {
            let writer = match &mut writer {
                Some(writer) => writer,
                none => none.insert(Writer::new(self)?),
            };
            writer.put_row(&row);
            writer.write_full_parts(system, txn)?;
        }
        writer.map(|writer| writer.finish(system, txn)).transpose()
    }

    /// Writes that a table is about to be changed, under each of its names, as a transaction of its own.
    pub(super) fn append_table_change(
        self: &Arc<Self>,
        system: &TxnSystem,
        table: TableId,
        names: &[&str],
    ) -> Result<()> {
        debug_assert!(!names.is_empty(), "rule 5: a change of table {table} names no table");
        let mut txn = system.begin(&TxnOptions::default(), Access::ReadWrite)?;
        let written = Writer::new(self).and_then(|mut writer| {
            for name in names {
                put(&Entry::Table { id: table, name }, &mut writer.bytes);
                put(&Entry::TableChanged { table }, &mut writer.bytes);
            }
            writer.finish(system, &mut txn)
        });
        match written {
            Ok(_open) => system.commit(txn),
            Err(error) => system.rollback(txn).and(Err(error)),
        }
    }

    fn take(self: &Arc<Self>) -> OpenSequence {
        OpenSequence { log: self.clone(), number: self.sequences.lock().take() }
    }
}

/// The changes that a transaction logs.
struct Writer {
    sequence: OpenSequence,
    version: Arc<TableVersion>,
    part_bytes: usize,
    part: u32,
    /// Changes that are not written yet.
    bytes: Vec<u8>,
    /// Tables that were named.
    named: Vec<TableId>,
    key: Vec<u8>,
    row: Vec<u8>,
}

impl Writer {
    fn new(log: &Arc<ChangeLog>) -> Result<Writer> {
        let missing = || Error::Corrupt("a table logs its changes, and the change log is missing".to_string());
        let version = log.table()?.ok_or_else(missing)?.shared.current.read().clone();
        let mut bytes = Vec::new();
        put(&Entry::Begin { unix_us: log.ctx.unix_us() as i64 }, &mut bytes);
        Ok(Writer {
            sequence: log.take(),
            version,
            part_bytes: (log.ctx.pool.page_bytes() / PARTS_PER_PAGE).min(MAX_PART_BYTES),
            part: 0,
            bytes,
            named: Vec::new(),
            key: Vec::new(),
            row: Vec::new(),
        })
    }

    fn put_row(&mut self, changed: &ChangedRow<'_>) {
        let (table, key) = (changed.table.id(), changed.key);
        debug_assert_ne!(changed.table.name(), CHANGE_LOG, "rule 1: the change log logs its own rows");
        debug_assert!(changed.row.is_some() || changed.existed, "a row of table {table} came and went");
        if !self.named.contains(&table) {
            self.named.push(table);
            put(&Entry::Table { id: table, name: changed.table.name() }, &mut self.bytes);
        }
        let entry = match changed.row {
            Some(row) if changed.existed => Entry::Update { table, key, row },
            Some(row) => Entry::Insert { table, key, row },
            None => Entry::Delete { table, key },
        };
        put(&entry, &mut self.bytes);
    }

    fn write_full_parts(&mut self, system: &TxnSystem, txn: &mut Txn) -> Result<()> {
        let bytes = std::mem::take(&mut self.bytes);
        let (parts, rest) = bytes.split_at(bytes.len() - bytes.len() % self.part_bytes);
        parts.chunks(self.part_bytes).try_for_each(|part| self.write_part(system, txn, part))?;
        self.bytes.extend_from_slice(rest);
        debug_assert!(self.bytes.len() < self.part_bytes, "a part of {} bytes is not written", self.part_bytes);
        Ok(())
    }

    fn finish(mut self, system: &TxnSystem, txn: &mut Txn) -> Result<OpenSequence> {
        put(&Entry::End, &mut self.bytes);
        self.write_full_parts(system, txn)?;
        let rest = std::mem::take(&mut self.bytes);
        if !rest.is_empty() {
            self.write_part(system, txn, &rest)?;
        }
        debug_assert!(self.part > 0, "the number {} has no row in the log", self.sequence.number);
        Ok(self.sequence)
    }

    fn write_part(&mut self, system: &TxnSystem, txn: &mut Txn, bytes: &[u8]) -> Result<()> {
        debug_assert!((1..=self.part_bytes).contains(&bytes.len()), "a part of {} bytes is written", bytes.len());
        let values = [ValueRef::UInt(self.sequence.number), ValueRef::UInt(self.part.into()), ValueRef::Bytes(bytes)];
        let Writer { version, key, row, .. } = self;
        version.layouts.present().encode_columns(&values[..], None, row)?;
        key.clear();
        version.key_of(row, key);
        debug_assert_eq!(sequence_in(key), Some(self.sequence.number), "rule 4: a key does not begin with its number");
        RowOp { system, txn, table: &**version, key }.insert(row)?;
        let full = || Error::Usage("a transaction has too many changes for the change log".to_string());
        self.part = self.part.checked_add(1).ok_or_else(full)?;
        Ok(())
    }
}

/// Refuses the name of the change log as that of a table of users.
///
/// # Errors
/// [`Error::Schema`].
pub(in crate::db) fn check_not_change_log(name: &str) -> Result<()> {
    match name {
        CHANGE_LOG => Err(Error::Schema(format!("table {name}: it is the name of the change log"))),
        _ => Ok(()),
    }
}
