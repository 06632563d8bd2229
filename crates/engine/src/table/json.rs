//! JSON texts: the values of a `Json` column.
//!
//! Rules
//! 1. A text is JSON by RFC 8259: one value of any kind, with white space around it. What the grammar leaves open is
//!    not checked: duplicate names in an object, numbers beyond every type, escapes of half a surrogate pair.
//! 2. Lists and objects are nested at most [`MAX_DEPTH`] deep, so recursive readers need little stack. The check itself
//!    is not recursive.
//! 3. A text is stored unchanged, with its white space, order of names and digits of numbers.

use serde::de::IgnoredAny;

/// Maximum depth of nested lists and objects. Parsers have limits from about 100 on.
pub(super) const MAX_DEPTH: usize = 100;

/// Checks that a text is JSON.
///
/// # Errors
/// What is wrong, and at which byte (from 0).
pub(super) fn check(text: &str) -> Result<(), String> {
    if let Some(byte) = too_deep(text.as_bytes()) {
        return Err(format!("lists and objects are nested more than {MAX_DEPTH} deep at byte {byte}"));
    }
    // The parser does not recurse into ignored values (rule 2).
    serde_json::from_str::<IgnoredAny>(text).map(drop).map_err(|error| {
        let words = error.to_string();
        let what = words.split(" at line ").next().unwrap_or(&words);
        // For this error the parser reports the byte before it.
        let behind = usize::from(what.starts_with("control character"));
        format!("no JSON: {what} at byte {}", place(text, &error) + behind)
    })
}

/// Offset of the first list or object that is nested too deep. If the text is not JSON, it may be another offset.
fn too_deep(text: &[u8]) -> Option<usize> {
    let (mut depth, mut is_string, mut is_escaped) = (0usize, false, false);
    text.iter().position(|byte| {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_string,
            b'"' => is_string = !is_string,
            b'[' | b'{' if !is_string => depth += 1,
            b']' | b'}' if !is_string => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth > MAX_DEPTH
    })
}

/// The byte at which the parser found the error.
fn place(text: &str, error: &serde_json::Error) -> usize {
    if error.is_eof() {
        return text.len();
    }
    // Lines are numbered from 1, columns in bytes from 1; an error at a line's end is reported as column 0 of the next
    // line.
    let before = text.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len).sum::<usize>();
    (before + error.column()).saturating_sub(1).min(text.len())
}

#[cfg(test)]
#[path = "json_test.rs"]
mod tests;
