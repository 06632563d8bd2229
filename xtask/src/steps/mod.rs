//! `cargo xtask test`: everything that must hold before a change is kept, in one command. `cargo xtask soak`: the same
//! with each list as a whole.
//!
//! Rules
//! 1. Steps run in three lanes ([`lane`]), cheap and picky ones first; the first failure ends the run with its step
//!    named.
//! 2. A test run tries a slice of each long list, which the commit's hash selects; a soak tries all of it ([`extent`]).
//! 3. Nothing is left behind: databases of the run are stored in a folder of their own below the system's temporary
//!    folder.
//! 4. What a step measures is checked, not only whether it ended.
//! 5. A test run in a clean checkout is to take 12 minutes on two cores: processor time counts, since there are
//!    more lanes than cores. What is built is built without debug information and optimized no more than its use pays
//!    for (profiles in `Cargo.toml`).

mod checks;
mod extent;
mod lane;
mod long_tests;
mod programs;
mod torture;

use extent::{Extent, MAX_PARTS};
use lane::{Run, Step};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::Command;

/// How a step failed.
pub(crate) type Failure = String;

/// What all lanes need.
const TOOLS: [(&str, &[Step]); 1] = [(
    "tools",
    &[Step { name: "tools", run: |run| crate::tools::ensure(tests_mount()).and_then(|()| run.say("all there")) }],
)];

/// First the checks of the source, while the tests are built, then the steps that run the program.
const PROGRAM: &[Step] = &[
    Step { name: "format", run: checks::format },
    Step { name: "tidy", run: checks::tidy },
    Step { name: "lints", run: checks::lints },
    Step { name: "docs", run: checks::docs },
    Step { name: "the program", run: |run| run.await_built() },
    Step { name: "Debian package", run: checks::package },
    Step { name: "damaged files", run: torture::damage },
    Step { name: "simulation", run: torture::simulation },
    Step { name: "growth, TPC-C, sysbench or a mounted disk", run: torture::in_turns },
    Step { name: "kill -9 under load", run: torture::crash },
    Step { name: "power cuts", run: torture::power_cuts },
    Step { name: "isolation, compared with MariaDB", run: torture::isolation },
];

/// Steps that build the engine separately, and the plugin, which takes the build of the tests when there is one.
const APART: &[Step] =
    &[Step { name: "tests of the tests", run: tests_of_tests }, Step { name: "the plugin for MariaDB", run: plugin }];

/// The tests, and what they need.
const TESTS: &[Step] = &[
    Step { name: "servers to compare with", run: checks::servers },
    Step { name: "build of the tests", run: |run| programs::build(run).map(|()| run.note_built()) },
    Step { name: "tests", run: checks::tests },
];

/// The lanes, by the folders in which they build.
const LANES: [(&str, &[Step]); 3] = [("program", PROGRAM), ("apart", APART), ("tests", TESTS)];

/// Parts of the list of mutants, whose tests run once for each.
const MUTANT_PARTS: u64 = 2 * MAX_PARTS;
/// Cores for which contended cache lines are counted.
const COUNTED: [&str; 2] = ["--cores", "16"];

/// Runs every step, a slice of each list.
///
/// # Errors
/// The first failure.
pub(crate) fn test(root: &Path) -> Result<(), Failure> {
    run(root, Extent::of_commit(root)?)
}

/// Runs every step with each list as a whole.
///
/// # Errors
/// The first failure.
pub(crate) fn soak(root: &Path) -> Result<(), Failure> {
    let Extent::Slice(hash) = Extent::of_commit(root)? else { return Err("no commit".to_string()) };
    run(root, Extent::Everything(hash))?;
    crate::sanitizers::miri(root)?;
    crate::sanitizers::tsan(root)
}

fn run(root: &Path, extent: Extent) -> Result<(), Failure> {
    let scratch = std::env::temp_dir().join(format!("highwater-test-{}", std::process::id()));
    let target = crate::process::target(root)?.join("test");
    println!("trying {extent}");
    let lanes = |lanes: &[(&str, &[Step])]| lane::run(root, &target, &scratch, extent, "tests", lanes);
    lanes(&TOOLS).and_then(|()| lanes(&LANES))
}

