//! Where the `highwater` command writes, and where it does not: files asked for by name, pipes, devices, a database's
//! own files.

use std::path::Path;
use std::process::{Command, Output, Stdio};

fn highwater(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.args(arguments);
    command
}

fn run(arguments: &[&str]) -> (i32, String) {
    told(highwater(arguments).output().expect("the command starts"))
}

fn told(output: Output) -> (i32, String) {
    (output.status.code().expect("not killed"), String::from_utf8_lossy(&output.stderr).into_owned())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("a readable path")
}

const CSV: &str = "id,name\r\n1,Ada\r\n2,Grace\r\n";

/// A folder with a database `db` that has a table `user`.
fn imported() -> (tempfile::TempDir, String) {
    let folder = tempfile::tempdir().expect("a folder");
    let (db, csv) = (folder.path().join("db"), folder.path().join("in.csv"));
    std::fs::write(&csv, CSV).expect("a file");
    let (status, message) = run(&["import", text(&db), "user", text(&csv), "--primary-key", "id"]);
    assert_eq!(status, 0, "{message}");
    let db = text(&db).to_string();
    (folder, db)
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let mut names: Vec<_> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

#[test]
fn a_databases_files_are_no_place_for_results() {
    let (folder, db) = imported();
    let (soft, hard) = (folder.path().join("soft"), folder.path().join("hard"));
    std::os::unix::fs::symlink(format!("{db}/redo"), &soft).expect("a link");
    std::fs::hard_link(format!("{db}/data"), &hard).expect("a link");
    let all = names(folder.path());
    for file in [&*format!("{db}/data"), &format!("{db}/redo"), &format!("{db}/doublewrite"), text(&soft), text(&hard)]
    {
        for arguments in [
            vec!["export", &db, "user", file],
            vec!["check", &db, "--json", file],
            vec!["inspect", &db, "--json", file],
            vec!["device", "list", "--json", file],
            vec!["bench", "user-table", "--device", "simple-2gb", "--bytes", "1K", "--report", file],
        ] {
            let (status, message) = run(&arguments);
            let precise = message.contains(file) && message.contains("is a file of a database and is not overwritten");
            assert!(status != 0 && precise, "{arguments:?}: {status} {message}");
        }
    }
    let (status, message) = run(&["export", &db, "user", &db]);
    assert!(status == 1 && message.contains("is a folder"), "{message}");
    assert_eq!(names(folder.path()), all);
    let (status, message) = run(&["check", &db]);
    assert_eq!(status, 0, "{message}");
}

#[test]
fn an_export_replaces_a_file_whole_and_leaves_its_neighbours_alone() {
    let (folder, db) = imported();
    let (out, part) = (folder.path().join("out.csv"), folder.path().join("out.csv.part"));
    std::fs::write(&out, "old").expect("a file");
    std::fs::write(&part, "somebody's").expect("a file");
    let all = names(folder.path());
    let (status, _) = run(&["export", &db, "nobody", text(&out)]);
    assert_eq!((status, std::fs::read_to_string(&out).expect("a file")), (1, "old".to_string()));
    let (status, message) = run(&["export", &db, "user", text(&out)]);
    assert_eq!((status, std::fs::read_to_string(&out).expect("a file")), (0, CSV.to_string()), "{message}");
    assert_eq!(std::fs::read_to_string(&part).expect("a file"), "somebody's");
    assert_eq!(names(folder.path()), all);
}

#[test]
fn pipes_and_devices_are_written_not_replaced() {
    let (folder, db) = imported();
    let (pipe, device) = (folder.path().join("pipe"), folder.path().join("null"));
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let reader = {
        let pipe = pipe.clone();
        std::thread::spawn(move || std::fs::read_to_string(pipe).expect("a pipe"))
    };
    assert_eq!(run(&["export", &db, "user", text(&pipe)]).0, 0);
    assert_eq!(reader.join().expect("a reader"), CSV);
    let exported = highwater(&["export", &db, "user", "/dev/stdout"]).output().expect("the command starts");
    assert_eq!(String::from_utf8_lossy(&exported.stdout), CSV);
    // Only the superuser can make a device.
    if Command::new("mknod").arg(&device).args(["c", "1", "3"]).output().expect("mknod").status.success() {
        for arguments in [vec!["export", &db, "user", text(&device)], vec!["check", &db, "--json", text(&device)]] {
            let (status, message) = run(&arguments);
            assert!(status == 0 && !device.symlink_metadata().expect("a device").is_file(), "{message}");
        }
    }
}

#[test]
fn a_full_disk_is_reported_wherever_the_output_goes() {
    let (_folder, db) = imported();
    for arguments in [
        vec!["check", &db],
        vec!["check", &db, "--json", "-"],
        vec!["inspect", &db, "tables"],
        vec!["device", "list"],
        vec!["lab", "list"],
        vec!["export", &db, "user"],
    ] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").expect("/dev/full");
        let (status, message) = told(highwater(&arguments).stdout(full).output().expect("the command starts"));
        assert!(status == 1 && message.contains("No space left on device"), "{arguments:?}: {status} {message}");
    }
    for arguments in [vec!["export", &db, "user", "/dev/full"], vec!["check", &db, "--json", "/dev/full"]] {
        let (status, message) = run(&arguments);
        let precise = message.contains("/dev/full: No space left on device");
        assert!(status == 1 && precise, "{arguments:?}: {status} {message}");
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let (_folder, db) = imported();
    let shell = vec!["shell", &db, "-c", "scan user", "-c", "tables"];
    for arguments in
        [vec!["check", &db], vec!["inspect", &db, "tables"], vec!["export", &db, "user"], vec!["changes", &db], shell]
    {
        let mut child =
            highwater(&arguments).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("the command starts");
        drop(child.stdout.take());
        let (status, message) = told(child.wait_with_output().expect("the command ends"));
        assert_eq!(status, 0, "{arguments:?}: {message}");
    }
}

#[test]
fn a_benchmark_that_fails_leaves_no_result() {
    let (folder, db) = imported();
    let (json, report) = (folder.path().join("json"), folder.path().join("report.html"));
    let all = names(folder.path());
    let line = ["bench", "user-table", "--dir", &db, "--bytes", "1K", "--json", text(&json), "--report", text(&report)];
    assert_eq!(run(&line).0, 2);
    assert_eq!(names(folder.path()), all);
}
