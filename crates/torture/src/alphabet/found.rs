//! The contents of a database, read once for a comparison with the oracle.

use super::content::{self, Content, Key, PRIMARY, Rows, content};
use super::expiring::{Between, Brief, EXPIRING, differs, read_rows};
use super::oracle::Oracle;
use highwater::{Database, ReadTxn, Xid};
use highwater_bench::Result;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Debug;

/// Prefix of the names of players' tables; a database may have other tables.
pub(crate) const PREFIX: &str = "played_";

struct FoundTable {
    rows: Vec<(u64, Content)>,
    /// The entries of each secondary index, in order.
    entries: BTreeMap<String, Vec<(Key, u64)>>,
}

/// The contents of all tables of a player, and the names of the prepared transactions.
pub(crate) struct Found {
    tables: BTreeMap<String, FoundTable>,
    /// The unexpired rows of the table with expiry, if it exists.
    expiring: Option<(Vec<(u64, Brief)>, Between)>,
    prepared: BTreeSet<String>,
}

impl Found {
    /// Reads all rows, and all keys of every index.
    ///
    /// # Errors
    /// The engine's.
    pub(crate) fn read(db: &Database) -> Result<Found> {
        let mut read = db.snapshot()?;
        let tables = db.tables().into_iter().filter(|table| table.name().starts_with(PREFIX));
        let found = tables.map(|table| Ok((table.name().to_string(), FoundTable::read(&mut read, &table)?)));
        let tables = found.collect::<Result<_>>()?;
        let expiring = match db.has_table(EXPIRING) {
            true => Some(read_rows(db, &mut read, &db.table(EXPIRING)?)?),
            false => None,
        };
        Ok(Found { tables, expiring, prepared: prepared(db) })
    }

    /// The first difference, as text.
    pub(crate) fn differs(&self, oracle: &Oracle) -> Option<String> {
        if !self.prepared.iter().eq(oracle.prepared.keys()) {
            let (found, right) = (&self.prepared, oracle.prepared.keys());
            return Some(format!("the transactions {found:?} are prepared, {right:?} are right"));
        }
        if !self.tables.keys().eq(oracle.tables.keys()) {
            let (found, right) = (self.tables.keys(), oracle.tables.keys());
            return Some(format!("the tables are {found:?}, {right:?} are right"));
        }
        let differing = self.tables.iter().zip(oracle.tables.values()).find_map(|((name, table), model)| {
            let text = table.differs(&model.at(oracle.commits), &model.indexes)?;
            Some(format!("table {name}: {text}"))
        });
        differing.or_else(|| match (&self.expiring, &oracle.expiring) {
            (Some((found, between)), Some(rows)) => differs(found, rows, *between),
            (None, None) => None,
            (found, _) => Some(format!("whether there is a table whose rows expire: {}", found.is_some())),
        })
    }
}

/// The names of the prepared transactions.
pub(crate) fn prepared(db: &Database) -> BTreeSet<String> {
    names(db.prepared().iter().map(|info| &info.xid))
}

/// The names of transactions.
pub(crate) fn names<'a>(xids: impl IntoIterator<Item = &'a Xid>) -> BTreeSet<String> {
    xids.into_iter().map(|xid| String::from_utf8_lossy(xid.global()).into_owned()).collect()
}

impl FoundTable {
    fn read(read: &mut ReadTxn, table: &highwater::Table) -> Result<FoundTable> {
        let rows = read.scan(table).iter()?.map(|row| content(&row?)).collect::<Result<Vec<_>>>()?;
        let mut entries = BTreeMap::new();
        for index in &table.definition().indexes {
            let keys = read.scan(table).index(&index.name).keys()?;
            let keys = keys.map(|key| content::key(&index.name, &key?.to_values())).collect::<Result<Vec<_>>>()?;
            entries.insert(index.name.clone(), keys);
        }
        Ok(FoundTable { rows, entries })
    }

    fn differs(&self, rows: &Rows, indexes: &BTreeSet<&'static str>) -> Option<String> {
        if !self.entries.keys().eq(indexes.iter()) {
            return Some(format!("it has the indexes {:?}, {indexes:?} are right", self.entries.keys()));
        }
        let right: Vec<(u64, Content)> = rows.iter().map(|(id, content)| (*id, *content)).collect();
        difference(PRIMARY, &self.rows, &right).or_else(|| {
            self.entries.iter().find_map(|(index, found)| {
                let mut right: Vec<(Key, u64)> =
                    rows.iter().map(|(id, content)| (content::key_of(index, *id, content), *id)).collect();
                right.sort_unstable_by(|a, b| content::compare(index, &a.0, &b.0).then(a.1.cmp(&b.1)));
                difference(index, found, &right)
            })
        })
    }
}

/// The difference between the entries of an index, in order, and the expected ones, as text.
pub(crate) fn difference<T: PartialEq + Debug>(index: &str, found: &[T], right: &[T]) -> Option<String> {
    if found == right {
        return None;
    }
    let at = found.iter().zip(right).take_while(|(a, b)| a == b).count();
    Some(format!(
        "{index} has {} rows, {} are right; at place {at} it has {:?}, {:?} is right",
        found.len(),
        right.len(),
        found.get(at),
        right.get(at)
    ))
}
