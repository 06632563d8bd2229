//! `cargo xtask test`: everything that must hold before a change is kept, in one command.
//!
//! Rules
//! 1. Steps run in order, cheap and picky ones first; the first failure ends the run with its step named.
//! 2. Nothing is left behind: databases of the run lie in a folder of their own under the system's temporary folder.
//! 3. Whatever a step measures is checked, not only whether it ended.

use serde_json::Value;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Instant;

/// How a step failed.
pub type Failure = String;

/// Kills of the crash test in one run.
const KILLS: &str = "20";
/// Power cuts in one run.
const CUTS: &str = "500";
/// Power cuts of the simulated engine; and databases that are simulated twice, to see the same happen.
const SIMULATED_CUTS: &str = "10000";
/// Always the same ones: a change is judged by itself. `highwater torture simulate` draws others.
const SIMULATED_SEED: &str = "77";
const DATABASES_TWICE: &str = "1000";
/// Beside those of headers, every so many bytes of the files of a small database are damaged; all of them on demand.
const DAMAGED_ONE_IN: &str = "6";
/// Databases in which a page is damaged beside a load.
const DAMAGED_LIVES: &str = "40";
/// Seconds of each fuzzing target, and the seed: as with simulated cuts, the same inputs as far as the time goes.
const FUZZING: [&str; 4] = ["--seconds", "5", "--seed", "77"];
/// Databases of which each operation of a short life is made to fail: about a hundred operations each.
const FAILING_DATABASES: &str = "20";
/// Of the planted bugs every so many: more than thirty are tried, the others on demand.
const PLANTED_ONE_IN: usize = 4;
/// Cores for which contended cache lines are counted, and workloads.
const COUNTED: [&str; 2] = ["--cores", "16"];
/// Power cuts of a mounted disk under a running process.
const MOUNTED_CUTS: &str = "6";
/// Seconds of random histories in one run.
const HISTORY_SECONDS: &str = "10";
/// Kills of the one on a disk that fills up, and the size at which it is full: a little more than the load needs.
const FULL_KILLS: &str = "10";
const FULL_AT: &str = "160M";

/// One step: its name and what it does in the project's root.
struct Step {
    name: &'static str,
    run: fn(&Run) -> Result<(), Failure>,
}

/// Where the steps work.
struct Run {
    root: PathBuf,
    scratch: PathBuf,
}

const STEPS: [Step; 19] = [
    Step { name: "format", run: |run| run.format() },
    Step { name: "tidy", run: |run| run.tidy() },
    Step { name: "lints", run: |run| run.cargo(&["clippy", "--workspace", "--all-targets", "--", "-D", "warnings"]) },
    Step { name: "docs", run: |run| run.docs() },
    Step { name: "servers to compare with", run: |run| run.servers() },
    Step { name: "tools", run: |_| crate::tools::ensure(tests_mount()) },
    Step { name: "tests", run: |run| run.tests() },
    Step { name: "release build", run: |run| run.cargo(&["build", "--release"]) },
    Step { name: "TPC-C, checked", run: |run| run.tpcc() },
    Step { name: "sysbench, checked", run: |run| run.sysbench() },
    Step { name: "kill -9 under load", run: |run| run.crash() },
    Step { name: "power cuts", run: |run| run.power_cuts() },
    Step { name: "damaged files", run: |run| run.damage() },
    Step { name: "isolation, beside MariaDB", run: |run| run.isolation() },
    Step { name: "simulation", run: |run| run.simulation() },
    Step { name: "growth", run: |run| run.finish(run.command().args(["torture", "growth"])) },
    Step { name: "contended lines", run: |run| crate::cores::run(&run.root, &crate::cores::Wanted::parse(&COUNTED)?) },
    Step { name: "planted bugs", run: |run| crate::planted::sample(&run.root, PLANTED_ONE_IN) },
    Step { name: "fuzzing", run: |run| crate::fuzz::run(&run.root, &crate::fuzz::Wanted::parse(&FUZZING)?) },
];

