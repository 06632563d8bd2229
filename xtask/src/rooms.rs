//! Places of tests, and the first file of a module's folder.
//!
//! Rules
//! 1. A module with a folder is `x/mod.rs`; no `x.rs` exists next to a folder `x`.
//! 2. Tests are at the foot of the file they test while they are shorter than the code above them. Longer ones are in
//!    `x_test.rs` next to `x.rs`. Tests of a whole folder `x` are `x/x_test.rs` or a folder `x/x_test/`. What tests
//!    share is `testing.rs`.
//! 3. Integration tests are in `tests` next to `src`, where cargo looks for them.

/// Roots of a crate's modules: a folder of their name is no module of theirs.
const ROOTS: [&str; 3] = ["mod", "lib", "main"];

/// What is wrong with the places of `paths`, all files of the tree.
pub(crate) fn check(paths: &[String]) -> Vec<String> {
    let sources = paths.iter().filter(|path| path.ends_with(".rs") && path.contains("/src/"));
    sources.flat_map(|path| [next_to_its_folder(path, paths), misnamed_test(path, paths)]).flatten().collect()
}

fn next_to_its_folder(path: &str, paths: &[String]) -> Option<String> {
    let stem = path.strip_suffix(".rs")?;
    let folder = format!("{stem}/");
    let found = !ROOTS.contains(&stem.rsplit('/').next()?) && paths.iter().any(|other| other.starts_with(&folder));
    found.then(|| format!("{path}: is next to a folder of its name; it is {folder}mod.rs"))
}

fn misnamed_test(path: &str, paths: &[String]) -> Option<String> {
    let (crate_folder, within) = path.split_once("/src/")?;
    let crate_name = crate_folder.rsplit('/').next()?;
    let mut parent = crate_name.to_string();
    let mut so_far = format!("{crate_folder}/src");
    for part in within.split('/') {
        let name = part.strip_suffix(".rs").unwrap_or(part);
        if matches!(name, "tests" | "test" | "test_support") {
            return Some(format!("{path}: tests are named after what they test: x_test (xtask/src/rooms.rs)"));
        }
        if let Some(tested) = name.strip_suffix("_test") {
            let source = format!("{so_far}/{tested}.rs");
            let known = tested == parent || paths.contains(&source);
            return (!known).then(|| format!("{path}: there is no {source} that it tests, and no folder {tested}"));
        }
        so_far = format!("{so_far}/{part}");
        parent = name.to_string();
    }
    None
}

/// Tests at a file's foot that are longer than the code above them.
pub(crate) fn check_inline_tests(path: &str, text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().collect();
    let opens = |n: &usize| lines[*n].starts_with("mod ") && lines[*n].ends_with('{') && lines[*n].contains("test");
    let begin = (0..lines.len()).find(opens)?;
    let (code, tests) = (begin, lines.len() - begin);
    let named = path.rsplit('/').next()?.replace(".rs", "_test.rs");
    (tests > code).then(|| format!("{path}: {tests} lines of tests under {code} of code; they belong in {named}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(paths: &[&str]) -> usize {
        check(&paths.iter().map(ToString::to_string).collect::<Vec<_>>()).len()
    }

    #[test]
    fn a_module_next_to_its_folder_is_found() {
        assert_eq!(found(&["crates/cli/src/device.rs", "crates/cli/src/device/list.rs"]), 1);
        assert_eq!(found(&["crates/cli/src/device/mod.rs", "crates/cli/src/device/list.rs"]), 0);
        assert_eq!(found(&["crates/cli/src/main.rs", "crates/cli/src/main/x.rs"]), 0);
    }

    #[test]
    fn tests_are_next_to_what_they_test() {
        assert_eq!(found(&["crates/engine/src/log/scan.rs", "crates/engine/src/log/scan_test.rs"]), 0);
        assert_eq!(found(&["crates/engine/src/log/log_test.rs", "crates/engine/src/log/log_test/model.rs"]), 1);
        assert_eq!(found(&["crates/engine/src/txn/txn_test/mod.rs", "crates/engine/src/txn/txn_test/model.rs"]), 0);
        assert_eq!(found(&["crates/device/src/device_test.rs", "crates/device/tests/traces.rs"]), 0);
        for misplaced in ["log/crash_test.rs", "log/tests.rs", "log/tests/mod.rs", "log/test_support.rs"] {
            assert_eq!(found(&[&format!("crates/engine/src/{misplaced}")]), 1, "{misplaced}");
        }
    }

    #[test]
    fn tests_longer_than_their_code_are_found() {
        let file = |code: usize, tests: usize| {
            format!("{}#[cfg(test)]\nmod tests {{\n{}}}\n", "//! x\n".repeat(code), "a\n".repeat(tests))
        };
        assert!(check_inline_tests("x.rs", &file(10, 8)).is_none());
        assert!(check_inline_tests("x.rs", &file(10, 18)).is_some());
        assert!(check_inline_tests("x.rs", "//! x\n").is_none());
    }
}
