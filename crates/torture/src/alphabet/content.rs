//! The rows of a player's tables: their contents, schema and index keys.

use super::played::{Played, call};
use highwater::{ASCII_CI, Column, Index, Row, RowRef, Schema, Table, Type, Value, values};
use highwater_bench::{Error, Result};
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// The columns of a row except its id. A number stands for a text, so the row is small here and may be large in the
/// database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Content {
    pub a: u32,
    pub b: u32,
    /// `None` is NULL.
    pub c: Option<u32>,
    /// Length of its body, which repeats one letter and may need overflow pages.
    pub body_bytes: u32,
    pub letter: u8,
    /// Length of another long column.
    pub note_bytes: u32,
    pub note_letter: u8,
}

/// Positions of the columns.
pub(crate) const A: usize = 1;
pub(crate) const B: usize = 2;
pub(crate) const C: usize = 3;
pub(crate) const BODY: usize = 4;
pub(crate) const NOTE: usize = 5;

/// Columns that a read may request; the id is always among them.
pub(crate) const PROJECTIONS: [&[usize]; 5] =
    [&[0, A], &[NOTE, 0, A], &[B, BODY, 0], &[0, C], &[0, A, B, C, BODY, NOTE]];

/// A secondary index that a table may have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KnownIndex {
    pub name: &'static str,
    pub columns: &'static [&'static str],
    pub unique: bool,
    /// Its columns in descending order.
    pub descending: &'static [&'static str],
    /// Length of the indexed prefix of column `a`, if it is a prefix.
    pub prefix_of_a: Option<u16>,
    pub covered: &'static [&'static str],
}

impl KnownIndex {
    const fn plain(name: &'static str, columns: &'static [&'static str]) -> KnownIndex {
        KnownIndex { name, columns, unique: false, descending: &[], prefix_of_a: None, covered: &[] }
    }

    /// Whether it has only whole, ascending columns.
    pub(crate) fn is_plain(&self) -> bool {
        self.descending.is_empty() && self.prefix_of_a.is_none() && self.covered.is_empty()
    }

    /// The index for the engine.
    pub(crate) fn made(&self, played: &Played) -> Index {
        let index = call!(played, Index::new(self.columns));
        let index = self.descending.iter().fold(index, |index, column| call!(played, Index::descending(index, column)));
        let index = match self.prefix_of_a {
            Some(bytes) => call!(played, Index::prefix(index, "a", bytes)),
            None => index,
        };
        let index = call!(played, Index::covering(index, self.covered));
        if self.unique { call!(played, Index::unique(index)) } else { index }
    }
}

/// The index on `a` has few values, the one on `b` has many; `c` may be NULL. The prefix of `a` is longer than its
/// texts: the order is that of the texts, but the index does not cover them.
pub(crate) const INDEXES: [KnownIndex; 6] = [
    KnownIndex::plain("by_a", &["a"]),
    KnownIndex::plain("by_b", &["b"]),
    KnownIndex::plain("by_ca", &["c", "a"]),
    KnownIndex { unique: true, ..KnownIndex::plain(ONE_C, &["c"]) },
    KnownIndex { descending: &["b"], covered: &["c", "a"], ..KnownIndex::plain("late_b", &["b"]) },
    KnownIndex {
        descending: &["c"],
        prefix_of_a: Some(50),
        covered: &["b"],
        ..KnownIndex::plain("by_ac", &["a", "c"])
    },
];
/// The unique index: any number of rows have NULL.
pub(crate) const ONE_C: &str = "one_c";
pub(crate) const PRIMARY: &str = "PRIMARY";

/// Maximum number of columns of a key.
pub(crate) const KEY_COLUMNS: usize = 2;
/// The columns of a row's key in an index, as numbers; those that the index lacks are `None`.
pub(crate) type Key = [Option<u64>; KEY_COLUMNS];

pub(crate) fn columns_of(index: &str) -> &'static [&'static str] {
    INDEXES.iter().find(|known| known.name == index).map_or(&["id"], |known| known.columns)
}

/// The key of a row in an index.
pub(crate) fn key_of(index: &str, id: u64, content: &Content) -> Key {
    let (a, b, c) = (Some(content.a.into()), Some(content.b.into()), content.c.map(u64::from));
    match index {
        "by_a" => [a, None],
        "by_b" | "late_b" => [b, None],
        "by_ca" => [c, a],
        "by_ac" => [a, c],
        ONE_C => [c, None],
        _ => [Some(id), None],
    }
}

