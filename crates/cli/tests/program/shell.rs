//! The shell as a process: scripts, single commands, errors, transactions; and `top` on a process with metrics.

use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Command, Output, Stdio};

fn highwater(arguments: &[&str], input: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    // A command that does not read its input may have ended.
    let _ = child.stdin.take().expect("stdin").write_all(input.as_bytes());
    child.wait_with_output().expect("the command ends")
}

/// Status, stdout and stderr.
fn shell(dir: &str, more: &[&str], script: &str) -> (i32, String, String) {
    let output = highwater(&[&["shell", dir], more].concat(), script);
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (output.status.code().expect("not killed"), text(&output.stdout), text(&output.stderr))
}

/// A database with one table, imported from stdin.
fn world(folder: &Path) -> String {
    let dir = folder.join("db").to_str().expect("a readable path").to_string();
    let csv = "id,name,area,note\n1,Lund,25.75,\n2,Ystad,6.10,\"it's, by the sea\"\n3,Lomma,5.50,\n";
    let arguments = ["import", &dir, "city", "-", "--primary-key", "id", "--column", "note:text(40)?", "--index"];
    let imported = highwater(&[&arguments[..], &["by_name=name desc covering area", "--null", "-"]].concat(), csv);
    assert_eq!(imported.status.code(), Some(0), "{}", String::from_utf8_lossy(&imported.stderr));
    dir
}

#[test]
fn rows_are_shown_in_each_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = world(folder.path());
    let (status, out, err) = shell(&dir, &["-c", "tables", "-c", "schema city"], "");
    assert_eq!((status, &err[..]), (0, ""));
    for line in [
        "table  columns  indexes  rows (about)",
        "city         4        1             3",
        "table city",
        "  area  decimal(18,2)",
        "  note  text(40)?",
        "  primary key (id)",
        "  index by_name (name desc) covering (area)",
    ] {
        assert!(out.lines().any(|found| found == line), "{line:?} is not in\n{out}");
    }
    let (_, out, _) = shell(&dir, &[], "scan city by by_name select id name; count city from 2\n");
    assert_eq!(out, "id  name\n--  -----\n 2  Ystad\n 1  Lund\n 3  Lomma\nrows\n----\n   2\n");
    let (_, out, _) = shell(&dir, &["--format", "csv", "-c", "scan city by by_name starts 'L' rev limit 1"], "");
    assert_eq!(out, "id,name,area,note\n3,Lomma,5.50,\\\n");
    let (_, out, _) = shell(&dir, &["--read-only"], "format json -- from here on\nget city 2\n");
    assert_eq!(out, "{\"id\": 2, \"name\": \"Ystad\", \"area\": 6.10, \"note\": \"it's, by the sea\"}\n");
}

#[test]
fn scripts_change_rows_and_transactions_are_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = world(folder.path());
    let script = "begin\ninsert city id=4 name='Åhus' area=1.5\nput city id=1 area=26\ndelete city 3\ncommit\n\
                  begin; delete city 1; rollback\nput city id=5 name=Kivik area=1 note=null\n";
    let (status, _, err) = shell(&dir, &[], script);
    assert_eq!((status, &err[..]), (0, ""));
    let (_, out, _) = shell(&dir, &["--format", "csv", "-c", "scan city select id name area"], "");
    assert_eq!(out, "id,name,area\n1,Lund,26.00\n2,Ystad,6.10\n4,Åhus,1.50\n5,Kivik,1.00\n");

    // A script ends at its first error, and says what becomes of the transaction.
    let script = "begin\ndelete city 1\ninsert city id=2 name=Again area=1\ndelete city 2\n";
    let (status, _, err) = shell(&dir, &[], script);
    assert_eq!(status, 1);
    assert!(err.contains("error: line 3: duplicate key in index PRIMARY of table city"), "{err}");
    assert!(err.contains("the open transaction was rolled back"), "{err}");
    // With --keep-going the transaction continues.
    let (status, _, err) = shell(&dir, &["--keep-going"], &format!("{script}commit\n"));
    assert_eq!((status, err.lines().count()), (1, 1), "{err}");
    let (_, out, _) = shell(&dir, &["--format", "csv", "-c", "scan city select id"], "");
    assert_eq!(out, "id\n4\n5\n");
}

