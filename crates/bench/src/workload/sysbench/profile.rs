//! The transactions of each OLTP profile.
//!
//! Rules
//! 1. The order of statements in a transaction is that of `oltp_read_write.lua`: point selects, simple, sum, order and
//!    distinct ranges, index updates, non-index updates, delete and insert.
//! 2. A range is `id BETWEEN n AND n + range_size - 1`; ORDER BY and DISTINCT are done here, as a server would, on
//!    reused buffers.
//! 3. The inserted row takes the deleted row's id; its keys are drawn again. A delete that found nothing is followed by
//!    the insert nevertheless; if another client inserted the row meanwhile, that is a retryable error.

use super::table::{C, K, Strings, indexed_column};
use super::{Config, Distribution, MAX_SECONDARY_INDEXES, Outcome, outcome};
use crate::error::{Error, Result};
use crate::store::{Read, RowChanges, RowView, Scan, Session, Store, Transaction};
use crate::workload::random::rng;
use crate::workload::{Client, key1};
use highwater::Error as EngineError;
use highwater::ValueRef;
use std::ops::ControlFlow;

/// An OLTP profile.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Profile {
    /// oltp_read_write.
    ReadWrite,
    /// oltp_read_only.
    ReadOnly,
    /// oltp_write_only.
    WriteOnly,
    /// oltp_point_select.
    PointSelect,
    /// oltp_insert.
    Insert,
    /// oltp_delete.
    Delete,
    /// oltp_update_index.
    UpdateIndex,
    /// oltp_update_non_index.
    UpdateNonIndex,
}

highwater_storage::names!(Profile {
    ReadWrite => "read_write",
    ReadOnly => "read_only",
    WriteOnly => "write_only",
    PointSelect => "point_select",
    Insert => "insert",
    Delete => "delete",
    UpdateIndex => "update_index",
    UpdateNonIndex => "update_non_index",
});

impl Profile {
    pub(crate) fn kinds(self) -> &'static [&'static str] {
        match self {
            Profile::ReadWrite => &["read_write"],
            Profile::ReadOnly => &["read_only"],
            Profile::WriteOnly => &["write_only"],
            Profile::PointSelect => &["point_select"],
            Profile::Insert => &["insert"],
            Profile::Delete => &["delete"],
            Profile::UpdateIndex => &["update_index"],
            Profile::UpdateNonIndex => &["update_non_index"],
        }
    }
}

/// Row sets of the range selects, kept between calls.
#[derive(Debug, Default)]
struct Rows {
    text: String,
    ends: Vec<(u32, u32)>,
}

impl Rows {
    fn clear(&mut self) {
        self.text.clear();
        self.ends.clear();
    }

    fn push(&mut self, value: &str) {
        let start = self.text.len() as u32;
        self.text.push_str(value);
        self.ends.push((start, self.text.len() as u32));
    }

    fn sort(&mut self) {
        let text = self.text.as_bytes();
        self.ends.sort_unstable_by(|a, b| text[a.0 as usize..a.1 as usize].cmp(&text[b.0 as usize..b.1 as usize]));
    }

    fn dedup(&mut self) {
        let text = self.text.as_bytes();
        self.ends.dedup_by(|a, b| text[a.0 as usize..a.1 as usize] == text[b.0 as usize..b.1 as usize]);
    }
}

/// Everything a statement needs besides the transaction.
struct Mix<T> {
    config: Config,
    tables: Vec<T>,
    ids: Distribution,
    strings: Strings,
    rows: Rows,
    sum: i64,
}

/// One sysbench thread.
pub(super) struct SysbenchClient<S: Store> {
    session: S::Session,
    mix: Mix<S::Table>,
}

