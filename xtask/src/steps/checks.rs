//! Steps that look at the source, build it, and run its tests.

use super::extent::PART;
use super::lane::Run;
use super::{Failure, programs, tests_mount};
use std::process::Command;

pub(super) fn format(run: &Run<'_>) -> Result<(), Failure> {
    run.cargo(&["fmt", "--all", "--check"])?;
    let others = ["fuzz/Cargo.toml", "crates/peers/Cargo.toml", "python/Cargo.toml"];
    others.iter().try_for_each(|manifest| run.cargo(&["fmt", "--manifest-path", manifest, "--check"]))
}

pub(super) fn tidy(run: &Run<'_>) -> Result<(), Failure> {
    let findings = crate::tidy::check(&run.root).map_err(|error| error.to_string())?;
    findings.iter().try_for_each(|finding| run.say(finding))?;
    if findings.is_empty() { Ok(()) } else { Err(format!("{} findings", findings.len())) }
}

pub(super) fn lints(run: &Run<'_>) -> Result<(), Failure> {
    run.cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"])
}

pub(super) fn docs(run: &Run<'_>) -> Result<(), Failure> {
    let mut command = Command::new("cargo");
    run.finish(command.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Debian's package of the program, where its tools are.
pub(super) fn package(run: &Run<'_>) -> Result<(), Failure> {
    if !crate::tools::packages_for_debian() {
        return run.say("left out: no dpkg-shlibdeps (package dpkg-dev)");
    }
    crate::release::try_package(&run.root, &run.program, &run.scratch.join("package"))
}

/// Installs the servers that tests start, unless they are there; each is started once.
pub(super) fn servers(run: &Run<'_>) -> Result<(), Failure> {
    run.finish(&mut Command::new(run.root.join("scripts/install-servers")))
}

pub(super) fn tests(run: &Run<'_>) -> Result<(), Failure> {
    let mut variables = Vec::new();
    variables.extend(tests_mount().then(|| ("HIGHWATER_TEST_MOUNTS", "1".to_string())));
    variables.extend(run.extent.test_part().map(|part| (PART, part)));
    programs::run(run, &variables)
}
