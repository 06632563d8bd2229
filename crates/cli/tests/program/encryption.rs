//! Encrypted databases as processes use them: every command that opens one or reads its files takes the key.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const SECRET: &str = "Rosebud-was-a-sledge";

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).to_str().expect("a readable path").to_string()
    }

    fn key(&self, name: &str, byte: u8) -> String {
        let path = self.path(name);
        std::fs::write(&path, [byte; 32]).expect("a key file");
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("permissions");
        path
    }
}

fn highwater(arguments: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.args(arguments).stdin(Stdio::null()).output().expect("the command starts")
}

fn fine(arguments: &[&str]) -> String {
    let output = highwater(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {stderr}");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn refused(arguments: &[&str], reason: &str) {
    let output = highwater(arguments);
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {stderr}");
    assert!(stderr.contains(reason) && stderr.lines().count() == 1, "{arguments:?}: {stderr}");
}

fn files(dir: &str) -> Vec<(PathBuf, Vec<u8>)> {
    let entries = std::fs::read_dir(dir).expect("a folder").map(|entry| entry.expect("an entry").path());
    let mut files: Vec<_> = entries.map(|path| (path.clone(), std::fs::read(path).expect("a file"))).collect();
    files.sort();
    files
}

/// A database with a table of 500 rows.
fn import(place: &Place, dir: &str, more: &[&str]) {
    let csv = place.path("rows.csv");
    let rows: String = (0..500).map(|n| format!("{n},{SECRET} {n}\n")).collect();
    std::fs::write(&csv, format!("id,name\n{rows}")).expect("a file");
    let arguments = ["import", dir, "city", &csv, "--primary-key", "id", "--index", "by_name=name"];
    fine(&[&arguments[..], more].concat());
}

#[test]
fn every_command_takes_the_key_and_refuses_to_go_on_without_it() {
    let place = Place::new();
    let (dir, key, other) = (place.path("db"), place.key("key", 1), place.key("other", 2));
    import(&place, &dir, &["--key-file", &key]);
    let before = files(&dir);
    let is_hidden = |bytes: &[u8]| !bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
    assert!(before.len() == 4 && before.iter().all(|(_, bytes)| is_hidden(bytes)));
    let (out, dump, again) = (place.path("out"), place.path("dump"), place.path("again"));
    let commands: [&[&str]; 10] = [
        &["check", &dir],
        &["inspect", &dir],
        &["inspect", &dir, "tables"],
        &["inspect", &dir, "log"],
        &["inspect", &dir, "page", "0"],
        &["inspect", &dir, "lists"],
        &["export", &dir, "city"],
        &["shell", &dir, "--read-only", "-c", "tables"],
        &["prepared", &dir],
        &["check", &dir, "--salvage", &out],
    ];
    for command in commands {
        refused(command, "is encrypted: its key is needed (--key-file)");
        refused(&[command, &["--key-file", &other]].concat(), "is encrypted with another key");
    }
    assert_eq!(files(&dir), before, "nothing was written");
    for command in commands {
        fine(&[command, &["--key-file", &key]].concat());
    }
    assert!(files(&out).len() == 4 && files(&out).iter().all(|(_, bytes)| is_hidden(bytes)), "what was salvaged");
    assert!(fine(&["export", &dir, "city", "--key-file", &key]).contains(SECRET));
    fine(&["compact", &dir, "--key-file", &key]);
    fine(&["dump", &dir, &dump, "--key-file", &key]);
    fine(&["load", &dump, &again, "--key-file", &other]);
    assert!(fine(&["export", &again, "city", "--key-file", &other]).contains(SECRET));
    assert!(files(&again).iter().all(|(_, bytes)| is_hidden(bytes)));
}

#[test]
fn a_key_is_changed_and_a_plain_database_has_none() {
    let place = Place::new();
    let (dir, plain) = (place.path("db"), place.path("plain"));
    let (old, new) = (place.key("old", 1), place.key("new", 2));
    import(&place, &dir, &["--key-file", &old]);
    import(&place, &plain, &[]);
    let third = place.key("third", 3);
    refused(&["rotate-key", &dir, "--key-file", &new, "--new-key-file", &third], "is encrypted with another key");
    fine(&["rotate-key", &dir, "--key-file", &old, "--new-key-file", &new]);
    refused(&["check", &dir, "--key-file", &old], "another key");
    assert!(fine(&["check", &dir, "--key-file", &new]).contains("sound"));
    refused(&["rotate-key", &plain, "--key-file", &old, "--new-key-file", &new], "is not encrypted");
    refused(&["check", &plain, "--key-file", &old], "is not encrypted, but a key was given");
    // A key file that others may read, and one that holds no key.
    std::fs::set_permissions(Path::new(&new), std::fs::Permissions::from_mode(0o644)).expect("permissions");
    refused(&["check", &dir, "--key-file", &new], "others than its owner may use it");
    refused(&["check", &dir, "--key-file", &place.path("rows.csv")], "key file");
    refused(&["check", &dir, "--key-file", "/nowhere"], "key file /nowhere: No such file");
    // A backup of the plain one becomes an encrypted database.
    let (backup, copy) = (place.path("backup"), place.path("copy"));
    fine(&["backup", &plain, &backup]);
    fine(&["restore", &backup, "--to", &copy, "--key-file", &old]);
    assert!(fine(&["check", &copy, "--key-file", &old]).contains("sound"));
    // And a backup of that is encrypted.
    let (hidden, again) = (place.path("hidden"), place.path("again"));
    fine(&["backup", &copy, &hidden, "--key-file", &old]);
    let is_hidden = |bytes: &[u8]| !bytes.windows(SECRET.len()).any(|part| part == SECRET.as_bytes());
    assert!(files(&hidden).len() == 4 && files(&hidden).iter().all(|(_, bytes)| is_hidden(bytes)));
    refused(&["restore", &hidden, "--to", &again], "is encrypted: its key is needed (--key-file)");
    refused(&["restore", &hidden, "--verify"], "is encrypted: its key is needed (--key-file)");
    refused(&["restore", &hidden, "--to", &again, "--key-file", &third], "is encrypted with another key");
    fine(&["restore", &hidden, "--verify", "--key-file", &old]);
    fine(&["rotate-key", &hidden, "--key-file", &old, "--new-key-file", &third]);
    fine(&["restore", &hidden, "--to", &again, "--key-file", &third]);
    assert!(fine(&["export", &again, "city", "--key-file", &third]).contains(SECRET));
}
