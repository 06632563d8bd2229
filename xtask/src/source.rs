//! Reading Rust source as far as the checks need it: by lines, without comments, without tests; the paths that a line
//! names.

/// Code lines before the file's tests, with their numbers (from 1), comments removed. A `use` that goes over several
/// lines is one line.
pub(crate) fn code_without_comments(text: &str) -> Vec<(usize, String)> {
    let mut lines = Vec::new();
    let mut open: Option<(usize, String)> = None;
    for (n, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("#[cfg(test)]") && tests_follow(text, n) {
            break;
        }
        let code = without_comment(line);
        let (number, joined) = match open.take() {
            Some((number, start)) => (number, format!("{start} {}", code.trim())),
            None => (n + 1, code.to_string()),
        };
        if use_tree(&joined).is_some() && !joined.contains(';') {
            open = Some((number, joined));
        } else {
            lines.push((number, joined));
        }
    }
    lines.extend(open);
    lines
}

/// Every path with `::` in it that a line of code names; those of a `use` one by one, however its braces group them.
pub(crate) fn paths(line: &str) -> Vec<String> {
    if let Some(tree) = use_tree(line) {
        let mut found = Vec::new();
        expand("", tree.split(';').next().unwrap_or(tree), &mut found);
        return found;
    }
    // `$crate` in a macro is another crate's.
    let line = line.replace("$crate", "$");
    let words = line.split(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':'));
    words.filter(|word| word.contains("::")).map(Into::into).collect()
}

/// What follows the word `use` in a line that begins with it.
pub(crate) fn use_tree(line: &str) -> Option<&str> {
    let line = line.trim_start();
    let public = line.strip_prefix("pub").map(str::trim_start);
    let within = public.and_then(|rest| Some(rest.strip_prefix('(')?.split_once(')')?.1.trim_start()));
    within.or(public).unwrap_or(line).strip_prefix("use ")
}

fn expand(prefix: &str, tree: &str, found: &mut Vec<String>) {
    for part in parts(tree) {
        match part.split_once('{') {
            Some((head, rest)) => {
                let group = rest.rsplit_once('}').map_or(rest, |(group, _)| group);
                expand(&format!("{prefix}{}", head.trim()), group, found);
            }
            None => {
                let path = part.split(" as ").next().unwrap_or(part).trim();
                found.extend((!path.is_empty()).then(|| format!("{prefix}{path}")));
            }
        }
    }
}

/// The parts between those commas that are in no braces.
fn parts(tree: &str) -> Vec<&str> {
    let mut depth = 0;
    let outer = |c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    };
    tree.split(outer).collect()
}

/// Whether the attribute in line `n` is on a module with a body: the tests at a file's foot.
fn tests_follow(text: &str, n: usize) -> bool {
    let next = text.lines().skip(n + 1).find(|line| !line.trim_start().starts_with("#["));
    next.is_some_and(|line| line.contains("mod ") && line.trim_end().ends_with('{'))
}

/// The line up to a `//` that is not within a string.
fn without_comment(line: &str) -> &str {
    let mut in_string = false;
    let bytes = line.as_bytes();
    for at in 0..bytes.len() {
        match bytes[at] {
            b'"' if at == 0 || bytes[at - 1] != b'\\' => in_string = !in_string,
            b'/' if !in_string && bytes.get(at + 1) == Some(&b'/') => return &line[..at],
            _ => {}
        }
    }
    line
}

/// Whether a file holds tests and nothing else, by the project's names for them.
pub(crate) fn is_test_file(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.ends_with("_test.rs")
        || name == "testing.rs"
        || path.split('/').rev().skip(1).any(|folder| folder == "tests" || folder.ends_with("_test"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_go_and_strings_stay() {
        assert_eq!(without_comment("a // b"), "a ");
        assert_eq!(without_comment("\"http://x\" // y"), "\"http://x\" ");
        assert_eq!(without_comment("no comment"), "no comment");
    }

    #[test]
    fn code_ends_where_the_tests_begin() {
        let text = "a\n#[cfg(test)]\nuse x;\nb\n#[cfg(test)]\n#[expect(unused)]\nmod tests {\nc\n}\n";
        let code: Vec<String> = code_without_comments(text).into_iter().map(|(_, line)| line).collect();
        assert_eq!(code, ["a", "#[cfg(test)]", "use x;", "b"]);
    }

    #[test]
    fn paths_are_read_one_by_one() {
        assert_eq!(
            paths("pub(in crate::x) use a::{b, c::{D, E as F}, self};"),
            ["a::b", "a::c::D", "a::c::E", "a::self"]
        );
        assert_eq!(paths("    let x: &crate::y::Z = $crate::w(super::v::u());"), ["crate::y::Z", "::w", "super::v::u"]);
        let lines = code_without_comments("pub use crate::{\n    a::B,\n    c,\n};\nx\n");
        assert_eq!(paths(&lines[0].1), ["crate::a::B", "crate::c"]);
    }

    #[test]
    fn test_files_are_known_by_name() {
        for path in ["pool/pool_test.rs", "table/testing.rs", "tests/main.rs", "txn/txn_test/mod.rs"] {
            assert!(is_test_file(path), "{path}");
        }
        assert!(!is_test_file("txn/attest.rs"));
    }
}