impl<S: Store> SysbenchClient<S> {
    pub(crate) fn new(config: Config, session: S::Session, tables: Vec<S::Table>, number: usize) -> Result<Self> {
        let strings = Strings::new(rng(config.seed, number as u64));
        let ids = Distribution::new(config.rand_type, 1, config.table_size);
        Ok(SysbenchClient { session, mix: Mix { config, tables, ids, strings, rows: Rows::default(), sum: 0 } })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Range {
    Simple,
    Sum,
    Order,
    Distinct,
}

impl<T: Clone + Send + Sync + 'static> Mix<T> {
    fn id(&mut self) -> u64 {
        self.ids.next(&mut self.strings.rng)
    }

    fn table(&mut self) -> usize {
        self.strings.rng.usize(..self.tables.len())
    }

    fn point_selects<R: Read<Table = T>>(&mut self, read: &mut R, count: u32, outcome: &mut Outcome) -> Result<()> {
        let table = self.table();
        for _ in 0..count {
            let id = self.id();
            read.get(&self.tables[table], &key1(id), |row| {
                std::hint::black_box(row.str(C));
            })?;
            outcome.reads += 1;
        }
        Ok(())
    }

    fn ranges<R: Read<Table = T>>(
        &mut self,
        read: &mut R,
        kind: Range,
        count: u32,
        outcome: &mut Outcome,
    ) -> Result<()> {
        let table = self.table();
        for _ in 0..count {
            let id = self.id();
            let scan =
                Scan { from: Some(id.into()), to: Some((id + self.config.range_size - 1).into()), ..Scan::all() };
            self.range(read, table, &scan, kind)?;
            outcome.reads += 1;
        }
        Ok(())
    }

    fn range<R: Read<Table = T>>(&mut self, read: &mut R, table: usize, scan: &Scan<'_>, kind: Range) -> Result<()> {
        self.rows.clear();
        let (rows, sum) = (&mut self.rows, &mut self.sum);
        read.scan(&self.tables[table], scan, |row| {
            match kind {
                Range::Sum => *sum += row.i64(K),
                _ => rows.push(row.str(C)),
            }
            ControlFlow::Continue(())
        })?;
        if matches!(kind, Range::Order | Range::Distinct) {
            self.rows.sort();
        }
        if kind == Range::Distinct {
            self.rows.dedup();
        }
        std::hint::black_box((&self.rows.ends, self.sum));
        Ok(())
    }

    fn reads<R: Read<Table = T>>(&mut self, read: &mut R, outcome: &mut Outcome) -> Result<()> {
        self.point_selects(read, self.config.point_selects, outcome)?;
        self.ranges(read, Range::Simple, self.config.simple_ranges, outcome)?;
        self.ranges(read, Range::Sum, self.config.sum_ranges, outcome)?;
        self.ranges(read, Range::Order, self.config.order_ranges, outcome)?;
        self.ranges(read, Range::Distinct, self.config.distinct_ranges, outcome)
    }

    fn indexed_column(&mut self) -> usize {
        let index = match self.config.secondary_indexes {
            0 | 1 => 0,
            indexes => self.strings.rng.usize(..indexes.min(MAX_SECONDARY_INDEXES)),
        };
        indexed_column(index)
    }

    fn index_updates<X: Transaction<Table = T>>(&mut self, txn: &mut X, outcome: &mut Outcome) -> Result<()> {
        let table = self.table();
        for _ in 0..self.config.index_updates {
            let (id, k) = (self.id(), self.indexed_column());
            let found = txn.modify(&self.tables[table], &key1(id), |row, set| set.put(k, (row.i64(k) + 1).into()))?;
            outcome.changed(found);
        }
        Ok(())
    }

    fn non_index_updates<X: Transaction<Table = T>>(&mut self, txn: &mut X, outcome: &mut Outcome) -> Result<()> {
        let table = self.table();
        for _ in 0..self.config.non_index_updates {
            self.strings.next_c();
            let id = self.id();
            let found = txn.update(&self.tables[table], &key1(id), &[(C, self.strings.c.as_str().into())])?;
            outcome.changed(found);
        }
        Ok(())
    }

    fn delete_inserts<X: Transaction<Table = T>>(&mut self, txn: &mut X, outcome: &mut Outcome) -> Result<()> {
        let table = self.table();
        for _ in 0..self.config.delete_inserts {
            let id = self.id();
            self.next_row();
            let found = txn.delete(&self.tables[table], &key1(id))?;
            outcome.changed(found);
            match txn.insert(&self.tables[table], &self.strings.row(id.into())[..self.config.columns()]) {
                Err(Error::Engine(EngineError::DuplicateKey { .. })) if !found => {
                    return Err(EngineError::WriteConflict.into());
                }
                inserted => inserted?,
            };
            outcome.writes += 1;
        }
        Ok(())
    }

    /// The values of the next row to insert: keys, then c and pad.
    fn next_row(&mut self) {
        self.strings.next_keys(&self.ids, self.config.columns());
        self.strings.next_row();
    }

    fn writes<X: Transaction<Table = T>>(&mut self, txn: &mut X, outcome: &mut Outcome) -> Result<()> {
        self.index_updates(txn, outcome)?;
        self.non_index_updates(txn, outcome)?;
        self.delete_inserts(txn, outcome)
    }

    fn insert<X: Transaction<Table = T>>(&mut self, txn: &mut X, outcome: &mut Outcome) -> Result<()> {
        let table = self.table();
        self.next_row();
        txn.insert(&self.tables[table], &self.strings.row(ValueRef::Null)[..self.config.columns()])?;
        outcome.writes += 1;
        Ok(())
    }

    fn delete<X: Transaction<Table = T>>(&mut self, txn: &mut X, outcome: &mut Outcome) -> Result<()> {
        let (table, id) = (self.table(), self.id());
        outcome.changed(txn.delete(&self.tables[table], &key1(id))?);
        Ok(())
    }
}

impl<S: Store> SysbenchClient<S> {
    /// Reads in a transaction (begin and commit count) or alone.
    fn read(&mut self) -> Result<Outcome> {
        let mut outcome = outcome();
        let mut read = self.session.snapshot()?;
        if self.mix.config.profile == Profile::PointSelect {
            self.mix.point_selects(&mut read, 1, &mut outcome)?;
        } else {
            self.mix.reads(&mut read, &mut outcome)?;
            outcome.other += 2;
        }
        read.finish()?;
        Ok(outcome)
    }

    fn write(&mut self) -> Result<Outcome> {
        let mut outcome = outcome();
        let mut txn = self.session.begin()?;
        let mix = &mut self.mix;
        match mix.config.profile {
            Profile::ReadWrite => {
                mix.reads(&mut txn, &mut outcome)?;
                mix.writes(&mut txn, &mut outcome)?;
                outcome.other += 2;
            }
            Profile::WriteOnly => {
                mix.writes(&mut txn, &mut outcome)?;
                outcome.other += 2;
            }
            Profile::Insert => mix.insert(&mut txn, &mut outcome)?,
            Profile::Delete => mix.delete(&mut txn, &mut outcome)?,
            Profile::UpdateIndex => mix.index_updates(&mut txn, &mut outcome)?,
            Profile::UpdateNonIndex => mix.non_index_updates(&mut txn, &mut outcome)?,
            Profile::ReadOnly | Profile::PointSelect => {}
        }
        txn.finish()?;
        Ok(outcome)
    }
}

impl<S: Store> Client for SysbenchClient<S> {
    fn run(&mut self) -> Result<Option<Outcome>> {
        let outcome = match self.mix.config.profile {
            Profile::ReadOnly | Profile::PointSelect => self.read(),
            _ => self.write(),
        };
        outcome.map(Some)
    }
}
