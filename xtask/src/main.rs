//! `cargo xtask`: checks of the source tree itself (`tidy`), the tables of measured results (`results`), checks of the
//! tests (`mutants`, `miri`, `tsan`), fuzzing (`fuzz`), everything that must hold at once (`test`), and the comparison
//! with other engines, which is not part of it (`peers-build`, `peers-test`); the files of a release (`release`).
//!
//! Rules
//! 1. It prints one line for each thing found and exits with status 1 if there was one, 2 for wrong use.
//! 2. A check that cannot fail is not a check: each has a test that makes it fail.

mod cache_lines;
mod circles;
mod crates;
mod fuzz;
mod layers;
mod links;
mod look;
mod mariadb;
mod mutants;
mod package;
mod peers;
mod primitives;
mod process;
mod python;
mod quick;
mod release;
mod results;
mod rooms;
mod sanitizers;
mod source;
mod steps;
mod targets;
mod tidy;
mod tools;
mod words;

use std::path::Path;
use std::process::ExitCode;

const USAGE: &str = "usage: cargo xtask tidy    check layers, dependencies, file headers, sizes and names, and links
       cargo xtask results write the tables of docs/results from the data next to them
       cargo xtask quick   format, tidy, and lints and unit tests of what differs from the branch main (on main: from
                           the commit before)
       cargo xtask test    everything that must hold: format, tidy, lints, docs, tests, checked benchmarks, kill -9
                           under load, power cuts, damage, simulation; of each long list the part that the commit's
                           hash selects
       cargo xtask soak    the same with each list as a whole, Miri and ThreadSanitizer: many hours
       cargo xtask release [--untagged | --package PROGRAM]
                           make every file of a release in target/release-files: crates, archive and Debian package of
                           the program, wheel, checksums; tag, version and CHANGELOG must agree (--untagged: but the
                           tag);
                           --package makes the Debian package of a program that is built, and nothing else
       cargo xtask mutants [NAME]... | --part K/N
                           build known bugs (those whose names contain NAME) into a copy of the source, one at a time,
                           and see that a test catches each of them; --part takes each Nth one from the Kth on
       cargo xtask miri    undefined behaviour: small tests of the engine under Miri
       cargo xtask tsan    data races: tests of the engine that have threads, under ThreadSanitizer
       cargo xtask package make the files that the registry gets, and build and run programs of nothing else
       cargo xtask targets [TARGET]...
                           check the library for other systems (or those named, such as i686-unknown-linux-gnu), and
                           run tests where this machine can run them
       cargo xtask peers-build [--without rocksdb] [--without wiredtiger]
                           build the program that measures other storage engines (highwater lab run peers), and the
                           engines; RocksDB takes most of the time
       cargo xtask peers-test [--without rocksdb] [--without wiredtiger]
                           check its format and lints, and run the tests that each of those engines must pass
       cargo xtask python  build the wheel for Python, install it in a fresh virtual environment and run its tests
       cargo xtask mariadb [--kills N] [--as-tests] [--fetch]
                           build the plugin for MariaDB and a server, and try both: answers compared with InnoDB's,
                           tests of MariaDB's suites, N kills (1) under a binary log, XA, a replica
       cargo xtask cache-lines [--cores N]... [WORKLOAD]...
                           count the cache lines that 16 and 64 cores (or N) would take from each other in each
                           transaction, and what that admits; workloads: read, update, insert, mixed
       cargo xtask fuzz [--seconds N] [--seed N] [--keep] [--address] [TARGET]...
                           build the fuzzing targets and run all, or those named, for N seconds each (60); --keep adds
                           what reaches new code to the corpus in fuzz/corpus; --address looks for wrong uses of
                           memory too (AddressSanitizer; needs the nightly toolchain)
       cargo xtask fuzz TARGET --replay FILE
                           run one input, for example one in fuzz/found
       cargo xtask fuzz lints
                           check the lints of the targets";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["tidy"] => tidy(&root),
        ["test"] => report(steps::test(&root)),
        ["soak"] => report(steps::soak(&root)),
        ["quick"] => report(quick::run(&root)),
        ["results"] => report(results::write(&root)),
        ["release", ref arguments @ ..] => report(release::run(&root, arguments)),
        ["miri"] => report(sanitizers::miri(&root)),
        ["tsan"] => report(sanitizers::tsan(&root)),
        ["targets", ref names @ ..] => report(targets::run(&root, names)),
        ["package"] => report(package::run(&root)),
        ["peers-build", ref arguments @ ..] => report(peers::build(&root, arguments)),
        ["peers-test", ref arguments @ ..] => report(peers::test(&root, arguments)),
        ["mariadb", ref arguments @ ..] => report(mariadb::test(&root, arguments)),
        ["python"] => report(python::test(&root)),
        ["fuzz", "lints"] => report(fuzz::lints(&root)),
        ["fuzz", ref arguments @ ..] => match fuzz::Wanted::parse(arguments) {
            Ok(wanted) => report(fuzz::run(&root, &wanted)),
            Err(what) => {
                eprintln!("error: {what}\n{USAGE}");
                ExitCode::from(2)
            }
        },
        ["cache-lines", ref arguments @ ..] => match cache_lines::Wanted::parse(arguments) {
            Ok(wanted) => report(cache_lines::run(&root, &wanted)),
            Err(what) => {
                eprintln!("error: {what}\n{USAGE}");
                ExitCode::from(2)
            }
        },
        ["mutants", "--part", part] => report(mutants::run_part(&root, part)),
        ["mutants", ref names @ ..] => report(mutants::run(&root, names)),
        _ => {
            eprintln!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

fn tidy(root: &Path) -> ExitCode {
    match tidy::check(root) {
        Ok(findings) if findings.is_empty() => ExitCode::SUCCESS,
        Ok(findings) => {
            findings.iter().for_each(|finding| println!("{finding}"));
            ExitCode::FAILURE
        }
        Err(error) => report(Err(error.to_string())),
    }
}

fn report(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("error: {failure}");
            ExitCode::FAILURE
        }
    }
}