#[test]
fn tables_are_created_and_dropped() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = world(folder.path());
    let script = "create order id u64 auto, customer u64, total decimal(10,2)?, state text(10) default new, \
                  primary key id, unique index by_customer customer state\n\
                  insert order customer=7\nschema order\nscan order\n";
    let (status, out, err) = shell(&dir, &[], script);
    assert_eq!((status, &err[..]), (0, "inserted number 1\n"));
    for line in [
        "table order",
        "  total     decimal(10,2)?",
        "  state     text(10)        default new",
        "  unique index by_customer (customer, state)",
        " 1         7  NULL   new",
    ] {
        assert!(out.lines().any(|found| found == line), "{line:?} is not in\n{out}");
    }
    let (status, out, _) = shell(&dir, &["--format", "csv"], "drop order\ntables\n");
    assert_eq!((status, out.lines().filter(|line| line.starts_with("order")).count()), (0, 0), "{out}");
    for (command, reason) in [
        ("create city id u64, primary key id", "there is a table city already"),
        ("create town id u64, name txt, primary key id", "column name: \"txt\" is not a type"),
        ("create town id u64, primary key ids", "there is no column ids"),
        ("create town id u64, primary key id, index by_name name", "index by_name: there is no column name"),
        ("drop town", "there is no table town"),
        ("begin; drop city", "a table is dropped outside of transactions"),
    ] {
        let (status, _, err) = shell(&dir, &["-c", command], "");
        assert!(status == 1 && err.starts_with("error: ") && err.contains(reason), "{command}: {err}");
    }
    let (status, _, err) = shell(&dir, &["--read-only", "-c", "drop city"], "");
    assert!(status == 1 && err.contains("opened to be read only"), "{err}");
}

#[test]
fn wrong_commands_say_what_is_wrong() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = world(folder.path());
    for (command, reason) in [
        ("select 1", "column 1: there is no command select; `help` lists them"),
        ("get town 1", "there is no table town"),
        ("get city one", "column id: \"one\" is not of type i64"),
        ("get city 1 2", "\"2\" is one more than the key (id) has"),
        ("scan city by area", "table city has no index area"),
        ("scan city by by_name from Lund 2", "\"2\" is one more than the key (name desc) has"),
        ("insert city id=9", "column name is never NULL: name it"),
        ("insert city id=9 name=null area=1", "column name:"),
        ("insert city id=9 name='x", "the quote at column 23 is never closed"),
        ("insert city id=9 town=x", "table city has no column town"),
        ("put city name=x", "put names the primary key (id); insert need not"),
        ("delete city 77", "there is no such row"),
        ("commit", "no transaction is open"),
    ] {
        let (status, out, err) = shell(&dir, &["-c", command], "");
        assert_eq!((status, &out[..]), (1, ""), "{command}: {err}");
        assert!(err.starts_with("error: ") && err.contains(reason), "{command}: {err}");
    }
    let (status, _, err) = shell(&dir, &["--read-only", "-c", "delete city 1"], "");
    assert!(status == 1 && err.contains("opened to be read only"), "{err}");
    let missing = folder.path().join("none");
    let (status, _, err) = shell(missing.to_str().expect("a readable path"), &["-c", "tables"], "");
    assert!(status == 2 && err.contains("none"), "{err}");
    assert!(!missing.exists());
}

#[test]
fn help_is_there_for_each_command() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = world(folder.path());
    let (_, all, _) = shell(&dir, &["-c", "help"], "");
    for command in [
        "tables", "schema", "get", "scan", "count", "insert", "put", "delete", "create", "drop", "begin", "commit",
        "rollback",
    ] {
        assert!(all.lines().any(|line| line.trim_start().starts_with(command)), "{command} is not in\n{all}");
        let (status, out, _) = shell(&dir, &["-c", &format!("help {command}")], "");
        assert!(status == 0 && out.contains("\nExample: "), "{command}: {out}");
    }
}

/// A shell that has a database open until its input ends.
struct Holding(std::process::Child);

impl Holding {
    fn open(dir: &str, more: &[&str]) -> Holding {
        let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
        command.args(["shell", dir]).args(more).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut holding = Holding(command.spawn().expect("the command starts"));
        holding.run("tables");
        holding
    }

    /// Carries out a command, to its end.
    fn run(&mut self, command: &str) {
        let (input, output) = (self.0.stdin.as_mut().expect("stdin"), self.0.stdout.as_mut().expect("stdout"));
        writeln!(input, "{command}; help exit").expect("it reads");
        let mut lines = BufReader::new(output).lines().map(|line| line.expect("it writes"));
        assert!(lines.any(|line| line == "Example: exit"), "it has ended");
    }

    fn close(mut self) {
        drop(self.0.stdin.take());
        assert!(self.0.wait().expect("it ends").success());
    }
}

