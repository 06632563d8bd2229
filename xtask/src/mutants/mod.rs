//! `cargo xtask mutants`: does a test fail if the code is wrong? Known bugs are built into a copy of the source, one
//! at a time, and the tests that are to catch each of them are run.
//!
//! Rules
//! 1. The source itself is never changed: the copy is in the target folder, and has a target folder of its own
//!    ([`copy`]).
//! 2. All bugs are built into the copy at once, and the environment variable [`CHOSEN`] says which one is in force. So
//!    there is one build, however many bugs there are; and without the variable the copy behaves like the source.
//! 3. First the tests are run with no bug in force, and must pass: else their failures would say nothing.
//! 4. A bug is caught if one of its tests fails, or does not end in time. A bug that is not caught is a failure, and so
//!    is a pattern that does not fit the source any more: `cargo xtask tidy` finds the latter without a build.
//!
//! Source: Untch, Offutt and Harrold, "Mutation analysis using mutant schemata" (1993), for the single build.

mod copy;
mod rows;

use crate::process;
use rows::{ENGINE, Mutant, all};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

/// Environment variable with the name of the bug that is in force.
const CHOSEN: &str = "HIGHWATER_MUTANT";
/// How long the tests of one bug may take.
const TIMEOUT: Duration = Duration::from_secs(240);
/// How long the tests of all bugs may take without a bug.
const ALL_TIMEOUT: Duration = Duration::from_secs(1200);
const PAUSE: Duration = Duration::from_millis(50);

/// Programs of tests, and where they run: in the copy, so that what tests keep of a failure is not written into the
/// source.
struct Tests<'c> {
    programs: Vec<PathBuf>,
    copy: &'c Path,
}

/// What a run of tests said.
enum Outcome {
    Passed,
    Failed(Vec<String>),
    TookTooLong,
}

/// Patterns that do not fit the source.
pub(crate) fn check(root: &Path) -> Vec<String> {
    let files: BTreeSet<&str> = all().flat_map(|mutant| mutant.edits).map(|edit| edit.file).collect();
    files.into_iter().filter_map(|file| copy::mutated(root, file).err()).collect()
}

/// Plants the bugs whose names contain one of `names` (all without names) and runs their tests.
///
/// # Errors
/// In words: a bug that is not caught, a pattern that does not fit, a build that fails.
pub(crate) fn run(root: &Path, names: &[&str]) -> Result<(), String> {
    let chosen: Vec<&Mutant> = all().filter(|mutant| is_chosen(mutant, names)).collect();
    if chosen.is_empty() {
        let known: Vec<&str> = all().map(|mutant| mutant.name).collect();
        return Err(format!("no mutant is named like that; there are: {}", known.join(", ")));
    }
    mutate(root, &chosen)
}

/// Plants one part, `K/N`, of the bugs that tests of the engine's own package catch, which takes one build.
///
/// # Errors
/// As [`run`], and a part that does not exist.
pub(crate) fn run_part(root: &Path, part: &str) -> Result<(), String> {
    let (first, one_in) = parsed_part(part).ok_or_else(|| format!("--part {part}: it is K/N with K below N"))?;
    let chosen: Vec<&Mutant> = all().filter(|mutant| mutant.package == ENGINE).skip(first).step_by(one_in).collect();
    mutate(root, &chosen)
}

fn parsed_part(part: &str) -> Option<(usize, usize)> {
    let (first, one_in) = part.split_once('/')?;
    let (first, one_in) = (first.parse().ok()?, one_in.parse().ok()?);
    (first < one_in).then_some((first, one_in))
}

