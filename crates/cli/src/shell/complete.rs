//! Completion by Tab: commands, tables, indexes, columns.
//!
//! Rule: the completions depend only on the line before the cursor and on names; no row is read.

use super::commands::{COMMANDS, SCAN_KEYWORDS};
use super::words::{self, Word};
use crate::source::Source;
use highwater::TableDefinition;
use rustyline::completion::Completer;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::validate::Validator;
use rustyline::{Context, Helper};

/// The names that can be written.
trait Names {
    fn tables(&self) -> Vec<String>;

    /// Empty if there is no such table.
    fn columns(&self, table: &str) -> Vec<String>;

    /// As `columns`.
    fn indexes(&self, table: &str) -> Vec<String>;
}

impl Names for Source {
    fn tables(&self) -> Vec<String> {
        let tables = Source::tables(self).unwrap_or_default();
        tables.into_iter().map(|table| table.definition.name).collect()
    }

    fn columns(&self, table: &str) -> Vec<String> {
        let names = |table: TableDefinition| table.columns.into_iter().map(|column| column.name).collect();
        self.definition(table).map(names).unwrap_or_default()
    }

    fn indexes(&self, table: &str) -> Vec<String> {
        let names = |table: TableDefinition| table.indexes.into_iter().map(|index| index.name).collect();
        self.definition(table).map(names).unwrap_or_default()
    }
}

/// Completes the lines of a shell on this database.
pub(super) struct Completion {
    pub source: Source,
}

impl Completer for Completion {
    type Candidate = String;

    fn complete(&self, line: &str, pos: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(offers(line.get(..pos).unwrap_or(line), &self.source))
    }
}

impl Hinter for Completion {
    type Hint = String;
}

impl Highlighter for Completion {}

impl Validator for Completion {}

impl Helper for Completion {}

/// The position of the last word of a line, and its completions.
fn offers(line: &str, names: &dyn Names) -> (usize, Vec<String>) {
    let (command, start) = last_word(line);
    // No quote is open before the last word, so that this parses.
    let before = words::commands(&line[command..start]).unwrap_or_default().pop().unwrap_or_default();
    let word = &line[start..];
    let mut offers: Vec<String> = choices(&before, names).into_iter().filter(|offer| fits(offer, word)).collect();
    offers.sort();
    (start, offers)
}

/// Whether a completion begins with the typed word; the completion's opening quote need not be typed.
fn fits(offer: &str, word: &str) -> bool {
    let text = offer.strip_prefix('\'').unwrap_or(offer);
    offer.starts_with(word) || text.starts_with(word.strip_prefix(['\'', '"']).unwrap_or(word))
}

/// The positions of the last command of a line and of its last word.
fn last_word(line: &str) -> (usize, usize) {
    let (mut command, mut word, mut quote) = (0, 0, None);
    for (at, character) in line.char_indices() {
        let next = at + character.len_utf8();
        match quote {
            Some(end) => quote = (character != end).then_some(end),
            None if character == ';' => (command, word) = (next, next),
            None if character.is_whitespace() => word = next,
            None => quote = ['\'', '"'].contains(&character).then_some(character),
        }
    }
    (command, word)
}

/// The words that can follow these words.
fn choices(before: &[Word], names: &dyn Names) -> Vec<String> {
    let commands = || COMMANDS.iter().map(|help| help.name.to_string()).collect();
    let Some((command, rest)) = before.split_first() else { return commands() };
    let quoted = |names: Vec<String>| names.iter().map(|name| quoted(name)).collect();
    match (&command.text.to_lowercase()[..], rest) {
        ("help", []) => commands(),
        ("format", []) => ["table", "csv", "json"].map(String::from).to_vec(),
        ("schema" | "get" | "scan" | "count" | "insert" | "put" | "delete" | "drop", []) => quoted(names.tables()),
        ("insert" | "put", [table, assigned @ ..]) => {
            let is_free =
                |name: &String| !assigned.iter().any(|word| word.assignment().is_some_and(|(n, _)| n == name));
            // The name of an assignment is never quoted.
            let columns = names.columns(&table.text).into_iter().filter(|name| is_free(name) && is_plain(name));
            columns.map(|name| format!("{name}=")).collect()
        }
        (kind @ ("scan" | "count"), [table, rest @ ..]) => match rest.last() {
            Some(last) if last.is("by") => {
                let mut indexes = names.indexes(&table.text);
                indexes.push("PRIMARY".to_string());
                quoted(indexes)
            }
            // A value.
            Some(last)
                if SCAN_KEYWORDS.iter().any(|keyword| last.is(keyword)) && !last.is("rev") && !last.is("select") =>
            {
                Vec::new()
            }
            _ => scan_choices(kind == "scan", rest, || quoted(names.columns(&table.text))),
        },
        _ => Vec::new(),
    }
}

