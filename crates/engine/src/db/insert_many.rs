//! Inserting many rows by one call.
//!
//! Rules
//! 1. The call is one statement: if it fails, or the caller's code that makes the rows panics, no row is inserted, and
//!    the state of the transaction is as before.
//! 2. Rows are collected and inserted in batches, so a row can cause an error that the call for a later row returns.
//!    After an error no further row is inserted.
//! 3. While pages are missing from the pool, the leaves of a batch's rows are read ahead concurrently as rows are
//!    added, except for rows with ascending keys, which share leaves.

use super::counter_wait::move_counter;
use super::write_txn::{Inserted, StatementContext, WriteTxn};
use crate::error::{Error, Result};
use crate::table::handle::TableShared;
use crate::table::lock::TableLockMode;
use crate::table::{NewColumns, Table, ValueRef};
use crate::txn::{NewRows, RowsOp, TableTrees, check_outside_row_closure};

/// Bytes of rows that are inserted at once.
const BATCH_BYTES: usize = 64 << 10;
/// Rows whose leaves are read ahead together: as many as the queue of requested pages takes; fewer in a pool that does
/// not have this many frames for each.
const MAX_NAMED: usize = 96;
const FRAMES_OF_A_NAME: usize = 32;

impl StatementContext<'_> {
    /// Encodes a row that is to be inserted, and its key.
    #[inline]
    pub(super) fn encode_new<N: NewColumns + ?Sized>(&mut self, table: &TableShared, new: &N) -> Result<Inserted> {
        let StatementContext { system, txn, version, key, row, .. } = self;
        let counted = (table, &***version as &dyn TableTrees);
        let generate = |me| table.generate(me, |column| new.is_null(column));
        let generated = move_counter((system, txn), counted, generate)?;
        let number = generated.map(|(column, number)| (column, ValueRef::UInt(number)));
        version.layouts.present().encode_columns(new, number, row)?;
        key.clear();
        version.key_of(row, key);
        version.check_keys(key, row)?;
        if generated.is_none() {
            move_counter((system, txn), counted, |me| table.observe(me, version, row))?;
        }
        let is_generated = |(column, number): (usize, u64)| version.counted(row, column) == Some(number);
        debug_assert!(generated.is_none_or(is_generated), "the number {generated:?} is not in its row");
        Ok(Inserted { auto_increment: generated.map(|(_, number)| number) })
    }
}

/// Takes the rows of [`WriteTxn::insert_many_with`].
pub struct Rows<'c> {
    call: StatementContext<'c>,
    table: &'c TableShared,
    batch: NewRows,
    /// The greatest key so far; rows of the batch whose leaves are read ahead, and how many may be.
    greatest: Vec<u8>,
    named: usize,
    max_named: usize,
    inserted: u64,
    has_failed: bool,
}

impl Rows<'_> {
    /// Inserts a row, perhaps not at once: a value for each column, in order.
    ///
    /// # Errors
    /// As [`WriteTxn::insert`], also because of an earlier row. [`Error::Usage`] after another error.
    pub fn push(&mut self, values: &[ValueRef<'_>]) -> Result<Inserted> {
        self.push_columns(values)
    }

    /// As [`push`](Self::push), for what either API takes.
    pub(super) fn push_columns<N: NewColumns + ?Sized>(&mut self, new: &N) -> Result<Inserted> {
        check_outside_row_closure()?;
        self.check_not_failed()?;
        let pushed = self.call.encode_new(self.table, new).and_then(|inserted| {
            self.name_leaf();
            self.batch.push(self.call.key, self.call.row);
            debug_assert!(self.named <= self.max_named, "rule 3: {} leaves are read ahead at a time", self.named);
            let is_full = self.batch.bytes() >= BATCH_BYTES || self.named >= self.max_named;
            if is_full { self.flush().map(|()| inserted) } else { Ok(inserted) }
        });
        self.has_failed = pushed.is_err();
        pushed
    }

    /// Rule 3.
    fn name_leaf(&mut self) {
        let StatementContext { system, version, key, .. } = &self.call;
        if **key >= self.greatest {
            self.greatest.clear();
            self.greatest.extend_from_slice(key);
        } else if system.ctx.pool.misses(1) {
            let leaf = version.clustered().leaf_ahead(&system.ctx, key);
            system.ctx.pool.request(leaf.as_slice());
            self.named += 1;
        }
    }

    fn flush(&mut self) -> Result<()> {
        let StatementContext { system, txn, version, .. } = &mut self.call;
        let rows = self.batch.len() as u64;
        RowsOp { system, txn, table: &***version, rows: &mut self.batch }.insert()?;
        self.batch.clear();
        self.named = 0;
        self.inserted += rows;
        Ok(())
    }

    fn check_not_failed(&self) -> Result<()> {
        match self.has_failed {
            true => Err(Error::Usage("a row of this call could not be inserted".to_string())),
            false => Ok(()),
        }
    }

    fn finish(&mut self) -> Result<u64> {
        self.check_not_failed()?;
        self.flush()?;
        Ok(self.inserted)
    }
}

impl WriteTxn {
    /// Inserts rows, each a value for each column, in order; returns how many. Rows in the order of their keys cost
    /// least. If one cannot be inserted, none is.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("square", Type::U64).primary_key(&["id"]);
    /// let squares = db.create_table("squares", schema)?;
    /// db.transact(|txn| txn.insert_many(&squares, (0..1000u64).map(|n| values![n, n * n])))?;
    /// assert_eq!(db.snapshot()?.get(&squares, &values![12u64])?.unwrap().u64(1), 144);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`insert`](Self::insert).
    pub fn insert_many<'v, R: AsRef<[ValueRef<'v>]>>(
        &mut self,
        table: &Table,
        rows: impl IntoIterator<Item = R>,
    ) -> Result<u64> {
        self.insert_many_with(table, |into| rows.into_iter().try_for_each(|row| into.push(row.as_ref()).map(drop)))
    }

    /// As [`insert_many`](Self::insert_many), for rows that `fill` makes one after another, in memory of its own.
    ///
    /// # Errors
    /// As [`insert`](Self::insert), and those of `fill`: then no row is inserted either.
    pub fn insert_many_with<E: From<Error>>(
        &mut self,
        table: &Table,
        fill: impl FnOnce(&mut Rows<'_>) -> std::result::Result<(), E>,
    ) -> std::result::Result<u64, E> {
        self.all_or_nothing(|txn| {
            let call = txn.call(table, TableLockMode::Write)?;
            let batch = NewRows::with_room(BATCH_BYTES + BATCH_BYTES / 8);
            let max_named = (call.system.ctx.pool.frame_count() / FRAMES_OF_A_NAME).clamp(1, MAX_NAMED);
            let (greatest, table) = (Vec::new(), &*table.shared);
            let mut rows = Rows { call, table, batch, greatest, named: 0, max_named, inserted: 0, has_failed: false };
            fill(&mut rows)?;
            Ok(rows.finish()?)
        })
    }
}
