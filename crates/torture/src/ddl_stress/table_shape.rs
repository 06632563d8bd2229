//! The shape of the crash test's changing table, and the record of it outside the database.
//!
//! Rules
//! 1. Before a change the new shape is recorded as *wanted*, and after the call has returned the present shape as
//!    *reached*. So after any crash the table has the last reached shape, or the shape wanted since.
//! 2. Changes of a table are durable when they return, in every mode; only the transaction that fills the table may be
//!    lost, if commits may be lost.

use highwater::{Database, Error as Engine, Table, Type};
use highwater_bench::workload::tpcc::acknowledge::{Record, RecordFile, file_path, records};
use highwater_bench::{Error, Result};
use std::path::Path;

/// The table's alternating names. Its columns: id, generation, filler; sometimes one more.
pub(super) const NAMES: [&str; 2] = ["torture_changed", "torture_renamed"];
pub(super) const GENERATION: [&str; 2] = ["generation", "version"];
pub(super) const ADDED: &str = "added";
pub(super) const ADDED_AT: usize = 3;
pub(super) const ADDED_TYPES: [Type; 3] = [Type::U16, Type::U32, Type::U64];
pub(super) const INDEX: &str = "by_generation";
pub(super) const ROWS: u64 = 300;
/// Maximum number of widenings of the filler.
pub(super) const WIDTHS: u8 = 100;

/// The shape of the table.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Shape {
    pub is_there: bool,
    /// Index into [`NAMES`].
    pub name: u8,
    /// Index of the column's name.
    pub generation: u8,
    /// The added column: 1 + the index of its type; 0 if there is none.
    pub added: u8,
    /// Number of widenings of the filler.
    pub width: u8,
    pub has_index: bool,
    pub is_filled: bool,
}

pub(super) fn filler_type(width: u8) -> Type {
    Type::Text(1000 + u32::from(width))
}

impl Shape {
    fn encode(self) -> u64 {
        let Shape { is_there, name, generation, added, width, has_index, is_filled } = self;
        let fields = [is_there.into(), name, generation, added, width, has_index.into(), is_filled.into(), 0];
        u64::from_le_bytes(fields)
    }

    fn decode(number: u64) -> Shape {
        let [is_there, name, generation, added, width, has_index, is_filled, _] = number.to_le_bytes();
        let (is_there, has_index, is_filled) = (is_there > 0, has_index > 0, is_filled > 0);
        Shape { is_there, name, generation, added, width, has_index, is_filled }
    }

    /// The shape that the database has, its rows included.
    ///
    /// # Errors
    /// The engine's; [`Error::Data`] names an incomplete change.
    pub(super) fn of(db: &Database) -> Result<Shape> {
        let mut found = find(db)?;
        let Some((name, table)) = found.pop() else { return Ok(Shape::default()) };
        let half = |what: String| Err(Error::Data(format!("half of a change: {what}")));
        if !found.is_empty() {
            return half(format!("{} and {} are there", NAMES[0], NAMES[1]));
        }
        let (columns, definition) = (table.columns(), table.definition());
        let generation = GENERATION.iter().position(|name| columns.get(1).is_some_and(|column| column.name == *name));
        let width = (0..=WIDTHS).find(|width| columns.get(2).is_some_and(|column| column.ty == filler_type(*width)));
        let added = columns.get(ADDED_AT).map_or(Some(0), |column| {
            let ty = ADDED_TYPES.iter().position(|ty| *ty == column.ty).filter(|_| column.name == ADDED);
            ty.map(|ty| ty + 1)
        });
        let (Some(generation), Some(width), Some(added), true) =
            (generation, width, added, columns.len() <= ADDED_AT + 1)
        else {
            return half(format!("{} has the columns {columns:?}", NAMES[name]));
        };
        let rows = db.snapshot()?.scan(&table).count()?;
        if ![0, ROWS].contains(&rows) {
            return half(format!("{} has {rows} rows, neither none nor {ROWS}", NAMES[name]));
        }
        let has_index = match &definition.indexes[..] {
            [] => false,
            [index] if index.name == INDEX => true,
            indexes => return half(format!("{} has the indexes {indexes:?}", NAMES[name])),
        };
        let (name, generation, added) = (name as u8, generation as u8, added as u8);
        Ok(Shape { is_there: true, name, generation, added, width, has_index, is_filled: rows > 0 })
    }
}

