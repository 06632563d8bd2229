//! Steps in lanes: rows of steps that run at the same time, so that no processor waits for another.
//!
//! Rules
//! 1. Within a lane steps run in order. The first failure in any lane stops the commands of all lanes.
//! 2. What a step's commands print is kept in a file and printed when the step ends, so that lanes do not mix.
//! 3. Each lane builds in a folder of its own: cargo locks a folder while it builds. The program is built once, by the
//!    lane that builds the tests; steps of the others that run it, or use that build, wait for it first.

use super::Failure;
use super::extent::Extent;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Environment variable with the folder in which cargo builds.
const TARGET: &str = "CARGO_TARGET_DIR";
const POLL: Duration = Duration::from_millis(20);
/// Codegen units of each crate. With two, one core would be idle at the end of a build.
const CODEGEN_UNITS: &str = "4";

/// One step: its name and what it does in the project's root.
pub(super) struct Step {
    pub name: &'static str,
    pub run: fn(&Run<'_>) -> Result<(), Failure>,
}

/// Where the steps of a lane work, and how much they try.
pub(super) struct Run<'s> {
    pub root: PathBuf,
    /// For databases; removed at the end.
    pub scratch: PathBuf,
    /// Where the lane builds.
    pub target: PathBuf,
    /// Where the lane of the tests builds.
    tests: PathBuf,
    /// The program, as the tests have it.
    pub program: PathBuf,
    pub extent: Extent,
    /// What the present step's commands print.
    log: PathBuf,
    is_stopped: &'s AtomicBool,
    is_built: &'s AtomicBool,
}

/// How a command ended, and what it printed.
pub(super) struct Printed {
    pub text: String,
    pub result: Result<(), Failure>,
}

/// Runs the lanes; each is named by the folder below `target` in which it builds, the program in that of `builder`.
///
/// # Errors
/// The first failure, with the name of its step.
pub(super) fn run(
    root: &Path,
    target: &Path,
    scratch: &Path,
    extent: Extent,
    builder: &str,
    lanes: &[(&str, &[Step])],
) -> Result<(), Failure> {
    let (is_stopped, is_built) = (AtomicBool::new(false), AtomicBool::new(false));
    std::fs::create_dir_all(scratch).map_err(|error| format!("{}: {error}", scratch.display()))?;
    let result = thread::scope(|scope| {
        let begun: Vec<_> = lanes
            .iter()
            .map(|(folder, steps)| {
                let run = Run {
                    root: root.to_path_buf(),
                    scratch: scratch.to_path_buf(),
                    target: target.join(folder),
                    tests: target.join(builder),
                    program: target.join(builder).join("debug/highwater"),
                    extent,
                    log: scratch.join(format!("{folder}.log")),
                    is_stopped: &is_stopped,
                    is_built: &is_built,
                };
                scope.spawn(move || run.lane(steps))
            })
            .collect();
        let ended = begun.into_iter().map(|lane| lane.join().unwrap_or_else(|_| Err("a lane panicked".to_string())));
        ended.fold(Ok(()), first_failure)
    });
    // Scratch that cannot be removed is no reason to fail a run that passed.
    let _ = std::fs::remove_dir_all(scratch);
    result
}

/// The failure that stopped the lanes, rather than the failures that the stop caused in others.
fn first_failure(so_far: Result<(), Failure>, next: Result<(), Failure>) -> Result<(), Failure> {
    match (so_far, next) {
        (Err(failure), Err(other)) if failure.ends_with(STOPPED) => Err(other),
        (Err(failure), _) | (Ok(()), Err(failure)) => Err(failure),
        (Ok(()), Ok(())) => Ok(()),
    }
}

const STOPPED: &str = "stopped, another step failed";

