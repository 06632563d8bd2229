//! The test programs of the workspace, several at once.
//!
//! Rules
//! 1. All of them run, whatever fails; those that failed are printed last and named.
//! 2. Those that take longest begin first: nothing waits for one of them at the end.
//! 3. Of the tests that take long a slice runs a part ([`long_tests`]).
//! 4. A program runs in the folder of its package, as cargo would run it. The examples of the documentation are one
//!    more program.

use super::extent::Extent;
use super::lane::{Printed, Run};
use super::{Failure, TestOfTests, long_tests};
use serde_json::Value;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// Rule 2; the order of the others is that in which cargo names them.
const LONG: [&str; 9] = [
    "engine/highwater",
    "torture/highwater_torture",
    "cli/program",
    "torture/corruption",
    "engine/public",
    "lab/subjects",
    "engine/long_calls",
    "lab/peers",
    EXAMPLES,
];
const EXAMPLES: &str = "examples of the documentation";
/// Programs that are named with their time.
const SHOWN: usize = 10;

/// Compiles the engine for a model checker: one of the tests of the tests.
const MODELS: [&str; 2] = ["--exclude", "highwater-models"];

/// What cargo builds: no examples, which the lints have checked.
fn built(extent: Extent) -> Vec<&'static str> {
    let without: &[&str] = if TestOfTests::Models.is_tried(extent) { &[] } else { &MODELS };
    [&["test", "--workspace", "--lib", "--bins", "--tests", "--no-run"], without].concat()
}

/// A program that can be run.
struct Program {
    /// The package's folder and the target: no two have the same.
    name: String,
    /// The folder of its package, and the file; of the documentation's examples none.
    file: Option<(PathBuf, PathBuf)>,
}

/// One that has run.
struct Ended {
    name: String,
    took: Duration,
    printed: Printed,
}

pub(super) fn build(run: &Run<'_>) -> Result<(), Failure> {
    run.cargo(&built(run.extent))
}

/// Runs them, with these variables.
pub(super) fn run(run: &Run<'_>, variables: &[(&str, String)]) -> Result<(), Failure> {
    let mut list = Command::new("cargo");
    let list = run.output(list.args(built(run.extent)).args(["--message-format", "json-render-diagnostics"]))?;
    let programs = named(&String::from_utf8_lossy(&list))?;
    long_tests::compare(programs.iter().filter_map(|program| Some((&*program.name, program.file.as_ref()?))))?;
    let waiting = Mutex::new(in_order(programs));
    let next = || waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front();
    let ended = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..processors() {
            scope.spawn(|| {
                while let Some(program) = next() {
                    let (start, mut command) = (Instant::now(), program.command());
                    command.envs(variables.iter().map(|(name, value)| (name, value)));
                    let left_out = long_tests::left_out(run.extent, &program.name);
                    if !left_out.is_empty() {
                        command.arg("--exact").args(left_out.iter().flat_map(|test| ["--skip", test]));
                    }
                    let printed = run.apart(&program.name.replace('/', "-"), &mut command);
                    let one = Ended { name: program.name, took: start.elapsed(), printed };
                    ended.lock().unwrap_or_else(PoisonError::into_inner).push(one);
                }
            });
        }
    });
    report(run, ended.into_inner().unwrap_or_else(PoisonError::into_inner))
}

fn processors() -> usize {
    thread::available_parallelism().map_or(1, usize::from)
}

/// The test programs that cargo names in lines of JSON, and the examples of the documentation.
fn named(lines: &str) -> Result<Vec<Program>, Failure> {
    let mut programs = vec![Program { name: EXAMPLES.to_string(), file: None }];
    for line in lines.lines() {
        let message: Value = serde_json::from_str(line).map_err(|error| format!("cargo printed {line}: {error}"))?;
        let (Some(file), true) = (message["executable"].as_str(), message["profile"]["test"] == true) else { continue };
        let folder = message["manifest_path"].as_str().and_then(|path| Path::new(path).parent());
        let (Some(folder), Some(name)) = (folder, message["target"]["name"].as_str()) else {
            return Err(format!("a test program without a package: {line}"));
        };
        let package = folder.file_name().unwrap_or_default().to_string_lossy();
        programs.push(Program { name: format!("{package}/{name}"), file: Some((folder.to_path_buf(), file.into())) });
    }
    if programs.len() > 1 { Ok(programs) } else { Err("cargo names no test program".to_string()) }
}

fn in_order(mut programs: Vec<Program>) -> VecDeque<Program> {
    let rank = |program: &Program| LONG.iter().position(|name| *name == program.name).unwrap_or(LONG.len());
    programs.sort_by_key(rank);
    programs.into()
}