/// Runs every step.
pub fn all(root: &Path) -> Result<(), Failure> {
    let scratch = std::env::temp_dir().join(format!("highwater-test-{}", std::process::id()));
    let run = Run { root: root.to_path_buf(), scratch };
    let result = STEPS.iter().enumerate().try_for_each(|(at, step)| {
        println!("== {}/{} {}", at + 1, STEPS.len(), step.name);
        let start = Instant::now();
        (step.run)(&run).map_err(|failure| format!("{}: {failure}", step.name))?;
        println!("   {:.0} s", start.elapsed().as_secs_f64());
        Ok(())
    });
    // Scratch that cannot be removed is no reason to fail a run that passed.
    let _ = std::fs::remove_dir_all(&run.scratch);
    result
}

/// Whether file systems can be mounted here: this process is root, and the kernel has FUSE and loop devices. Then tests
/// that mount fail if a mount fails. Elsewhere they are left out, or check what the refusal says.
fn tests_mount() -> bool {
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    is_root && ["/dev/fuse", "/dev/loop-control"].iter().all(|node| Path::new(node).exists())
}

impl Run {
    fn cargo(&self, arguments: &[&str]) -> Result<(), Failure> {
        self.finish(Command::new("cargo").args(arguments))
    }

    fn format(&self) -> Result<(), Failure> {
        self.cargo(&["fmt", "--all", "--check"])?;
        let others = ["fuzz/Cargo.toml", "crates/compare/Cargo.toml"];
        others.iter().try_for_each(|manifest| self.cargo(&["fmt", "--manifest-path", manifest, "--check"]))
    }

    /// Installs the servers that tests start, unless they are there; each is started once.
    fn servers(&self) -> Result<(), Failure> {
        self.finish(&mut Command::new(self.root.join("scripts/install-servers")))
    }

    fn tests(&self) -> Result<(), Failure> {
        let mut command = Command::new("cargo");
        command.args(["test", "--workspace"]);
        if tests_mount() {
            command.env("HIGHWATER_TEST_MOUNTS", "1");
        }
        self.finish(&mut command)
    }

    fn docs(&self) -> Result<(), Failure> {
        let mut command = Command::new("cargo");
        self.finish(command.args(["doc", "--workspace", "--no-deps"]).env("RUSTDOCFLAGS", "-D warnings"))
    }

    fn tidy(&self) -> Result<(), Failure> {
        let findings = crate::tidy::check(&self.root).map_err(|error| error.to_string())?;
        findings.iter().for_each(|finding| println!("{finding}"));
        if findings.is_empty() { Ok(()) } else { Err(format!("{} findings", findings.len())) }
    }

    fn tpcc(&self) -> Result<(), Failure> {
        let result = self.bench(&["tpcc", "--warehouses", "1", "--threads", "2", "--seconds", "5"], "tpcc")?;
        let conditions = result["consistency"].as_array().ok_or("no consistency conditions in the JSON")?;
        let held = conditions.iter().filter(|condition| condition["holds"] == Value::Bool(true)).count();
        if held != 12 || conditions.len() != 12 {
            return Err(format!("{held} of {} consistency conditions hold: {conditions:?}", conditions.len()));
        }
        self.highwater(&["check", &self.folder("tpcc")]).map(drop)
    }

    fn sysbench(&self) -> Result<(), Failure> {
        let profile = ["sysbench", "read_write", "--tables", "2", "--table-size", "20000", "--threads", "4"];
        self.bench(&[&profile[..], &["--seconds", "4", "--buffer-pool-size", "4M"]].concat(), "sysbench")?;
        self.highwater(&["check", &self.folder("sysbench")]).map(drop)
    }

