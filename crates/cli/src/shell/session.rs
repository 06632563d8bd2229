//! Execution of commands on one database, with at most one transaction.
//!
//! Rules
//! 1. Without `begin` each command is a transaction of its own. In one, a command that fails changes nothing, and the
//!    transaction continues; if the engine rolls all of it back (a deadlock), or has stopped, the message reports it.
//! 2. A value is read by its column's type, as `import` reads it; what does not fit is an error that names the column.

use super::commands::{Command, ScanWords, help_text};
use super::printer::{Form, Printer};
use super::words::Word;
use crate::csv_field::read_field;
use crate::source::{Range, Snapshot, Source, position};
use highwater::{Error, IndexColumn, ServedTable, TableDefinition, Value, ValueRef, WriteTxn};
use std::io::Write;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};

/// Text that no word is: NULL is the word `null`.
const NO_NULL: &str = "\0";

/// The reason for the early end of a command.
#[derive(Debug)]
pub(super) enum Stop {
    /// It is wrong, or the database refuses it.
    Wrong(String),
    /// The output is closed.
    Output(std::io::Error),
    Exit,
}

impl From<Error> for Stop {
    fn from(error: Error) -> Stop {
        Stop::Wrong(error.to_string())
    }
}

impl From<String> for Stop {
    fn from(reason: String) -> Stop {
        Stop::Wrong(reason)
    }
}

impl From<std::io::Error> for Stop {
    fn from(error: std::io::Error) -> Stop {
        Stop::Output(error)
    }
}

type Result<T> = std::result::Result<T, Stop>;

/// A shell's database and what is open in it.
pub(super) struct Session<'s> {
    pub source: Source,
    pub txn: Option<WriteTxn>,
    pub form: Form,
    /// Rows that a scan without `limit` shows.
    pub row_limit: Option<usize>,
    /// Set when the running command is to end.
    pub interrupted: &'s AtomicBool,
}

/// The value of a word in a column.
fn value_of(table: &TableDefinition, column: usize, word: &Word) -> Result<Value> {
    let column = &table.columns[column];
    if word.is_null() {
        return Ok(Value::Null);
    }
    let wrong = |reason: String| Stop::Wrong(format!("column {}: {reason}", column.name));
    let read = read_field(word.text.as_bytes(), column.ty, NO_NULL).map_err(wrong)?;
    match read.value() {
        ValueRef::Null => Err(wrong(format!("\"\" is not of type {}; write null for NULL", column.ty))),
        value => Ok(value.to_value()),
    }
}

/// Values of the first columns of a key.
fn key_values(table: &TableDefinition, columns: &[IndexColumn], words: &[Word]) -> Result<Vec<Value>> {
    if let Some(surplus) = words.get(columns.len()) {
        let key = table.columns_in_words(columns);
        return Err(Stop::Wrong(format!("{:?} is one more than the key ({key}) has", surplus.text)));
    }
    columns.iter().zip(words).map(|(part, word)| value_of(table, part.column, word)).collect()
}

fn refs(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}

/// A scan's bounds as values.
#[derive(Default)]
struct Bounds {
    from: Option<(Vec<Value>, bool)>,
    to: Option<(Vec<Value>, bool)>,
    prefix: Option<Vec<Value>>,
    starts: Option<Vec<Value>>,
}

impl Bounds {
    /// The range that the words describe, with these bounds.
    fn range<'v>(&'v self, words: &'v ScanWords) -> Range<'v> {
        let side = |side: &'v Option<(Vec<Value>, bool)>| side.as_ref().map(|(values, is_in)| (refs(values), *is_in));
        Range {
            index: words.index.as_deref(),
            from: side(&self.from),
            to: side(&self.to),
            prefix: self.prefix.as_deref().map(refs),
            starts: self.starts.as_deref().map(refs),
            is_reverse: words.reverse,
            limit: None,
        }
    }