/// Keywords that the scan does not have yet; after `select` also columns.
fn scan_choices(is_scan: bool, rest: &[Word], columns: impl FnOnce() -> Vec<String>) -> Vec<String> {
    let is_given = |keyword: &&str| rest.iter().any(|word| word.is(keyword));
    let is_allowed = |keyword: &&str| is_scan || !["rev", "limit", "select"].contains(keyword);
    let keywords = SCAN_KEYWORDS.iter().filter(|keyword| !is_given(keyword) && is_allowed(keyword));
    let last = rest.iter().rev().find(|word| SCAN_KEYWORDS.iter().any(|keyword| word.is(keyword)));
    let mut choices: Vec<String> = keywords.map(|keyword| keyword.to_string()).collect();
    if last.is_some_and(|word| word.is("select")) {
        choices.extend(columns());
    }
    choices
}

/// Whether a name needs no quotes.
fn is_plain(name: &str) -> bool {
    let is_plain = |c: char| c.is_alphanumeric() || ['_', '.', '-'].contains(&c);
    name.chars().all(is_plain) && !name.is_empty() && !name.starts_with('-')
}

/// A name as a command has it: in quotes if it has blanks or other special characters, or is a keyword.
fn quoted(name: &str) -> String {
    let is_keyword = SCAN_KEYWORDS.iter().any(|keyword| keyword.eq_ignore_ascii_case(name));
    if is_plain(name) && !is_keyword { name.to_string() } else { format!("'{}'", name.replace('\'', "''")) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater::{Database, Schema, Type};

    fn world() -> Source {
        let db = Database::in_memory().unwrap();
        let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(40)).column("the area", Type::F64);
        let schema = schema.column("limit", Type::U64).primary_key(&["id"]).index("by_name", &["name"]);
        db.create_table("city", schema.clone()).unwrap();
        db.create_table("old cities", schema).unwrap();
        Source::Own(db)
    }

    #[test]
    fn what_is_offered() {
        let db = world();
        let keywords = ["after", "before", "by", "from", "limit", "prefix", "rev", "select", "starts", "to"];
        for (line, offered) in [
            ("sc", &["scan", "schema"][..]),
            ("begin; com", &["commit"]),
            ("help dr", &["drop"]),
            ("format c", &["csv"]),
            ("get ", &["'old cities'", "city"]),
            ("get ol", &["'old cities'"]),
            ("drop 'ol", &["'old cities'"]),
            ("get city ", &[]),
            ("insert city n", &["name="]),
            ("insert city name='a b' ", &["id=", "limit="]),
            ("put 'old cities' i", &["id="]),
            ("put nothing ", &[]),
            ("scan city ", &keywords),
            ("scan city by ", &["PRIMARY", "by_name"]),
            ("scan city by by_name from 'L' b", &["before"]),
            ("scan city from ", &[]),
            ("scan city rev select id n", &["name"]),
            ("scan city select 'the", &["'the area'"]),
            ("scan city rev select li", &["'limit'", "limit"]),
            ("count city s", &["starts"]),
            ("count city l", &[]),
            ("create city ", &[]),
            ("get city 'x; sc", &[]),
        ] {
            assert_eq!(offers(line, &db).1, offered, "{line}");
        }
    }

    #[test]
    fn the_last_word_is_replaced() {
        let db = world();
        for (line, start) in [("sc", 0), ("get ol", 4), ("get 'old c", 4), ("begin;sc", 6), ("get  ", 5), ("é sc", 3)]
        {
            assert_eq!(offers(line, &db).0, start, "{line}");
        }
    }

    #[test]
    fn an_offer_is_the_name_again() {
        for name in ["city", "old cities", "it's", "a;b", "--", "by", "", "Åhus"] {
            let line = format!("get {}", quoted(name));
            let words = &words::commands(&line).unwrap()[0];
            assert!(words.len() == 2 && words[1].text == name && !words[1].is("by"), "{line}");
        }
    }
}
