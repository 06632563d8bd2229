//! `create` and `drop`: the syntax of a table's definition, which resembles the output of `schema`.
//!
//! Grammar, where a comma stands between parts and keywords are not quoted:
//!
//! - `COLUMN TYPE[?] [null] [auto] [default VALUE] [collation NAME]`
//! - `primary key COLUMNS`
//! - `[unique] index NAME COLUMNS [covering COLUMNS]`
//! - `long keys`
//! - `expires by COLUMN`
//!
//! COLUMNS are `COLUMN[(BYTES)] [desc]`, one after another, or between parentheses with commas.

use super::session::{Session, Stop};
use super::words::{Piece, Word};
use crate::csv_field::read_field;
use highwater::{Index, Schema, Type, Value};

/// Text that no word is: a column's default is never NULL.
const NO_NULL: &str = "\0";

type Result<T> = std::result::Result<T, String>;

impl Session<'_> {
    pub(super) fn create(&mut self, table: &str, words: &[Word]) -> std::result::Result<(), Stop> {
        let db = self.source.to_change()?;
        self.must_be_outside("a table is created")?;
        let table = db.create_table(table, schema(words)?)?;
        table.warnings().iter().for_each(|warning| tell!("{warning}"));
        Ok(())
    }

    /// `drop`.
    pub(super) fn drop_table(&mut self, table: &str) -> std::result::Result<(), Stop> {
        let db = self.source.to_change()?;
        self.must_be_outside("a table is dropped")?;
        Ok(db.drop_table(table)?)
    }

    /// Refuses a change inside a transaction, for whose locks it would wait.
    fn must_be_outside(&self, what: &str) -> Result<()> {
        match self.txn {
            Some(_) => Err(format!("{what} outside of transactions: commit or roll back first")),
            None => Ok(()),
        }
    }
}

/// The schema that the words define.
///
/// # Errors
/// What is wrong, with the place in the line or the column's name. What only the table as a whole shows (a key of a
/// column that there is not) the database says.
pub(super) fn schema(words: &[Word]) -> Result<Schema> {
    let pieces: Vec<Piece> = words.iter().flat_map(Word::pieces).collect();
    let (mut schema, mut has_key) = (Schema::new(), false);
    for part in parts(&pieces)? {
        let mut rest = Pieces { rest: part };
        if rest.take_all(&["primary", "key"]) {
            if has_key {
                return Err(rest.wrong("a table has one primary key"));
            }
            (schema, has_key) = (schema.primary_key_with(rest.columns("primary key")?), true);
        } else if rest.take_all(&["long", "keys"]) {
            schema = schema.long_keys();
        } else if rest.take_all(&["expires", "by"]) {
            schema = schema.expires(rest.name("a column")?);
        } else {
            let is_unique = rest.take_all(&["unique", "index"]);
            schema = match is_unique || rest.take_all(&["index"]) {
                true => with_index(schema, is_unique, &mut rest)?,
                false => with_column(schema, &mut rest)?,
            };
        }
        rest.end()?;
    }
    if has_key { Ok(schema) } else { Err("name a primary key: ..., primary key COLUMN".to_string()) }
}

/// The parts between commas that are not within parentheses.
fn parts(pieces: &[Piece]) -> Result<Vec<&[Piece]>> {
    let (mut parts, mut depth, mut begin) = (Vec::new(), 0, 0);
    for (at, piece) in pieces.iter().enumerate() {
        match piece.mark() {
            Some('(') => depth += 1,
            Some(')') if depth == 0 => return Err(format!("column {}: this parenthesis was not opened", piece.column)),
            Some(')') => depth -= 1,
            Some(',') if depth == 0 => {
                parts.push((begin..at, piece.column));
                begin = at + 1;
            }
            _ => {}
        }
    }
    let end = pieces.last().map_or(1, |last| last.column);
    if depth > 0 {
        return Err(format!("column {end}: a parenthesis is never closed"));
    }
    parts.push((begin..pieces.len(), end));
    let part = |(range, column): (std::ops::Range<usize>, usize)| match range.is_empty() {
        true => Err(format!("column {column}: a part of the definition is missing")),
        false => Ok(&pieces[range]),
    };
    parts.into_iter().map(part).collect()
}

