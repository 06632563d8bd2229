//! How a source file looks.
//!
//! Rules
//! 1. Every source file opens with `//!`: what holds in it.
//! 2. No source file has more than [`MAX_LINES`] lines: split it by concept. Files of [`RATCHET`] may be as long as it
//!    says and no longer; once a file is shorter, its row is lowered or goes.
//! 3. No line has more than [`MAX_COLUMNS`] columns, in comments and strings too. The formatter keeps code to it.
//! 4. No line says that something is still to be done.

/// Lines a source file may have.
const MAX_LINES: usize = 700;

/// Columns a line may have.
const MAX_COLUMNS: usize = 120;

/// Files that are still longer than [`MAX_LINES`], with their lines.
const RATCHET: &[(&str, usize)] = &[];

/// What is wrong with one file.
pub(crate) fn check(path: &str, text: &str) -> Vec<String> {
    let mut findings = Vec::new();
    if !text.starts_with("//!") {
        findings.push(format!("{path}:1: does not open with //! and the rules that hold in it"));
    }
    findings.extend(too_long(path, text.lines().count(), RATCHET));
    for (n, line) in text.lines().enumerate() {
        let columns = line.chars().count();
        if columns > MAX_COLUMNS {
            findings.push(format!("{path}:{}: {columns} columns, more than {MAX_COLUMNS}", n + 1));
        }
        if unfinished(line) {
            findings.push(format!("{path}:{}: says that something is still to be done", n + 1));
        }
    }
    findings
}

fn too_long(path: &str, lines: usize, ratchet: &[(&str, usize)]) -> Option<String> {
    let allowed = ratchet.iter().find(|(file, _)| *file == path).map(|(_, lines)| *lines);
    match allowed {
        Some(allowed) if lines < allowed => {
            Some(format!("{path}: {lines} lines, {allowed} in RATCHET (xtask/src/look.rs): lower it there"))
        }
        _ if lines > allowed.unwrap_or(MAX_LINES) => {
            Some(format!("{path}: {lines} lines, more than {}; split it by concept", allowed.unwrap_or(MAX_LINES)))
        }
        _ => None,
    }
}

/// Whether a line marks unfinished work. The words are composed, so that this file does not contain them.
fn unfinished(line: &str) -> bool {
    [["TO", "DO"], ["FIX", "ME"], ["XX", "X:"]].iter().any(|word| line.contains(&word.concat()))
        || [["todo", "!("], ["unimplemented", "!("]].iter().any(|word| line.contains(&word.concat()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_header_is_found() {
        assert_eq!(check("crates/lab/src/x.rs", "use std::io;\n").len(), 1);
        assert_eq!(check("crates/lab/src/x.rs", "//! What holds.\nuse std::io;\n").len(), 0);
    }

    #[test]
    fn a_long_file_is_found() {
        let text = |lines: usize| format!("//! Long.\n{}", "\n".repeat(lines - 1));
        assert_eq!(check("crates/cli/src/x.rs", &text(MAX_LINES)).len(), 0);
        assert_eq!(check("crates/cli/src/x.rs", &text(MAX_LINES + 1)).len(), 1);
    }

    #[test]
    fn the_ratchet_only_goes_down() {
        let ratchet = [("a.rs", 500)];
        for (lines, findings) in [(499, 1), (500, 0), (501, 1)] {
            assert_eq!(too_long("a.rs", lines, &ratchet).iter().count(), findings, "{lines}");
        }
    }

    #[test]
    fn a_wide_line_is_found() {
        let text = |columns: usize| format!("//! é{}\n", "x".repeat(columns - 5));
        assert_eq!(check("crates/cli/src/x.rs", &text(MAX_COLUMNS)).len(), 0);
        assert_eq!(check("crates/cli/src/x.rs", &text(MAX_COLUMNS + 1)).len(), 1);
    }

    #[test]
    fn unfinished_work_is_found() {
        for word in [["TO", "DO"], ["FIX", "ME"]] {
            let text = format!("//! X.\n// {}: later\n", word.concat());
            assert_eq!(check("crates/cli/src/x.rs", &text).len(), 1, "{word:?}");
        }
    }
}
