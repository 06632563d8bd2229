//! `cargo xtask fuzz`: builds the fuzzing targets with instruments and runs them.
//!
//! Rules
//! 1. The stable toolchain is enough: the instruments are those of its compiler, the fuzzer is libFuzzer (of the crate
//!    `libfuzzer-sys`, built with a C++ compiler). Only `--address` needs the nightly one.
//! 2. An input that breaks a law is kept in `fuzz/found`; what it is and the command that replays it are printed.
//! 3. What was found to reach new code is in `target/fuzz/corpus` and is used again. `fuzz/corpus` is committed; only
//!    `--keep` changes it.

use crate::steps::Failure;
use crate::tools;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;

/// All targets: the files in `fuzz/targets`.
const TARGETS: [&str; 10] =
    ["backup", "calls", "import", "open", "page", "raw", "record", "redo", "simulation", "trace"];
/// A corpus in the repository is not larger: it is run whole by every run.
const KEPT_BYTES: u64 = 40 << 10;
const KEPT_INPUTS: usize = 250;
/// Inputs that are printed whole.
const PRINTED_BYTES: usize = 2048;
/// Lines of a target's output that are shown when it fails.
const SHOWN_LINES: usize = 40;
/// An input that takes longer counts as a hang: seconds. The machine may be busy.
const HANG: &str = "-timeout=30";
/// Inputs of any length from the begin: a target that is slow would else try short ones only.
const LENGTH: [&str; 2] = ["-len_control=0", "-max_len=4096"];
const MEMORY: &str = "-rss_limit_mb=2048";

/// Options with which the compiler reports coverage to the fuzzer.
const INSTRUMENTS: [&str; 8] = [
    "-Cpasses=sancov-module",
    "-Cllvm-args=-sanitizer-coverage-level=4",
    "-Cllvm-args=-sanitizer-coverage-inline-8bit-counters",
    "-Cllvm-args=-sanitizer-coverage-pc-table",
    "-Cllvm-args=-sanitizer-coverage-trace-compares",
    "-Cllvm-args=-simplifycfg-branch-fold-threshold=0",
    "--cfg",
    "fuzzing",
];

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Wanted {
    /// Seconds of each target.
    seconds: u32,
    /// The fuzzer's seed: the same build tries the same inputs, as far as the time goes. Drawn without one.
    seed: Option<u32>,
    targets: Vec<&'static str>,
    keep: bool,
    address: bool,
    replay: Option<PathBuf>,
}

impl Default for Wanted {
    fn default() -> Wanted {
        Wanted { seconds: 60, seed: None, targets: TARGETS.to_vec(), keep: false, address: false, replay: None }
    }
}

impl Wanted {
    /// Reads the arguments.
    pub(crate) fn parse(arguments: &[&str]) -> Result<Wanted, String> {
        let (mut wanted, mut named, mut rest) = (Wanted::default(), Vec::new(), arguments.iter());
        while let Some(argument) = rest.next() {
            let mut value = || rest.next().ok_or_else(|| format!("{argument} needs a value"));
            match *argument {
                // The fuzzer takes 0 for no limit.
                "--seconds" => match number(argument, value()?)? {
                    0 => return Err("--seconds 0 would never end; 1 is the least".into()),
                    seconds => wanted.seconds = seconds,
                },
                "--seed" => wanted.seed = Some(number(argument, value()?)?),
                "--replay" => wanted.replay = Some(PathBuf::from(value()?)),
                "--keep" => wanted.keep = true,
                "--address" => wanted.address = true,
                name => match TARGETS.iter().find(|target| **target == name) {
                    Some(target) => named.push(*target),
                    None => return Err(format!("{name} is no target; there are: {}", TARGETS.join(", "))),
                },
            }
        }
        if wanted.replay.is_some() && named.len() != 1 {
            return Err("--replay needs one target".to_string());
        }
        if !named.is_empty() {
            wanted.targets = named;
        }
        Ok(wanted)
    }
}

fn number(option: &str, text: &str) -> Result<u32, String> {
    text.parse().map_err(|_| format!("{option} {text}: not a number"))
}

/// Where things are.
struct Place<'r> {
    root: &'r Path,
    binaries: PathBuf,
}