fn with_column(schema: Schema, rest: &mut Pieces<'_>) -> Result<Schema> {
    let name = rest.name("a column")?;
    let of_column = |reason: String| format!("column {name}: {reason}");
    let (ty, mut is_nullable) = rest.column_type().map_err(of_column)?;
    let (mut is_counted, mut default, mut collation) = (false, None, None);
    while let Some(piece) = rest.rest.first() {
        rest.rest = &rest.rest[1..];
        match () {
            () if piece.is("null") => is_nullable = true,
            () if piece.is("auto") => is_counted = true,
            () if piece.is("default") => default = Some(rest.value(ty).map_err(of_column)?),
            () if piece.is("collation") => collation = Some(rest.name("a collation").map_err(of_column)?),
            () => {
                let reason = format!("{:?} is not one of null, auto, default VALUE, collation NAME", piece.text);
                return Err(format!("column {}: column {name}: {reason}", piece.column));
            }
        }
    }
    let schema = if is_nullable { schema.nullable(name, ty) } else { schema.column(name, ty) };
    let schema = if is_counted { schema.auto_increment(name) } else { schema };
    let schema = default.iter().fold(schema, |schema, value: &Value| schema.default_value(name, value));
    Ok(collation.into_iter().fold(schema, |schema, collation| schema.collation(name, collation)))
}

fn with_index(schema: Schema, is_unique: bool, rest: &mut Pieces<'_>) -> Result<Schema> {
    let name = rest.name("an index")?;
    let in_index = |reason: String| format!("index {name}: {reason}");
    let mut index = rest.columns("index").map_err(in_index)?;
    if rest.take_all(&["covering"]) {
        let names: Vec<&str> = rest.column_list().map_err(in_index)?.iter().map(|part| part.name).collect();
        index = index.covering(&names);
    }
    Ok(schema.index_with(name, if is_unique { index.unique() } else { index }))
}

struct KeyColumn<'p> {
    name: &'p str,
    prefix_bytes: Option<u16>,
    descending: bool,
}

/// The unread rest of a part.
struct Pieces<'p> {
    rest: &'p [Piece],
}

impl<'p> Pieces<'p> {
    /// Takes these keywords if they come next.
    fn take_all(&mut self, keywords: &[&str]) -> bool {
        let comes = self.rest.len() >= keywords.len()
            && self.rest.iter().zip(keywords).all(|(piece, keyword)| piece.is(keyword));
        if comes {
            self.rest = &self.rest[keywords.len()..];
        }
        comes
    }

    fn take_mark(&mut self, mark: char) -> bool {
        let comes = self.rest.first().is_some_and(|piece| piece.mark() == Some(mark));
        if comes {
            self.rest = &self.rest[1..];
        }
        comes
    }

    fn wrong(&self, what: &str) -> String {
        match self.rest.first() {
            Some(piece) => format!("column {}: {what}", piece.column),
            None => what.to_string(),
        }
    }

    fn end(&self) -> Result<()> {
        match self.rest.first() {
            Some(piece) => Err(format!("column {}: {:?} is too much here", piece.column, piece.text)),
            None => Ok(()),
        }
    }

    /// The next word.
    fn name(&mut self, of: &str) -> Result<&'p str> {
        match self.rest.split_first() {
            Some((piece, rest)) if piece.mark().is_none() => {
                self.rest = rest;
                Ok(&piece.text)
            }
            _ => Err(self.wrong(&format!("the name of {of} is missing"))),
        }
    }

    /// A type, and whether `?` after it makes the column nullable.
    fn column_type(&mut self) -> Result<(Type, bool)> {
        let mut text = self.name("its type").map_err(|_| self.wrong("its type is missing"))?.to_string();
        if self.take_mark('(') {
            text.push('(');
            while !self.take_mark(')') {
                let (piece, rest) = self.rest.split_first().ok_or("the parenthesis of its type is never closed")?;
                text.push_str(&piece.text);
                self.rest = rest;
            }
            text.push(')');
        }
        let is_marked = text.ends_with('?') || self.rest.first().is_some_and(|piece| piece.is("?"));
        if is_marked && !text.ends_with('?') {
            self.rest = &self.rest[1..];
        }
        Ok((text.trim_end_matches('?').parse()?, is_marked))
    }

    /// A value of a column.
    fn value(&mut self, ty: Type) -> Result<Value> {
        let text = self.name("its default").map_err(|_| self.wrong("the value of its default is missing"))?;
        Ok(read_field(text.as_bytes(), ty, NO_NULL)?.value().to_value())
    }

    fn columns(&mut self, of: &str) -> Result<Index> {
        let columns = self.column_list().map_err(|reason| format!("{of}: {reason}"))?;
        let names: Vec<&str> = columns.iter().map(|part| part.name).collect();
        Ok(columns.iter().fold(Index::new(&names), |index, part| {
            let index = part.prefix_bytes.into_iter().fold(index, |index, bytes| index.prefix(part.name, bytes));
            if part.descending { index.descending(part.name) } else { index }
        }))
    }

    /// Columns of a key, at least one.
    fn column_list(&mut self) -> Result<Vec<KeyColumn<'p>>> {
        let (mut columns, is_enclosed) = (Vec::new(), self.take_mark('('));
        loop {
            if is_enclosed && !columns.is_empty() {
                if self.take_mark(')') {
                    return Ok(columns);
                }
                self.take_mark(',');
            }
            let is_over = self.rest.first().is_none_or(|piece| piece.is("covering"));
            if !is_enclosed && !columns.is_empty() && is_over {
                return Ok(columns);
            }
            let name = self.name("a column")?;
            let prefix_bytes = if self.take_mark('(') { Some(self.prefix_bytes()?) } else { None };
            columns.push(KeyColumn { name, prefix_bytes, descending: self.take_all(&["desc"]) });
        }
    }

    fn prefix_bytes(&mut self) -> Result<u16> {
        let wrong = |this: &Self| this.wrong("write COLUMN(BYTES), with a number of bytes");
        let bytes = self.name("a number").ok().and_then(|text| text.parse().ok()).ok_or_else(|| wrong(self))?;
        if self.take_mark(')') { Ok(bytes) } else { Err(wrong(self)) }
    }
}

