//! Tests of temporary files.

use super::*;
use crate::os::sys::OpenFlags;
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
    // Where a file has the name for a moment, what has it already is an error: the test after this one.
    let is_without_name = sys::create_unnamed(folder.path(), OpenFlags::default()).is_ok();
    let others = if is_without_name { 2 } else { 1 };
    if is_without_name {
        std::os::unix::fs::symlink(&elsewhere, &name).unwrap();
    }
    for method in METHODS {
        let [one, other] = [(); 2].map(|()| FileDevice::temporary(folder.path(), method).unwrap());
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), others);
        for (device, fill) in [(&one, 1), (&other, 2)] {
            assert_eq!(device.len_bytes().unwrap(), 0);
            device.set_len_bytes(4096).unwrap();
            device.write_at(0, &block(fill), Placement::Other).unwrap();
        }
        let mut read = AlignedBuf::zeroed(4096);
        one.read_at(0, &mut read).unwrap();
        assert!(read.iter().all(|&byte| byte == 1), "{method:?}");
    }
    assert_eq!(std::fs::symlink_metadata(&name).is_ok_and(|found| found.is_symlink()), is_without_name);
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