/// Builds the targets and runs them, as many at once as there are processors.
pub(crate) fn run(root: &Path, wanted: &Wanted) -> Result<(), Failure> {
    let place = build(root, wanted)?;
    if let Some(input) = &wanted.replay {
        let status = place.command(wanted.targets[0]).args(["-runs=1", HANG, MEMORY]).arg(input).status();
        return match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{}: {status}", input.display())),
            Err(error) => Err(error.to_string()),
        };
    }
    let (waiting, failures) = (Mutex::new(wanted.targets.iter()), Mutex::new(Vec::new()));
    let next = || waiting.lock().ok().and_then(|mut waiting| waiting.next().copied());
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(target) = next() {
                    let done = place.fuzz(target, wanted);
                    done.unwrap_or_else(|failure| {
                        failures.lock().into_iter().for_each(|mut all| all.push(failure.clone()))
                    });
                }
            });
        }
    });
    let failures = failures.into_inner().unwrap_or_default();
    if failures.is_empty() { Ok(()) } else { Err(failures.join("\n")) }
}

/// Checks the lints of the targets, which those of the workspace do not reach.
pub(crate) fn lints(root: &Path) -> Result<(), Failure> {
    let mut cargo = Command::new("cargo");
    cargo.args(["clippy", "--manifest-path", "fuzz/Cargo.toml", "--target-dir", "target/fuzz", "--all-targets"]);
    match cargo.args(["--", "-D", "warnings"]).current_dir(root).stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{cargo:?}: {status}")),
        Err(error) => Err(error.to_string()),
    }
}

fn build<'r>(root: &'r Path, wanted: &Wanted) -> Result<Place<'r>, Failure> {
    tools::ensure_cxx()?;
    let toolchain = if wanted.address { "nightly" } else { "" };
    let version = output(command("rustc", toolchain).arg("-vV"));
    let version = version.map_err(|error| match wanted.address {
        true => format!("--address needs the nightly toolchain: rustup toolchain install nightly ({error})"),
        false => error,
    })?;
    let host = version.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc names no host")?;
    let folder = root.join(if wanted.address { "target/fuzz-address" } else { "target/fuzz" });
    let mut flags = INSTRUMENTS.to_vec();
    flags.extend(wanted.address.then_some("-Zsanitizer=address"));
    let mut cargo = command("cargo", toolchain);
    cargo.args(["build", "--release", "--manifest-path", "fuzz/Cargo.toml", "--target", host]);
    cargo.arg("--target-dir").arg(&folder).env("CARGO_ENCODED_RUSTFLAGS", flags.join("\x1f"));
    wanted.targets.iter().for_each(|target| _ = cargo.args(["--bin", target]));
    match cargo.current_dir(root).stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(Place { root, binaries: folder.join(host).join("release") }),
        Ok(status) => Err(format!("the fuzzing targets do not build: {status}")),
        Err(error) => Err(error.to_string()),
    }
}

/// A program of the toolchain that this one was built with, or of another one.
fn command(program: &str, toolchain: &str) -> Command {
    if toolchain.is_empty() {
        return Command::new(program);
    }
    let mut command = Command::new("rustup");
    command.args(["run", toolchain, program]).env_remove("RUSTUP_TOOLCHAIN").env_remove("RUSTC").env_remove("CARGO");
    command
}

fn output(command: &mut Command) -> Result<String, Failure> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).trim().to_string();
    if output.status.success() { Ok(text(&output.stdout)) } else { Err(text(&output.stderr)) }
}

impl Place<'_> {
    fn command(&self, target: &str) -> Command {
        let mut command = Command::new(self.binaries.join(target));
        if self.binaries.iter().any(|part| part == "fuzz-address") {
            command.env("HIGHWATER_FUZZ_SANITIZER", "address");
        }
        command.current_dir(self.root).stdin(Stdio::null());
        command
    }

    fn folder(&self, name: &str) -> Result<PathBuf, Failure> {
        let folder = self.root.join(name);
        fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        Ok(folder)
    }

    /// Runs a target for its time.
    fn fuzz(&self, target: &str, wanted: &Wanted) -> Result<(), Failure> {
        let work = self.folder(&format!("target/fuzz/corpus/{target}"))?;
        let kept = self.folder(&format!("fuzz/corpus/{target}"))?;
        let found = self.folder("fuzz/found")?;
        let mut command = self.command(target);
        command.arg(&work).arg(&kept).args([HANG, MEMORY, "-print_final_stats=1"]).args(LENGTH);
        command.arg(format!("-max_total_time={}", wanted.seconds));
        command.args(wanted.seed.map(|seed| format!("-seed={seed}")));
        command.arg(format!("-artifact_prefix={}/{target}-", found.display()));
        let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        if !output.status.success() {
            return Err(explained(self.root, target, &text));
        }
        println!("   {target}: {}", summary(&text));
        if wanted.keep { self.keep(target, &work, &kept) } else { Ok(()) }
    }

    /// Replaces the committed corpus by the inputs, of both, that reach all that both reach; the smallest first.
    fn keep(&self, target: &str, work: &Path, kept: &Path) -> Result<(), Failure> {
        let merged = self.root.join("target/fuzz/merged").join(target);
        let _ = fs::remove_dir_all(&merged);
        fs::create_dir_all(&merged).map_err(|error| error.to_string())?;
        output(self.command(target).arg("-merge=1").arg(&merged).arg(kept).arg(work))?;
        let failed = |error: std::io::Error| format!("{}: {error}", kept.display());
        let mut files = Vec::new();
        for entry in fs::read_dir(&merged).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            files.push((entry.metadata().map_err(failed)?.len(), entry.path()));
        }
        files.sort();
        fs::remove_dir_all(kept).and_then(|()| fs::create_dir_all(kept)).map_err(failed)?;
        let mut bytes = 0;
        for (len, path) in files.into_iter().take(KEPT_INPUTS) {
            bytes += len;
            if bytes > KEPT_BYTES {
                break;
            }
            let name = path.file_name().unwrap_or_default();
            fs::copy(&path, kept.join(name)).map_err(failed)?;
        }
        Ok(())
    }
}

