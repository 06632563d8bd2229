//! The words of a command.
//!
//! Rules
//! 1. Words stand between blanks; `;` ends a command, `--` at the start of a word begins a comment up to the end of the
//!    line.
//! 2. Between quotes, single or double, every character counts as it is; two quotes are one. A quoted word is never a
//!    keyword, and never NULL.
//! 3. Errors name the column, counted in characters from 1.

use std::ops::Range;

/// The characters at which [`Word::pieces`] splits a word.
const MARKS: [char; 3] = [',', '(', ')'];

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Word {
    /// Without its quotes.
    pub text: String,
    /// The ranges of the text that were between quotes.
    quoted: Vec<Range<usize>>,
    /// Column of its first character.
    pub column: usize,
}

impl Word {
    /// Whether it is this keyword.
    pub(super) fn is(&self, keyword: &str) -> bool {
        self.quoted.is_empty() && self.text.eq_ignore_ascii_case(keyword)
    }

    /// Whether it is NULL.
    pub(super) fn is_null(&self) -> bool {
        self.is("null")
    }

    /// The word as `NAME=VALUE`.
    pub(super) fn assignment(&self) -> Option<(&str, Word)> {
        let at = self.text.find('=').filter(|at| self.quoted.first().is_none_or(|quoted| *at < quoted.start))?;
        let quoted = self.quoted.iter().map(|quoted| quoted.start - at - 1..quoted.end - at - 1).collect();
        let value = Word { text: self.text[at + 1..].to_string(), quoted, column: self.column };
        Some((&self.text[..at], value))
    }

    /// The word, cut where commas and parentheses are that are not quoted; each of these is a piece of its own.
    pub(super) fn pieces(&self) -> Vec<Piece> {
        let mut pieces: Vec<Piece> = Vec::new();
        let mut is_open = self.quoted.first().is_some_and(|quoted| quoted.start == 0);
        if is_open {
            pieces.push(Piece { column: self.column, is_quoted: true, ..Piece::default() });
        }
        for (nth, (at, character)) in self.text.char_indices().enumerate() {
            let is_quoted = self.quoted.iter().any(|quoted| quoted.contains(&at));
            let is_mark = !is_quoted && MARKS.contains(&character);
            if is_mark || !is_open {
                pieces.push(Piece { column: self.column + nth, ..Piece::default() });
            }
            if let Some(piece) = pieces.last_mut() {
                piece.text.push(character);
                piece.is_quoted |= is_quoted;
            }
            is_open = !is_mark;
        }
        pieces
    }
}

/// A piece of a word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Piece {
    /// Without its quotes.
    pub text: String,
    /// Whether a part of it was between quotes.
    is_quoted: bool,
    /// Column of its first character; quotes before it in its word do not count.
    pub column: usize,
}

impl Piece {
    /// Whether it is this keyword.
    pub(super) fn is(&self, keyword: &str) -> bool {
        !self.is_quoted && self.text.eq_ignore_ascii_case(keyword)
    }

    /// The comma or parenthesis that it is.
    pub(super) fn mark(&self) -> Option<char> {
        let mark = self.text.chars().next().filter(|first| MARKS.contains(first) && self.text.len() == 1);
        mark.filter(|_| !self.is_quoted)
    }
}

/// The commands of a line, each as its words; empty ones are left out.
///
/// # Errors
/// A quote that is never closed.
pub(super) fn commands(line: &str) -> Result<Vec<Vec<Word>>, String> {
    let (mut commands, mut words) = (Vec::new(), Vec::new());
    let mut word: Option<Word> = None;
    let mut rest = line.chars().enumerate().peekable();
    while let Some((at, character)) = rest.next() {
        match character {
            '-' if word.is_none() && rest.peek().is_some_and(|(_, next)| *next == '-') => break,
            ';' => {
                words.extend(word.take());
                commands.push(std::mem::take(&mut words));
            }
            blank if blank.is_whitespace() => words.extend(word.take()),
            quote @ ('\'' | '"') => {
                let word = word.get_or_insert_with(|| Word { column: at + 1, ..Word::default() });
                let begin = word.text.len();
                loop {
                    match rest.next() {
                        None => return Err(format!("the quote at column {} is never closed", at + 1)),
                        Some((_, end)) if end == quote => {
                            if rest.next_if(|(_, next)| *next == quote).is_none() {
                                break;
                            }
                            word.text.push(quote);
                        }
                        Some((_, other)) => word.text.push(other),
                    }
                }
                word.quoted.push(begin..word.text.len());
            }
            other => word.get_or_insert_with(|| Word { column: at + 1, ..Word::default() }).text.push(other),
        }
    }
    words.extend(word);
    commands.push(words);
    commands.retain(|words| !words.is_empty());
    Ok(commands)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(line: &str) -> Vec<Vec<String>> {
        commands(line).unwrap().iter().map(|words| words.iter().map(|word| word.text.clone()).collect()).collect()
    }

    #[test]
    fn words_quotes_and_comments() {
        assert_eq!(texts("get t 1; count t -- all of it"), [vec!["get", "t", "1"], vec!["count", "t"]]);
        assert_eq!(texts("put t a='it''s; -- x' b=\"\" c=-1"), [vec!["put", "t", "a=it's; -- x", "b=", "c=-1"]]);
        assert!(texts(" ;; -- nothing").is_empty());
        assert_eq!(commands("get 'x").unwrap_err(), "the quote at column 5 is never closed");
    }

    #[test]
    fn quoted_words_are_values() {
        let words = &commands("null 'null' a=null a='null' 'a=b' a='=null' limit 'limit'").unwrap()[0];
        let value = |at: usize| words[at].assignment().unwrap();
        assert!(words[0].is_null() && !words[1].is_null());
        assert!(value(2).1.is_null() && !value(3).1.is_null());
        assert_eq!(words[4].assignment(), None);
        assert_eq!((value(5).0, &value(5).1.text[..]), ("a", "=null"));
        assert!(words[6].is("LIMIT") && !words[7].is("limit"));
        assert_eq!(words[7].column, 51);
    }

    #[test]
    fn commas_and_parentheses_cut_words() {
        let pieces = |line: &str| -> Vec<(String, Option<char>)> {
            let words = commands(line).unwrap().concat();
            words.iter().flat_map(Word::pieces).map(|piece| (piece.text.clone(), piece.mark())).collect()
        };
        let texts = |line: &str| pieces(line).into_iter().map(|(text, _)| text).collect::<Vec<_>>();
        assert_eq!(texts("id u64,name text(80)"), ["id", "u64", ",", "name", "text", "(", "80", ")"]);
        assert_eq!(texts("'a,(b)',c ''(7)"), ["a,(b)", ",", "c", "", "(", "7", ")"]);
        assert_eq!(pieces("',' ,"), [(",".to_string(), None), (",".to_string(), Some(','))]);
        let word = &commands("x  a,bc(").unwrap()[0][1];
        assert_eq!(word.pieces().iter().map(|piece| piece.column).collect::<Vec<_>>(), [4, 5, 6, 8]);
    }
}
