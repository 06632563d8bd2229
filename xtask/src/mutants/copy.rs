//! The copy of the source that has the bugs in it.
//!
//! Rules
//! 1. A pattern is in its file once; bugs are inserted one after another in the order of the table, and each leaves the
//!    text that a later one looks for.
//! 2. The text that replaces a pattern asks [`IN_FORCE`] whether this bug is the one in force.
//! 3. An unchanged file is not written, so that a build compiles only changed files.

use super::CHOSEN;
use super::rows::{Mutant, all};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Stands for the question whether the bug is in force.
const IN_FORCE: &str = "MUTANT";
/// What the workspace consists of; tests read the documents.
const PARTS: [&str; 5] = ["crates", "docs", "xtask", "Cargo.toml", "Cargo.lock"];

/// A file of the source with all its bugs.
///
/// # Errors
/// In words: which pattern does not fit.
pub(super) fn mutated(root: &Path, file: &str) -> Result<String, String> {
    let text = std::fs::read_to_string(root.join(file)).map_err(|error| format!("{file}: {error}"))?;
    all().try_fold(text, |text, mutant| mutate(text, file, mutant))
}

fn mutate(mut text: String, file: &str, mutant: &Mutant) -> Result<String, String> {
    for edit in mutant.edits.iter().filter(|edit| edit.file == file) {
        let found = text.matches(edit.find).count();
        if found != 1 {
            let (name, first) = (mutant.name, edit.find.trim().lines().next().unwrap_or_default());
            return Err(format!(
                "{file}: the mutant {name} looks for `{first}` and finds it {found} times; change its row in \
                 xtask/src/mutants/rows so that it breaks the same thing in the present code"
            ));
        }
        let question = format!("crate::mutants::is({:?})", mutant.name);
        text = text.replacen(edit.find, &edit.replace.replace(IN_FORCE, &question), 1);
    }
    Ok(text)
}

/// Writes the copy of `root` to `folder`.
///
/// # Errors
/// In words: a pattern that does not fit, a file that cannot be read or written.
pub(super) fn write(root: &Path, folder: &Path) -> Result<(), String> {
    let with_bugs: BTreeSet<&str> = all().flat_map(|mutant| mutant.edits).map(|edit| edit.file).collect();
    let crates: BTreeSet<&str> = with_bugs.iter().filter_map(|file| Some(file.split_once("/src/")?.0)).collect();
    let mut files = Vec::new();
    PARTS.iter().try_for_each(|part| collect(&root.join(part), &mut files))?;
    let mut kept = BTreeSet::new();
    for file in files {
        let name = file.strip_prefix(root).map_err(|error| error.to_string())?.to_string_lossy().into_owned();
        let to = folder.join(&name);
        let mut bytes = match with_bugs.contains(name.as_str()) {
            true => mutated(root, &name)?.into_bytes(),
            false => std::fs::read(&file).map_err(|error| format!("{name}: {error}"))?,
        };
        if name.strip_suffix("/src/lib.rs").is_some_and(|of| crates.contains(of)) {
            bytes.extend_from_slice(b"\nmod mutants;\n");
        }
        put(&to, &bytes)?;
        kept.insert(to);
    }
    for of in crates {
        let module = folder.join(of).join("src/mutants.rs");
        put(&module, question_module().as_bytes())?;
        kept.insert(module);
    }
    let mut there = Vec::new();
    PARTS
        .iter()
        .filter(|part| folder.join(part).exists())
        .try_for_each(|part| collect(&folder.join(part), &mut there))?;
    let mut gone = there.into_iter().filter(|file| !kept.contains(file));
    gone.try_for_each(|file| std::fs::remove_file(file).map_err(|error| error.to_string()))
}

/// The module that knows which bug is in force.
fn question_module() -> String {
    format!(
        "//! Which mutant is in force.\n\
         use std::sync::OnceLock;\n\
         static CHOSEN: OnceLock<String> = OnceLock::new();\n\
         pub(crate) fn is(name: &str) -> bool {{\n    \
             CHOSEN.get_or_init(|| std::env::var({CHOSEN:?}).unwrap_or_default()) == name\n\
         }}\n"
    )
}

/// All files of a file or folder, those of builds left out.
fn collect(path: &Path, files: &mut Vec<PathBuf>) -> Result<(), String> {
    let text = |error: std::io::Error| format!("{}: {error}", path.display());
    if !path.is_dir() {
        files.push(path.to_path_buf());
        return Ok(());
    }
    for entry in std::fs::read_dir(path).map_err(text)? {
        let inner = entry.map_err(text)?.path();
        if inner.file_name().is_some_and(|name| name != "target") {
            collect(&inner, files)?;
        }
    }
    Ok(())
}

/// Rule 3.
fn put(to: &Path, bytes: &[u8]) -> Result<(), String> {
    let text = |error: std::io::Error| format!("{}: {error}", to.display());
    if std::fs::read(to).is_ok_and(|there| there == bytes) {
        return Ok(());
    }
    to.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(text)?;
    std::fs::write(to, bytes).map_err(text)
}

#[cfg(test)]
mod tests {
    use super::super::rows::Edit;
    use super::*;

    const MUTANT_ROW: Mutant = Mutant {
        name: "off-by-one",
        breaks: "counts one too many",
        package: "p",
        edits: &[Edit { file: "a.rs", find: "n + 1", replace: "n + 1 + usize::from(MUTANT)" }],
        tests: &["counts"],
    };

    #[test]
    fn a_bug_asks_whether_it_is_in_force() {
        let mutated = mutate("fn next(n: usize) { n + 1 }".to_string(), "a.rs", &MUTANT_ROW).unwrap();
        assert_eq!(mutated, "fn next(n: usize) { n + 1 + usize::from(crate::mutants::is(\"off-by-one\")) }");
        assert_eq!(mutate("n + 1".to_string(), "b.rs", &MUTANT_ROW).unwrap(), "n + 1", "another file");
    }

    #[test]
    fn a_pattern_that_does_not_fit_is_named() {
        for text in ["n - 1", "n + 1; n + 1"] {
            let error = mutate(text.to_string(), "a.rs", &MUTANT_ROW).unwrap_err();
            assert!(error.contains("a.rs") && error.contains("off-by-one"), "{error}");
        }
    }

    #[test]
    fn a_copy_has_every_file_and_loses_what_is_gone() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        let folder = tempfile::tempdir().unwrap();
        let stale = folder.path().join("crates/engine/tests/gone.rs");
        put(&stale, b"x").unwrap();
        write(&root, folder.path()).unwrap();
        assert!(!stale.exists() && folder.path().join("crates/engine/src/mutants.rs").exists());
        let lib = std::fs::read_to_string(folder.path().join("crates/engine/src/lib.rs")).unwrap();
        assert!(lib.ends_with("mod mutants;\n"));
    }
}
