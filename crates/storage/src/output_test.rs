//! What an output file does to the place it goes to.

use super::*;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::process::Command;

fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

fn refusal(path: &Path) -> String {
    let created = OutputFile::create(path).unwrap_err().to_string();
    assert_eq!(OutputFile::stream(path).unwrap_err().to_string(), created);
    assert_eq!(OutputFile::check(path).unwrap_err().to_string(), created);
    created
}

#[test]
fn a_file_is_replaced_whole_or_stays_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("out"), folder.path().join("link"));
    std::fs::write(folder.path().join("out.part"), "somebody's").unwrap();
    OutputFile::write(&path, b"one").unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();
    std::os::unix::fs::symlink("out", &link).unwrap();

    let mut dropped = OutputFile::create(&link).unwrap();
    dropped.write_all(b"half").unwrap();
    assert_eq!(std::fs::read(&path).unwrap(), b"one");
    drop(dropped);
    OutputFile::check(&path).unwrap();
    assert_eq!(
        (std::fs::read(&path).unwrap(), names(folder.path())),
        (b"one".to_vec(), vec!["link".into(), "out".into(), "out.part".into()])
    );

    OutputFile::write(&link, b"two").unwrap();
    assert!(link.is_symlink());
    assert_eq!(std::fs::read(&path).unwrap(), b"two");
    assert_eq!(path.metadata().unwrap().mode() & 0o777, 0o640);
    assert_eq!(std::fs::read(folder.path().join("out.part")).unwrap(), b"somebody's");
    assert_eq!(names(folder.path()).len(), 3);
    // A link that leads to nothing yet.
    std::os::unix::fs::symlink("later", folder.path().join("dangling")).unwrap();
    OutputFile::write(&folder.path().join("dangling"), b"three").unwrap();
    assert_eq!(std::fs::read(folder.path().join("later")).unwrap(), b"three");
}

#[test]
fn pipes_and_devices_are_written_in_place() {
    let folder = tempfile::tempdir().unwrap();
    let (pipe, device) = (folder.path().join("pipe"), folder.path().join("null"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || std::fs::read(pipe).unwrap())
    };
    OutputFile::check(&pipe).unwrap();
    OutputFile::write(&pipe, b"through").unwrap();
    assert_eq!(reader.join().unwrap(), b"through");
    assert!(pipe.metadata().unwrap().file_type().is_fifo());
    // Only the superuser can make one.
    if Command::new("mknod").arg(&device).args(["c", "1", "3"]).output().unwrap().status.success() {
        OutputFile::write(&device, b"nothing").unwrap();
        assert!(device.metadata().unwrap().file_type().is_char_device());
    }
    let full = OutputFile::write(Path::new("/dev/full"), b"too much").unwrap_err();
    assert_eq!(full.kind(), ErrorKind::StorageFull);
}

#[test]
fn what_an_open_descriptor_leads_to_is_added_to() {
    let mut file = tempfile::NamedTempFile::new().unwrap();
    file.write_all(b"before ").unwrap();
    let name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(file.as_file()));
    OutputFile::write(Path::new(&name), b"after").unwrap();
    assert_eq!(std::fs::read(file.path()).unwrap(), b"before after");
}

#[test]
fn files_of_a_database_and_folders_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let place = |name: &str| folder.path().join(name);
    let mut first = [0; 4096];
    first[mark::DATA_AT..mark::DATA_AT + 8].copy_from_slice(&mark::DATA);
    std::fs::create_dir(place("db")).unwrap();
    std::fs::write(place("db/data"), first).unwrap();
    std::os::unix::fs::symlink(place("db/data"), place("soft")).unwrap();
    std::fs::hard_link(place("db/data"), place("hard")).unwrap();
    // Missing or emptied: still the database's.
    std::fs::write(place("db/doublewrite"), "").unwrap();
    for name in ["db/data", "soft", "hard", "db/doublewrite", "db/redo", "db/../db/data"] {
        assert!(refusal(&place(name)).contains("is a file of a database"), "{name}");
    }
    for name in ["db", "db/", "none/"] {
        assert!(refusal(&place(name)).contains("is a folder"), "{name}");
    }
    assert_eq!(std::fs::read(place("db/data")).unwrap(), first);
    // Only the name is the same; or it is in the same folder.
    std::fs::create_dir(place("mine")).unwrap();
    std::fs::write(place("mine/redo"), "mine").unwrap();
    for name in ["mine/data", "mine/redo", "db/export.csv"] {
        OutputFile::write(&place(name), b"x").unwrap();
    }
    assert_eq!(OutputFile::create(&place("none/out")).unwrap_err().kind(), ErrorKind::NotFound);
}
