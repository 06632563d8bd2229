//! JSON lines: an object in each line, its members the columns.
//!
//! Rules
//! 1. A line becomes the fields that a CSV file would have: numbers, `true` and `false` as they are written, texts as
//!    `export` writes them, lists and objects as their JSON. A member that is missing, or `null`, is NULL.
//! 2. A text is text, or a time: `"12"` makes no column of numbers.
//! 3. The columns are the members of all lines, in the order of their first occurrence.
//! 4. Any other line is a bad line; its message has the line's number and, if known, the column of the mistake.

use super::file::{Header, Place, Record};
use super::{CsvError, ImportArgs, OnError, Result};
use crate::csv_field::write_field;
use highwater::ValueRef;
use serde::Deserializer;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};

/// Longest line: a row of 16 MiB as hexadecimal digits has half of it.
const MAX_LINE_BYTES: u64 = 64 << 20;

/// Members of an object, as they are written.
struct Members<'l>(Vec<(String, &'l RawValue)>);

impl<'l> serde::Deserialize<'l> for Members<'l> {
    fn deserialize<D: Deserializer<'l>>(from: D) -> std::result::Result<Members<'l>, D::Error> {
        struct Object;
        impl<'l> Visitor<'l> for Object {
            type Value = Members<'l>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'l>>(self, mut map: A) -> std::result::Result<Members<'l>, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        from.deserialize_map(Object)
    }
}

/// Hands each line that is not empty to `visit`, with its place.
fn each(args: &ImportArgs, mut visit: impl FnMut(&[u8], Place) -> Result<()>) -> Result<()> {
    let failed = |source| CsvError::File { path: args.shown(), source };
    let mut file = BufReader::with_capacity(1 << 18, File::open(&args.file).map_err(failed)?);
    let (mut place, mut text) = (Place { line: 1, byte: 0 }, Vec::new());
    loop {
        text.clear();
        let read = (&mut file).take(MAX_LINE_BYTES).read_until(b'\n', &mut text).map_err(failed)? as u64;
        if read == MAX_LINE_BYTES {
            let (file, line) = (args.shown(), place.line);
            return Err(CsvError::Data(format!("{}: line {line} has no end within 64 MiB", file.display())));
        }
        let mark = if place.byte == 0 && text.starts_with(b"\xef\xbb\xbf") { 3 } else { 0 };
        let line = text[mark..].trim_ascii();
        if !line.is_empty() {
            visit(line, place)?;
        }
        if read == 0 {
            return Ok(());
        }
        place = Place { line: place.line + 1, byte: place.byte + read };
    }
}

fn members(line: &[u8]) -> std::result::Result<Members<'_>, String> {
    let text = std::str::from_utf8(line).map_err(|wrong| format!("column {}: not UTF-8", wrong.valid_up_to() + 1))?;
    serde_json::from_str(text).map_err(|error| {
        let what = error.to_string();
        let what = what.split(" at line ").next().unwrap_or(&what);
        format!("column {}: {what}", error.column())
    })
}

/// The names of the columns.
///
/// # Errors
/// [`CsvError::Data`] for a file without lines, and unless bad lines are skipped, for a bad line.
pub(super) fn read_header(args: &ImportArgs) -> Result<Header> {
    let (mut names, mut positions) = (Vec::new(), HashMap::new());
    each(args, |line, place| match members(line) {
        Ok(Members(members)) => {
            for (name, _) in members {
                positions.entry(name).or_insert_with_key(|name| {
                    names.push(name.clone());
                    names.len() - 1
                });
            }
            Ok(())
        }
        Err(_) if args.on_error == OnError::Skip => Ok(()),
        Err(reason) => Err(CsvError::Data(format!(
            "{}: line {}, {reason}; nothing was imported",
            args.shown().display(),
            place.line
        ))),
    })?;
    match names.is_empty() {
        true => Err(CsvError::Data(format!("{} is empty", args.shown().display()))),
        false => Ok(Header { names, from_file: true }),
    }
}

/// Reads the lines one by one, as records with the columns of `header`.
pub(super) fn each_line(
    args: &ImportArgs,
    header: &Header,
    mut visit: impl FnMut(&Record, Place) -> Result<()>,
) -> Result<()> {
    let positions: HashMap<&str, usize> = header.names.iter().enumerate().map(|(i, name)| (&name[..], i)).collect();
    let (mut fields, mut record) = (vec![Field::default(); header.names.len()], Record::default());
    each(args, |line, place| {
        record.wrong = set_fields(line, &positions, &args.null, &mut fields).err();
        record.fields.clear();
        record.is_text.clear();
        for field in &fields {
            record.fields.push_field(field.text.as_bytes());
            record.is_text.push(field.is_text);
        }
        visit(&record, place)
    })
}

/// A field in the making.
#[derive(Clone, Default)]
struct Field {
    text: String,
    is_text: bool,
    is_set: bool,
}

fn set_fields(
    line: &[u8],
    positions: &HashMap<&str, usize>,
    null: &str,
    fields: &mut [Field],
) -> std::result::Result<(), String> {
    for field in fields.iter_mut() {
        (field.is_text, field.is_set) = (false, false);
        write_field(ValueRef::Null, null, &mut field.text);
    }
    for (name, value) in members(line)?.0 {
        let Some(&at) = positions.get(&name[..]) else { return Err(format!("the member {name} is new")) };
        let field = &mut fields[at];
        if std::mem::replace(&mut field.is_set, true) {
            return Err(format!("column {name}: it comes twice"));
        }
        match value.get() {
            "null" => {}
            text if text.starts_with('"') => {
                let text: String = serde_json::from_str(text).map_err(|error| format!("column {name}: {error}"))?;
                write_field(ValueRef::Text(&text), null, &mut field.text);
                field.is_text = true;
            }
            json if json.starts_with(['{', '[']) => {
                write_field(ValueRef::Text(json), null, &mut field.text);
                field.is_text = true;
            }
            other => other.clone_into(&mut field.text),
        }
    }
    Ok(())
}