impl Program {
    fn command(&self) -> Command {
        // Many tests wait for syncs, servers and other processes.
        let threads = (processors() + 1).to_string();
        let mut command = match &self.file {
            Some((folder, file)) => {
                let mut command = Command::new(file);
                command.current_dir(folder).env("CARGO_MANIFEST_DIR", folder);
                command
            }
            None => Command::new("cargo"),
        };
        if self.file.is_none() {
            command.args(["test", "--workspace", "--doc", "--no-fail-fast"]).args(MODELS);
        }
        command.env("RUST_TEST_THREADS", threads);
        command
    }
}

/// Rule 1, and the programs that took longest.
fn report(run: &Run<'_>, mut ended: Vec<Ended>) -> Result<(), Failure> {
    ended.sort_by_key(|one| one.printed.result.is_err());
    for one in &ended {
        run.say(&format!("-- {}\n{}", one.name, one.printed.text))?;
    }
    run.say(&long_tests::summary(run.extent))?;
    slowest(&ended).iter().try_for_each(|line| run.say(line))?;
    let failed = ended.into_iter().filter_map(|one| Some(format!("{}: {}", one.name, one.printed.result.err()?)));
    let failed: Vec<String> = failed.collect();
    if failed.is_empty() { Ok(()) } else { Err(failed.join("; ")) }
}

fn slowest(ended: &[Ended]) -> Vec<String> {
    let mut took: Vec<_> = ended.iter().map(|one| (one.took, &one.name)).collect();
    took.sort_by_key(|(took, _)| std::cmp::Reverse(*took));
    took.iter().take(SHOWN).map(|(took, name)| format!("{:>7.1} s  {name}", took.as_secs_f64())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::steps::extent::Extent;
    use crate::steps::lane::{self, Step};

    const LINES: &str = concat!(
        r#"{"reason":"compiler-artifact","executable":null,"profile":{"test":false},"target":{"name":"x"}}"#,
        "\n",
        r#"{"reason":"compiler-artifact","executable":"/t/look-1","manifest_path":"/p/crates/cli/Cargo.toml","#,
        r#""profile":{"test":true},"target":{"name":"look"}}"#,
        "\n",
        r#"{"reason":"compiler-artifact","executable":"/t/highwater","manifest_path":"/p/crates/cli/Cargo.toml","#,
        r#""profile":{"test":false},"target":{"name":"highwater"}}"#,
        "\n",
        r#"{"reason":"compiler-artifact","executable":"/t/public-1","manifest_path":"/p/crates/engine/Cargo.toml","#,
        r#""profile":{"test":true},"target":{"name":"public"}}"#,
        "\n",
        r#"{"reason":"build-finished","success":true}"#,
    );

    #[test]
    fn test_programs_are_those_that_cargo_names_and_long_ones_come_first() {
        let programs = in_order(named(LINES).unwrap());
        let names: Vec<_> = programs.iter().map(|program| program.name.as_str()).collect();
        assert_eq!(names, ["engine/public", EXAMPLES, "cli/look"]);
        assert_eq!(programs[2].file, Some(("/p/crates/cli".into(), "/t/look-1".into())));
        assert!(named(r#"{"reason":"build-finished","success":false}"#).is_err());
        assert!(named("no JSON").is_err());
    }

    #[test]
    fn a_program_that_fails_is_named_and_printed_last() {
        fn step(run: &Run<'_>) -> Result<(), Failure> {
            let ended = [("wrong", "exit 3"), ("right", "true")].map(|(name, script)| {
                let printed = run.apart(name, Command::new("sh").args(["-c", &format!("echo {name} said; {script}")]));
                Ended { name: name.to_string(), took: Duration::from_secs(1), printed }
            });
            let failure = report(run, ended.into()).unwrap_err();
            assert!(failure.starts_with("wrong: sh -c ") && failure.ends_with("exit status: 3"), "{failure}");
            let text = run.printed();
            assert!(text.find("right said").unwrap() < text.find("wrong said").unwrap(), "{text}");
            Ok(())
        }
        let folder = tempfile::tempdir().unwrap();
        let scratch = folder.path().join("scratch");
        let steps: &[Step] = &[Step { name: "programs", run: step }];
        lane::run(folder.path(), folder.path(), &scratch, Extent::Slice(1), "a", &[("a", steps)]).unwrap();
    }

    #[test]
    fn the_slowest_programs_come_first() {
        let ended = |name: &str, took| Ended {
            name: name.to_string(),
            took: Duration::from_millis(took),
            printed: Printed { text: String::new(), result: Ok(()) },
        };
        assert_eq!(slowest(&[ended("a", 500), ended("b", 61_110)]), ["   61.1 s  b", "    0.5 s  a"]);
    }
}