    fn of(table: &TableDefinition, words: &ScanWords) -> Result<Bounds> {
        let columns = match &words.index {
            Some(name) if name != "PRIMARY" => {
                let missing = || Stop::Wrong(format!("table {} has no index {name}", table.name));
                &table.indexes[table.index_position(name).ok_or_else(missing)?].columns
            }
            _ => &table.primary_key,
        };
        let values = |words: &Vec<Word>| key_values(table, columns, words);
        let side = |side: &Option<(Vec<Word>, bool)>| {
            side.as_ref().map(|(words, inclusive)| Ok::<_, Stop>((values(words)?, *inclusive))).transpose()
        };
        Ok(Bounds {
            from: side(&words.from)?,
            to: side(&words.to)?,
            prefix: words.prefix.as_ref().map(values).transpose()?,
            starts: words.starts.as_ref().map(values).transpose()?,
        })
    }
}

impl Session<'_> {
    /// Carries out a command.
    ///
    /// # Errors
    /// [`Stop`]; the transaction is what it was, unless the message says otherwise.
    pub(super) fn run(&mut self, command: Command, out: &mut dyn Write) -> Result<()> {
        match command {
            Command::Tables => self.tables(out),
            Command::Schema(name) => self.schema(name.as_deref(), out),
            Command::Get(table, key) => self.get(&table, &key, out),
            Command::Scan(table, words) => self.scan(&table, &words, out),
            Command::Count(table, words) => self.count(&table, &words, out),
            Command::Insert(table, values) => self.insert(&table, &values),
            Command::Put(table, values) => self.put(&table, &values),
            Command::Delete(table, key) => self.delete(&table, &key),
            Command::Create(table, words) => self.create(&table, &words),
            Command::Drop(table) => self.drop_table(&table),
            Command::Begin if self.txn.is_some() => Err(Stop::Wrong("a transaction is open already".to_string())),
            Command::Begin => {
                self.txn = Some(self.source.to_change()?.begin()?);
                Ok(())
            }
            Command::Commit => Ok(self.take_txn()?.commit()?),
            Command::Rollback => Ok(self.take_txn()?.rollback()?),
            Command::Format(form) => {
                self.form = form;
                Ok(())
            }
            Command::Help(of) => Ok(writeln!(out, "{}", help_text(of.as_deref())?)?),
            Command::Exit => Err(Stop::Exit),
        }
    }

    fn take_txn(&mut self) -> Result<WriteTxn> {
        self.source.to_change()?;
        self.txn.take().ok_or_else(|| Stop::Wrong("no transaction is open; `begin` begins one".to_string()))
    }

    /// Calls `change` in the open transaction, or in one of its own.
    fn change<R>(&mut self, change: impl FnOnce(&mut WriteTxn) -> Result<R>) -> Result<R> {
        let Some(txn) = &mut self.txn else {
            let mut txn = self.source.to_change()?.begin()?;
            let done = change(&mut txn)?;
            txn.commit()?;
            return Ok(done);
        };
        let before = txn.savepoint();
        let stop = match change(txn) {
            Ok(done) => return Ok(done),
            Err(stop) => stop,
        };
        // A command of several calls is undone as a whole.
        if txn.rollback_to(before).is_ok() {
            return Err(stop);
        }
        self.txn = None;
        match stop {
            Stop::Wrong(reason) => Err(Stop::Wrong(format!("{reason}; the open transaction was rolled back"))),
            stop => Err(stop),
        }
    }

    /// The open transaction, or a new snapshot, for reads.
    fn snapshot(&mut self) -> Result<Snapshot<'_>> {
        Ok(match (&self.source, &mut self.txn) {
            (Source::Own(db), Some(txn)) => Snapshot::Txn(db, txn),
            (source, _) => source.snapshot()?,
        })
    }

    fn must_go_on(&self) -> Result<()> {
        match self.interrupted.load(Ordering::Relaxed) {
            true => Err(Stop::Wrong("interrupted".to_string())),
            false => Ok(()),
        }
    }

    fn tables(&mut self, out: &mut dyn Write) -> Result<()> {
        let names = ["table", "columns", "indexes", "rows (about)"].map(String::from).to_vec();
        let mut printer = Printer::begin(self.form, names, out)?;
        for ServedTable { definition, approximate_rows, .. } in self.source.tables()? {
            let counts = [definition.columns.len() as u64, definition.indexes.len() as u64, approximate_rows];
            printer.row(std::iter::once(ValueRef::Text(&definition.name)).chain(counts.map(ValueRef::UInt)))?;
        }
        Ok(printer.end()?)
    }

    fn schema(&mut self, name: Option<&str>, out: &mut dyn Write) -> Result<()> {
        let tables = match name {
            Some(name) => vec![self.snapshot()?.table(name)?],
            None => self.source.tables()?,
        };
        for ServedTable { definition, next_number, .. } in tables {
            let widest = |text: fn(&highwater::Column) -> usize| definition.columns.iter().map(text).max().unwrap_or(0);
            let (name_width, type_width) = (widest(|c| c.name.chars().count()), widest(|c| c.ty.to_string().len() + 1));
            writeln!(out, "table {}", definition.name)?;
            for (at, column) in definition.columns.iter().enumerate() {
                let mut notes = Vec::new();
                if definition.auto_increment == Some(at) {
                    notes.push(match next_number {
                        Some(next) => format!("counts by itself, next {next}"),
                        None => "counts by itself, no number left".to_string(),
                    });
                }
                notes.extend((definition.expires == Some(at)).then(|| "rows expire then".to_string()));
                notes.extend(column.collation.as_ref().map(|collation| format!("collation {collation}")));
                notes.extend(column.default.as_ref().map(|value| format!("default {value}")));
                let ty = format!("{}{}", column.ty, if column.nullable { "?" } else { "" });
                let line = format!("  {:name_width$}  {ty:type_width$}  {}", column.name, notes.join(", "));
                writeln!(out, "{}", line.trim_end())?;
            }
            let long = if definition.long_keys { " (long keys)" } else { "" };
            writeln!(out, "  primary key ({}){long}", definition.columns_in_words(&definition.primary_key))?;
            for index in &definition.indexes {
                let unique = if index.unique { "unique " } else { "" };
                let covered: Vec<IndexColumn> = index.covered.iter().map(|column| (*column).into()).collect();
                let covering = match covered.is_empty() {
                    true => String::new(),
                    false => format!(" covering ({})", definition.columns_in_words(&covered)),
                };
                let key = definition.columns_in_words(&index.columns);
                writeln!(out, "  {unique}index {} ({key}){covering}", index.name)?;
            }
        }
        Ok(())
    }

    fn get(&mut self, table: &str, key: &[Word], out: &mut dyn Write) -> Result<()> {
        let (form, mut snapshot) = (self.form, self.snapshot()?);
        let definition = snapshot.table(table)?.definition;
        let key = whole_key(&definition, key)?;
        let range = Range { prefix: Some(refs(&key)), limit: Some(1), ..Range::default() };
        let mut is_there = false;
        snapshot.each_row(table, &range, &[], |row| {
            is_there = true;
            let mut printer = Printer::begin(form, names(&definition), out)?;
            printer.row(row)?;
            printer.end()?;
            Ok::<_, Stop>(ControlFlow::Break(()))
        })?;
        if !is_there {
            tell!("there is no such row");
        }
        Ok(())
    }

    fn scan(&mut self, table: &str, words: &ScanWords, out: &mut dyn Write) -> Result<()> {
        let (form, row_limit, interrupted) = (self.form, self.row_limit, self.interrupted);
        let mut snapshot = self.snapshot()?;
        let definition = snapshot.table(table)?.definition;
        let bounds = Bounds::of(&definition, words)?;
        let columns: Vec<&str> = words.select.iter().map(String::as_str).collect();
        columns.iter().try_for_each(|name| position(&definition, name).map(drop))?;
        let shown = if columns.is_empty() { names(&definition) } else { words.select.clone() };
        let limit = words.limit.or(row_limit).unwrap_or(usize::MAX);
        // One more than the limit shows whether there are more.
        let range = Range { limit: Some(limit.saturating_add(1)), ..bounds.range(words) };
        let (mut rows, mut is_cut) = (0usize, false);
        let mut printer = Printer::begin(form, shown, out)?;
        snapshot.each_row(table, &range, &columns, |row| {
            is_cut = rows == limit;
            if is_cut || interrupted.load(Ordering::Relaxed) {
                return Ok(ControlFlow::Break(()));
            }
            rows += 1;
            printer.row(row)?;
            Ok::<_, Stop>(ControlFlow::Continue(()))
        })?;
        printer.end()?;
        drop(snapshot);
        self.must_go_on()?;
        if is_cut && words.limit.is_none() {
            tell!("these are the first {limit} rows; `limit N` shows more");
        }
        Ok(())
    }

    fn count(&mut self, table: &str, words: &ScanWords, out: &mut dyn Write) -> Result<()> {
        if words.limit.is_some() || words.reverse || !words.select.is_empty() {
            return Err(Stop::Wrong("count takes an index and a range only".to_string()));
        }
        let (form, mut snapshot) = (self.form, self.snapshot()?);
        let bounds = Bounds::of(&snapshot.table(table)?.definition, words)?;
        let rows = snapshot.count(table, &bounds.range(words))?;
        let mut printer = Printer::begin(form, vec!["rows".to_string()], out)?;
        printer.row(std::iter::once(ValueRef::UInt(rows)))?;
        Ok(printer.end()?)
    }

    fn insert(&mut self, table: &str, words: &[(String, Word)]) -> Result<()> {
        let table = self.source.to_change()?.table(table)?;
        let definition = table.definition();
        let row = new_row(&definition, &assigned(&definition, words)?)?;
        let inserted = self.change(|txn| Ok(txn.insert(&table, &refs(&row))?))?;
        if let Some(number) = inserted.auto_increment {
            tell!("inserted number {number}");
        }
        Ok(())
    }

    fn put(&mut self, table: &str, words: &[(String, Word)]) -> Result<()> {
        let table = self.source.to_change()?.table(table)?;
        let definition = table.definition();
        let values = assigned(&definition, words)?;
        let of_key = |part: &IndexColumn| values.iter().find(|(column, _)| *column == part.column);
        let key: Vec<Value> =
            definition.primary_key.iter().filter_map(of_key).map(|(_, value)| value.clone()).collect();
        if key.len() < definition.primary_key.len() {
            let key = definition.columns_in_words(&definition.primary_key);
            return Err(Stop::Wrong(format!("put names the primary key ({key}); insert need not")));
        }
        let others: Vec<(usize, ValueRef<'_>)> = values
            .iter()
            .filter(|(column, _)| !definition.is_key(*column))
            .map(|(c, value)| (*c, value.as_ref()))
            .collect();
        self.change(|txn| {
            let is_there = txn.get_for_update(&table, &refs(&key))?.is_some();
            match is_there {
                true => txn.update(&table, &refs(&key), &others).map(drop)?,
                false => txn.insert(&table, &refs(&new_row(&definition, &values)?)).map(drop)?,
            }
            Ok(())
        })
    }

    fn delete(&mut self, table: &str, key: &[Word]) -> Result<()> {
        let table = self.source.to_change()?.table(table)?;
        let key = whole_key(&table.definition(), key)?;
        match self.change(|txn| Ok(txn.delete(&table, &refs(&key))?))? {
            true => Ok(()),
            false => Err(Stop::Wrong("there is no such row".to_string())),
        }
    }
}