#[cfg(test)]
mod tests {
    use super::super::words::commands;
    use super::*;
    use highwater::Database;

    fn parsed(line: &str) -> Result<Schema> {
        schema(&commands(line)?.first().cloned().unwrap_or_default())
    }

    #[test]
    fn a_table_is_what_was_written() {
        let line = "id u64 auto, 'the name' text(80), area decimal(10, 2)? , born date null default 1970-01-01, \
                    login text collation ascii_ci, primary key id, unique index by_login login, \
                    index newest (born desc, 'the name'(40)) covering area, index by_area area born desc, long keys, \
                    until datetime null, expires by until";
        let found = parsed(line).unwrap().check("t").unwrap();
        let types = found.columns.iter().map(|column| format!("{} {}{}", column.name, column.ty, column.nullable));
        let types: Vec<String> = types.collect();
        let expected = [
            "id u64false",
            "the name text(80)false",
            "area decimal(10,2)true",
            "born datetrue",
            "login text(255)false",
            "until datetimetrue",
        ];
        assert_eq!(types, expected);
        assert_eq!((found.auto_increment, found.long_keys, found.expires), (Some(0), true, Some(5)));
        assert_eq!(found.columns[3].default.as_ref().unwrap().to_string(), "1970-01-01");
        assert_eq!(found.columns[4].collation.as_deref(), Some("ascii_ci"));
        assert_eq!(found.columns_in_words(&found.primary_key), "id");
        let keys = found.indexes.iter().map(|index| (index.unique, found.columns_in_words(&index.columns)));
        let keys: Vec<(bool, String)> = keys.collect();
        let [login, newest, area] = ["login", "born desc, the name(40)", "area, born desc"].map(String::from);
        assert_eq!(keys, [(true, login), (false, newest), (false, area)]);
        assert_eq!(found.indexes[1].covered, [2]);
        Database::in_memory().unwrap().create_table("t", parsed(line).unwrap()).unwrap();
    }

    #[test]
    fn wrong_definitions_say_what_is_wrong_and_where() {
        for (line, reason) in [
            ("", "a part of the definition is missing"),
            ("id u64", "name a primary key"),
            ("id u64,, primary key id", "column 8: a part of the definition is missing"),
            ("id u64, primary key id,", "column 23: a part of the definition is missing"),
            ("id int, primary key id", "column id: \"int\" is not a type"),
            ("id, primary key id", "column id: its type is missing"),
            ("id text(0), primary key id", "column id: text(0): the length is 1 to"),
            ("id u64 not null, primary key id", "column 8: column id: \"not\" is not one of null, auto"),
            ("id u64 default x, primary key id", "column id: \"x\" is not of type u64"),
            ("id u64 default, primary key id", "column id: the value of its default is missing"),
            ("id decimal(4,2, primary key id", "a parenthesis is never closed"),
            ("id u64), primary key id", "column 7: this parenthesis was not opened"),
            ("id u64, primary key", "primary key: the name of a column is missing"),
            ("id u64, primary key (id) id", "column 26: \"id\" is too much here"),
            ("id u64, primary key id, primary key id", "column 37: a table has one primary key"),
            ("id u64, primary key id, index", "the name of an index is missing"),
            ("id u64, primary key id, index a", "index a: index: the name of a column is missing"),
            ("id u64, primary key id, index a id(x)", "write COLUMN(BYTES)"),
            ("id u64, primary key id, index a id covering", "index a: the name of a column is missing"),
            ("id u64, primary key id, long keys now", "column 35: \"now\" is too much here"),
        ] {
            let found = parsed(line).map(drop).unwrap_err();
            assert!(found.contains(reason), "{line}: {found}");
        }
        let missing = parsed("id u64, primary key key").unwrap().check("t").unwrap_err();
        assert!(missing.to_string().contains("there is no column key"), "{missing}");
    }
}
