//! Backups through the command: beside a load, killed in the middle, onto a full disk.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.args(arguments);
    command
}

/// Exit status, and everything that was said.
fn highwater(arguments: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } = command(arguments).output().expect("the command runs");
    let said = String::from_utf8_lossy(&stderr).into_owned() + &String::from_utf8_lossy(&stdout);
    (status.code().expect("not killed"), said)
}

#[track_caller]
fn fine(arguments: &[&str]) -> String {
    let (status, said) = highwater(arguments);
    assert_eq!(status, 0, "{arguments:?}: {said}");
    said
}

#[track_caller]
fn refused(arguments: &[&str], part: &str) {
    let (status, said) = highwater(arguments);
    assert!(status != 0 && said.contains(part), "{arguments:?}: {status}: {said}");
}

struct Place {
    _folder: tempfile::TempDir,
    path: PathBuf,
}

impl Place {
    fn new() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        Place { path: folder.path().to_path_buf(), _folder: folder }
    }

    fn at(&self, name: &str) -> String {
        self.path.join(name).to_str().expect("a readable path").to_string()
    }
}

/// A TPC-C run with one warehouse; further arguments at the end.
fn tpcc<'a>(dir: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["bench", "tpcc", "--dir", dir, "--threads", "2"];
    arguments.extend(["--buffer-pool-size", "32M", "--log-file-size", "8M"]);
    arguments.extend(more);
    arguments
}

/// The twelve conditions hold in the copy and the copy goes on working.
#[test]
fn a_backup_beside_tpcc_restores_to_a_consistent_database() {
    for store in ["in-place", "out-of-place"] {
        let place = Place::new();
        let [db, full, more, copy] = ["db", "full", "more", "copy"].map(|name| place.at(name));
        let said = fine(&tpcc(&db, &["--seconds", "4", "--page-store", store, "--backup-to", &full]));
        assert!(said.contains("full backup"), "{said}");
        fine(&tpcc(&db, &["--events", "300"]));
        let said = fine(&["backup", &db, &more, "--base", &full]);
        assert!(said.contains("incremental backup"), "{said}");
        assert_eq!(fine(&["restore", &full, &more, "--verify"]).lines().count(), 1);
        for chain in [vec![&full], vec![&full, &more]] {
            let _ = std::fs::remove_dir_all(&copy);
            let mut arguments = vec!["restore", "--to", &copy];
            arguments.extend(chain.iter().map(|dir| dir.as_str()));
            fine(&arguments);
            fine(&["check", &copy]);
            let said = fine(&tpcc(&copy, &["--events", "50"]));
            assert!(said.contains("Using the existing data"), "{said}");
            assert_eq!(said.matches(" holds ").count(), 12, "{said}");
        }
        refused(&["restore", &more, "--to", &place.at("x")], "is missing before it");
        refused(&["restore", &full, "--to", &copy], "is not empty");
        refused(&["backup", &db, &place.at("db/inside")], "lies in the database's folder");
        refused(&["backup", &copy, &place.at("y"), "--base", &full], "take a full backup");
    }
}

struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn wait_for(path: &Path, bytes: u64) {
    let since = Instant::now();
    while std::fs::metadata(path).map_or(0, |found| found.len()) < bytes {
        assert!(since.elapsed() < Duration::from_secs(60), "{} does not grow", path.display());
        std::thread::sleep(Duration::from_millis(10));
    }
}

#[test]
fn a_kill_during_a_backup_leaves_the_source_whole_and_no_backup() {
    let place = Place::new();
    let [db, dest, copy] = ["db", "full", "copy"].map(|name| place.at(name));
    fine(&tpcc(&db, &["--load-only"]));
    for bytes in [1, 1 << 20, 3 << 20] {
        let _ = std::fs::remove_dir_all(&dest);
        let arguments = tpcc(&db, &["--seconds", "60", "--backup-to", &dest, "--backup-rate", "2M"]);
        let child = command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let running = Running(child);
        wait_for(&place.path.join("full/pages"), bytes);
        drop(running);
        refused(&["restore", &dest, "--to", &copy], "is no complete backup");
        if bytes == 1 {
            // This recovers the database before it is refused.
            refused(&["backup", &db, &dest], "is not empty");
        }
        assert!(!Path::new(&copy).exists());
        fine(&["check", &db]);
    }
    // The killed database is recovered by the backup.
    let said = fine(&["backup", &db, &place.at("again")]);
    assert!(said.contains("recovered first"), "{said}");
    fine(&["restore", &place.at("again"), "--to", &copy]);
    let said = fine(&tpcc(&copy, &["--events", "50"]));
    assert_eq!(said.matches(" holds ").count(), 12, "{said}");
}

/// A mounted file system of a given size; gone with this handle.
struct Mount(String);

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l", &self.0]).output();
    }
}

/// Needs the right to mount, which must be there where `HIGHWATER_TEST_MOUNTS` is set.
#[test]
fn a_full_disk_ends_the_backup_or_the_restore_and_nothing_else() {
    let place = Place::new();
    let [db, small, full] = ["db", "small", "full"].map(|name| place.at(name));
    std::fs::create_dir(&small).expect("a folder");
    let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", "size=2M", "none", &small]).output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        assert!(std::env::var_os("HIGHWATER_TEST_MOUNTS").is_none(), "no right to mount");
        return;
    }
    let _mount = Mount(small.clone());
    fine(&tpcc(&db, &["--load-only"]));
    let dest = place.at("small/full");
    refused(&["backup", &db, &dest], "No space left");
    assert!(!Path::new(&dest).exists(), "its room is free again");
    fine(&["backup", &db, &full]);
    refused(&["restore", &full, "--to", &place.at("small/copy")], "space");
    fine(&["check", &db]);
}
