//! `auto` on devices that behave differently: a disk with an arm, flash, the files of this machine; and where it can be
//! seen.

use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn highwater(arguments: &[&str]) -> Value {
    let output = Command::new(env!("CARGO_BIN_EXE_highwater")).args(arguments).output().expect("the command starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn bench(more: &[&str]) -> Value {
    let load =
        ["bench", "sysbench", "write_only", "--tables", "1", "--table-size", "50", "--events", "3", "--json", "-"];
    let sizes = ["--buffer-pool-size", "8M", "--log-file-size", "4M"];
    highwater(&[&load[..], &sizes, more].concat())["config"].clone()
}

/// What a benchmark writes to stderr.
fn said_at_opening(more: &[&str]) -> String {
    let line = ["bench", "sysbench", "write_only", "--tables", "1", "--table-size", "50", "--events", "3"];
    let output =
        Command::new(env!("CARGO_BIN_EXE_highwater")).args(line).args(more).output().expect("the command starts");
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn on_device(preset: &str) -> Value {
    bench(&["--device", preset, "--capacity", "256M", "--age", "none"])
}

/// The probe that is kept for good: other tests use the disk, and each opening measures again until rounds agree.
fn settled(more: &[&str]) -> Value {
    let probes = || std::iter::repeat_with(|| bench(more)["probe"].clone());
    let is_settled = |probe: &Value| probe.as_str().is_some_and(|text| !text.contains("measures again"));
    probes().take(3).find(is_settled).expect("the third measurement is kept in any case")
}

#[test]
fn a_disk_flushes_neighbors_and_flash_does_not() {
    let disk = on_device("wd10ezex-1tb");
    assert!(["1", "2"].contains(&disk["flush_neighbors_chosen"].as_str().expect("a choice")), "{disk}");
    for flash in ["samsung-850-pro-256gb", "datacenter-nvme"] {
        let config = on_device(flash);
        assert_eq!(config["flush_neighbors_chosen"], "0", "{config}");
        assert!(config["probe"].as_str().is_some_and(|text| text.contains(flash)), "{config}");
    }
}

#[test]
fn what_is_asked_for_is_not_measured() {
    let config = bench(&["--device", "wd10ezex-1tb", "--capacity", "256M", "--age", "none", "--flush-neighbors", "1"]);
    assert_eq!((&config["flush_neighbors_chosen"], &config["probe"]), (&Value::Null, &Value::Null), "{config}");
    let config = bench(&["--device", "wd10ezex-1tb", "--capacity", "256M", "--age", "none", "--clock", "virtual"]);
    assert_eq!(config["probe"], Value::Null, "a disk whose requests take no time is memory: {config}");
}

#[test]
fn the_probe_is_kept_and_shown_by_inspect() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let db = folder.path().join("db");
    let dir = db.to_str().expect("a readable path");
    let first = settled(&["--dir", dir]);
    assert!(first.as_str().is_some_and(|text| text.contains("measured")), "{first}");
    let lengths = |db: &Path| std::fs::metadata(db.join("doublewrite")).expect("a file").len();
    assert!(lengths(&db) < 16 << 20, "the lent space was released");
    assert_eq!(bench(&["--dir", dir])["probe"], first, "opening again measures nothing");
    let short = said_at_opening(&["--dir", dir]);
    let short = short.lines().next().unwrap_or("?");
    assert!(short.starts_with("flush_neighbors ") && short.contains(": auto, measured 20"), "{short}");
    assert!(short.len() < 90, "the evidence is in the result: {short}");
    assert!(said_at_opening(&["--dir", dir, "--flush-neighbors", "1"]).starts_with("flush_neighbors 1\n"));
    let again = bench(&["--dir", dir, "--probe-again", "on"])["probe"].clone();
    assert!(again.is_string() && again != first, "measured again, in microseconds: {again}");
    let again = settled(&["--dir", dir]);
    assert_eq!(bench(&["--dir", dir])["probe"], again, "the new measurement is kept");
    let first = again;
    let summary = highwater(&["inspect", dir, "--json", "-"]);
    let probe = &summary["flush"]["probe"];
    assert!(first.as_str().is_some_and(|text| text.contains(probe["device"].as_str().unwrap_or("?"))), "{probe}");
    for field in ["contiguous_us", "scattered_us", "sync_us", "write_depth", "taken_unix_s"] {
        assert!(probe[field].as_u64().is_some_and(|n| n > 0), "{field}: {probe}");
    }
    assert_eq!(probe["flush_method"], "O_DIRECT");
    assert_eq!(summary["flush"]["defaults"]["flush_neighbors"], "auto");
    let other = bench(&["--dir", dir, "--flush-method", "fsync"])["probe"].clone();
    let text = Command::new(env!("CARGO_BIN_EXE_highwater")).args(["inspect", dir]).output().expect("inspect");
    let text = String::from_utf8_lossy(&text.stdout).into_owned();
    let line = text.lines().find(|line| line.contains("flush_method O_DIRECT,")).expect("the defaults");
    assert!(line.starts_with("default flush options") && line.contains("are not stored"), "{line}");
    assert_ne!(other, first, "another flush method is measured again");
}
