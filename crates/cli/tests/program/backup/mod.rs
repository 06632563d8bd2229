//! Backups with the command: under load, killed in the middle, onto a full disk.

mod archive;
mod power;
mod support;

use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};
use support::{Mount, Place, Running, command, fine, refused, tpcc};

/// The twelve conditions hold in the copy and the copy still works.
#[test]
fn a_backup_with_tpcc_restores_to_a_consistent_database() {
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
        refused(&["backup", &db, &place.at("db/inside")], "is in the database's folder");
        refused(&["backup", &copy, &place.at("y"), "--base", &full], "take a full backup");
    }
}

fn wait_for(path: &Path, bytes: u64) {
    let since = Instant::now();
    while std::fs::metadata(path).map_or(0, |found| found.len()) < bytes {
        assert!(since.elapsed() < Duration::from_secs(300), "{} does not grow", path.display());
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
        refused(&["restore", &dest, "--to", &copy], "is not a complete backup");
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

#[test]
fn a_full_disk_ends_the_backup_or_the_restore_and_nothing_else() {
    let place = Place::new();
    let [db, small, full] = ["db", "small", "full"].map(|name| place.at(name));
    let Some(_mount) = Mount::of("2M", &small) else { return };
    fine(&tpcc(&db, &["--load-only"]));
    let dest = place.at("small/full");
    refused(&["backup", &db, &dest], "No space left");
    assert!(!Path::new(&dest).exists(), "its room is free again");
    fine(&["backup", &db, &full]);
    refused(&["restore", &full, "--to", &place.at("small/copy")], "space");
    fine(&["check", &db]);
}