    fn crash(&self) -> Result<(), Failure> {
        let mut command = self.command();
        self.finish(command.args(["torture", "crash", "--runs", KILLS, "--dir", &self.folder("crash")]))?;
        let mut command = self.command();
        command.args([
            "torture",
            "crash",
            "--runs",
            KILLS,
            "--page-store",
            "out-of-place",
            "--page-compression",
            "lz4",
        ]);
        self.finish(command.args(["--segment-size", "512K", "--dir", &self.folder("crash-out-of-place")]))?;
        let mut command = self.command();
        command.args(["torture", "crash", "--runs", KILLS, "--doublewrite", "journal", "--journal-size", "8M"]);
        self.finish(command.args(["--dir", &self.folder("crash-journal")]))?;
        // Small pages make many extent-map groups, and the disk fills up on the way.
        let mut command = self.command();
        command.args(["torture", "crash", "--runs", FULL_KILLS, "--max-run-ms", "700", "--page-size", "4K"]);
        self.finish(command.args(["--data-limit", FULL_AT, "--dir", &self.folder("crash-full")]))
    }

    fn simulation(&self) -> Result<(), Failure> {
        let simulate = |more: &[&str]| {
            self.finish(self.command().args(["torture", "simulate", "--seed", SIMULATED_SEED]).args(more))
        };
        simulate(&["--cuts", SIMULATED_CUTS])?;
        simulate(&["--databases", DATABASES_TWICE, "--lives", "3", "--twice"])?;
        simulate(&["--every-failure", "--databases", FAILING_DATABASES, "--steps", "250"])
    }

    fn power_cuts(&self) -> Result<(), Failure> {
        self.finish(self.command().args(["torture", "power", "--cuts", CUTS]))?;
        if !tests_mount() {
            return Ok(());
        }
        let mut command = self.command();
        command.args(["torture", "crash", "--cut-power", "--runs", MOUNTED_CUTS, "--max-run-ms", "1000"]);
        self.finish(command.args(["--dir", &self.folder("crash-cut")]))
    }

    fn damage(&self) -> Result<(), Failure> {
        self.finish(self.command().args(["torture", "corrupt", "--every", DAMAGED_ONE_IN]))?;
        self.finish(self.command().args(["torture", "corrupt", "--beside", DAMAGED_LIVES]))
    }

    /// The servers are there: an earlier step has seen to it.
    fn isolation(&self) -> Result<(), Failure> {
        self.finish(self.command().args(["torture", "hermitage", "--subject", "highwater", "--subject", "mariadb"]))?;
        self.finish(self.command().args(["torture", "isolation", "--seconds", HISTORY_SECONDS]))
    }

    /// Runs a benchmark and gives its result, which must say that work was done.
    fn bench(&self, arguments: &[&str], folder: &str) -> Result<Value, Failure> {
        let folder = self.folder(folder);
        let output = self.highwater(&[&["bench"], arguments, &["--dir", &folder, "--json", "-"]].concat())?;
        let result: Value = serde_json::from_slice(&output.stdout).map_err(|e| format!("no JSON on stdout: {e}"))?;
        println!("   {} transactions per second", result["tps"]);
        match result["transactions"].as_u64() {
            Some(transactions) if transactions > 0 => Ok(result),
            other => Err(format!("transactions: {other:?}")),
        }
    }

    fn folder(&self, name: &str) -> String {
        self.scratch.join(name).display().to_string()
    }

    fn command(&self) -> Command {
        let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| self.root.join("target"), PathBuf::from);
        Command::new(target.join("release/highwater"))
    }

    /// Runs the command to its end, keeping what it prints to stdout.
    fn highwater(&self, arguments: &[&str]) -> Result<Output, Failure> {
        let mut command = self.command();
        let child = command.args(arguments).current_dir(&self.root).stdin(Stdio::null()).stderr(Stdio::inherit());
        let output = child.output().map_err(|error| format!("{child:?}: {error}"))?;
        if output.status.success() { Ok(output) } else { Err(format!("{child:?}: {}", output.status)) }
    }

    fn finish(&self, command: &mut Command) -> Result<(), Failure> {
        let status = command.current_dir(&self.root).stdin(Stdio::null()).status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(format!("{command:?}: {status}")),
            Err(error) => Err(format!("{command:?}: {error}")),
        }
    }
}
