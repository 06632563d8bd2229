//! The archive of redo, and restores to moments after a backup.

use super::support::{Mount, Place, Running, command, fine, highwater, refused, small, tpcc};
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

/// The process is killed again and again; the archive has what was committed before, and nothing but the redo after the
/// last kill is in the ring alone.
#[test]
fn archived_redo_with_kills_restores_to_a_consistent_database() {
    let place = Place::new();
    let [db, full, redo, copy] = ["db", "full", "redo", "copy"].map(|name| place.at(name));
    let archived = ["--redo-archive", &redo];
    fine(&tpcc(&db, &[&["--load-only"], &archived[..]].concat()));
    fine(&tpcc(&db, &[&["--seconds", "2", "--backup-to", &full], &archived[..]].concat()));
    for round in 0..3 {
        let arguments = tpcc(&db, &[&["--seconds", "60"], &archived[..]].concat());
        let child = command(&arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let running = Running(child);
        let len =
            || std::fs::read_dir(&redo).map_or(0, |segments| segments.flatten().map(|entry| size_of(&entry)).sum());
        let (before, since) = (len(), Instant::now());
        while len() < before + (1 << 20) * (round + 1) {
            assert!(since.elapsed() < Duration::from_secs(300), "the archive does not grow");
            std::thread::sleep(Duration::from_millis(10));
        }
        drop(running);
    }
    // This copies what the last kill has left out.
    fine(&tpcc(&db, &[&["--events", "200"], &archived[..]].concat()));
    let said = fine(&["restore", &full, "--redo", &redo, "--verify"]);
    let number = |before: &str| -> u64 {
        let (_, behind) = said.rsplit_once(before).unwrap_or_else(|| panic!("{said}"));
        let digits: String = behind.chars().take_while(char::is_ascii_digit).collect();
        digits.parse().unwrap_or_else(|_| panic!("{said}"))
    };
    let (last, lsn) = (number("transaction "), number(", LSN "));
    for until in [format!("txn:{last}"), format!("{}", lsn - 500_000)] {
        let _ = std::fs::remove_dir_all(&copy);
        let said = fine(&["restore", &full, "--redo", &redo, "--until", &until, "--to", &copy]);
        assert_eq!(said.contains(&format!("the last commit: transaction {last}")), until.starts_with("txn"), "{said}");
        let said = fine(&tpcc(&copy, &["--events", "50"]));
        assert_eq!(said.matches(" holds ").count(), 12, "{said}");
    }
    refused(&["restore", &full, "--redo", &redo, "--until", "noon", "--to", &copy], "neither an LSN");
    refused(&["restore", &full, "--redo", &full, "--to", &place.at("x")], "is not an archive of redo");
    refused(&["restore", &full, "--redo", &place.at("none"), "--to", &place.at("x")], "none");
    refused(
        &["restore", &full, "--redo", &redo, "--until", "2001-01-01", "--to", &place.at("x")],
        "to moments from LSN",
    );
    refused(&["restore", &full, "--redo", &redo, "--until", "2999-01-01", "--to", &place.at("x")], "the redo ends at");
    refused(&tpcc(&copy, &["--events", "5", "--redo-archive", &redo]), "name another folder");
    assert!(!Path::new(&place.at("x")).exists());
}

fn size_of(entry: &std::fs::DirEntry) -> u64 {
    entry.metadata().map_or(0, |found| found.len())
}

/// What a killed restore leaves is no database to any command, and the next restore begins again.
#[test]
fn a_killed_restore_is_taken_for_nothing_and_can_be_repeated() {
    let place = Place::new();
    let [db, full, redo, copy] = ["db", "full", "redo", "copy"].map(|name| place.at(name));
    fine(&small(&db, &redo));
    fine(&["backup", &db, &full]);
    fine(&small(&db, &redo));
    let restore = ["restore", &full, "--redo", &redo, "--to", &copy];
    fine(&restore);
    let work = Path::new(&copy).join("restoring");
    // How long the folder of the work is there, at most: a restore that was done sooner makes it shorter.
    let mut lasts = Duration::from_secs(1);
    let mut cuts = 0;
    for round in 0..40 {
        if cuts == 16 {
            break;
        }
        let _ = std::fs::remove_dir_all(&copy);
        let child = command(&restore).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
        let mut running = Running(child);
        while !work.exists() && running.0.try_wait().expect("a child of ours").is_none() {
            std::thread::yield_now();
        }
        std::thread::sleep(lasts * (round % 8) / 8);
        drop(running);
        if !work.exists() {
            lasts = lasts * 3 / 4;
            continue;
        }
        cuts += 1;
        if !Path::new(&copy).join("data").exists() {
            refused(&["check", &copy], "was cut short");
            refused(&tpcc(&copy, &["--events", "1"]), "was cut short");
            fine(&restore);
        }
        fine(&["check", &copy]);
        // A kill after the last move leaves the folder they were moved from, with its marker at most.
        let left = std::fs::read_dir(&work).map_or(0, |entries| entries.flatten().filter(|e| size_of(e) > 0).count());
        assert_eq!(left, 0);
        let _ = std::fs::remove_dir_all(&work);
        assert_eq!(std::fs::read_dir(&copy).expect("a folder").flatten().count(), 3);
    }
    assert!(cuts > 7, "{cuts} of 40 kills met the restore at work");
    // Another file in the folder is not removed.
    std::fs::remove_dir_all(&copy).expect("it is there");
    std::fs::create_dir_all(&work).expect("a folder");
    std::fs::write(Path::new(&copy).join("mine"), "text").expect("a file");
    refused(&restore, "is not empty");
    assert!(Path::new(&copy).join("mine").exists());
}

/// An archive that cannot be written is reported, has a gap in the end, and stops no commit.
#[test]
fn a_full_disk_under_the_archive_stops_no_thread_and_is_reported() {
    let place = Place::new();
    let [db, small, full] = ["db", "small", "full"].map(|name| place.at(name));
    let Some(mount) = Mount::of("3M", &small) else { return };
    let redo = place.at("small/redo");
    fine(&tpcc(&db, &["--load-only"]));
    fine(&["backup", &db, &full]);
    let (_, first) = highwater(&tpcc(&db, &["--events", "6000", "--redo-archive", &redo]));
    assert!(first.contains("Warning: the archive") && first.contains("No space left"), "{first}");
    assert_eq!(first.matches(" holds ").count(), 12, "{first}");
    fine(&["check", &db]);
    fine(&["restore", &full, "--to", &place.at("copy")]);
    // With room again it continues, after the gap, which began before if the disk still took the head of a segment: the
    // ring no longer has all that was left out.
    mount.resize("64M");
    let (_, said) = highwater(&tpcc(&db, &["--events", "50", "--redo-archive", &redo]));
    assert!(said.contains("has a gap") || first.contains("redo_archive_gaps:"), "{first}\n{said}");
    refused(&["restore", &full, "--redo", &redo, "--verify"], "lacks the redo from LSN");
}
