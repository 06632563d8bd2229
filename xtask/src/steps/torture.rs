//! Steps that run the program: benchmarks whose results are checked, kills, power cuts, damage, histories, simulation.
//!
//! The program is the one that the tests have built: with its assertions on. A slice tries one of four settings, of
//! four pairs of databases and of four loads.

use super::extent::MAX_PARTS;
use super::lane::{Run, Step};
use super::{Failure, tests_mount};
use serde_json::Value;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::process::Command;

/// Pages small enough for many extent-map groups, and the size at which the disk is full: a little more than the load
/// needs.
const FULL: [&str; 6] = ["--max-run-ms", "700", "--page-size", "4K", "--data-limit", "160M"];
/// In a slice one block of this many is damaged, besides the headers of the files.
const DAMAGED_BLOCKS_ONE_IN: u64 = 10;
/// In each of those blocks one byte of this many is damaged, besides its header.
const DAMAGED_BYTES_ONE_IN: u64 = 240;

/// A slice has one of these.
const IN_TURNS: [Step; 4] = [
    Step { name: "growth", run: growth },
    Step { name: "TPC-C", run: tpcc },
    Step { name: "sysbench", run: sysbench },
    Step { name: "power of a mounted disk", run: mounted_power_cuts },
];

pub(super) fn in_turns(run: &Run<'_>) -> Result<(), Failure> {
    run.extent.of("in turns", IN_TURNS).into_iter().try_for_each(|step| {
        run.say(step.name)?;
        (step.run)(run)
    })
}

fn tpcc(run: &Run<'_>) -> Result<(), Failure> {
    let result = bench(run, &["tpcc", "--warehouses", "1", "--threads", "2", "--seconds", "4"], "tpcc")?;
    let conditions = result["consistency"].as_array().ok_or("no consistency conditions in the JSON")?;
    let held = conditions.iter().filter(|condition| condition["holds"] == Value::Bool(true)).count();
    if held != 12 || conditions.len() != 12 {
        return Err(format!("{held} of {} consistency conditions hold: {conditions:?}", conditions.len()));
    }
    highwater(run, &["check", &folder(run, "tpcc")])
}

fn sysbench(run: &Run<'_>) -> Result<(), Failure> {
    let profile = ["sysbench", "read_write", "--tables", "2", "--table-size", "20000", "--threads", "4"];
    bench(run, &[&profile[..], &["--seconds", "3", "--buffer-pool-size", "4M"]].concat(), "sysbench")?;
    highwater(run, &["check", &folder(run, "sysbench")])
}

/// With one of these settings, in a soak with all: each page store, one of them encrypted; with an archive of redo,
/// encrypted too, from which a copy is restored at the end; on a disk that fills up.
pub(super) fn crash(run: &Run<'_>) -> Result<(), Failure> {
    let [key, redo, log, hidden] =
        ["crash-key", "crash-redo", "crash-log", "crash-redo-encrypted"].map(|name| folder(run, name));
    write_key(&key).map_err(|error| format!("{key}: {error}"))?;
    let out_of_place = ["--page-store", "out-of-place", "--page-compression", "lz4", "--segment-size", "512K"];
    let out_of_place = [&out_of_place[..], &["--key-file", &key, "--redo-archive", &hidden]].concat();
    let journal = ["--doublewrite", "journal", "--journal-size", "8M", "--redo-archive", &redo, "--log-dir", &log];
    let settings: [(&str, &[&str]); 4] =
        [("crash", &[]), ("crash-out-of-place", &out_of_place), ("crash-journal", &journal), ("crash-full", &FULL)];
    run.extent.of("crash settings", settings).into_iter().try_for_each(|(name, options)| {
        let (kills, seed) = (run.extent.choose(2, 100), run.extent.seed(name));
        let fixed = ["torture", "crash", "--runs", &kills, "--seed", &seed, "--dir", &folder(run, name)];
        highwater(run, &[&fixed[..], options].concat())
    })
}

/// A key of an encrypted database, for its owner alone.
fn write_key(path: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all("5a".repeat(32).as_bytes())
}

