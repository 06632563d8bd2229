//! Words that the project does not use, since the field has words for what they mean.
//!
//! Rules
//! 1. A row of `words.txt` is a pattern (a regular expression), ` => `, and what to write instead; before it, in
//!    brackets, the folder in which it holds, if not in all.
//! 2. Sources and documents are searched, comments and code alike. A blank in a pattern matches the end of a line too,
//!    with the marks of a comment.

use regex::Regex;

/// The rows.
const WORDS: &str = include_str!("words.txt");

/// A row.
struct Word {
    folder: &'static str,
    pattern: Regex,
    instead: &'static str,
}

/// The words, ready to be looked for.
pub(crate) struct Words(Vec<Word>);

impl Words {
    /// Reads the rows.
    ///
    /// # Panics
    /// If a row is not written as rule 1 says.
    pub(crate) fn read() -> Words {
        let rows = WORDS.lines().filter(|row| !row.starts_with('#') && !row.is_empty());
        Words(rows.map(Word::read).collect())
    }

    /// Where `text`, the file at `path`, has one of the words.
    pub(crate) fn check(&self, path: &str, text: &str) -> Vec<String> {
        let rows = self.0.iter().filter(|word| path.starts_with(word.folder));
        let (joined, starts) = joined(text);
        let mut findings: Vec<(usize, String)> = Vec::new();
        for word in rows {
            for found in word.pattern.find_iter(&joined) {
                let line = starts.partition_point(|start| *start <= found.start());
                let said = found.as_str().trim();
                findings.push((line, format!("{path}:{line}: `{said}`: say {} (xtask/src/words.txt)", word.instead)));
            }
        }
        findings.sort_by_key(|(line, _)| *line);
        findings.into_iter().map(|(_, finding)| finding).collect()
    }
}

impl Word {
    fn read(row: &'static str) -> Word {
        let (folder, rest) = match row.strip_prefix('[') {
            Some(rest) => rest.split_once("] ").unwrap_or_else(|| panic!("{row}: no `] ` behind the folder")),
            None => ("", row),
        };
        let (pattern, instead) = rest.rsplit_once(" => ").unwrap_or_else(|| panic!("{row}: no ` => `"));
        let pattern = Regex::new(pattern).unwrap_or_else(|error| panic!("{row}: {error}"));
        Word { folder, pattern, instead }
    }
}

/// The lines joined by blanks, without the marks of comments, and where each begins.
fn joined(text: &str) -> (String, Vec<usize>) {
    let (mut joined, mut starts) = (String::with_capacity(text.len()), Vec::new());
    for line in text.lines() {
        starts.push(joined.len());
        let line = line.trim_start();
        let plain = ["//!", "///", "//"].iter().find_map(|mark| line.strip_prefix(mark)).unwrap_or(line);
        joined.push_str(plain.trim());
        joined.push(' ');
    }
    (joined, starts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_is_found_with_its_line_also_over_the_end_of_a_line() {
        let row = "[crates/] \\bhouse word\\b => field's word";
        let words = Words(vec![Word::read(row)]);
        let found = words.check("crates/x.rs", "//! Header.\n//! A house\n//! word.\nlet house_word = 1;\n");
        assert_eq!(found, ["crates/x.rs:2: `house word`: say field's word (xtask/src/words.txt)"]);
        assert!(words.check("docs/x.md", "A house word.\n").is_empty());
    }

    #[test]
    fn every_row_can_be_read() {
        assert!(!Words::read().0.is_empty());
    }
}
