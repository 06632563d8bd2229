//! The commands of the shell: each with its syntax, help and examples.

use super::printer::Form;
use super::words::Word;
use clap::ValueEnum;

/// Help of one command.
pub(super) struct Help {
    pub name: &'static str,
    pub form: &'static str,
    pub what: &'static str,
    pub example: &'static str,
}

/// Every command, in the order in which `help` shows them.
pub(super) const COMMANDS: &[Help] = &[
    help("tables", "tables", "Lists the tables, with about how many rows each has", "tables"),
    help(
        "schema",
        "schema [TABLE]",
        "Shows a table's columns, keys and indexes, or those of all tables",
        "schema city",
    ),
    help("get", "get TABLE KEY...", "Shows the row of a primary key: a value for each of its columns", "get city 17"),
    help(
        "scan",
        "scan TABLE [by INDEX] [RANGE] [rev] [limit N] [select COLUMN...]",
        RANGE,
        "scan city by by_name from 'L' before 'M' rev limit 10 select id name",
    ),
    help("count", "count TABLE [by INDEX] [RANGE]", RANGE, "count city by by_name starts 'Lu'"),
    help(
        "insert",
        "insert TABLE COLUMN=VALUE...",
        "Inserts a row. A column that is not named gets its default, or NULL; an auto-increment column its next number",
        "insert city id=17 name='Lund' area=25.75",
    ),
    help(
        "put",
        "put TABLE COLUMN=VALUE...",
        "Changes the named columns of the row that has the primary key, or inserts the row if there is none",
        "put city id=17 name='Lund'",
    ),
    help("delete", "delete TABLE KEY...", "Deletes the row of a primary key", "delete city 17"),
    help("create", "create TABLE PART, PART...", PARTS, CREATE_EXAMPLE),
    help("drop", "drop TABLE", "Drops a table with its rows and indexes, at once and for good", "drop city"),
    help("begin", "begin", "Begins a transaction; without one each command is one of its own", "begin"),
    help("commit", "commit", "Commits the transaction: it is durable when the prompt returns", "commit"),
    help("rollback", "rollback", "Undoes everything since `begin`", "rollback"),
    help("format", "format table|csv|json", "How rows are shown", "format json"),
    help("help", "help [COMMAND]", "Shows this, or the help of a command", "help scan"),
    help("exit", "exit", "Leaves the shell, as Ctrl-D does. An open transaction is rolled back", "exit"),
];

const RANGE: &str = "\
RANGE is any of: from VALUE... (this key or greater), after VALUE... (greater), to VALUE... (this key or smaller),
before VALUE... (smaller), prefix VALUE... (equal in these columns), starts VALUE... (the last one only begins so).
A range names values of the first columns of the index, in its order; without `by` that is the primary key";

const PARTS: &str = "\
Creates a table. Each PART is one of:
  COLUMN TYPE [null] [auto] [default VALUE] [collation NAME]  (`auto`: an integer that counts by itself)
  primary key COLUMN [desc]...
  [unique] index NAME COLUMN[(BYTES)] [desc]... [covering COLUMN...]
  long keys
  expires by COLUMN  (rows expire at the moment in this datetime column)
Types are i8 i16 i24 i32 i64 u8 u16 u24 u32 u64 f32 f64 decimal(P,S) text(BYTES) binary(BYTES) fixed(BYTES) bool date
time datetime uuid json(BYTES); a `?` after one is `null`. `schema` shows a table in this form";

const CREATE_EXAMPLE: &str =
    "create city id u64 auto, name text(80), area decimal(10,2)?, primary key id, index by_name name";

const fn help(name: &'static str, form: &'static str, what: &'static str, example: &'static str) -> Help {
    Help { name, form, what, example }
}

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Command {
    Tables,
    Schema(Option<String>),
    Get(String, Vec<Word>),
    Scan(String, ScanWords),
    Count(String, ScanWords),
    Insert(String, Vec<(String, Word)>),
    Put(String, Vec<(String, Word)>),
    Delete(String, Vec<Word>),
    Create(String, Vec<Word>),
    Drop(String),
    Begin,
    Commit,
    Rollback,
    Format(Form),
    Help(Option<String>),
    Exit,
}