/// The tables with these names, each with the index of its name.
pub(super) fn find(db: &Database) -> Result<Vec<(usize, Table)>> {
    let mut found = Vec::new();
    for (at, name) in NAMES.iter().enumerate() {
        match db.table(name) {
            Ok(table) => found.push((at, table)),
            Err(Engine::NoSuchTable { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// The client number under which shapes are recorded, and the moments that distinguish wanted from reached shapes.
const SHAPES: u64 = u64::MAX - 1;
const WANTED: u64 = 1;
const PRESENT: u64 = 2;

#[derive(Debug)]
pub(super) struct ShapeRecord(RecordFile);

impl ShapeRecord {
    pub(super) fn open(folder: &Path) -> Result<ShapeRecord> {
        Ok(ShapeRecord(RecordFile::append_to(file_path(folder, SHAPES))?))
    }

    pub(super) fn wanted(&mut self, shape: Shape) -> Result<()> {
        self.append(shape, WANTED)
    }

    pub(super) fn present(&mut self, shape: Shape) -> Result<()> {
        self.append(shape, PRESENT)
    }

    fn append(&mut self, shape: Shape, what: u64) -> Result<()> {
        self.0.append(Record { client: SHAPES, number: shape.encode(), began: what, ended: 0 })
    }
}

/// The shapes that the table may have.
fn possible(folder: &Path) -> Result<Vec<Shape>> {
    let records = records(&file_path(folder, SHAPES))?;
    let present = records.iter().rposition(|record| record.began == PRESENT);
    let since = &records[present.map_or(0, |present| present + 1)..];
    let present = present.map_or(Shape::default(), |at| Shape::decode(records[at].number));
    Ok([present].into_iter().chain(since.iter().map(|record| Shape::decode(record.number))).collect())
}

/// The problem of the table after a crash, which may have lost the last commits if `may_lose_commits`.
///
/// # Errors
/// The engine's.
pub(super) fn problem(db: &Database, folder: &Path, may_lose_commits: bool) -> Result<Option<String>> {
    let found = match Shape::of(db) {
        Ok(found) => found,
        Err(Error::Data(text)) => return Ok(Some(text)),
        Err(error) => return Err(error),
    };
    let possible = possible(folder)?;
    let emptied = |shape: &Shape| Shape { is_filled: shape.is_filled && !may_lose_commits, ..*shape };
    let is_right = possible.iter().any(|shape| found == *shape || found == emptied(shape));
    Ok((!is_right).then(|| format!("the table that changes is {found:?}; what was acknowledged is {possible:?}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_is_recorded_as_it_is() {
        let shape =
            Shape { is_there: true, name: 1, generation: 1, added: 3, width: 99, has_index: true, is_filled: true };
        assert_eq!(Shape::decode(shape.encode()), shape);
        assert_eq!(Shape::decode(Shape::default().encode()), Shape::default());
    }

    #[test]
    fn the_last_present_shape_and_those_wanted_since_are_possible() -> Result<()> {
        let folder = tempfile::tempdir().unwrap();
        let shapes: Vec<Shape> = (1..5).map(|width| Shape { width, ..Shape::default() }).collect();
        assert_eq!(possible(folder.path())?, [Shape::default()]);
        let mut record = ShapeRecord::open(folder.path())?;
        record.wanted(shapes[0])?;
        assert_eq!(possible(folder.path())?, [Shape::default(), shapes[0]]);
        record.present(shapes[0])?;
        assert_eq!(possible(folder.path())?, [shapes[0]]);
        record.wanted(shapes[1])?;
        assert_eq!(possible(folder.path())?, [shapes[0], shapes[1]]);
        Ok(())
    }
}