/// The order of two keys, or of their first columns, in an index.
pub(crate) fn compare(index: &str, a: &[Option<u64>], b: &[Option<u64>]) -> Ordering {
    let descending = INDEXES.iter().find(|known| known.name == index).map_or(&[][..], |known| known.descending);
    let columns = columns_of(index).iter().zip(a.iter().zip(b));
    let mut orders = columns.map(|(column, (a, b))| if descending.contains(column) { b.cmp(a) } else { a.cmp(b) });
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// The value of a column for a number.
pub(crate) fn value_of(column: &str, number: Option<u64>) -> Value {
    match (column, number) {
        ("a" | "b", Some(number)) => text(number as u32).into(),
        (_, Some(number)) => Value::UInt(number),
        (_, None) => Value::Null,
    }
}

/// The number for a value of a column.
///
/// # Errors
/// [`Error::Data`] for a value that no number makes.
fn number_of_value(value: &Value) -> Result<Option<u64>> {
    match value {
        Value::Null => Ok(None),
        Value::UInt(number) => Ok(Some(*number)),
        Value::Text(text) => number_of(text).map(|number| Some(number.into())),
        value => Err(Error::Data(format!("a key has {value}"))),
    }
}

/// Decodes an entry of a scan of keys: the columns of the index, then the id.
///
/// # Errors
/// [`Error::Data`] for a value that no number makes, and for other columns.
pub(crate) fn key(index: &str, found: &[Value]) -> Result<(Key, u64)> {
    let columns = columns_of(index).len();
    let numbers = found.iter().map(number_of_value).collect::<Result<Vec<_>>>()?;
    // By the primary key the id is its only column.
    let expected = if index == PRIMARY { 1 } else { columns + 1 };
    match (numbers.len() == expected).then(|| numbers[numbers.len() - 1]).flatten() {
        Some(id) => {
            let mut key = Key::default();
            key[..columns].copy_from_slice(&numbers[..columns]);
            Ok((key, id))
        }
        None => Err(Error::Data(format!("a key of index {index} is {found:?}"))),
    }
}

/// The columns of a scan of some columns.
pub(crate) const SOME_COLUMNS: [&str; 4] = ["b", "id", "c", "a"];

/// The numbers of [`SOME_COLUMNS`].
///
/// # Errors
/// [`Error::Data`] for a value that no number makes.
pub(crate) fn numbers_of(found: &[Value]) -> Result<Vec<Option<u64>>> {
    found.iter().map(number_of_value).collect()
}

/// As [`numbers_of`], for a row of the oracle.
pub(crate) fn numbers(id: u64, content: &Content) -> Vec<Option<u64>> {
    vec![Some(content.b.into()), Some(id), content.c.map(u64::from), Some(content.a.into())]
}

/// Digits of a number in a text.
const DIGITS: usize = 10;
/// The text after the digits.
const WIDE: &str = " and what makes an entry wide";

/// The text for a number: wide, so that few entries fit in a leaf, and ordered as the numbers are.
pub(crate) fn text(number: u32) -> String {
    format!("{number:0DIGITS$}{WIDE}")
}

/// The number for a text.
///
/// # Errors
/// [`Error::Data`] if none does.
pub(crate) fn number_of(text: &str) -> Result<u32> {
    let digits = text.strip_suffix(WIDE).filter(|digits| digits.len() == DIGITS);
    let digits = digits.filter(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()));
    digits.and_then(|digits| digits.parse().ok()).ok_or_else(|| Error::Data(format!("a column has {text:?}")))
}

fn letters(letter: u8, bytes: u32) -> String {
    char::from(letter).to_string().repeat(bytes as usize)
}

/// The letter and the length of a text.
///
/// # Errors
/// [`Error::Data`] for different letters.
fn of_letters(text: &str) -> Result<(u8, u32)> {
    let text = text.as_bytes();
    let letter = text.first().copied().unwrap_or_default();
    // Without a branch for each byte: most bytes that are compared are these.
    match text.iter().fold(0, |differing, byte| differing | (byte ^ letter)) == 0 {
        true => Ok((letter, text.len() as u32)),
        false => Err(Error::Data("a long column has different letters".to_string())),
    }
}

/// The letters of a note, which is JSON.
fn inside(json: &str) -> Result<&str> {
    let letters = json.strip_prefix("[\"").and_then(|rest| rest.strip_suffix("\"]"));
    letters.ok_or_else(|| Error::Data(format!("{json:?} is no note")))
}

/// Columns that every table has.
pub(crate) const OWN_COLUMNS: usize = 6;
/// The value of older rows in an added column; rows that are written later have NULL.
const EXTRA: u16 = 77;

/// An added column; its name has `number`.
pub(crate) fn extra_column(number: u64) -> Column {
    Column { name: format!("x{number}"), ty: Type::U16, nullable: true, default: Some(EXTRA.into()), collation: None }
}

/// The values of a row of a table, which may have added columns.
pub(crate) fn row_of(table: &Table, id: Option<u64>, content: &Content) -> Vec<Value> {
    let mut values = values_of(id, content).to_vec();
    values.resize(table.columns().len(), Value::Null);
    values
}