/// Plants these bugs, one after another, and runs their tests.
fn mutate(root: &Path, chosen: &[&Mutant]) -> Result<(), String> {
    let target = process::target(root)?;
    let source = target.join("mutants");
    // Not that of the source: cargo gives the same names to what it builds of both.
    let target = source.join("target");
    copy::write(root, &source)?;
    let mut missed = Vec::new();
    let packages: BTreeSet<&str> = chosen.iter().map(|mutant| mutant.package).collect();
    for package in packages {
        let tests = build(&source, &target, package)?;
        let mutants: Vec<&Mutant> = chosen.iter().filter(|mutant| mutant.package == package).copied().collect();
        without_bugs(&tests, &mutants)?;
        missed.extend(mutants.iter().filter(|mutant| !is_caught(&tests, mutant)).map(|mutant| mutant.name));
    }
    println!("{} of {} mutants are caught", chosen.len() - missed.len(), chosen.len());
    if missed.is_empty() { Ok(()) } else { Err(format!("no test catches: {}", missed.join(", "))) }
}

fn is_chosen(mutant: &Mutant, names: &[&str]) -> bool {
    names.is_empty() || names.iter().any(|name| mutant.name.contains(name))
}

/// Where the tests of a package are: in its library; the engine has tests of its public calls besides, and the models
/// are a test program of their own.
fn tests_of(package: &str) -> &'static [&'static str] {
    match package {
        ENGINE => &["--lib", "--test", "public"],
        "highwater-models" => &["--test", "models"],
        _ => &["--lib"],
    }
}

/// Builds the tests of a package of the copy.
fn build<'c>(copy: &'c Path, target: &Path, package: &str) -> Result<Tests<'c>, String> {
    let mut command = Command::new("cargo");
    command.args(["test", "--package", package]).args(tests_of(package));
    command.args(["--no-run", "--message-format", "json-render-diagnostics"]);
    command.current_dir(copy).env("CARGO_TARGET_DIR", target).stdin(Stdio::null()).stderr(Stdio::inherit());
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    if !output.status.success() {
        return Err(format!("the source with the bugs of {package} cannot be built: {}", output.status));
    }
    let stdout = String::from_utf8_lossy(&output.stdout);
    let programs = stdout.lines().filter_map(|line| {
        let message: Value = serde_json::from_str(line).ok()?;
        let is_test = message["profile"]["test"] == Value::Bool(true);
        message["executable"].as_str().filter(|_| is_test).map(PathBuf::from)
    });
    let programs: Vec<PathBuf> = programs.collect();
    if programs.is_empty() {
        return Err(format!("the build of {package} names no test program"));
    }
    Ok(Tests { programs, copy })
}

/// Rule 3.
fn without_bugs(tests: &Tests<'_>, mutants: &[&Mutant]) -> Result<(), String> {
    let filters: BTreeSet<&str> = mutants.iter().flat_map(|mutant| mutant.tests).copied().collect();
    let since = Instant::now();
    match run_tests(tests, "", &filters.into_iter().collect::<Vec<_>>(), ALL_TIMEOUT)? {
        Outcome::Passed => {
            println!("without a bug: the tests pass, {:.0} s", since.elapsed().as_secs_f64());
            Ok(())
        }
        Outcome::Failed(failed) => Err(format!("without a bug these tests fail: {}", failed.join(", "))),
        Outcome::TookTooLong => Err("without a bug the tests take too long".to_string()),
    }
}

/// Rule 4; prints the verdict.
fn is_caught(tests: &Tests<'_>, mutant: &Mutant) -> bool {
    let since = Instant::now();
    let (is_caught, verdict) = match run_tests(tests, mutant.name, mutant.tests, TIMEOUT) {
        Ok(Outcome::Failed(failed)) => (true, format!("caught by {}", failed.join(", "))),
        Ok(Outcome::TookTooLong) => (true, "caught: the tests do not end".to_string()),
        Ok(Outcome::Passed) => (false, format!("MISSED ({})", mutant.breaks)),
        Err(error) => (false, format!("not run: {error}")),
    };
    println!("{}: {verdict}, {:.0} s", mutant.name, since.elapsed().as_secs_f64());
    is_caught
}

