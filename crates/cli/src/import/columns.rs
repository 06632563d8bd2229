//! The columns of a file: the column of the table that each one fills, and its type, given or inferred.

use super::file::Header;
use super::infer::Guess;
use super::{CsvError, ImportArgs, ROW_ID, Result};
use crate::csv_field::{Field, read_field};
use highwater::{Index, Schema, Table, Type, ValueRef};

/// A column of the file: where it goes and what it holds.
#[derive(Clone, Debug)]
pub(super) struct Target {
    pub(super) name: String,
    /// Position in the table.
    pub(super) column: usize,
    pub(super) ty: Type,
    pub(super) nullable: bool,
}

/// A column of the file before the first reading is done.
pub(super) enum Known {
    Given(Target),
    Guessed(String, Guess),
}

impl Known {
    pub(super) fn name(&self) -> &str {
        match self {
            Known::Given(target) => &target.name,
            Known::Guessed(name, _) => name,
        }
    }

    pub(super) fn target(&self, column: usize, keys: &[&str]) -> Target {
        match self {
            Known::Given(target) => Target { column, ..target.clone() },
            Known::Guessed(name, guess) => {
                let (ty, nullable) = guess.result();
                let nullable = nullable && !keys.contains(&name.as_str());
                Target { name: name.clone(), column, ty, nullable }
            }
        }
    }

    /// Checks one field against the type, or learns from it.
    pub(super) fn see(&mut self, field: &[u8], null: &str, is_text: bool) -> std::result::Result<(), String> {
        match self {
            Known::Given(target) => target.read(field, null).map(drop),
            Known::Guessed(_, guess) => {
                let field = std::str::from_utf8(field).map_err(|_| "the field is not UTF-8 text".to_string())?;
                if is_text {
                    guess.see_text(field)
                } else {
                    guess.see(field, null)
                }
                Ok(())
            }
        }
    }
}

impl Target {
    pub(super) fn read<'f>(&self, field: &'f [u8], null: &str) -> std::result::Result<Field<'f>, String> {
        let value = read_field(field, self.ty, null)?;
        match (value.value(), self.ty.misfit(value.value())) {
            (ValueRef::Null, _) if !self.nullable => Err("NULL in a column that is never NULL".to_string()),
            (_, Some(reason)) => Err(reason),
            (_, None) => Ok(value),
        }
    }
}

/// The file's columns for a new table: as given on the command line, the rest to be inferred.
pub(super) fn given_columns(args: &ImportArgs, header: &Header) -> Result<Vec<Known>> {
    let given = args.columns.iter().map(|column| parse_column(column)).collect::<Result<Vec<Target>>>()?;
    if !header.from_file && !given.is_empty() {
        if given.len() != header.names.len() {
            let reason = format!("{} columns given, but the first line has {} fields", given.len(), header.names.len());
            return Err(CsvError::Usage(reason));
        }
        return Ok(given.into_iter().map(Known::Given).collect());
    }
    if let Some(unknown) = given.iter().find(|column| !header.names.contains(&column.name)) {
        return Err(CsvError::Usage(format!("the file has no column {}", unknown.name)));
    }
    let known = |name: &String| match given.iter().find(|column| column.name == *name) {
        Some(column) => Known::Given(column.clone()),
        None => Known::Guessed(name.clone(), Guess::default()),
    };
    Ok(header.names.iter().map(known).collect())
}

/// The file's columns for a table that is there: by name, or by position if the file has no header.
pub(super) fn existing_targets(table: &Table, header: &Header) -> Result<Vec<Target>> {
    let columns = table.columns();
    if !header.from_file && header.names.len() != columns.len() {
        let (fields, columns) = (header.names.len(), columns.len());
        return Err(CsvError::Data(format!(
            "the first line has {fields} fields, table {} has {columns} columns",
            table.name()
        )));
    }
    let counting = table.definition().auto_increment;
    let target = |(i, name): (usize, &String)| {
        let column = if header.from_file { table.column(name)? } else { i };
        let found = &columns[column];
        let nullable = found.nullable || counting == Some(column);
        Ok(Target { name: found.name.clone(), column, ty: found.ty, nullable })
    };
    let targets = header.names.iter().enumerate().map(target).collect::<Result<Vec<Target>>>()?;
    for (position, column) in columns.iter().enumerate() {
        let named = targets.iter().filter(|target| target.column == position).count();
        if named > 1 {
            return Err(CsvError::Data(format!("the file has two columns {}", column.name)));
        }
        if named == 0 && !column.nullable && counting != Some(position) {
            return Err(CsvError::Data(format!("the file has no column {}, which is never NULL", column.name)));
        }
    }
    Ok(targets)
}

