//! Running the command, places, mounts.

use std::path::PathBuf;
use std::process::{Child, Command, Output};

pub(super) fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.args(arguments);
    command
}

/// Exit status, and everything that was said.
pub(super) fn highwater(arguments: &[&str]) -> (i32, String) {
    let Output { status, stdout, stderr } = command(arguments).output().expect("the command runs");
    let said = String::from_utf8_lossy(&stderr).into_owned() + &String::from_utf8_lossy(&stdout);
    (status.code().expect("not killed"), said)
}

#[track_caller]
pub(super) fn fine(arguments: &[&str]) -> String {
    let (status, said) = highwater(arguments);
    assert_eq!(status, 0, "{arguments:?}: {said}");
    said
}

#[track_caller]
pub(super) fn refused(arguments: &[&str], part: &str) {
    let (status, said) = highwater(arguments);
    assert!(status != 0 && said.contains(part), "{arguments:?}: {status}: {said}");
}

pub(super) struct Place {
    _folder: tempfile::TempDir,
    pub path: PathBuf,
}

impl Place {
    pub(super) fn new() -> Place {
        let folder = tempfile::tempdir().expect("a folder");
        Place { path: folder.path().to_path_buf(), _folder: folder }
    }

    pub(super) fn at(&self, name: &str) -> String {
        self.path.join(name).to_str().expect("a readable path").to_string()
    }
}

/// A TPC-C run with one warehouse; further arguments at the end.
pub(super) fn tpcc<'a>(dir: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut arguments = vec!["bench", "tpcc", "--dir", dir, "--threads", "2"];
    arguments.extend(["--buffer-pool-size", "32M", "--log-file-size", "8M"]);
    arguments.extend(more);
    arguments
}

/// A run on a small database.
pub(super) fn small<'a>(dir: &'a str, redo: &'a str) -> Vec<&'a str> {
    let run = ["bench", "ycsb", "a", "--records", "3000", "--events", "300", "--log-file-size", "4M"];
    [&run[..], &["--dir", dir, "--redo-archive", redo]].concat()
}

pub(super) struct Running(pub Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A mounted file system of a given size; gone with this handle.
pub(super) struct Mount(String);

impl Mount {
    /// A file system in memory; `None` without the right to mount, which must be there where `HIGHWATER_TEST_MOUNTS` is
    /// set.
    pub(super) fn of(size: &str, place: &str) -> Option<Mount> {
        std::fs::create_dir(place).expect("a folder");
        let size = format!("size={size}");
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "none", place]).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Mount(place.into()));
        }
        assert!(std::env::var_os("HIGHWATER_TEST_MOUNTS").is_none(), "no right to mount");
        None
    }

    /// Gives the file system another size.
    pub(super) fn resize(&self, size: &str) {
        let size = format!("remount,size={size}");
        let status = Command::new("mount").args(["-o", &size, &self.0]).status();
        assert!(status.is_ok_and(|status| status.success()), "{} cannot be mounted again", self.0);
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let _ = Command::new("umount").args(["-l", &self.0]).output();
    }
}
