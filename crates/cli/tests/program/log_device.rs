//! Redo on a folder or a block device of its own. A block device is a loop device over a file: that needs the right to
//! make one; elsewhere what is tested is that a device which is no disk is refused (the device's length and exclusive
//! use have tests of their own in `storage`).

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn highwater(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_highwater")).args(arguments).output().expect("the command starts")
}

fn bench(db: &Path, log: &Path, more: &[&str]) -> Output {
    let mut arguments = vec!["bench", "sysbench", "write_only", "--dir", text(db), "--log-dir", text(log)];
    arguments.extend(["--tables", "1", "--table-size", "500", "--events", "200", "--threads", "2"]);
    arguments.extend(["--buffer-pool-size", "4M"]);
    arguments.extend(more);
    if !more.contains(&"--log-file-size") {
        arguments.extend(["--log-file-size", "8M"]);
    }
    highwater(&arguments)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}

fn fine(output: &Output) {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn refused(output: &Output, reason: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains(reason), "{stderr}");
}

/// Loads, runs, looks and checks with the redo at `log`, of this many bytes, twice.
fn works(db: &Path, log: &Path, log_bytes: u64) {
    fine(&bench(db, log, &[]));
    fine(&bench(db, log, &["--flush-method", "fsync"]));
    assert!(!db.join("redo").exists());
    let summary = highwater(&["inspect", text(db), "--log-dir", text(log)]);
    fine(&summary);
    let ring = log_bytes - 2 * 4096;
    assert!(String::from_utf8_lossy(&summary.stdout).contains(&format!("a ring of {ring} bytes")), "{summary:?}");
    fine(&highwater(&["check", text(db), "--log-dir", text(log)]));
}

/// A loop device that vanishes with this handle, also if the process is killed.
struct Loop {
    path: PathBuf,
    _open: File,
}

impl Loop {
    fn over(file: &Path) -> Option<Loop> {
        let made = Command::new("losetup").args(["--find", "--show"]).arg(file).output().ok()?;
        let path = PathBuf::from(String::from_utf8_lossy(&made.stdout).trim());
        let open = made.status.success().then(|| File::open(&path).ok()).flatten();
        // Detached once no one has it open any more.
        Command::new("losetup").arg("-d").arg(&path).status().ok()?;
        Some(Loop { path, _open: open? })
    }
}

#[test]
fn the_redo_has_a_folder_of_its_own() {
    let folder = tempfile::tempdir().expect("a folder");
    let (db, log) = (folder.path().join("db"), folder.path().join("log"));
    works(&db, &log, 4 << 20);
    refused(&bench(&db, &db, &[]), "redo is missing");
}

#[test]
fn the_redo_is_a_block_device() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let (db, disk) = (folder.path().join("db"), folder.path().join("disk"));
    File::create(&disk).and_then(|file| file.set_len(20 << 20)).expect("a file");
    let Some(device) = Loop::over(&disk) else {
        refused(&bench(&db, Path::new("/dev/null"), &[]), "/dev/null is not a folder");
        return;
    };
    works(&db, &device.path, 8 << 20);
    let other = folder.path().join("other");
    refused(&bench(&other, &device.path, &[]), "holds something already");
    assert!(!other.join("data").exists());
    fine(&bench(&db, &device.path, &["--fresh"]));
    refused(&bench(&db, &device.path, &["--fresh", "--log-file-size", "64M"]), "the device has");
}
