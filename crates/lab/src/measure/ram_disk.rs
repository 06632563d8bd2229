//! A file system in memory (tmpfs), for files of a server whose I/O is not measured.
//!
//! Rules
//! 1. It is mounted at the caller's path, and unmounted when it is closed or dropped, or by the guard if this process
//!    dies. Only root can mount.
//! 2. Its size is at most [`MAX_BYTES`].

use highwater_bench::{Error, Result};
use highwater_device::guard::{Guard, Guarded};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The size of the ramdisk of the `insert-buffer` document.
const MAX_BYTES: u64 = 2 << 30;

/// A mounted file system in memory.
pub(super) struct RamDisk {
    path: PathBuf,
    guard: Guard,
    mounted: bool,
}

impl RamDisk {
    /// Mounts one on `path`, which is made.
    pub(super) fn new(path: &Path) -> Result<RamDisk> {
        let failed = |e| Error::file(path, e);
        std::fs::create_dir_all(path).map_err(failed)?;
        let mut guard = Guard::new().map_err(|e| Error::file("/bin/sh", e))?;
        guard.holds(Guarded::Mount, path).map_err(|e| Error::file("the pipe to the clean-up shell", e))?;
        let mut disk = RamDisk { path: path.into(), guard, mounted: false };
        run(Command::new("mount").args(["-t", "tmpfs", "-o", &format!("size={MAX_BYTES}"), "highwater"]).arg(path))?;
        disk.mounted = true;
        Ok(disk)
    }

    /// The mount point.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Unmounts it; what was in it is gone.
    pub(super) fn close(&mut self) -> Result<()> {
        if self.mounted {
            run(Command::new("umount").arg(&self.path))?;
            self.mounted = false;
        }
        Ok(())
    }
}

impl Drop for RamDisk {
    fn drop(&mut self) {
        // Without `finish` the clean-up shell tries again.
        if self.close().is_ok() {
            self.guard.finish();
            let _ = std::fs::remove_dir(&self.path);
        }
    }
}

fn run(command: &mut Command) -> Result<()> {
    let program = PathBuf::from(command.get_program());
    let output = command.output().map_err(|e| Error::file(&program, e))?;
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(Error::file(&program, std::io::Error::other(said.trim().to_string())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_in_memory_is_gone_afterwards() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("ram");
        let disk = match RamDisk::new(&path) {
            Ok(disk) => disk,
            // Only root can mount.
            Err(error) => return assert!(error.to_string().contains("mount"), "{error}"),
        };
        std::fs::write(disk.path().join("file"), "x").unwrap();
        let mounts = || std::fs::read_to_string("/proc/mounts").unwrap();
        let line = format!("highwater {} tmpfs", path.display());
        assert!(mounts().contains(&line));
        drop(disk);
        assert!(!mounts().contains(&line) && !path.exists());
    }
}
