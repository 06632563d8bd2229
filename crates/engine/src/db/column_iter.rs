//! Scans of some columns: from the entries of an index where these certainly have them, otherwise from rows.
//!
//! Rule: an entry that was delivered without its row belongs to the row's visible version, covered columns included
//! (`txn/read`). For any other entry only the row is used.

use super::scan::{Scan, ScanIter};
use crate::error::Result;
use crate::table::version::TableVersion;
use crate::table::{Row, RowLayout, Value, ValueRef};
use crate::txn::RowCursor;
use std::sync::Arc;

/// The place of a column's value in an entry.
#[derive(Clone, Copy, Debug)]
enum Place {
    /// Number of a column of the index.
    Index(usize),
    /// Number of a column of the primary key.
    Row(usize),
    /// Number of a column that it keeps in addition to its key.
    Covered(usize),
}

/// The columns that are read of each row.
pub(super) struct Projection {
    index: Option<usize>,
    columns: Vec<usize>,
    /// The layout of the rows with these columns.
    layout: Arc<RowLayout>,
    /// The places of the columns in an entry; `None` if it lacks one of them.
    places: Option<Vec<Place>>,
}

impl Projection {
    /// The columns at these positions, read through an index.
    ///
    /// # Errors
    /// `BadValue` for a column that there is not.
    pub(super) fn new(version: &TableVersion, index: Option<usize>, columns: Vec<usize>) -> Result<Projection> {
        let place = |column: &usize| {
            let part_of = |key: &crate::table::key::KeyLayout| {
                key.parts().iter().position(|part| part.column == *column && part.is_reversible())
            };
            let of_index = index.map(|i| &version.indexes[i]);
            let in_key = of_index.and_then(|of| part_of(&of.key)).map(Place::Index);
            let covered = || of_index.and_then(|of| of.covered.columns().position(|covered| covered == *column));
            in_key.or_else(|| part_of(&version.key).map(Place::Row)).or_else(|| covered().map(Place::Covered))
        };
        let places = columns.iter().map(place).collect();
        let layout = Arc::new(RowLayout::of_columns(&version.definition, &columns)?);
        Ok(Projection { index, columns, layout, places })
    }

    /// Whether entries have all of them.
    pub(super) fn is_of_entry(&self) -> bool {
        self.places.is_some()
    }

    /// The columns of the current row.
    fn row(&self, version: &TableVersion, cursor: &RowCursor) -> Result<Row> {
        match (&self.places, self.index, cursor.covered()) {
            (Some(places), None, _) => {
                let key = version.key.decode(cursor.key())?.0;
                self.pick(places, &[], &key, &[])
            }
            (Some(places), Some(i), Some(covered)) => {
                let index = &version.indexes[i];
                let (of_index, bytes) = index.key.decode(cursor.entry())?;
                let key = version.key.decode(&cursor.entry()[bytes..])?.0;
                self.pick(places, &of_index, &key, &index.covered.decode(covered)?)
            }
            _ => {
                let row = version.layouts.read(cursor.payload())?;
                self.made_of(self.columns.iter().map(|column| row.get(*column)))
            }
        }
    }

    fn pick(&self, places: &[Place], of_index: &[Value], key: &[Value], covered: &[Value]) -> Result<Row> {
        self.made_of(places.iter().map(|place| match *place {
            Place::Index(n) => of_index[n].as_ref(),
            Place::Row(n) => key[n].as_ref(),
            Place::Covered(n) => covered[n].as_ref(),
        }))
    }

    fn made_of<'v>(&self, values: impl Iterator<Item = ValueRef<'v>>) -> Result<Row> {
        let (values, mut bytes) = (values.collect::<Vec<_>>(), Vec::new());
        self.layout.encode(&values, None, &mut bytes)?;
        Ok(Row::of_bytes(&self.layout, bytes))
    }
}

/// Some columns of each row of a scan ([`Scan::keys`](super::Scan::keys), [`Scan::select`](super::Scan::select)): rows
/// that have these and no others. After an error it ends.
pub struct ColumnIter<'s> {
    rows: ScanIter<'s>,
    projection: Projection,
}

impl<'s> Scan<'s, '_> {
    /// Starts a scan of keys instead of rows: what it yields has the index's columns, then those of the primary key,
    /// and is read as a row is. The index is read alone: its rows are looked up only where it was changed lately, or if
    /// it has only the beginning of a column.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type, values};
    /// # let dir = tempfile::tempdir().unwrap();
    /// # let db = Database::open(dir.path(), Options::default())?;
    /// let schema = Schema::new().column("id", Type::U64).column("city", Type::Text(40))
    ///     .column("notes", Type::Text(900)).primary_key(&["id"]).index("by_city", &["city"]);
    /// let people = db.create_table("people", schema)?;
    /// db.transact(|txn| txn.insert(&people, &values![7u64, "Lund", "likes rain"]).map(drop))?;
    /// let mut read = db.snapshot()?;
    /// let found = read.scan(&people).index("by_city").prefix(&values!["Lund"]).keys()?.next().unwrap()?;
    /// assert_eq!((found.str("city"), found.u64("id"), found.columns()), ("Lund", 7, 2));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`iter`](Self::iter).
    pub fn keys(self) -> Result<ColumnIter<'s>> {
        self.project(|version, index| {
            let of_index = index.map_or(&[][..], |i| &version.definition.indexes[i].columns);
            Ok(of_index.iter().chain(&version.definition.primary_key).map(|part| part.column).collect())
        })
    }

    /// Starts a scan of some columns instead of rows: what it yields has them, in the order in which they are named,
    /// and is read as a row is. An index that has all of them (as its own, as those of the primary key, or because it
    /// [covers](crate::Index::covering) them) is read alone: its rows are looked up only where it was changed lately.
    /// See [`Index`](crate::Index) for an example.
    ///
    /// # Errors
    /// As [`iter`](Self::iter); [`Error::NoSuchColumn`](crate::Error::NoSuchColumn).
    pub fn select(self, names: &[&str]) -> Result<ColumnIter<'s>> {
        let table = self.table.clone();
        self.project(|_, _| names.iter().map(|name| table.column(name)).collect())
    }

    /// A scan that reads the columns that `wanted` names, by position.
    pub(super) fn project(
        mut self,
        wanted: impl FnOnce(&TableVersion, Option<usize>) -> Result<Vec<usize>>,
    ) -> Result<ColumnIter<'s>> {
        let (version, index) = self.used()?;
        let wanted = wanted(&version, index)?;
        let projection = Projection::new(&version, index, wanted.clone())?;
        let keys_only = projection.is_of_entry();
        Ok(ColumnIter::new(self.start_in(version, index, keys_only, Some(wanted))?, projection))
    }
}

impl<'s> ColumnIter<'s> {
    fn new(rows: ScanIter<'s>, projection: Projection) -> ColumnIter<'s> {
        ColumnIter { rows, projection }
    }
}

impl Iterator for ColumnIter<'_> {
    type Item = Result<Row>;

    fn next(&mut self) -> Option<Result<Row>> {
        if let Err(error) = self.rows.advance() {
            return Some(Err(error));
        }
        let next = self.rows.cursor.as_ref().map(|cursor| self.projection.row(&self.rows.version, cursor));
        if matches!(next, Some(Err(_))) {
            self.rows.cursor = None;
        }
        next
    }
}
