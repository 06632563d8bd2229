//! Steps that look at the source, build it, and run its tests.

use super::extent::PART;
use super::lane::Run;
use super::{Failure, tests_mount};
use std::process::Command;

/// The package whose tests compile the engine for a model checker: a step of its own.
pub const MODELS: &str = "highwater-models";
/// Test programs that are named with their time.
const SHOWN: usize = 10;

pub fn format(run: &Run<'_>) -> Result<(), Failure> {
    run.cargo(&["fmt", "--all", "--check"])?;
    let others = ["fuzz/Cargo.toml", "crates/compare/Cargo.toml"];
    others.iter().try_for_each(|manifest| run.cargo(&["fmt", "--manifest-path", manifest, "--check"]))
}

pub fn tidy(run: &Run<'_>) -> Result<(), Failure> {
    let findings = crate::tidy::check(&run.root).map_err(|error| error.to_string())?;
    findings.iter().try_for_each(|finding| run.say(finding))?;
    if findings.is_empty() { Ok(()) } else { Err(format!("{} findings", findings.len())) }
}

pub fn lints(run: &Run<'_>) -> Result<(), Failure> {
    run.cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

pub fn docs(run: &Run<'_>) -> Result<(), Failure> {
    let mut command = Command::new("cargo");
    run.finish(command.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Installs the servers that tests start, unless they are there; each is started once.
pub fn servers(run: &Run<'_>) -> Result<(), Failure> {
    run.finish(&mut Command::new(run.root.join("scripts/install-servers")))
}

pub fn build(run: &Run<'_>) -> Result<(), Failure> {
    run.cargo(&["test", "--workspace", "--exclude", MODELS, "--no-run"])
}

pub fn tests(run: &Run<'_>) -> Result<(), Failure> {
    let mut command = Command::new("cargo");
    command.args(["test", "--workspace", "--exclude", MODELS, "--no-fail-fast"]);
    if tests_mount() {
        command.env("HIGHWATER_TEST_MOUNTS", "1");
    }
    if let Some(part) = run.extent.test_part() {
        command.env(PART, part);
    }
    // Many tests wait for syncs, servers and other processes.
    let threads = 2 * std::thread::available_parallelism().map_or(1, usize::from);
    run.finish(command.env("RUST_TEST_THREADS", threads.to_string()))?;
    slowest(&run.printed()).iter().try_for_each(|line| run.say(line))
}

/// The test programs that took longest, by what they printed.
fn slowest(printed: &str) -> Vec<String> {
    let (mut program, mut took) = ("", Vec::new());
    for line in printed.lines().map(str::trim) {
        if line.starts_with("Running ") || line.starts_with("Doc-tests ") {
            program = line.split(" (").next().unwrap_or(line);
        } else if let Some((_, seconds)) = line.split_once("; finished in ") {
            took.push((seconds.trim_end_matches('s').parse::<f64>().unwrap_or_default(), program));
        }
    }
    took.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    took.iter().take(SHOWN).map(|(seconds, program)| format!("{seconds:>7.1} s  {program}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slowest_programs_come_first() {
        let printed = "     Running unittests src/lib.rs (target/debug/deps/a-1)\n\
                       test result: ok. 1 passed; 0 filtered out; finished in 0.50s\n   Doc-tests highwater\n\
                       test result: ok. 64 passed; 0 filtered out; finished in 61.11s\n";
        assert_eq!(slowest(printed), ["   61.1 s  Doc-tests highwater", "    0.5 s  Running unittests src/lib.rs"]);
    }
}