/// A scan as it is written.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct ScanWords {
    pub index: Option<String>,
    pub from: Option<(Vec<Word>, bool)>,
    pub to: Option<(Vec<Word>, bool)>,
    pub prefix: Option<Vec<Word>>,
    pub starts: Option<Vec<Word>>,
    pub reverse: bool,
    pub limit: Option<usize>,
    pub select: Vec<String>,
}

/// The words of a scan that say what follows.
pub(super) const SCAN_KEYWORDS: [&str; 10] =
    ["by", "from", "after", "to", "before", "prefix", "starts", "rev", "limit", "select"];

/// Reads a command.
///
/// # Errors
/// What is wrong, with the column.
pub(super) fn parse(words: &[Word]) -> Result<Command, String> {
    let (first, rest) = words.split_first().ok_or("there is no command")?;
    let name = if first.is("quit") { "exit" } else { &first.text.to_lowercase() };
    let Some(help) = COMMANDS.iter().find(|help| help.name == name) else {
        return Err(format!("column {}: there is no command {}; `help` lists them", first.column, first.text));
    };
    let usage = || format!("{name}: write: {}", help.form);
    let table = || rest.first().map(|word| word.text.clone()).ok_or_else(usage);
    let none = |command: Command| match rest.first() {
        None => Ok(command),
        Some(word) => Err(format!("column {}: {name} takes nothing after it", word.column)),
    };
    let at_most_one = |command: fn(Option<String>) -> Command| match rest {
        [] => Ok(command(None)),
        [word] => Ok(command(Some(word.text.clone()))),
        [_, second, ..] => Err(format!("column {}: {name} takes one name", second.column)),
    };
    match name {
        "tables" => none(Command::Tables),
        "schema" => at_most_one(Command::Schema),
        "get" => Ok(Command::Get(table()?, key_words(rest).ok_or_else(usage)?)),
        "delete" => Ok(Command::Delete(table()?, key_words(rest).ok_or_else(usage)?)),
        "create" => Ok(Command::Create(table()?, key_words(rest).ok_or_else(usage)?)),
        "drop" => match rest {
            [word] => Ok(Command::Drop(word.text.clone())),
            _ => Err(usage()),
        },
        "scan" => Ok(Command::Scan(table()?, scan_words(&rest[1..])?)),
        "count" => Ok(Command::Count(table()?, scan_words(&rest[1..])?)),
        "insert" => Ok(Command::Insert(table()?, assignments(&rest[1..])?)),
        "put" => Ok(Command::Put(table()?, assignments(&rest[1..])?)),
        "begin" => none(Command::Begin),
        "commit" => none(Command::Commit),
        "rollback" => none(Command::Rollback),
        "format" => match rest {
            [word] => Form::from_str(&word.text, true).map(Command::Format).map_err(|_| usage()),
            _ => Err(usage()),
        },
        "help" => at_most_one(Command::Help),
        _ => none(Command::Exit),
    }
}

/// The words after the table, at least one.
fn key_words(words: &[Word]) -> Option<Vec<Word>> {
    words.get(1..).filter(|key| !key.is_empty()).map(<[Word]>::to_vec)
}

fn assignments(words: &[Word]) -> Result<Vec<(String, Word)>, String> {
    let mut found: Vec<(String, Word)> = Vec::new();
    for word in words {
        let Some((name, value)) = word.assignment() else {
            return Err(format!("column {}: {:?} is no COLUMN=VALUE", word.column, word.text));
        };
        if found.iter().any(|(other, _)| other == name) {
            return Err(format!("column {}: {name} is named twice", word.column));
        }
        found.push((name.to_string(), value));
    }
    if found.is_empty() { Err("name columns as COLUMN=VALUE".to_string()) } else { Ok(found) }
}

