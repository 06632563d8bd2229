//! Tests of `guard`. The end of the pipe is what our death looks like to the shell.

use super::*;
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// A folder of the name, in a parent that is removed afterwards.
fn folder(name: &str) -> (TempDir, PathBuf) {
    let parent = tempfile::tempdir().unwrap();
    let folder = parent.path().join(name);
    std::fs::create_dir_all(folder.join("fuse")).unwrap();
    (parent, folder)
}

fn guard(thing: Guarded, name: &Path) -> Guard {
    let mut guard = Guard::new().unwrap();
    guard.holds(thing, name).unwrap();
    guard
}

fn sleeper(guard: &mut Guard) -> Child {
    guard.command(Path::new("/bin/sleep"), None).unwrap().arg("300").spawn().unwrap()
}

fn ends(child: &mut Child, within: Duration) -> bool {
    let deadline = Instant::now() + within;
    while Instant::now() < deadline {
        if child.try_wait().unwrap().is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    false
}

#[test]
fn only_an_unexpected_end_is_cleaned_up() {
    for (thing, finished) in
        [(Guarded::FuseFolder, true), (Guarded::FuseFolder, false), (Guarded::Folder, true), (Guarded::Folder, false)]
    {
        let (_parent, folder) = folder("highwater-run");
        let mut guard = guard(thing, &folder);
        if finished {
            guard.finish()
        } else {
            guard.end()
        }
        assert_eq!(folder.exists(), finished, "{thing:?}");
    }
}

#[test]
fn what_is_gone_is_left_alone() {
    let (_parent, folder) = folder("run");
    let mut guard = guard(Guarded::FuseFolder, &folder);
    guard.gone(Guarded::FuseFolder).unwrap();
    guard.end();
    assert!(folder.exists());
}

#[test]
fn a_folder_of_another_name_is_left_alone() {
    let (_parent, folder) = folder("run");
    guard(Guarded::Folder, &folder).end();
    assert!(folder.exists());
}

#[test]
fn the_end_of_the_pipe_kills_the_server_and_removes_its_folder() {
    let (_parent, folder) = folder("highwater-run");
    let mut guard = guard(Guarded::Folder, &folder);
    let mut server = sleeper(&mut guard);
    assert!(!ends(&mut server, Duration::from_millis(300)), "the server ended by itself");
    drop(guard.child.stdin.take());
    assert!(ends(&mut server, Duration::from_secs(60)), "the server lives on");
    guard.end();
    assert!(!folder.exists());
}

#[test]
fn done_leaves_the_server_alone() {
    let (_parent, folder) = folder("highwater-run");
    let mut guard = guard(Guarded::Folder, &folder);
    let mut server = sleeper(&mut guard);
    std::thread::sleep(Duration::from_millis(200));
    guard.finish();
    assert!(!ends(&mut server, Duration::from_millis(300)));
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(folder.exists());
}