impl Run<'_> {
    fn lane(&self, steps: &[Step]) -> Result<(), Failure> {
        steps.iter().try_for_each(|step| {
            File::create(&self.log).map_err(|error| format!("{}: {error}", self.log.display()))?;
            println!("-- {} ...", step.name);
            let start = Instant::now();
            let result = (step.run)(self);
            let printed = self.printed();
            let verdict = match &result {
                Ok(()) => "passed",
                Err(failure) if failure.ends_with(STOPPED) => STOPPED,
                Err(_) => "FAILED",
            };
            let seconds = start.elapsed().as_secs_f64();
            println!("== {}: {verdict}, {seconds:.0} s\n{printed}", step.name);
            result.map_err(|failure| {
                self.is_stopped.store(true, Ordering::Relaxed);
                format!("{}: {failure}", step.name)
            })
        })
    }

    /// The program is built.
    pub(super) fn note_built(&self) {
        self.is_built.store(true, Ordering::Release);
    }

    /// Waits until the program is built, or a step has failed.
    pub(super) fn await_built(&self) -> Result<(), Failure> {
        while !self.is_built.load(Ordering::Acquire) {
            if self.is_stopped.load(Ordering::Relaxed) {
                return Err(STOPPED.to_string());
            }
            thread::sleep(POLL);
        }
        Ok(())
    }

    /// The log of the present step, to append to.
    fn log(&self) -> Result<File, Failure> {
        File::options().append(true).open(&self.log).map_err(|error| format!("{}: {error}", self.log.display()))
    }

    /// Adds a line to the log.
    pub(super) fn say(&self, line: &str) -> Result<(), Failure> {
        use std::io::Write;
        writeln!(self.log()?, "{line}").map_err(|error| error.to_string())
    }

    /// What the present step's commands have printed.
    pub(super) fn printed(&self) -> String {
        std::fs::read(&self.log).map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).unwrap_or_default()
    }

    /// Runs cargo in the root, with the lane's folder for what is built.
    pub(super) fn cargo(&self, arguments: &[&str]) -> Result<(), Failure> {
        self.finish(Command::new("cargo").args(arguments))
    }

    /// Runs a command to its end; what it prints goes to the log.
    pub(super) fn finish(&self, command: &mut Command) -> Result<(), Failure> {
        let output = self.log()?;
        self.wait(command.stdout(output), self.log()?).map(drop)
    }

    /// As [`finish`](Run::finish), with the folder in which the lane of the tests builds.
    pub(super) fn finish_among_tests(&self, command: &mut Command) -> Result<(), Failure> {
        self.finish(command.env(TARGET, &self.tests))
    }

    /// As [`finish`](Run::finish); returns the command's stdout.
    pub(super) fn output(&self, command: &mut Command) -> Result<Vec<u8>, Failure> {
        let kept = self.log.with_extension("out");
        let text = |error: std::io::Error| format!("{}: {error}", kept.display());
        self.wait(command.stdout(File::create(&kept).map_err(text)?), self.log()?)?;
        std::fs::read(&kept).map_err(text)
    }

    /// As `output`, of a command that runs concurrently with others of its step: its output is kept separate.
    pub(super) fn apart(&self, name: &str, command: &mut Command) -> Printed {
        let kept = self.log.with_extension(name);
        let text = |error: std::io::Error| format!("{}: {error}", kept.display());
        let both = File::create(&kept).and_then(|output| Ok((output.try_clone()?, output)));
        let result =
            both.map_err(text).and_then(|(output, errors)| self.wait(command.stdout(output), errors).map(drop));
        let text = std::fs::read(&kept).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        Printed { text: text.unwrap_or_default(), result }
    }

    /// Sets where and how cargo builds for this lane's commands. Incremental files would not be used again. Debug
    /// information takes a fifth of a build, and a panic's message has its line without it. Fewer codegen units need
    /// about a tenth less work, because each unit compiles the generic code that it uses.
    fn wait(&self, command: &mut Command, errors: File) -> Result<ExitStatus, Failure> {
        if command.get_current_dir().is_none() {
            command.current_dir(&self.root);
        }
        command.stdin(Stdio::null()).stderr(errors);
        if !command.get_envs().any(|(name, _)| name == TARGET) {
            command.env(TARGET, &self.target);
        }
        command.env("CARGO_INCREMENTAL", "0");
        command.env("CARGO_PROFILE_DEV_DEBUG", "false").env("CARGO_PROFILE_DEV_CODEGEN_UNITS", CODEGEN_UNITS);
        let child = command.spawn().map_err(|error| format!("{command:?}: {error}"))?;
        match self.ended(child) {
            Ok(status) if status.success() => Ok(status),
            Ok(_) if self.is_stopped.load(Ordering::Relaxed) => Err(STOPPED.to_string()),
            Ok(status) => Err(format!("{}: {status}", shown(command))),
            Err(error) => Err(format!("{}: {error}", shown(command))),
        }
    }

    fn ended(&self, mut child: Child) -> std::io::Result<ExitStatus> {
        loop {
            if let Some(status) = child.try_wait()? {
                return Ok(status);
            }
            if self.is_stopped.load(Ordering::Relaxed) {
                child.kill()?;
                return child.wait();
            }
            thread::sleep(POLL);
        }
    }
}

