//! Temporary files: they have no name and last as long as they are open, so a crash leaves nothing of them.
//!
//! Rules
//! 1. Nothing that lies in the folder is followed, opened or changed.
//! 2. Where the file system cannot create a file without a name (`O_TMPFILE`), the file has the name `temporary` for a
//!    moment. A crash in that moment leaves an empty file, which the next temporary file replaces. Anything else of
//!    that name is an error.

use super::file::{FileDevice, or_buffered};
use super::folder::failed;
use super::method::{FileRole, FlushMethod, Mode};
use super::sys;
use crate::Result;
use parking_lot::Mutex;
use std::fs::{File, OpenOptions};
use std::io::{Error, ErrorKind};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

/// Name of a temporary file until it is removed.
const TEMPORARY: &str = "temporary";

impl FileDevice {
    /// Creates a temporary file in `folder`, which the caller has locked.
    ///
    /// # Errors
    /// The operating system's answer, with the path.
    pub fn temporary(folder: &Path, method: FlushMethod) -> Result<FileDevice> {
        // Never synced, so it is no matter how its syncs are saved.
        let method = if method == FlushMethod::DirectNoFsync { FlushMethod::Direct } else { method };
        let path = folder.join(TEMPORARY);
        let (file, mode) = or_buffered(Mode::of(FileRole::Temporary, method), |mode| create(folder, &path, mode));
        let file = file.map_err(|source| failed("create", &path, source))?;
        sys::hint_lifetime(&file, FileRole::Temporary.lifetime());
        Ok(FileDevice::of(file, &path, mode))
    }
}

fn create(folder: &Path, path: &Path, mode: Mode) -> std::io::Result<File> {
    let flags = mode.open_flags() | libc::O_TMPFILE;
    match OpenOptions::new().read(true).write(true).custom_flags(flags).open(folder) {
        Err(error) if is_unknown(&error) => create_named(path, mode),
        created => created,
    }
}

/// Whether the file system or the kernel does not know `O_TMPFILE`. (A kernel that does not takes it for the opening of
/// a folder.)
fn is_unknown(error: &Error) -> bool {
    sys::is_unsupported(error) || error.kind() == ErrorKind::IsADirectory
}

fn create_named(path: &Path, mode: Mode) -> std::io::Result<File> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _name = ONE_AT_A_TIME.lock();
    remove_leftover(path)?;
    let file = OpenOptions::new().read(true).write(true).create_new(true).custom_flags(mode.open_flags()).open(path)?;
    std::fs::remove_file(path)?;
    Ok(file)
}

fn remove_leftover(path: &Path) -> std::io::Result<()> {
    match std::fs::symlink_metadata(path) {
        Ok(found) if found.is_file() && found.len() == 0 => std::fs::remove_file(path),
        Ok(_) => Err(Error::new(ErrorKind::AlreadyExists, "something else has this name: move it to another folder")),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AlignedBuf, Device, Placement};

    const METHODS: [FlushMethod; 4] =
        [FlushMethod::Fsync, FlushMethod::DSync, FlushMethod::Direct, FlushMethod::DirectNoFsync];

    fn block(fill: u8) -> AlignedBuf {
        let mut block = AlignedBuf::zeroed(4096);
        block.fill(fill);
        block
    }

    #[test]
    fn a_temporary_file_has_no_name_and_leaves_the_folder_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (name, elsewhere) = (folder.path().join(TEMPORARY), folder.path().join("elsewhere"));
        std::fs::write(&elsewhere, "of a user").unwrap();
        std::os::unix::fs::symlink(&elsewhere, &name).unwrap();
        for method in METHODS {
            let [one, other] = [(); 2].map(|()| FileDevice::temporary(folder.path(), method).unwrap());
            assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 2);
            for (device, fill) in [(&one, 1), (&other, 2)] {
                assert_eq!(device.len_bytes().unwrap(), 0);
                device.set_len_bytes(4096).unwrap();
                device.write_at(0, &block(fill), Placement::Other).unwrap();
            }
            let mut read = AlignedBuf::zeroed(4096);
            one.read_at(0, &mut read).unwrap();
            assert!(read.iter().all(|&byte| byte == 1), "{method:?}");
        }
        assert!(std::fs::symlink_metadata(&name).unwrap().is_symlink());
        assert_eq!(std::fs::read(&elsewhere).unwrap(), b"of a user");
    }

    /// Without `O_TMPFILE`.
    #[test]
    fn a_file_that_has_a_name_for_a_moment_replaces_only_a_leftover() {
        let folder = tempfile::tempdir().unwrap();
        let (name, elsewhere) = (folder.path().join(TEMPORARY), folder.path().join("elsewhere"));
        let mode = Mode::of(FileRole::Temporary, FlushMethod::Fsync);
        std::fs::write(&name, []).unwrap();
        create_named(&name, mode).unwrap();
        assert!(!name.exists());
        std::fs::write(&elsewhere, "of a user").unwrap();
        for is_link in [true, false] {
            match is_link {
                true => std::os::unix::fs::symlink(&elsewhere, &name).unwrap(),
                false => std::fs::hard_link(&elsewhere, &name).unwrap(),
            }
            let error = create_named(&name, mode).unwrap_err();
            assert!(error.to_string().contains("something else has this name"), "{error}");
            assert_eq!(std::fs::read(&name).unwrap(), b"of a user");
            std::fs::remove_file(&name).unwrap();
        }
    }

    #[test]
    fn temporary_files_of_many_threads_are_apart() {
        let folder = tempfile::tempdir().unwrap();
        let mode = Mode::of(FileRole::Temporary, FlushMethod::Fsync);
        let named = || FileDevice::of(create_named(&folder.path().join(TEMPORARY), mode).unwrap(), folder.path(), mode);
        let unnamed = || FileDevice::temporary(folder.path(), FlushMethod::Fsync).unwrap();
        let many = || -> Vec<FileDevice> { (0..100).flat_map(|_| [named(), unnamed()]).collect() };
        let made: Vec<FileDevice> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..3).map(|_| scope.spawn(many)).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        for (n, device) in made.iter().enumerate() {
            device.set_len_bytes(4096).unwrap();
            device.write_at(0, &block(n as u8), Placement::Other).unwrap();
        }
        for (n, device) in made.iter().enumerate() {
            let mut read = AlignedBuf::zeroed(4096);
            device.read_at(0, &mut read).unwrap();
            assert!(read.iter().all(|&byte| byte == n as u8), "{n}");
        }
    }
}