/// A step of which a slice has one, since each builds the engine in a way of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TestOfTests {
    /// Do threads take contended cache lines from each other?
    CacheLines,
    /// Do inputs that no test has break something?
    Fuzzing,
    /// Do the tests notice a bug?
    Mutants,
    /// Do threads meet in an order that breaks something? Test programs like the others: [`programs`].
    Models,
    /// Does the wheel for Python hold what it says?
    Wheel,
    /// Are the packages for the registry all that a program needs?
    Packages,
    /// Does the library work over the portable backend, and compile for macOS?
    Portable,
    /// Does the library work on 32 bits?
    ThirtyTwoBits,
    /// Does the library work on ARM, and compile for musl and Windows?
    Targets,
    /// Does the plugin for MariaDB work in its server? A step of its own, because it shares the build of the tests.
    Mariadb,
}

impl TestOfTests {
    /// In the order of their parts.
    const ALL: [TestOfTests; 10] = [
        TestOfTests::CacheLines,
        TestOfTests::Fuzzing,
        TestOfTests::Mutants,
        TestOfTests::Models,
        TestOfTests::Wheel,
        TestOfTests::Packages,
        TestOfTests::Portable,
        TestOfTests::ThirtyTwoBits,
        TestOfTests::Targets,
        TestOfTests::Mariadb,
    ];

    fn is_tried(self, extent: Extent) -> bool {
        let part = extent.part("tests of the tests", TestOfTests::ALL.len() as u64);
        part.is_none_or(|part| TestOfTests::ALL[part as usize] == self)
    }
}

fn tests_of_tests(run: &Run<'_>) -> Result<(), Failure> {
    let (seconds, seed) = (run.extent.choose(5, 60), run.extent.seed("fuzzing"));
    let part = run.extent.part("mutants", MUTANT_PARTS).map(|part| format!("{part}/{MUTANT_PARTS}"));
    let (mut cache_lines, mut mutants) = (vec!["cache-lines"], vec!["mutants"]);
    if let Some(part) = &part {
        cache_lines.extend(COUNTED);
        mutants.extend(["--part", part]);
    }
    let steps = [
        (TestOfTests::CacheLines, cache_lines),
        (TestOfTests::Fuzzing, vec!["fuzz", "--seconds", &seconds, "--seed", &seed]),
        (TestOfTests::Mutants, mutants),
        (TestOfTests::Wheel, vec!["python"]),
        (TestOfTests::Packages, vec!["package"]),
        (TestOfTests::Portable, vec!["targets", "portable", "aarch64-apple-darwin"]),
        (TestOfTests::ThirtyTwoBits, vec!["targets", "i686-unknown-linux-gnu"]),
        (
            TestOfTests::Targets,
            vec!["targets", "aarch64-unknown-linux-gnu", "x86_64-unknown-linux-musl", "x86_64-pc-windows-gnu"],
        ),
    ];
    let mut tried = steps.into_iter().filter(|(step, _)| step.is_tried(run.extent));
    tried.try_for_each(|(_, arguments)| run.finish(own_program()?.args(arguments)))
}

/// This program.
fn own_program() -> Result<Command, Failure> {
    std::env::current_exe().map(Command::new).map_err(|error| error.to_string())
}

/// Fetches what the plugin needs while the tests are built, and uses their build of the engine.
fn plugin(run: &Run<'_>) -> Result<(), Failure> {
    if !TestOfTests::Mariadb.is_tried(run.extent) {
        return run.say("not in this slice");
    }
    let kills = run.extent.choose(1, 200);
    run.finish_among_tests(own_program()?.args(["mariadb", "--fetch"]))?;
    run.await_built()?;
    run.finish_among_tests(own_program()?.args(["mariadb", "--as-tests", "--kills", &kills]))
}

/// Whether file systems can be mounted here: this process is root, and the kernel has FUSE and loop devices. Then tests
/// that mount fail if a mount fails. Elsewhere they are left out, or check what the refusal says.
fn tests_mount() -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    is_root && ["/dev/fuse", "/dev/loop-control"].iter().all(|node| Path::new(node).exists())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_in_one_lane() {
        let mut names: Vec<_> = LANES.iter().flat_map(|(_, steps)| steps.iter().map(|step| step.name)).collect();
        names.sort_unstable();
        assert!(names.is_sorted_by(|a, b| a < b), "a step is there twice: {names:?}");
    }

    #[test]
    fn a_slice_has_one_test_of_the_tests_and_everything_has_all() {
        let tried = |extent| TestOfTests::ALL.into_iter().filter(|step| step.is_tried(extent)).collect::<Vec<_>>();
        assert_eq!(tried(Extent::Everything(1)), TestOfTests::ALL);
        let mut seen = Vec::new();
        for hash in 0..100 {
            let of_slice = tried(Extent::Slice(hash << 40));
            assert_eq!(of_slice.len(), 1);
            seen.extend(of_slice);
        }
        assert!(TestOfTests::ALL.iter().all(|step| seen.contains(step)));
    }
}
