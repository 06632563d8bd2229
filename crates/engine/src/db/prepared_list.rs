//! The list of prepared transactions. The rules are those of `prepared.rs`.

use super::changes::{CHANGE_LOG, ChangeLog, OpenSequence};
use super::locked_tables::LockedTables;
use super::txn_scratch::TxnScratch;
use crate::error::{Error, Result};
use crate::sync::Mutex;
use crate::table::DateTime;
use crate::table::handle::{Registry, TableShared};
use crate::table::lock::TableLockMode;
use crate::txn::{RecoveredPrepared, Txn, TxnSystem};
use crate::undo::Xid;
use crate::undo::record::PreparedMark;
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::Arc;
use std::time::Duration;

/// A prepared transaction, as [`Database::prepared`](crate::Database::prepared) lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PreparedInfo {
    /// Its name.
    pub xid: Xid,
    /// Its number, which its rows carry.
    pub transaction: u64,
    /// Time of the prepare, in UTC.
    pub time: DateTime,
    /// Undo records that it has written: about as many as it has changed rows.
    pub undo_records: u64,
    /// The tables that it has changed, by name.
    pub tables: Vec<String>,
    /// Whether no [`PreparedTxn`](crate::PreparedTxn) has it, so that
    /// [`Database::finish_prepared`](crate::Database::finish_prepared) can end it.
    pub is_detached: bool,
}

pub(super) fn time_of(mark: &PreparedMark) -> DateTime {
    DateTime::from_unix_us(i64::try_from(mark.unix_us).unwrap_or(i64::MAX))
}

/// State of a prepared transaction until it ends.
pub(super) struct PreparedParts {
    /// `None` once it has ended.
    pub(super) txn: Option<Box<Txn>>,
    pub(super) scratch: Box<TxnScratch>,
    /// Its number in the change log.
    pub(super) _sequence: Option<OpenSequence>,
}

/// A prepared transaction in the list.
struct Listed {
    /// `None` while it is being prepared.
    info: Option<PreparedInfo>,
    /// Set if it is detached.
    parts: Option<PreparedParts>,
}

/// The prepared transactions of a database, by name.
#[derive(Default)]
pub(super) struct PreparedTxns(Mutex<BTreeMap<Xid, Listed>>);

impl PreparedTxns {
    /// The prepared transactions that the opening found, detached.
    pub(super) fn recovered(txns: &TxnSystem, registry: &Registry, changes: &Arc<ChangeLog>) -> Result<PreparedTxns> {
        let mut list = BTreeMap::new();
        for RecoveredPrepared { txn, mark, tables: ids } in txns.take_recovered_prepared() {
            let sequence = changes.adopt(txns, &txn)?;
            let mut tables = LockedTables::default();
            for table in registry.with_ids(&ids).into_iter().filter(|table| table.name != CHANGE_LOG) {
                tables.add(&table, TableLockMode::Write, Duration::ZERO.into())?;
            }
            let info = PreparedInfo {
                xid: mark.xid.clone(),
                transaction: txn.number().unwrap_or(0),
                time: time_of(&mark),
                undo_records: mark.records,
                tables: tables.names(),
                is_detached: true,
            };
            let mut scratch = Box::<TxnScratch>::default();
            scratch.tables = tables;
            let listed = Listed {
                info: Some(info),
                parts: Some(PreparedParts { txn: Some(txn), scratch, _sequence: sequence }),
            };
            if list.insert(mark.xid.clone(), listed).is_some() {
                return Err(Error::Corrupt(format!("two transactions are prepared as {}", mark.xid)));
            }
        }
        Ok(PreparedTxns(Mutex::new(list)))
    }

    pub(super) fn count(&self) -> usize {
        self.0.lock().len()
    }

    /// Takes a name for a transaction that is about to be prepared.
    pub(super) fn enter(&self, xid: &Xid) -> Result<()> {
        match self.0.lock().entry(xid.clone()) {
            Entry::Occupied(_) => Err(Error::DuplicateXid { xid: xid.to_string() }),
            Entry::Vacant(place) => {
                place.insert(Listed { info: None, parts: None });
                Ok(())
            }
        }
    }

    pub(super) fn set_info(&self, info: PreparedInfo) {
        debug_assert!(self.0.lock().contains_key(&info.xid), "rule 1: {} is prepared and not listed", info.xid);
        if let Some(listed) = self.0.lock().get_mut(&info.xid) {
            listed.info = Some(info);
        }
    }

    pub(super) fn remove(&self, xid: &Xid) {
        let listed = self.0.lock().remove(xid);
        debug_assert!(listed.is_some_and(|listed| listed.parts.is_none()), "rule 1: {xid} ends without its owner");
    }

    pub(super) fn put(&self, xid: &Xid, parts: PreparedParts) {
        debug_assert!(parts.txn.is_some(), "rule 4: {xid} is detached after its end");
        debug_assert!(self.0.lock().contains_key(xid), "rule 1: {xid} is detached and not listed");
        if let Some(listed) = self.0.lock().get_mut(xid) {
            debug_assert!(listed.parts.is_none(), "rule 1: {xid} has two owners");
            listed.parts = Some(parts);
        }
    }

    pub(super) fn take(&self, xid: &Xid) -> Result<PreparedParts> {
        let mut list = self.0.lock();
        let listed = list.get_mut(xid).ok_or_else(|| Error::NoSuchXid { xid: xid.to_string() })?;
        listed.parts.take().ok_or_else(|| {
            Error::Usage(format!(
                "the prepared transaction {xid} has an owner, which ends it: a PreparedTxn, or a call"
            ))
        })
    }

    pub(super) fn list(&self) -> Vec<PreparedInfo> {
        let list = self.0.lock();
        let info = |listed: &Listed| Some(PreparedInfo { is_detached: listed.parts.is_some(), ..listed.info.clone()? });
        list.values().filter_map(info).collect()
    }

    /// Rule 3.
    pub(super) fn refuse_change(&self, table: &Arc<TableShared>) -> Result<()> {
        let list = self.0.lock();
        let uses = |listed: &Listed| listed.parts.as_ref().is_some_and(|parts| parts.scratch.tables.has(table));
        match list.iter().find(|(_, listed)| uses(listed)) {
            Some((xid, _)) => Err(Error::TableInPrepared { table: table.name.clone(), xid: xid.to_string() }),
            None => Ok(()),
        }
    }
}
