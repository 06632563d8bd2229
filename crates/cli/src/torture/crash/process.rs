//! The processes that the crash test starts and ends.

use super::{CrashOptions, left};
use crate::failure::Failure;
use crate::this_program;
use crate::torture::disk::CutDisk;
use fastrand::Rng;
use highwater::Error;
use highwater_bench::run::{RunOptions, run as drive};
use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// Longest wait for a child to be ready.
const READY_WITHIN: Duration = Duration::from_secs(300);
/// Pause before the load continues after the disk was full.
const FULL_PAUSE: Duration = Duration::from_millis(10);

/// Cuts the power of the child's disk, if it has one of its own, and brings it back.
pub(super) fn end(child: &mut Child, rng: &mut Rng, disk: &mut Option<CutDisk>) -> Result<(), Failure> {
    let Some(disk) = disk else { return kill(child) };
    disk.cut(rng.u64(..), child)?;
    disk.power_on()
}

/// A process of this program, to be killed.
pub(super) fn spawn_process(kind: &str, options: &CrashOptions) -> Result<Command, Failure> {
    let mut command = this_program::command()?;
    command.args(["torture", kind, "--dir"]).arg(&options.dir);
    if options.cut_power {
        command.arg("--cut-power");
    }
    Ok(command)
}

pub(super) fn not_started(error: std::io::Error) -> Failure {
    Failure::Failed(format!("cannot start the process to be killed: {error}"))
}

pub(super) fn spawn(options: &CrashOptions, seed: u64, buffering: &str, drawn: &[String]) -> Result<Child, Failure> {
    let mut command = spawn_process("child", options)?;
    for (name, value) in [("--seed", seed), ("--warehouses", options.warehouses), ("--threads", options.threads)] {
        command.arg(name).arg(value.to_string());
    }
    if options.tpcc_only {
        command.arg("--tpcc-only");
    }
    for name in options.engine.names() {
        command.arg("--keep-options").arg(name);
    }
    if let Some(limit) = options.data_limit {
        command.args(["--data-limit", &limit.to_string()]);
    }
    if options.cut_power {
        // Its message about the disk that failed is what is expected.
        command.stderr(Stdio::null());
    }
    if !options.engine.has("change_buffering") {
        command.args(["--change-buffering", buffering]);
    }
    command.args(drawn).args(options.engine.as_arguments()).stdin(Stdio::piped()).stdout(Stdio::piped());
    command.spawn().map_err(not_started)
}

pub(super) fn wait_until_ready(child: &mut Child) -> Result<(), Failure> {
    let Some(stdout) = child.stdout.take() else { return Ok(()) };
    let (sender, receiver) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        let read = BufReader::new(stdout).read_line(&mut line);
        // The receiver may have given up.
        let _ = sender.send(read.is_ok() && line.trim() == "ready");
    });
    match receiver.recv_timeout(READY_WITHIN) {
        Ok(true) => Ok(()),
        Ok(false) => Err(Failure::Failed("the process ended before its run began (its message is above)".into())),
        Err(_) => Err(Failure::Failed(format!("the process was not ready within {} s", READY_WITHIN.as_secs()))),
    }
}

pub(super) fn still_running(child: &mut Child) -> Result<(), Failure> {
    match child.try_wait() {
        Ok(None) => Ok(()),
        Ok(Some(status)) => Err(Failure::Failed(format!("the process ended without being killed: {status}"))),
        Err(e) => Err(Failure::Failed(format!("the process to be killed: {e}"))),
    }
}

/// SIGKILL, and waits until it is gone.
pub(super) fn kill(child: &mut Child) -> Result<(), Failure> {
    let gone = child.kill().and_then(|()| child.wait());
    gone.map(drop).map_err(|e| Failure::Failed(format!("the process to be killed: {e}")))
}

/// Ends this process with its parent.
pub(super) fn end_with_parent() {
    std::thread::spawn(|| {
        // The end of stdin is the end of the parent.
        let _ = std::io::stdin().read(&mut [0]);
        std::process::exit(0);
    });
}

/// The process that is killed: runs until then.
pub(crate) fn child(options: &CrashOptions) -> Result<(), Failure> {
    end_with_parent();
    let store = options.open()?;
    if options.may_lose_commits(&[])? {
        left::accept_losses(options, &store)?;
    }
    let run_options = RunOptions { threads: options.threads as usize, seconds: 0.0, ..RunOptions::default() };
    println!("ready");
    // Without a reader there is no use for this line.
    let _ = std::io::stdout().flush();
    let (seed, options) = (options.seed.unwrap_or(0), options.clone());
    if let Some(ddl_stress) = options.ddl_stress(seed) {
        let store = store.clone();
        std::thread::spawn(move || {
            // It returns with an error only.
            if let Err(error) = ddl_stress.run(&store) {
                tell!("error: concurrently with TPC-C: {error}");
                std::process::exit(1);
            }
        });
    }
    loop {
        match drive(&store, &*options.workload(seed), &run_options, &mut |_| {}) {
            Err(highwater_bench::Error::Engine(Error::DiskFull { .. })) => std::thread::sleep(FULL_PAUSE),
            ended => return Ok(ended.map(drop)?),
        }
    }
}
