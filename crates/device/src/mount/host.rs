//! The requirements of the mount: root, FUSE, and the programs that make loop devices and file systems.

use crate::error::{DeviceError, Result};
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

/// An error that says what is missing, if the host cannot mount.
pub fn check(programs: &[&str]) -> Result<()> {
    missing(is_root(), Path::new("/dev"), programs).map_or(Ok(()), |what| Err(DeviceError::Host(what)))
}

/// The first missing requirement, as text. `root`: the process runs as root; `nodes`: the folder of the system's device
/// nodes.
fn missing(root: bool, nodes: &Path, programs: &[&str]) -> Option<String> {
    if !root {
        return Some("mounting needs root, because it uses loop devices and mounts a file system".into());
    }
    if !nodes.join("fuse").exists() {
        return Some(format!("{}/fuse is missing: the kernel has no FUSE (try: modprobe fuse)", nodes.display()));
    }
    if !nodes.join("loop-control").exists() {
        let nodes = nodes.display();
        return Some(format!("{nodes}/loop-control is missing: the kernel has no loop devices (try: modprobe loop)"));
    }
    let program = programs.iter().find(|p| !is_installed(p))?;
    Some(format!("the program {program} is not installed (packages util-linux and e2fsprogs have it)"))
}

/// Whether the process runs as root.
pub fn is_root() -> bool {
    std::fs::metadata("/proc/self").is_ok_and(|m| m.uid() == 0)
}

/// Refuses a mount point that is in use: a second file system there would hide the first, and unmounting by path would
/// unmount the wrong one. A folder that does not exist yet is free.
pub fn is_free(mountpoint: &Path) -> Result<()> {
    let device = |path: &Path| std::fs::metadata(path).map(|m| m.dev());
    match (device(mountpoint), device(&mountpoint.join(".."))) {
        (Ok(own), Ok(parent)) if own != parent => {
            let place = mountpoint.display();
            Err(DeviceError::Host(format!("{place} is in use: a file system is mounted there; name another folder")))
        }
        _ => Ok(()),
    }
}

/// Whether a block device is mounted anywhere.
pub fn is_mounted(device: &str) -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    mounts.lines().any(|line| line.split(' ').next() == Some(device))
}

/// Refuses a mount point at which another file system than that of `device` is on top: unmounting by path would unmount
/// that one.
pub fn is_on_top(mountpoint: &Path, device: &str) -> Result<()> {
    match (std::fs::metadata(mountpoint), std::fs::metadata(device)) {
        (Ok(seen), Ok(ours)) if seen.dev() != ours.rdev() => {
            let place = mountpoint.display();
            let what =
                format!("another file system is mounted over the one of {device} at {place}; unmount that first");
            Err(DeviceError::Host(what))
        }
        _ => Ok(()),
    }
}

/// Folders of system programs, which a user's PATH may lack.
const SYSTEM_FOLDERS: &str = "/usr/local/sbin:/usr/sbin:/sbin:/usr/local/bin:/usr/bin:/bin";

fn search_path() -> String {
    format!("{}:{SYSTEM_FOLDERS}", std::env::var("PATH").unwrap_or_default())
}

/// Whether a program can be found.
pub fn is_installed(program: &str) -> bool {
    search_path().split(':').filter(|f| !f.is_empty()).any(|folder| Path::new(folder).join(program).is_file())
}

/// Runs a program; returns its output, or an error with its messages.
pub fn run(program: &str, args: &[&str]) -> Result<String> {
    let mut command = Command::new(program);
    command.args(args).env("PATH", search_path()).stdin(Stdio::null());
    let output = command.output().map_err(|e| DeviceError::io(format!("running {program}"), e))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        let said = said.trim().replace('\n', "; ");
        return Err(DeviceError::Host(format!("{program} {} failed ({}): {said}", args.join(" "), output.status)));
    }
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_string())
}

/// Retries for a while, because a file system may stay busy for a moment after its programs have ended.
pub fn retry(mut act: impl FnMut() -> Result<String>) -> Result<String> {
    for _ in 0..30 {
        if let Ok(output) = act() {
            return Ok(output);
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    act()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_answer_or_explain() {
        assert_eq!(run("echo", &["a", "b"]).unwrap(), "a b");
        let error = run("ls", &["/no/such/folder"]).unwrap_err().to_string();
        assert!(error.contains("/no/such/folder"), "{error}");
        assert!(run("no-such-program", &[]).unwrap_err().to_string().contains("no-such-program"));
        assert!(is_installed("sh") && !is_installed("no-such-program"));
    }

    #[test]
    fn a_place_is_free_unless_something_is_mounted_there() {
        let folder = tempfile::tempdir().unwrap();
        is_free(folder.path()).unwrap();
        is_free(&folder.path().join("not yet")).unwrap();
        let error = is_free(Path::new("/proc")).unwrap_err().to_string();
        assert!(error.contains("/proc is in use"), "{error}");
    }

    #[test]
    fn each_thing_missing_is_named() {
        let nodes = tempfile::tempdir().unwrap();
        let says = |root: bool, programs: &[&str]| missing(root, nodes.path(), programs).unwrap_or_default();
        assert!(says(false, &[]).contains("root"));
        assert!(says(true, &[]).contains("no FUSE"));
        std::fs::write(nodes.path().join("fuse"), "").unwrap();
        assert!(says(true, &[]).contains("no loop devices"));
        std::fs::write(nodes.path().join("loop-control"), "").unwrap();
        assert!(says(true, &["sh", "no-such-program"]).contains("no-such-program"));
        assert_eq!(says(true, &["sh"]), "");
    }
}