/// How many inputs ran, and how much of the code they reached.
fn summary(text: &str) -> String {
    let stat = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)).map_or("?", str::trim);
    let last = text.lines().rev().find_map(|line| line.split_once(" cov: "));
    let reached = last.and_then(|(_, rest)| rest.split(' ').next()).unwrap_or("?");
    let inputs = stat("stat::number_of_executed_units:");
    format!("{inputs} inputs, {reached} edges reached, {} MiB at most", stat("stat::peak_rss_mb:"))
}

/// What was found: the end of the output, the input, how to replay it.
fn explained(root: &Path, target: &str, text: &str) -> Failure {
    let lines: Vec<&str> = text.lines().collect();
    let end = lines.len().saturating_sub(SHOWN_LINES);
    // The broken rule is printed before a long stack.
    let panic = lines[..end].iter().rposition(|line| line.contains("panicked at"));
    let shown = panic.map_or(&[][..], |at| &lines[at..end.min(at + 4)]);
    let mut said = [shown, &lines[end..]].concat().join("\n");
    let input = lines.iter().find_map(|line| line.split_once("Test unit written to ")).map(|(_, path)| path);
    if let Some(path) = input {
        let bytes = fs::read(path).unwrap_or_default();
        if bytes.len() <= PRINTED_BYTES {
            let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            said += &format!("\nthe input, in hexadecimal: {digits}");
        }
        let path = Path::new(path).strip_prefix(root).unwrap_or(Path::new(path)).display();
        said += &format!("\n{target}: replay with: cargo xtask fuzz {target} --replay {path}");
    }
    said
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_read_and_wrong_ones_named() {
        assert_eq!(Wanted::parse(&[]), Ok(Wanted::default()));
        let wanted = Wanted::parse(&["--seconds", "5", "open", "--keep", "redo"]).unwrap();
        assert_eq!((wanted.seconds, &wanted.targets[..], wanted.keep), (5, &["open", "redo"][..], true));
        let replay = Wanted::parse(&["page", "--replay", "x"]).unwrap();
        assert_eq!(replay.replay, Some(PathBuf::from("x")));
        for (wrong, what) in [
            (&["--seconds"][..], "needs a value"),
            (&["--seconds", "x"], "not a number"),
            (&["--seconds", "0"], "would never end"),
            (&["nothing"], "there are: backup, calls"),
            (&["--replay", "x"], "one target"),
        ] {
            assert!(Wanted::parse(wrong).unwrap_err().contains(what), "{wrong:?}");
        }
    }

    #[test]
    fn every_target_is_in_the_list() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/targets");
        let name = |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(name).collect();
        names.sort();
        assert_eq!(names, TARGETS.map(|target| format!("{target}.rs")));
    }

    #[test]
    fn what_was_found_is_printed_with_the_command_that_replays_it() {
        let folder = tempfile::tempdir().unwrap();
        let input = folder.path().join("found-1");
        fs::write(&input, [1, 0xab]).unwrap();
        let stack = "a frame\n".repeat(2 * SHOWN_LINES);
        let text = format!("panicked at x.rs\n{stack}artifact_prefix='x'; Test unit written to {}", input.display());
        let said = explained(folder.path(), "open", &text);
        assert!(said.contains("panicked at x.rs") && said.contains("01ab"), "{said}");
        assert!(said.ends_with("cargo xtask fuzz open --replay found-1"), "{said}");
    }

    #[test]
    fn a_run_is_summed_up() {
        let text = "#9\tDONE   cov: 77 ft: 99\nstat::number_of_executed_units: 1234\nstat::peak_rss_mb: 55\n";
        assert_eq!(summary(text), "1234 inputs, 77 edges reached, 55 MiB at most");
    }
}