/// A command as one would type it.
fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    words.map(|word| word.to_string_lossy()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run_lanes(lanes: &[(&str, &[Step])]) -> Result<(), Failure> {
        let folder = tempfile::tempdir().unwrap();
        let scratch = folder.path().join("scratch");
        let result = run(folder.path(), folder.path(), &scratch, Extent::Slice(1), "a", lanes);
        assert!(!scratch.exists());
        result
    }

    #[test]
    fn a_failure_is_named_and_stops_the_other_lane() {
        let long: &[Step] = &[Step { name: "long", run: |run| run.finish(Command::new("sleep").arg("600")) }];
        let wrong: &[Step] = &[Step { name: "wrong", run: |run| run.finish(Command::new("false").arg("x")) }];
        let started = Instant::now();
        let failure = run_lanes(&[("a", long), ("b", wrong)]).unwrap_err();
        assert!(failure.starts_with("wrong: false x: "), "{failure}");
        assert!(started.elapsed() < Duration::from_secs(60));
    }

    #[test]
    fn a_lane_waits_for_the_program_that_another_builds() {
        fn build(run: &Run<'_>) -> Result<(), Failure> {
            thread::sleep(Duration::from_millis(50));
            std::fs::create_dir_all(run.program.parent().unwrap()).unwrap();
            std::fs::write(&run.program, "").unwrap();
            run.note_built();
            Ok(())
        }
        fn is_there(run: &Run<'_>) -> Result<(), Failure> {
            run.await_built()?;
            if run.program.exists() { Ok(()) } else { Err("it is not there".to_string()) }
        }
        run_lanes(&[("a", &[Step { name: "build", run: build }]), ("b", &[Step { name: "use", run: is_there }])])
            .unwrap();
        let wrong: &[Step] = &[Step { name: "wrong", run: |_| Err("no".to_string()) }];
        let failure = run_lanes(&[("a", wrong), ("b", &[Step { name: "use", run: is_there }])]).unwrap_err();
        assert_eq!(failure, "wrong: no");
    }

    #[test]
    fn steps_run_in_order_and_what_they_print_is_given() {
        let steps: &[Step] = &[
            Step { name: "first", run: |run| run.finish(Command::new("touch").arg(run.scratch.join("there"))) },
            Step {
                name: "second",
                run: |run| match run.output(Command::new("ls").arg(&run.scratch))? {
                    listed if String::from_utf8_lossy(&listed).contains("there") => Ok(()),
                    listed => Err(String::from_utf8_lossy(&listed).into_owned()),
                },
            },
        ];
        run_lanes(&[("a", steps)]).unwrap();
    }
}
