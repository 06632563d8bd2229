//! Data on a block device: `data` in the folder is a link to it. The device is a loop device over a file: that needs
//! the right to make one; elsewhere what is tested is that a link to nothing is refused.

use std::fs::File;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn highwater(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_highwater")).args(arguments).output().expect("the command starts")
}

fn bench(db: &Path, more: &[&str]) -> Output {
    bench_of(db, "2000", more)
}

fn bench_of(db: &Path, rows: &str, more: &[&str]) -> Output {
    let mut arguments = vec!["bench", "sysbench", "write_only", "--dir", text(db), "--tables", "1", "--threads", "2"];
    arguments.extend(["--table-size", rows, "--events", "500", "--buffer-pool-size", "4M", "--log-file-size", "8M"]);
    arguments.extend(["--page-size", "4K", "--segment-size", "256K"]);
    arguments.extend(more);
    highwater(&arguments)
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}

fn fine(output: &Output) -> String {
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(output: &Output, reason: &str) {
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success() && stderr.contains(reason), "{stderr}");
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

/// A folder whose `data` is a link to `device`.
fn folder_with(device: &Path, folder: &Path, name: &str) -> PathBuf {
    let db = folder.join(name);
    std::fs::create_dir(&db).and_then(|()| symlink(device, db.join("data"))).expect("a folder");
    db
}

const OUT_OF_PLACE: [&str; 4] = ["--page-store", "out-of-place", "--page-compression", "lz4"];

#[test]
fn data_is_a_block_device() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let folder = folder.path();
    let disk = folder.join("disk");
    File::create(&disk).and_then(|file| file.set_len(24 << 20)).expect("a file");
    let nothing = folder_with(&folder.join("nothing"), folder, "nowhere");
    refused(&bench(&nothing, &OUT_OF_PLACE), "follow the link");
    assert!(!folder.join("nothing").exists(), "no file takes the device's place");
    let Some(device) = Loop::over(&disk) else { return };
    let db = folder_with(&device.path, folder, "db");
    refused(&bench(&db, &["--page-store", "in-place"]), "only with --page-store out-of-place");
    fine(&bench(&db, &OUT_OF_PLACE));
    fine(&bench(&db, &["--flush-method", "fsync"]));
    assert!(db.join("data").is_symlink());
    fine(&highwater(&["check", text(&db)]));
    fine(&highwater(&["check", "--salvage", text(&folder.join("rescued")), text(&db)]));
    let segments = fine(&highwater(&["inspect", text(&db), "segments"]));
    assert!(segments.contains("segment"), "{segments}");
    fine(&highwater(&["inspect", text(&db)]));
    // A second database is not made over it.
    let other = folder_with(&device.path, folder, "other");
    refused(&bench(&other, &OUT_OF_PLACE), "holds something already");
    // What does not fit is a full disk, and the database is whole after it.
    refused(&bench_of(&db, "200000", &[&OUT_OF_PLACE[..], &["--fresh"]].concat()), "has no free space");
    fine(&highwater(&["check", text(&db)]));
    assert!(db.join("data").is_symlink());
}