fn parse_column(text: &str) -> Result<Target> {
    let wrong = |reason: String| CsvError::Usage(format!("--column {text}: {reason}"));
    let (name, ty) = text.rsplit_once(':').ok_or_else(|| wrong("write NAME:TYPE or NAME:TYPE?".to_string()))?;
    let (ty, nullable) = ty.strip_suffix('?').map_or((ty, false), |ty| (ty, true));
    Ok(Target { name: name.to_string(), column: 0, ty: ty.parse().map_err(wrong)?, nullable })
}

/// An index as it is written: `NAME=A,B(40),C desc covering D,E`.
pub(super) fn parse_index(text: &str) -> Result<(&str, Index)> {
    let (name, index) =
        text.split_once('=').ok_or_else(|| CsvError::Usage(format!("index {text}: write NAME=COLUMN,COLUMN")))?;
    let (columns, covered) = index.split_once(" covering ").map_or((index, None), |(columns, c)| (columns, Some(c)));
    let (index, _) = parse_key(columns)?;
    Ok((name, covered.into_iter().fold(index, |index, covered| index.covering(&split_list(covered)))))
}

struct Part<'t> {
    name: &'t str,
    prefix_bytes: Option<u16>,
    descending: bool,
}

/// `A`, `A desc`, `A(40)`, `A(40) desc`.
fn parse_part(text: &str) -> Result<Part<'_>> {
    let (rest, descending) = text.strip_suffix(" desc").map_or((text, false), |rest| (rest.trim_end(), true));
    let Some((name, bytes)) = rest.strip_suffix(')').and_then(|rest| rest.rsplit_once('(')) else {
        return Ok(Part { name: rest, prefix_bytes: None, descending });
    };
    let wrong = || CsvError::Usage(format!("index column {text}: write COLUMN(BYTES), with a number of bytes"));
    Ok(Part { name: name.trim_end(), prefix_bytes: Some(bytes.parse().map_err(|_| wrong())?), descending })
}

/// Columns of a key as they are written, and their names.
pub(super) fn parse_key(text: &str) -> Result<(Index, Vec<&str>)> {
    let parts = split_list(text).into_iter().map(parse_part).collect::<Result<Vec<_>>>()?;
    let names: Vec<&str> = parts.iter().map(|part| part.name).collect();
    let index = parts.iter().fold(Index::new(&names), |index, part| {
        let index = part.prefix_bytes.into_iter().fold(index, |index, bytes| index.prefix(part.name, bytes));
        if part.descending { index.descending(part.name) } else { index }
    });
    Ok((index, names))
}

pub(super) fn split_list(text: &str) -> Vec<&str> {
    text.split(',').map(str::trim).collect()
}

/// The new table with its unique indexes; the others are checked here and built after the rows.
pub(super) fn schema(args: &ImportArgs, targets: &[Target]) -> Result<Schema> {
    let mut schema = Schema::new();
    if args.primary_key.is_none() {
        if targets.iter().any(|target| target.name == ROW_ID) {
            let reason = format!("the file has a column {ROW_ID} itself: name a primary key with --primary-key");
            return Err(CsvError::Usage(reason));
        }
        schema = schema.column(ROW_ID, Type::U64).auto_increment(ROW_ID);
    }
    for target in targets {
        schema = match target.nullable {
            true => schema.nullable(&target.name, target.ty),
            false => schema.column(&target.name, target.ty),
        };
    }
    schema = match &args.primary_key {
        Some(key) => schema.primary_key_with(parse_key(key)?.0),
        None => schema.primary_key(&[ROW_ID]),
    };
    for collation in &args.collations {
        let written = collation.split_once('=');
        let wrong = || CsvError::Usage(format!("collation {collation}: write COLUMN=COLLATION"));
        let (column, name) = written.ok_or_else(wrong)?;
        schema = schema.collation(column, name);
    }
    if args.long_keys {
        schema = schema.long_keys();
    }
    for index in &args.unique {
        let (name, index) = parse_index(index)?;
        schema = schema.index_with(name, index.unique());
    }
    let mut whole = schema.clone();
    for index in &args.indexes {
        let (name, index) = parse_index(index)?;
        whole = whole.index_with(name, index);
    }
    whole.check(&args.table).map_err(|error| CsvError::Usage(error.to_string()))?;
    Ok(schema)
}