pub(super) fn power_cuts(run: &Run<'_>) -> Result<(), Failure> {
    let (cuts, seed) = (run.extent.choose(80, 10_000), run.extent.seed("power"));
    highwater(run, &["torture", "power", "--cuts", &cuts, "--seed", &seed])
}

fn mounted_power_cuts(run: &Run<'_>) -> Result<(), Failure> {
    if !tests_mount() {
        return run.say("the power of a mounted disk is not cut: that needs root, FUSE and loop devices");
    }
    let (cuts, seed, dir) = (run.extent.choose(2, 100), run.extent.seed("mounted power"), folder(run, "crash-cut"));
    let fixed = ["torture", "crash", "--cut-power", "--max-run-ms", "1000"];
    highwater(run, &[&fixed[..], &["--runs", &cuts, "--seed", &seed, "--dir", &dir]].concat())
}

pub(super) fn damage(run: &Run<'_>) -> Result<(), Failure> {
    let every = run.extent.choose(DAMAGED_BYTES_ONE_IN, 1);
    let first = run.extent.part("damaged bytes", DAMAGED_BYTES_ONE_IN).unwrap_or(0).to_string();
    let part = run.extent.part("damaged blocks", DAMAGED_BLOCKS_ONE_IN).map(|n| format!("{n}/{DAMAGED_BLOCKS_ONE_IN}"));
    let part = part.as_deref().unwrap_or("0/1");
    let databases = run.extent.part("damaged databases", MAX_PARTS).map(|n| format!("{n}/{MAX_PARTS}"));
    let databases = databases.as_deref().unwrap_or("0/1");
    let damaged = ["--every", &every, "--first", &first, "--part", part, "--databases", databases];
    highwater(run, &[&["torture", "corrupt"], &damaged[..]].concat())?;
    let (lives, seed) = (run.extent.choose(12, 2_000), run.extent.seed("damage under load"));
    highwater(run, &["torture", "corrupt", "--under-load", &lives, "--seed", &seed])
}

fn growth(run: &Run<'_>) -> Result<(), Failure> {
    highwater(run, &["torture", "growth", "--scale", &run.extent.choose(1, 4)])
}

/// The servers are there: an earlier step has seen to it.
pub(super) fn isolation(run: &Run<'_>) -> Result<(), Failure> {
    highwater(run, &["torture", "hermitage", "--subject", "highwater", "--subject", "mariadb"])?;
    let (seconds, seed) = (run.extent.choose(6, 600), run.extent.seed("isolation"));
    highwater(run, &["torture", "isolation", "--seconds", &seconds, "--seed", &seed])
}

pub(super) fn simulation(run: &Run<'_>) -> Result<(), Failure> {
    let seed = run.extent.seed("simulation");
    let simulate = |more: &[&str]| highwater(run, &[&["torture", "simulate", "--seed", &seed], more].concat());
    simulate(&["--cuts", &run.extent.choose(300, 1_000_000)])?;
    simulate(&["--databases", &run.extent.choose(12, 1000), "--lives", "3", "--twice"])?;
    simulate(&["--every-failure", "--databases", &run.extent.choose(2, 20), "--steps", "250"])
}

/// Runs a benchmark and gives its result, which must say that work was done.
fn bench(run: &Run<'_>, arguments: &[&str], name: &str) -> Result<Value, Failure> {
    let folder = folder(run, name);
    let mut command = command(run);
    command.arg("bench").args(arguments).args(["--dir", &folder, "--json", "-"]);
    let result: Value =
        serde_json::from_slice(&run.output(&mut command)?).map_err(|error| format!("no JSON on stdout: {error}"))?;
    run.say(&format!("{} transactions per second", result["tps"]))?;
    match result["transactions"].as_u64() {
        Some(transactions) if transactions > 0 => Ok(result),
        other => Err(format!("transactions: {other:?}")),
    }
}

fn folder(run: &Run<'_>, name: &str) -> String {
    run.scratch.join(name).display().to_string()
}

fn highwater(run: &Run<'_>, arguments: &[&str]) -> Result<(), Failure> {
    run.finish(command(run).args(arguments))
}

fn command(run: &Run<'_>) -> Command {
    Command::new(&run.program)
}
