//! Power cuts under a backup's folder and under a restored database: an emulated SSD with a volatile write cache,
//! mounted with ext4. Needs root and FUSE, which must be there where `HIGHWATER_TEST_MOUNTS` is set.

use super::support::{Place, Running, command, fine, highwater, refused, small};
use highwater_device::disk::DiskOptions;
use highwater_device::mount::{FileSystemKind, JournalMode, Mount, MountOptions};
use highwater_device::preset;
use highwater_device::promises::Promises;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

const CUTS: u32 = 5;

fn disk(place: &Path) -> Option<Mount> {
    let mut config = preset::find("simple-2gb").expect("a preset").config().scaled_to(((1u64 << 30) / 4096) as u32);
    config.set_promises(Promises::default());
    let mut options = MountOptions::new(DiskOptions { crashes: true, ..DiskOptions::new(config) }, place);
    options.file_system = FileSystemKind::Ext4 { journal_mode: JournalMode::Ordered, journal_bytes: Some(16 << 20) };
    options.classify = false;
    let mounted = Mount::new(&options).ok();
    assert!(mounted.is_some() || std::env::var_os("HIGHWATER_TEST_MOUNTS").is_none(), "no right to mount");
    mounted
}

/// Runs the command and cuts the power `after` some time; returns whether it had ended well before.
fn cut_during(disk: &mut Mount, arguments: &[&str], after: Duration, seed: u64) -> bool {
    let child = command(arguments).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it starts");
    let mut running = Running(child);
    std::thread::sleep(after);
    disk.power_cut(seed).expect("the power is cut");
    let since = Instant::now();
    let status = loop {
        if let Some(status) = running.0.try_wait().expect("its status") {
            break status;
        }
        assert!(since.elapsed() < Duration::from_secs(300), "{arguments:?} continues without its disk");
        std::thread::sleep(Duration::from_millis(10));
    };
    drop(running);
    disk.power_cycle().expect("the power comes back");
    status.success()
}

#[test]
fn a_power_cut_under_a_restore_or_a_backup_is_never_taken_for_success() {
    let place = Place::new();
    let [db, full, redo, mounted] = ["db", "full", "redo", "mounted"].map(|name| place.at(name));
    std::fs::create_dir(&mounted).expect("a folder");
    let Some(mut disk) = disk(Path::new(&mounted)) else { return };
    fine(&small(&db, &redo));
    fine(&["backup", &db, &full]);
    fine(&small(&db, &redo));
    let [copy, dest] = ["mounted/copy", "mounted/full"].map(|name| place.at(name));
    let restore = ["restore", &full, "--redo", &redo, "--to", &copy];
    let backup = ["backup", &db, &dest];
    let time = |arguments: &[&str], made: &str| {
        let started = Instant::now();
        fine(arguments);
        std::fs::remove_dir_all(made).expect("it was made");
        started.elapsed()
    };
    let (restore_time, backup_time) = (time(&restore, &copy), time(&backup, &dest));
    for cut in 1..=CUTS {
        let is_done = cut_during(&mut disk, &restore, restore_time * cut / CUTS, cut.into());
        if Path::new(&copy).join("data").exists() {
            fine(&["check", &copy]);
        } else {
            assert!(!is_done, "it said that it was done");
            let (status, said) = highwater(&["check", &copy]);
            assert!(status != 0, "{said}");
            fine(&restore);
            fine(&["check", &copy]);
        }
        std::fs::remove_dir_all(&copy).expect("it was made");
        let is_done = cut_during(&mut disk, &backup, backup_time * cut / CUTS, cut.into());
        if Path::new(&dest).join("backup.json").exists() {
            fine(&["restore", &dest, "--verify"]);
        } else {
            assert!(!is_done, "it said that it was done");
            refused(&["restore", &dest, "--verify"], "not a complete backup");
        }
        let _ = std::fs::remove_dir_all(&dest);
    }
}