/// The values of a row; an id of `None` is assigned by the table.
pub(crate) fn values_of(id: Option<u64>, content: &Content) -> [Value; OWN_COLUMNS] {
    let c = content.c.map(u64::from);
    let Content { body_bytes, letter, note_bytes, note_letter, .. } = *content;
    let body = Value::from(letters(letter, body_bytes));
    let note = Value::from(format!("[\"{}\"]", letters(note_letter, note_bytes)));
    [value_of("id", id), text(content.a).into(), text(content.b).into(), value_of("c", c), body, note]
}

/// Rows by id.
pub(crate) type Rows = BTreeMap<u64, Content>;

/// Decodes a row of the database for the comparison with the oracle.
///
/// # Errors
/// [`Error::Data`] for a text that no number makes.
pub(crate) fn content(row: &Row) -> Result<(u64, Content)> {
    content_of(row.as_ref())
}

/// As [`content`].
///
/// # Errors
/// As [`content`].
pub(crate) fn content_of(row: RowRef<'_>) -> Result<(u64, Content)> {
    let is_extra = |at| row.is_null(at) || row.get(at) == EXTRA.into();
    match (OWN_COLUMNS..row.columns()).find(|at| !is_extra(*at)) {
        None => content_of_columns(row, &[0, A, B, C, BODY, NOTE]),
        Some(at) => Err(Error::Data(format!("an added column has {:?}", row.get(at)))),
    }
}

/// As [`content`], for a row with these columns in this order; the others are those of [`Content::default`].
///
/// # Errors
/// As [`content`].
pub(crate) fn content_of_columns(row: RowRef<'_>, columns: &[usize]) -> Result<(u64, Content)> {
    let (mut id, mut content) = (0, Content::default());
    for (at, column) in columns.iter().enumerate() {
        match *column {
            A => content.a = number_of(row.str(at))?,
            B => content.b = number_of(row.str(at))?,
            C => content.c = (!row.is_null(at)).then(|| row.u64(at) as u32),
            BODY => (content.letter, content.body_bytes) = of_letters(row.str(at))?,
            NOTE => (content.note_letter, content.note_bytes) = of_letters(inside(row.str(at))?)?,
            _ => id = row.u64(at),
        }
    }
    Ok((id, content))
}

impl Content {
    /// The expected result of a read of these columns.
    pub(crate) fn only(self, columns: &[usize]) -> Content {
        let mut content = Content::default();
        for column in columns {
            match *column {
                A => content.a = self.a,
                B => content.b = self.b,
                C => content.c = self.c,
                BODY => (content.letter, content.body_bytes) = (self.letter, self.body_bytes),
                NOTE => (content.note_letter, content.note_bytes) = (self.note_letter, self.note_bytes),
                _ => {}
            }
        }
        content
    }
}

/// The schema of a table with these indexes.
pub(crate) fn schema(played: &Played, indexes: &BTreeSet<&'static str>) -> Schema {
    let text = |schema, name, bytes| call!(played, Schema::column(schema, name, Type::Text(bytes)));
    let schema = call!(played, Schema::column(call!(played, Schema::new()), "id", Type::U64));
    let schema = text(text(schema, "a", 60), "b", 60);
    // Weights of these texts are the texts.
    let schema = call!(played, Schema::collation(schema, "a", ASCII_CI));
    let schema = text(call!(played, Schema::nullable(schema, "c", Type::U32)), "body", 10_000);
    let schema = call!(played, Schema::column(schema, "note", Type::Json(10_000)));
    let schema = match indexes.contains("late_b") {
        true => {
            let key = call!(played, Index::new(&["id"]));
            call!(played, Schema::long_keys(call!(played, Schema::primary_key_with(schema, key))))
        }
        false => call!(played, Schema::primary_key(schema, &["id"])),
    };
    let schema = call!(played, Schema::auto_increment(schema, "id"));
    let schema = call!(played, Schema::default_value(schema, "c", 0u32));
    let schema = call!(played, Schema::attachment(schema, b"attached"));
    let made = INDEXES.iter().filter(|index| indexes.contains(index.name));
    made.fold(schema, |schema, index| match index.unique {
        _ if !index.is_plain() || indexes.contains("late_b") => {
            let made = index.made(played);
            call!(played, Schema::index_with(schema, index.name, made))
        }
        true => call!(played, Schema::unique_index(schema, index.name, index.columns)),
        false => call!(played, Schema::index(schema, index.name, index.columns)),
    })
}

/// The key of the row with this id.
pub(crate) fn id_key(id: u64) -> [highwater::ValueRef<'static>; 1] {
    values![id]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_text_of_a_number_is_one() {
        assert!([0, 1, 7_654_321, u32::MAX].iter().all(|number| number_of(&text(*number)).unwrap() == *number));
        let right = text(12);
        let wrong = [right.replacen('0', "+", 1), right.replacen('0', "", 1), right.clone() + "r", "4294967296".into()];
        assert!(wrong.iter().all(|text| number_of(text).is_err()));
        assert!(number_of(&text(0).replacen("0000000000", "4294967296", 1)).is_err());
    }
}