/// Runs the tests whose names contain one of `filters`, with a bug in force, up to the first program with a failure;
/// none may take longer than `timeout`.
fn run_tests(tests: &Tests<'_>, mutant: &str, filters: &[&str], timeout: Duration) -> Result<Outcome, String> {
    let mut passed = false;
    for program in &tests.programs {
        match run_program(program, tests.copy, mutant, filters, timeout)? {
            Some(Outcome::Passed) => passed = true,
            Some(outcome) => return Ok(outcome),
            None => {}
        }
    }
    if passed { Ok(Outcome::Passed) } else { Err(format!("no test has a name with one of {filters:?}")) }
}

/// The outcome of one program; `None` if it has no such test.
fn run_program(
    program: &Path,
    copy: &Path,
    mutant: &str,
    filters: &[&str],
    timeout: Duration,
) -> Result<Option<Outcome>, String> {
    let text = |error: std::io::Error| format!("{}: {error}", program.display());
    let kept = program.with_extension("mutants");
    let output = std::fs::File::create(&kept).map_err(text)?;
    let mut command = Command::new(program);
    command.args(filters).current_dir(copy).env(CHOSEN, mutant).stdin(Stdio::null()).stderr(Stdio::null());
    let mut child = command.stdout(output).spawn().map_err(text)?;
    let since = Instant::now();
    let ended: Option<ExitStatus> = loop {
        match child.try_wait().map_err(text)? {
            Some(status) => break Some(status),
            None if since.elapsed() > timeout => break None,
            None => std::thread::sleep(PAUSE),
        }
    };
    if ended.is_none() {
        child.kill().and_then(|()| child.wait()).map_err(text)?;
    }
    let said = std::fs::read_to_string(&kept).map_err(text)?;
    std::fs::remove_file(&kept).map_err(text)?;
    Ok(outcome(ended, &said))
}

/// What a test program meant that ended (or not) and printed this; `None` if it had no test to run.
fn outcome(ended: Option<ExitStatus>, said: &str) -> Option<Outcome> {
    if said.contains("\nrunning 0 tests") || said.starts_with("running 0 tests") {
        return None;
    }
    let failed = said.lines().filter_map(|line| line.strip_prefix("test ")?.strip_suffix(" ... FAILED"));
    let short = |name: &str| name.rsplit("::").next().unwrap_or(name).to_string();
    let failed: Vec<String> = failed.map(short).collect();
    Some(match ended {
        None => Outcome::TookTooLong,
        Some(status) if status.success() => Outcome::Passed,
        // A test program that was killed names no test.
        Some(status) if failed.is_empty() => Outcome::Failed(vec![status.to_string()]),
        Some(_) => Outcome::Failed(failed),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn every_pattern_fits_the_source_and_every_name_is_there_once() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        assert_eq!(check(&root), Vec::<String>::new());
        let names: BTreeSet<&str> = all().map(|mutant| mutant.name).collect();
        assert_eq!(names.len(), all().count());
        assert!(all().all(|mutant| !mutant.edits.is_empty() && !mutant.tests.is_empty() && !mutant.breaks.is_empty()));
    }

    #[test]
    fn a_part_is_a_number_below_the_number_of_parts() {
        assert_eq!((parsed_part("0/4"), parsed_part("3/4")), (Some((0, 4)), Some((3, 4))));
        assert!(["", "4/4", "1", "1/0", "-1/4", "a/b"].iter().all(|wrong| parsed_part(wrong).is_none()));
    }

    #[test]
    fn a_bug_is_caught_by_the_tests_that_fail() {
        let said = "\nrunning 2 tests\ntest a::b::first ... ok\ntest a::b::second ... FAILED\n";
        let failed = outcome(Some(ExitStatus::from_raw(101 << 8)), said).unwrap();
        assert!(matches!(failed, Outcome::Failed(names) if names == ["second"]));
        assert!(matches!(outcome(None, said), Some(Outcome::TookTooLong)));
        assert!(matches!(outcome(Some(ExitStatus::from_raw(0)), said), Some(Outcome::Passed)));
        assert!(matches!(outcome(Some(ExitStatus::from_raw(6)), "running 1 test"), Some(Outcome::Failed(_))));
        assert!(outcome(Some(ExitStatus::from_raw(0)), "\nrunning 0 tests\n").is_none());
    }
}
