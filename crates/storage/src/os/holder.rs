//! The process that holds the lock of a folder, from Linux's list of locks. Other systems have no such list.

use crate::error::Holder;
use std::fs::Metadata;

/// The process that has locked the folder. (A file system that gives a folder another device number than its locks,
/// such as Btrfs, leaves it unknown; so does a process that is not visible from here.)
#[cfg(target_os = "linux")]
pub(super) fn of(folder: &Metadata) -> Holder {
    use std::os::unix::fs::MetadataExt;
    let find = || {
        let locks = std::fs::read_to_string("/proc/locks").ok()?;
        holder(&locks, (libc::major(folder.dev()), libc::minor(folder.dev())), folder.ino())
    };
    match find() {
        Some(id) if id == std::process::id() => Holder::ThisProcess,
        Some(id) => match std::fs::read_to_string(format!("/proc/{id}/comm")) {
            Ok(program) => Holder::Process { id, program: program.trim_end().escape_debug().to_string() },
            Err(_) => Holder::Unknown,
        },
        None => Holder::Unknown,
    }
}

/// The process that has locked the folder: not known.
#[cfg(not(target_os = "linux"))]
pub(super) fn of(_: &Metadata) -> Holder {
    Holder::Unknown
}

/// The process that has locked the inode with `flock`, in the lines of `/proc/locks`.
#[cfg(target_os = "linux")]
fn holder(locks: &str, device: (u32, u32), inode: u64) -> Option<u32> {
    let wanted = format!("{:02x}:{:02x}:{inode}", device.0, device.1);
    locks.lines().find_map(|line| match line.split_whitespace().collect::<Vec<_>>()[..] {
        // A process that waits for a lock has an arrow before the kind.
        [_, "FLOCK", _, _, id, place, ..] if place == wanted => id.parse().ok(),
        _ => None,
    })
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_holder_is_read_from_the_kernels_list() {
        let locks = "1: POSIX  ADVISORY  WRITE 77 fd:01:42 0 EOF\n2: -> FLOCK  ADVISORY  WRITE 5 fd:01:42 0 EOF\n\
                     3: FLOCK  ADVISORY  WRITE 4711 fd:01:42 0 EOF\n4: FLOCK  ADVISORY  READ  9 00:1c:43 0 EOF\n";
        assert_eq!(holder(locks, (0xfd, 1), 42), Some(4711));
        assert_eq!(holder(locks, (0, 0x1c), 43), Some(9));
        for (device, inode) in [((0xfd, 1), 43), ((0xfd, 2), 42), ((0xfd, 1), 4)] {
            assert_eq!(holder(locks, device, inode), None);
        }
        assert_eq!(holder("", (0xfd, 1), 42), None);
    }

    #[test]
    fn a_lock_of_this_process_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let _lock = super::super::lock_alone(folder.path()).unwrap();
        let error = super::super::lock_shared(folder.path()).unwrap_err().to_string();
        assert!(error.contains("is in use: another handle of this process has it open"), "{error}");
    }
}