#[test]
fn a_database_of_another_process_is_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = world(folder.path());
    let commands = [
        "tables",
        "schema",
        "schema city",
        "get city 2",
        "get city 77",
        "scan city",
        "scan city by by_name after Lund rev select name id",
        "scan city by by_name starts L limit 1",
        "scan city from 2 before 3; count city to 2; count city by by_name prefix Lund",
        "scan city by area",
        "scan town",
        "scan city select town",
        "get city one",
    ];
    let said = |form: &str, command: &str| shell(&dir, &["--format", form, "-c", command], "");
    let each = || ["table", "csv", "json"].into_iter().flat_map(|form| commands.map(|command| (form, command)));
    let alone: Vec<_> = each().map(|(form, command)| said(form, command)).collect();
    let exported = highwater(&["export", &dir, "city"], "").stdout;

    let mut other = Holding::open(&dir, &[]);
    let process = format!("read-only: process {} (", other.0.id());
    for ((form, command), alone) in each().zip(alone) {
        assert_eq!(said(form, command), alone, "{command}");
    }
    let changes = ["insert city id=9", "put city id=1", "delete city 1", "create t id u64", "drop city", "begin"];
    for command in changes.into_iter().chain(["commit", "rollback"]) {
        let (status, _, err) = said("csv", command);
        assert!(status == 1 && err.contains(&process) && err.contains("has this database open"), "{command}: {err}");
    }
    // What the other process has not committed is not seen.
    other.run("begin; delete city 1");
    assert_eq!(said("csv", "count city").1, "rows\n3\n");
    assert_eq!(highwater(&["export", &dir, "city"], "").stdout, exported);
    other.run("commit");
    assert_eq!(shell(&dir, &["--read-only", "--format", "csv", "-c", "count city"], "").1, "rows\n2\n");
    let missing = highwater(&["export", &dir, "town"], "");
    assert!(!missing.status.success() && String::from_utf8_lossy(&missing.stderr).contains("no table town"));

    let (dump, copy) = (folder.path().join("dump"), folder.path().join("copy"));
    let [dump, copy] = [&dump, &copy].map(|path| path.to_str().expect("a readable path"));
    let dumped = highwater(&["dump", &dir, dump], "");
    assert!(String::from_utf8_lossy(&dumped.stderr).contains("dumped 2 rows of 1 table, "), "{dumped:?}");
    assert!(highwater(&["load", dump, copy], "").status.success());
    let (_, live, _) = said("csv", "scan city");
    assert_eq!(shell(copy, &["--format", "csv", "-c", "scan city"], "").1, live);
    other.close();

    let other = Holding::open(&dir, &["--max-readers", "0"]);
    let (status, _, err) = shell(&dir, &["-c", "tables"], "");
    assert!(status == 2 && err.contains("is in use"), "{err}");
    other.close();
}

#[test]
fn top_shows_the_process_of_a_database_in_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("db").to_str().expect("a readable path").to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.args(["bench", "sysbench", "read_write", "--tables", "1", "--table-size", "2000", "--threads", "2"]);
    command.args(["--buffer-pool-size", "4M", "--log-file-size", "8M", "--metrics-listen", "127.0.0.1:0"]);
    command.args(["--seconds", "120", "--dir", &dir]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let mut told = BufReader::new(child.stderr.take().expect("stderr")).lines().map_while(Result::ok);
    let line = told.find(|line| line.starts_with("Metrics at http://")).expect("a line that says where");
    let address = line.trim_start_matches("Metrics at ").to_string();
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines().map_while(Result::ok);
    lines.find(|line| line.starts_with("[ 1s ]")).expect("an interval");
    let (status, out, _) = shell(&dir, &["--format", "csv", "-c", "count sbtest1 to 1000"], "");
    let page = highwater(&["top", &address, "--once", "--interval", "0.5"], "");
    child.kill().expect("still running");
    child.wait().expect("ended");

    assert!(status == 0 && out.starts_with("rows\n"), "{out}");
    let page = String::from_utf8_lossy(&page.stdout).into_owned();
    for title in ["Transactions", "Buffer pool", "Redo log", "Flushing", "Waits", "Purge"] {
        assert!(page.lines().any(|line| line == title), "{title} is not in\n{page}");
    }
    let commits = page.lines().find_map(|line| line.trim_start().strip_prefix("commits ")).expect("commits");
    assert_ne!(commits.split_whitespace().next(), Some("0"), "{page}");
    assert!(page.contains("4 MiB") || page.contains("4096 KiB"), "{page}");
    // No process listens there any more.
    let refused = highwater(&["top", &address, "--once"], "");
    assert_eq!(refused.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&refused.stderr).contains("refused"));
}