/// The values of a whole primary key.
fn whole_key(table: &TableDefinition, words: &[Word]) -> Result<Vec<Value>> {
    let key = &table.primary_key;
    if words.len() < key.len() {
        return Err(Stop::Wrong(format!("the primary key has {} columns: {}", key.len(), table.columns_in_words(key))));
    }
    key_values(table, key, words)
}

/// The names of all columns.
fn names(table: &TableDefinition) -> Vec<String> {
    table.columns.iter().map(|column| column.name.clone()).collect()
}

/// Columns and their values.
fn assigned(table: &TableDefinition, words: &[(String, Word)]) -> Result<Vec<(usize, Value)>> {
    let one = |(name, word): &(String, Word)| {
        let column = position(table, name)?;
        Ok((column, value_of(table, column, word)?))
    };
    words.iter().map(one).collect()
}

/// A whole row: columns that are not named have their default, or NULL.
fn new_row(table: &TableDefinition, values: &[(usize, Value)]) -> Result<Vec<Value>> {
    let value = |(at, column): (usize, &highwater::Column)| {
        let given = values.iter().find(|(other, _)| *other == at).map(|(_, value)| value.clone());
        match given.or_else(|| column.default.clone()) {
            Some(value) => Ok(value),
            None if column.nullable || table.auto_increment == Some(at) => Ok(Value::Null),
            None => Err(Stop::Wrong(format!("column {} is never NULL: name it", column.name))),
        }
    };
    table.columns.iter().enumerate().map(value).collect()
}
