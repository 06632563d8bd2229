//! Every flush method on the file systems that are said to be supported, and databases that were copied there: sparse,
//! by reflink, opened with another method. A file system is made in a loop device's file: that needs the right to
//! mount, and the file system's own program.

use highwater_storage::{FileDevice, FileRole, FlushMethod};
use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

const METHODS: [&str; 4] = ["O_DIRECT_NO_FSYNC", "O_DIRECT", "fsync", "O_DSYNC"];

fn run(program: &str, arguments: &[&str]) -> Option<Output> {
    Command::new(program).args(arguments).output().ok()
}

fn works(program: &str, arguments: &[&str]) -> bool {
    run(program, arguments).is_some_and(|output| output.status.success())
}

#[track_caller]
fn highwater(arguments: &[&str]) {
    let output = run(env!("CARGO_BIN_EXE_highwater"), arguments).expect("the command runs");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {said}{}", String::from_utf8_lossy(&output.stdout));
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}

/// A mounted file system; gone with this handle.
struct Mount(PathBuf);

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = run("umount", &["-l", text(&self.0)]);
    }
}

/// Makes and mounts a file system; `None` where that cannot be done, which must not be where HIGHWATER_TEST_MOUNTS is
/// set.
fn mounted(folder: &Path, kind: &str) -> Option<Mount> {
    let place = folder.join(kind);
    std::fs::create_dir(&place).expect("a folder");
    let is_done = match kind {
        "tmpfs" => works("mount", &["-t", "tmpfs", "-o", "size=200M", "none", text(&place)]),
        "overlay" => {
            let [lower, upper, work] = ["lower", "upper", "work"].map(|name| folder.join(name));
            for dir in [&lower, &upper, &work] {
                std::fs::create_dir(dir).expect("a folder");
            }
            let layers = format!("lowerdir={},upperdir={},workdir={}", text(&lower), text(&upper), text(&work));
            works("mount", &["-t", "overlay", "-o", &layers, "overlay", text(&place)])
        }
        _ => {
            let image = folder.join("image");
            File::create(&image).and_then(|file| file.set_len(400 << 20)).expect("an image");
            let program = format!("mkfs.{kind}");
            let made = run(&program, &["-q", text(&image)]);
            made.is_some_and(|made| made.status.success())
                && works("mount", &["-o", "loop", text(&image), text(&place)])
        }
    };
    assert!(is_done || std::env::var_os("HIGHWATER_TEST_MOUNTS").is_none(), "{kind} cannot be mounted");
    is_done.then_some(Mount(place))
}

/// Creates with each method, then continues with the next ones in copies made by `cp`.
fn databases_work_and_travel(place: &Path, csv: &Path) {
    for (n, made_with) in METHODS.iter().enumerate() {
        let [db, sparse, clone] = ["made", "sparse", "clone"].map(|name| place.join(format!("{name}-{n}")));
        let import = |dir: &Path, table: &str, method: &str, more: &[&str]| {
            let import = ["import", text(dir), table, text(csv), "--primary-key", "id", "--flush-method", method];
            highwater(&[&import[..], more].concat());
        };
        import(&db, "t", made_with, &["--log-file-size", "4M", "--buffer-pool-size", "2M"]);
        assert!(works("cp", &["-a", "--sparse=always", text(&db), text(&sparse)]));
        // A reflink where the file system has them.
        assert!(works("cp", &["-a", "--reflink=auto", text(&db), text(&clone)]));
        for (copy, later) in [(&sparse, 1), (&clone, 2)] {
            import(copy, "more", METHODS[(n + later) % METHODS.len()], &[]);
            highwater(&["check", text(copy)]);
        }
        highwater(&["check", text(&db)]);
        for dir in [db, sparse, clone] {
            std::fs::remove_dir_all(dir).expect("a folder");
        }
    }
}

/// Whether a file that was made without syncs is written without them.
fn overwrites_in_place(place: &Path) -> bool {
    let open =
        || FileDevice::open(&place.join("file"), FileRole::Data, FlushMethod::DirectNoFsync, true).expect("a file");
    let made = open();
    highwater_storage::Device::set_len_bytes(&made, 1 << 20).expect("room");
    highwater_storage::Device::sync(&made).expect("synced");
    drop(made);
    open().writes_unsynced()
}

#[test]
fn every_flush_method_works_on_every_file_system_that_is_supported() {
    let kinds =
        [("ext4", Some(true)), ("xfs", Some(true)), ("btrfs", Some(false)), ("tmpfs", Some(false)), ("overlay", None)];
    for (kind, unsynced) in kinds {
        let folder = tempfile::tempdir().expect("a folder");
        let csv = folder.path().join("rows.csv");
        let rows: String = (0..200).map(|n| format!("{n},row {n}\n")).collect();
        std::fs::write(&csv, format!("id,name\n{rows}")).expect("a file");
        let Some(mount) = mounted(folder.path(), kind) else { continue };
        let found = overwrites_in_place(&mount.0);
        assert_eq!(found, unsynced.unwrap_or(found), "{kind}");
        databases_work_and_travel(&mount.0, &csv);
    }
}
