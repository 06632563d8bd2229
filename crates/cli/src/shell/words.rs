//! The words of a command.
//!
//! Rules
//! 1. Words stand between blanks; `;` ends a command, `--` at the start of a word begins a comment up to the end of the
//!    line.
//! 2. Between quotes, single or double, every character counts as it is; two quotes are one. A quoted word is never a
//!    keyword, and never NULL.
//! 3. Errors name the column, counted in characters from 1.

/// A word.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Word {
    /// Without its quotes.
    pub text: String,
    /// Where in the text the first quote was.
    quoted_at: Option<usize>,
    /// Column of its first character.
    pub column: usize,
}

impl Word {
    /// Whether it is this keyword.
    pub fn is(&self, keyword: &str) -> bool {
        self.quoted_at.is_none() && self.text.eq_ignore_ascii_case(keyword)
    }

    /// Whether it is NULL.
    pub fn is_null(&self) -> bool {
        self.is("null")
    }

    /// The word as `NAME=VALUE`.
    pub fn assignment(&self) -> Option<(&str, Word)> {
        let at = self.text.find('=').filter(|at| self.quoted_at.is_none_or(|quote| *at < quote))?;
        let quoted_at = self.quoted_at.map(|quote| quote - at - 1);
        let value = Word { text: self.text[at + 1..].to_string(), quoted_at, column: self.column };
        Some((&self.text[..at], value))
    }
}

/// The commands of a line, each as its words; empty ones are left out.
///
/// # Errors
/// A quote that is never closed.
pub fn commands(line: &str) -> Result<Vec<Vec<Word>>, String> {
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
                word.quoted_at.get_or_insert(word.text.len());
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
}
