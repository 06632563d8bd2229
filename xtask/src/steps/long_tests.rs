//! Tests that take long, of which a slice runs a part.
//!
//! Rules
//! 1. `long_tests.txt` has a row for each test that takes more than a second of processor time: program and test. A
//!    slice runs every fourth of them; those of a program that take about the same are next to each other, so
//!    the parts take about the same too. A soak runs all.
//! 2. A row that names no test is a failure of the run.
//! 3. A test that goes through a list of cases by itself (`is_tried`) has a row only if one part of its list takes that
//!    long.

use super::Failure;
use super::extent::Extent;
use std::path::{Path, PathBuf};
use std::process::Command;

const ROWS: &str = include_str!("long_tests.txt");

/// A test and the program that has it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Row {
    program: &'static str,
    test: &'static str,
}

fn rows() -> impl Iterator<Item = Row> {
    let rows = ROWS.lines().filter(|line| !line.starts_with('#'));
    rows.filter_map(|line| line.split_once(' ')).map(|(program, test)| Row { program, test })
}

/// The tests of a program that a run leaves out.
pub(super) fn left_out(extent: Extent, program: &str) -> Vec<&'static str> {
    let tried = extent.of("long tests", rows());
    rows().filter(|row| row.program == program && !tried.contains(row)).map(|row| row.test).collect()
}

/// One line on what a run leaves out.
pub(super) fn summary(extent: Extent) -> String {
    let (all, tried) = (rows().count(), extent.of("long tests", rows()).len());
    format!("{tried} of the {all} long tests of xtask/src/steps/long_tests.txt are tried")
}

/// Rule 2: `programs` are all test programs, each with its folder and file.
///
/// # Errors
/// In words: which row is wrong; a program that does not list its tests.
pub(super) fn compare<'p>(
    programs: impl IntoIterator<Item = (&'p str, &'p (PathBuf, PathBuf))>,
) -> Result<(), Failure> {
    let mut unknown: Vec<Row> = rows().collect();
    for (name, (folder, file)) in programs {
        if unknown.iter().any(|row| row.program == name) {
            let listed = listed(folder, file)?;
            unknown.retain(|row| row.program != name || !listed.iter().any(|test| test == row.test));
        }
    }
    let unknown: Vec<_> = unknown.iter().map(|row| format!("{} {}", row.program, row.test)).collect();
    match unknown.is_empty() {
        true => Ok(()),
        false => Err(format!("xtask/src/steps/long_tests.txt names what is no test: {}", unknown.join(", "))),
    }
}

/// The names of a program's tests.
fn listed(folder: &Path, file: &Path) -> Result<Vec<String>, Failure> {
    let mut command = Command::new(file);
    let output = crate::process::output(command.args(["--list", "--format", "terse"]).current_dir(folder))?;
    let lines = String::from_utf8_lossy(&output);
    Ok(lines.lines().filter_map(|line| line.strip_suffix(": test")).map(str::to_string).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::extent::MAX_PARTS;
    use std::collections::BTreeSet;

    #[test]
    fn every_row_names_a_program_and_a_test_and_is_there_once() {
        let lines = ROWS.lines().filter(|line| !line.starts_with('#')).count();
        let names: BTreeSet<_> = rows().map(|row| (row.program, row.test)).collect();
        assert_eq!((rows().count(), names.len()), (lines, lines));
        assert!(lines as u64 > MAX_PARTS);
    }

    /// So a renamed test is met before a run, which compares whole names ([`compare`]).
    #[test]
    fn the_test_of_every_row_is_in_the_source_of_its_package() {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates");
        let packages: BTreeSet<_> = rows().filter_map(|row| Some(row.program.split_once('/')?.0)).collect();
        for package in packages {
            let mut files = Vec::new();
            ["src", "tests"].iter().for_each(|part| sources(&crates.join(package).join(part), &mut files));
            let text: String = files.iter().map(|file| std::fs::read_to_string(file).unwrap()).collect();
            for row in rows().filter(|row| row.program.starts_with(&format!("{package}/"))) {
                let name = row.test.rsplit("::").next().unwrap();
                assert!(text.contains(&format!("fn {name}(")), "{row:?}");
            }
        }
    }

    fn sources(folder: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten() {
            let path = entry.unwrap().path();
            match path.is_dir() {
                true => sources(&path, files),
                false if path.extension().is_some_and(|end| end == "rs") => files.push(path),
                false => {}
            }
        }
    }

    #[test]
    fn a_slice_leaves_out_all_parts_but_one_and_everything_leaves_out_nothing() {
        let programs: BTreeSet<_> = rows().map(|row| row.program).collect();
        let left_out = |extent| programs.iter().flat_map(|program| left_out(extent, program)).collect::<BTreeSet<_>>();
        assert_eq!(left_out(Extent::Everything(1)), BTreeSet::new());
        let mut tried: BTreeSet<&str> = BTreeSet::new();
        for hash in 0..100 {
            let out = left_out(Extent::Slice(hash << 40));
            let part: Vec<_> = rows().map(|row| row.test).filter(|test| !out.contains(test)).collect();
            assert!((part.len() as u64 * MAX_PARTS).abs_diff(rows().count() as u64) < MAX_PARTS, "{part:?}");
            tried.extend(part);
        }
        assert_eq!(tried.len(), rows().map(|row| row.test).collect::<BTreeSet<_>>().len());
    }

    #[test]
    fn a_row_that_names_no_test_is_told() {
        let told = compare([]).unwrap_err();
        let Row { program, test } = rows().next().unwrap();
        assert!(told.contains(&format!("{program} {test}")), "{told}");
    }

    #[test]
    fn a_program_lists_its_tests() {
        let own = listed(Path::new("."), &std::env::current_exe().unwrap()).unwrap();
        assert!(own.contains(&"steps::long_tests::tests::a_program_lists_its_tests".to_string()), "{own:?}");
    }
}
