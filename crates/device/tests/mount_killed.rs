//! A mount whose process is killed leaves no loop device, no mount and no folder behind. Needs what mounting needs;
//! elsewhere the child's refusal is what is tested.
#![cfg(target_os = "linux")]

use highwater_device::disk::DiskOptions;
use highwater_device::mount::{Mount, MountOptions, host};
use highwater_device::preset;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

const PLACE: &str = "HIGHWATER_TEST_MOUNT_AT";

/// The child: mounts, says so, and waits to be killed. Does nothing when run as an ordinary test.
#[test]
fn child() {
    let Ok(place) = std::env::var(PLACE) else { return };
    let config = preset::find("simple-2gb").unwrap().config().scaled_to(64 << 8);
    match Mount::new(&MountOptions::new(DiskOptions::new(config), &place)) {
        Ok(mount) => {
            std::fs::write(Path::new(&place).join("file"), vec![1; 5_000_000]).unwrap();
            println!("\nmounted {}", mount.device());
            std::thread::sleep(Duration::from_secs(60));
        }
        Err(error) => println!("\nrefused {error}"),
    }
}

#[test]
fn a_killed_mount_leaves_nothing_behind() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("mnt");
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--nocapture"]).env(PLACE, &place).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines().map(|l| l.unwrap());
    let said = lines.into_iter().find(|l| l.starts_with("mounted") || l.starts_with("refused")).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    if said.starts_with("refused") {
        assert!(std::env::var_os("HIGHWATER_TEST_MOUNTS").is_none(), "{said}");
        assert!(host::check(&["losetup", "mount", "umount", "mkfs.ext4"]).is_err(), "{said}");
        return;
    }
    let device = said.trim_start_matches("mounted /dev/").to_string();
    let gone = || {
        let mounts = std::fs::read_to_string("/proc/mounts").unwrap();
        let backing = std::fs::read_to_string(format!("/sys/block/{device}/loop/backing_file")).unwrap_or_default();
        let ours = format!("highwater-device-{}-", child.id());
        !mounts.contains(place.to_str().unwrap()) && !backing.contains(&ours) && !mounts.contains(&ours)
    };
    for _ in 0..200 {
        if gone() {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{said} is still there");
}