fn scan_words(words: &[Word]) -> Result<ScanWords, String> {
    let mut scan = ScanWords::default();
    let mut rest = words;
    while let Some((word, behind)) = rest.split_first() {
        let is_keyword = |word: &Word| SCAN_KEYWORDS.iter().any(|keyword| word.is(keyword));
        let count = behind.iter().position(is_keyword).unwrap_or(behind.len());
        let (values, next) = behind.split_at(count);
        rest = next;
        let keyword = &word.text.to_lowercase()[..];
        let wrong = |what: &str| Err(format!("column {}: {what}", word.column));
        let one = || match values {
            [one] => Ok(one),
            _ => Err(format!("column {}: {keyword} takes one word", word.column)),
        };
        let is_free = match keyword {
            _ if !is_keyword(word) => {
                return wrong(&format!("{:?} is not one of {}", word.text, SCAN_KEYWORDS.join(", ")));
            }
            "from" | "after" => scan.from.is_none(),
            "to" | "before" => scan.to.is_none(),
            _ => true,
        };
        if !is_free {
            return wrong(&format!("{keyword} conflicts with another bound of the same side"));
        }
        if values.is_empty() && keyword != "rev" {
            return wrong(&format!("{keyword} needs something after it"));
        }
        match keyword {
            "by" => scan.index = Some(one()?.text.clone()),
            "from" | "after" => scan.from = Some((values.to_vec(), keyword == "from")),
            "to" | "before" => scan.to = Some((values.to_vec(), keyword == "to")),
            "prefix" => scan.prefix = Some(values.to_vec()),
            "starts" => scan.starts = Some(values.to_vec()),
            "limit" => match one()?.text.parse() {
                Ok(limit) => scan.limit = Some(limit),
                Err(_) => return wrong(&format!("limit {:?} is not a number", one()?.text)),
            },
            "select" => scan.select = values.iter().map(|word| word.text.clone()).collect(),
            _ if values.is_empty() => scan.reverse = true,
            _ => return wrong("rev takes nothing after it"),
        }
    }
    let bounds = [scan.from.is_some() || scan.to.is_some(), scan.prefix.is_some(), scan.starts.is_some()];
    match bounds.iter().filter(|is_given| **is_given).count() {
        0 | 1 => Ok(scan),
        _ => Err("a range has from/to, or prefix, or starts, not two of them".to_string()),
    }
}

/// The help of all commands, or of one.
///
/// # Errors
/// There is no such command.
pub(super) fn help_text(of: Option<&str>) -> Result<String, String> {
    let Some(name) = of else {
        let line = |help: &Help| format!("  {}", help.form);
        let lines: Vec<String> = COMMANDS.iter().map(line).collect();
        return Ok(format!(
            "{}\n\nValues are written as `export` writes them; quote what has blanks ('it''s'), write null for NULL.\n\
             A `;` stands between commands of a line, and -- before a comment. `help COMMAND` has an example.",
            lines.join("\n")
        ));
    };
    let found = COMMANDS.iter().find(|help| help.name.eq_ignore_ascii_case(name));
    let found = found.ok_or_else(|| format!("there is no command {name}; `help` lists them"))?;
    Ok(format!("{}\n{}.\nExample: {}", found.form, found.what, found.example))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shell::words::commands;

    fn parsed(line: &str) -> Result<Command, String> {
        parse(&commands(line)?[0])
    }

    #[test]
    fn every_example_is_its_command() {
        for help in COMMANDS {
            let found = parsed(help.example);
            assert!(found.is_ok(), "{}: {found:?}", help.example);
            assert!(help.example.starts_with(help.name) && help.form.starts_with(help.name));
            assert!(help_text(Some(help.name)).unwrap().contains(help.example));
        }
    }

    #[test]
    fn wrong_commands_say_what_is_wrong_and_where() {
        for (line, reason) in [
            ("select * from city", "column 1: there is no command select"),
            ("get city", "get: write: get TABLE KEY..."),
            ("scan", "scan: write: scan TABLE"),
            ("scan city form 3", "column 11: \"form\" is not one of by, from"),
            ("scan city limit many", "column 11: limit \"many\" is not a number"),
            ("scan city from 1 after 2", "column 18: after conflicts with another bound"),
            ("scan city from", "column 11: from needs something after it"),
            ("scan city from 1 prefix 2", "a range has from/to, or prefix"),
            ("scan city rev 7", "column 11: rev takes nothing"),
            ("insert city 7", "column 13: \"7\" is no COLUMN=VALUE"),
            ("insert city", "name columns as COLUMN=VALUE"),
            ("insert city a=1 a=2", "column 17: a is named twice"),
            ("commit now", "column 8: commit takes nothing"),
            ("schema a b", "column 10: schema takes one name"),
            ("create city", "create: write: create TABLE PART"),
            ("drop", "drop: write: drop TABLE"),
            ("drop a b", "drop: write: drop TABLE"),
            ("format xml", "format: write: format table|csv|json"),
        ] {
            let found = parsed(line).unwrap_err();
            assert!(found.contains(reason), "{line}: {found}");
        }
    }
}
