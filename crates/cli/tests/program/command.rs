//! The `highwater` command as a process: exit statuses, what goes where, what is left behind.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn highwater(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_highwater")).args(arguments).output().expect("the command starts")
}

fn status(output: &Output) -> i32 {
    output.status.code().expect("not killed")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A small sysbench run; further arguments at the end.
fn sysbench<'a>(dir: &'a Path, profile: &'a str, more: &[&'a str]) -> Output {
    let dir = dir.to_str().expect("a readable path");
    let mut arguments =
        vec!["bench", "sysbench", profile, "--dir", dir, "--table-size", "500", "--tables", "2", "--threads", "2"];
    arguments.extend(["--events", "200", "--buffer-pool-size", "8M", "--log-file-size", "8M"]);
    arguments.extend(more);
    highwater(&arguments)
}

#[test]
fn json_on_stdout_is_all_that_is_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = sysbench(&folder.path().join("db"), "read_write", &["--json", "-"]);
    assert_eq!(status(&output), 0, "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!(result["transactions"], 200);
    assert_eq!(result["workload"], "sysbench oltp_read_write");
    for field in ["elapsed_s", "tps", "errors"] {
        assert!(result[field].is_number(), "{field}");
    }
    for pointer in ["/latency_us/p50", "/latency_us/max", "/pages/flushed_single_page", "/bytes_written/redo"] {
        assert!(result.pointer(pointer).is_some_and(Value::is_number), "{pointer}");
    }
    assert_eq!(result["config"]["buffer_pool_size"], (8 << 20).to_string());
    assert!(result["config"]["durability"].as_str().is_some_and(|text| text.contains("synced")));
}

#[test]
fn data_are_kept_and_used_again_or_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = folder.path().join("db");
    let report = folder.path().join("report.html");
    assert_eq!(status(&sysbench(&db, "write_only", &[])), 0);
    let again = sysbench(&db, "read_only", &["--report", report.to_str().expect("a readable path")]);
    assert_eq!(status(&again), 0, "{}", stderr(&again));
    assert!(stderr(&again).contains("Using the existing data"), "{}", stderr(&again));
    assert!(std::fs::read_to_string(report).expect("a report").starts_with("<!DOCTYPE html>"));

    let other = sysbench(&db, "read_only", &["--table-size", "600"]);
    assert_eq!(status(&other), 2, "clap refuses a repeated option");
    let other = highwater(&["bench", "ycsb", "--dir", db.to_str().expect("a readable path"), "--events", "10"]);
    assert_eq!(status(&other), 2);
    assert!(stderr(&other).contains("workload=sysbench"), "{}", stderr(&other));

    let fresh = sysbench(&db, "delete", &["--fresh"]);
    assert_eq!(status(&fresh), 0, "{}", stderr(&fresh));
    let spoiled = sysbench(&db, "read_only", &[]);
    assert!(status(&spoiled) == 2 && stderr(&spoiled).contains("spoiled_by"), "{}", stderr(&spoiled));
}

#[test]
fn the_configuration_is_the_one_in_force_and_what_was_fixed_is_not_asked_otherwise() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = folder.path().join("db");
    let dir = db.to_str().expect("a readable path");
    let run = |more: &[&str]| {
        let line = ["bench", "sysbench", "read_only", "--dir", dir, "--table-size", "100", "--events", "5"];
        highwater(&[&line[..], &["--json", "-"], more].concat())
    };
    let created = run(&["--page-size", "4K", "--log-file-size", "4194305", "--buffer-pool-size", "1050000"]);
    assert_eq!(status(&created), 0, "{}", stderr(&created));
    let again = run(&["--buffer-pool-size", "1M", "--lru-scan-depth", "1000000", "--log-file-size", "4194305"]);
    assert_eq!(status(&again), 0, "{}", stderr(&again));
    let config = |output: &Output| serde_json::from_slice::<Value>(&output.stdout).expect("JSON")["config"].clone();
    for config in [config(&created), config(&again)] {
        for (name, value) in [("page_size", "4096"), ("log_file_size", "4194304"), ("buffer_pool_size", "1048576")] {
            assert_eq!(config[name], value, "{name}");
        }
        assert_eq!(config["lru_scan_depth"], "64", "a quarter of 256 frames");
    }
    assert_eq!(config(&run(&["--log-file-size", "8M"]))["log_file_size"], "8388608", "the log may grow");
    let refused = run(&["--page-size", "8K"]);
    let text = stderr(&refused);
    assert_eq!(status(&refused), 2, "{text}");
    assert!(text.contains("page-size") && text.contains("was created with 4096"), "{text}");
    assert!(refused.stdout.is_empty());
}

/// A process that does not outlive its test.
struct Running(Child);

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A benchmark of five minutes in `folder`, run by `program` with `first` before its own arguments; at its first
/// interval line.
fn long_bench(folder: &Path, program: &str, first: &[&str]) -> (Running, impl Iterator<Item = String> + use<>) {
    let mut command = Command::new(program);
    command.args(first).args(["bench", "sysbench", "write_only", "--table-size", "500", "--seconds", "300"]);
    command.args(["--report-interval", "0.1", "--log-file-size", "8M", "--dir"]).arg(folder.join("db"));
    let mut child = command
        .arg("--json")
        .arg(folder.join("json"))
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the command starts");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines().map_while(Result::ok);
    lines.find(|line| line.starts_with("[ ")).expect("an interval");
    (Running(child), lines)
}

fn send(signal: &str, child: &Running) {
    let kill = Command::new("kill").args(["-s", signal, &child.0.id().to_string()]).status();
    assert!(kill.expect("kill starts").success());
}

#[test]
fn a_signal_ends_a_benchmark_with_its_summary_and_a_closed_database() {
    for signal in ["TERM", "INT"] {
        let folder = tempfile::tempdir().expect("a folder");
        let (mut child, lines) = long_bench(folder.path(), env!("CARGO_BIN_EXE_highwater"), &[]);
        send(signal, &child);
        let rest: Vec<String> = lines.collect();
        assert_eq!(child.0.wait().expect("the command ends").code(), Some(0), "{signal}: {rest:?}");
        assert!(rest.iter().any(|line| line.contains("transactions:")), "{signal}: {rest:?}");
        let json = std::fs::read_to_string(folder.path().join("json")).expect("a result");
        let result: Value = serde_json::from_str(&json).expect("JSON");
        assert!(result["transactions"].as_u64().is_some_and(|n| n > 0), "{signal}: {result}");
        assert_eq!(result["config"]["ended_by"], "signal");
        let summary = highwater(&["inspect", folder.path().join("db").to_str().expect("a readable path")]);
        let text = String::from_utf8_lossy(&summary.stdout);
        assert!(status(&summary) == 0 && !text.contains("was not closed"), "{signal}: {text}");
    }
}

/// What was measured is a result, though the backup concurrently with it is cut short; so is what pairs have measured.
#[test]
fn a_signal_ends_a_backup_with_a_benchmark() {
    for more in [&[][..], &["--backup-pairs", "3"]] {
        let folder = tempfile::tempdir().expect("a folder");
        let [db, dest] = ["db", "backup"].map(|name| folder.path().join(name).to_string_lossy().into_owned());
        let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
        command.args(["bench", "sysbench", "write_only", "--table-size", "500", "--seconds", "300", "--dir", &db]);
        command.args(["--report-interval", "0.1", "--backup-rate", "64K", "--backup-to", &dest]).args(more);
        let mut child = Running(command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts"));
        let mut lines = BufReader::new(child.0.stdout.take().expect("stdout")).lines().map_while(Result::ok);
        lines.find(|line| line.starts_with("[ ")).expect("an interval");
        send("INT", &child);
        let rest: Vec<String> = lines.collect();
        assert_eq!(child.0.wait().expect("the command ends").code(), Some(0), "{more:?}: {rest:?}");
        assert!(rest.iter().any(|line| line.contains("transactions:")), "{more:?}: {rest:?}");
        assert!(!Path::new(&dest).exists(), "{more:?}: not a backup");
    }
}

/// What comes out of a pipe is copied first; an import that is interrupted leaves nothing and can be repeated.
#[test]
fn an_import_reads_a_file_and_can_be_interrupted() {
    let folder = tempfile::tempdir().expect("a folder");
    let [db, csv] = ["db", "numbers.csv"].map(|name| folder.path().join(name).to_string_lossy().into_owned());
    let piped = highwater(&["import", &db, "numbers", "/dev/stdin", "--primary-key", "id"]);
    assert!(status(&piped) == 1 && stderr(&piped).contains("/dev/stdin is empty"), "{}", stderr(&piped));
    let lines: String = (0..400_000).map(|id| format!("{id},a number\n")).collect();
    std::fs::write(&csv, format!("id,name\n{lines}")).expect("a file");
    let import = ["import", &db, "numbers", &csv, "--primary-key", "id"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.args(import).args(["--commit-every", "5"]).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = Running(command.spawn().expect("it starts"));
    let data_bytes = || std::fs::metadata(Path::new(&db).join("data")).map_or(0, |found| found.len());
    while data_bytes() < 1 << 20 {
        assert!(child.0.try_wait().expect("a child").is_none(), "it ended by itself");
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    send("INT", &child);
    let mut said = String::new();
    std::io::Read::read_to_string(&mut child.0.stderr.take().expect("stderr"), &mut said).expect("text");
    assert_eq!(child.0.wait().expect("the command ends").code(), Some(1), "{said}");
    assert!(said.contains("nothing was imported"), "{said}");
    let again = highwater(&import);
    assert_eq!(status(&again), 0, "{}", stderr(&again));
}

#[test]
fn under_nohup_a_closed_terminal_ends_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let (mut child, mut lines) = long_bench(folder.path(), "nohup", &[env!("CARGO_BIN_EXE_highwater")]);
    send("HUP", &child);
    let intervals = lines.by_ref().take(8).filter(|line| line.starts_with("[ ")).count();
    assert_eq!(intervals, 8, "it continues");
    send("TERM", &child);
    assert!(lines.any(|line| line.contains("transactions:")), "a summary");
    assert_eq!(child.0.wait().expect("the command ends").code(), Some(0));
}

#[test]
fn fresh_removes_only_a_benchmark() {
    let folder = tempfile::tempdir().expect("a folder");
    let (db, csv) = (folder.path().join("db"), folder.path().join("people.csv"));
    std::fs::write(&csv, "id,name\n1,Ada\n2,Grace\n").expect("a file");
    let (db, csv) = (db.to_str().expect("a readable path"), csv.to_str().expect("a readable path"));
    let imported = highwater(&["import", db, "user", csv, "--primary-key", "id"]);
    assert_eq!(status(&imported), 0, "{}", stderr(&imported));
    let refused = highwater(&["bench", "user-table", "--dir", db, "--bytes", "1K", "--fresh"]);
    assert!(status(&refused) == 2 && stderr(&refused).contains("not removed"), "{}", stderr(&refused));
    let refused = highwater(&["bench", "user-table", "--dir", db, "--bytes", "1K"]);
    assert!(status(&refused) == 2 && stderr(&refused).contains("no finished load"), "{}", stderr(&refused));
    let exported = highwater(&["export", db, "user"]);
    assert_eq!(String::from_utf8_lossy(&exported.stdout), "id,name\r\n1,Ada\r\n2,Grace\r\n");

    // A benchmark's database with another page size; and one that also has a table of the user.
    let own = folder.path().join("own");
    let own = own.to_str().expect("a readable path");
    let fresh = ["bench", "user-table", "--dir", own, "--bytes", "1K", "--page-size", "4K", "--fresh"];
    for args in [&fresh[..6], &fresh[..]] {
        assert_eq!(status(&highwater(args)), 0, "{}", stderr(&highwater(args)));
    }
    assert_eq!(status(&highwater(&["import", own, "city", csv, "--primary-key", "id"])), 0);
    let refused = highwater(&fresh);
    assert!(status(&refused) == 2 && stderr(&refused).contains("holds table city"), "{}", stderr(&refused));
}

fn change_file(path: &Path, change: impl FnOnce(&mut [u8])) {
    let mut bytes = std::fs::read(path).expect("a file");
    change(&mut bytes);
    std::fs::write(path, bytes).expect("a file");
}

#[test]
fn check_says_whether_a_database_is_sound() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = folder.path().join("db");
    assert_eq!(status(&sysbench(&db, "read_write", &[])), 0);
    let dir = db.to_str().expect("a readable path");
    let sound = highwater(&["check", dir, "--json", "-"]);
    assert_eq!(status(&sound), 0, "{}", stderr(&sound));
    let report: Value = serde_json::from_slice(&sound.stdout).expect("JSON and nothing else");
    assert_eq!(report["sound"], true);
    // sbtest1 and sbtest2, and the seven rows or fewer that say what was loaded.
    assert!(report["counts"]["rows"].as_u64().is_some_and(|rows| (1000..1010).contains(&rows)), "{report}");

    // One changed byte in every page but the first two, and no copies to repair them from.
    change_file(&db.join("data"), |bytes| bytes.chunks_mut(16384).skip(2).for_each(|page| page[8000] ^= 1));
    change_file(&db.join("doublewrite"), |bytes| bytes.fill(0));
    let broken = highwater(&["check", dir]);
    assert_eq!(status(&broken), 1, "{}{}", String::from_utf8_lossy(&broken.stdout), stderr(&broken));
}

#[test]
fn wrong_use_is_one_clear_line_and_status_two() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = folder.path().join("db");
    let dir = db.to_str().expect("a readable path");
    for (arguments, reason) in [
        (vec!["bench", "tpcc", "--dir", dir, "--buffer-pool-size", "12"], "buffer-pool-size"),
        (vec!["bench", "tpcc", "--dir", dir, "--flush-method", "mmap"], "O_DIRECT"),
        (vec!["bench", "tpcc", "--dir", dir, "--page-size", "5000"], "page-size"),
        (vec!["bench", "tpcc", "--dir", dir, "--json", "/nowhere/x.json"], "/nowhere/x.json"),
    ] {
        let output = highwater(&arguments);
        assert_eq!(status(&output), 2, "{arguments:?}: {}", stderr(&output));
        let text = stderr(&output);
        assert!(text.starts_with("error: ") && text.lines().count() == 1 && text.contains(reason), "{text}");
        assert!(!db.exists(), "{arguments:?} made the folder");
    }
}

#[test]
fn a_missing_database_is_wrong_use() {
    let folder = tempfile::tempdir().expect("a folder");
    let dir = folder.path().join("none");
    let dir = dir.to_str().expect("a readable path");
    for arguments in [vec!["check", dir], vec!["export", dir, "t"]] {
        let output = highwater(&arguments);
        assert_eq!(status(&output), 2, "{arguments:?}");
        assert!(stderr(&output).starts_with("error: ") && stderr(&output).lines().count() == 1, "{}", stderr(&output));
    }
}

#[test]
fn threads_that_cannot_be_had_are_an_error_with_the_number_that_can() {
    let folder = tempfile::tempdir().expect("a folder");
    let db = folder.path().join("db");
    let line = "ulimit -v 3000000; exec \"$0\" bench sysbench read_only --threads 4095 --table-size 100 --seconds 5 \
                --buffer-pool-size 8M --log-file-size 8M --dir \"$1\"";
    let output = Command::new("sh").args(["-c", line, env!("CARGO_BIN_EXE_highwater")]).arg(&db).output().expect("sh");
    let text = stderr(&output);
    let last = text.lines().last().unwrap_or_default();
    assert_eq!(output.status.code(), Some(2), "{text}");
    let number =
        last.strip_prefix("error: only ").and_then(|rest| rest.split_once(" of 4095 client threads could be started"));
    assert!(number.is_some_and(|(number, _)| number.parse::<u32>().is_ok_and(|n| (1..4095).contains(&n))), "{text}");
    let check = highwater(&["check", db.to_str().expect("a readable path")]);
    assert_eq!(status(&check), 0, "{}", stderr(&check));
}

#[test]
fn a_signal_is_heard_while_the_consistency_conditions_are_checked() {
    // Where this test was held up the conditions are checked already.
    let is_heard = (0..10).any(|_| ended_while_the_conditions_are_checked());
    assert!(is_heard, "the conditions are checked to their end");
}

/// Sends a signal to a bench that checks the conditions; false where it came too late for them.
fn ended_while_the_conditions_are_checked() -> bool {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.args(["bench", "tpcc", "--warehouses", "4", "--events", "1", "--flush-log-at-trx-commit", "0", "--dir"]);
    command.arg(folder.path().join("db")).arg("--json").arg(folder.path().join("json"));
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("the command starts");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines().map_while(Result::ok);
    let mut child = Running(child);
    assert!(lines.any(|line| line.starts_with("Running")), "loaded");
    // One transaction is done by then; the conditions take longer.
    std::thread::sleep(std::time::Duration::from_millis(40));
    send("TERM", &child);
    let rest: Vec<String> = lines.collect();
    assert_eq!(child.0.wait().expect("the command ends").code(), Some(0), "{rest:?}");
    let json = std::fs::read_to_string(folder.path().join("json")).expect("a result");
    let result: Value = serde_json::from_str(&json).expect("JSON");
    let (is_signal, is_null) = (result["config"]["ended_by"] == "signal", result["consistency"].is_null());
    assert!(is_signal == is_null, "{result}");
    is_signal
}

/// A file of 40 MiB to import.
fn large_csv(folder: &Path) -> std::path::PathBuf {
    let path = folder.join("large.csv");
    let text = "x".repeat(20_000);
    let rows: String = (0..2_000).map(|n| format!("{n},{text}\n")).collect();
    std::fs::write(&path, format!("n,x\n{rows}")).expect("a file");
    path
}

/// Runs the arguments after `program` and its own.
fn below(program: &str, own: &[&str], arguments: &[&str]) -> Output {
    let mut command = Command::new(program);
    command.args(own).arg(env!("CARGO_BIN_EXE_highwater")).args(arguments);
    command.output().unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// As on a full disk: an error that names the limit, and the database is sound.
#[test]
fn the_limit_of_a_files_size_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let (db, csv) = (folder.path().join("db"), large_csv(folder.path()));
    let (db, csv) = (db.to_str().expect("a readable path"), csv.to_str().expect("a readable path"));
    let import = ["import", db, "t", csv, "--primary-key", "n", "--commit-every", "100", "--log-file-size", "4M"];
    let output = below("prlimit", &["--fsize=20000000:20000000"], &import);
    assert_eq!(status(&output), 1, "{}", stderr(&output));
    let said = stderr(&output);
    assert!(said.contains("cannot grow") && said.contains("20000000 bytes at most (ulimit -f"), "{said}");
    let checked = highwater(&["check", db]);
    assert_eq!(status(&checked), 0, "{}", stderr(&checked));
    assert_eq!(status(&highwater(&import)), 0);
}

/// A kernel or file system that cannot reserve or punch.
#[test]
fn a_database_needs_no_fallocate() {
    for answer in ["ENOSYS", "EOPNOTSUPP"] {
        let folder = tempfile::tempdir().expect("a folder");
        let (db, csv) = (folder.path().join("db"), large_csv(folder.path()));
        let (db, csv) = (db.to_str().expect("a readable path"), csv.to_str().expect("a readable path"));
        let inject = format!("inject=fallocate:error={answer}");
        let strace = ["-f", "-qq", "-o", "/dev/null", "-e", "trace=fallocate", "-e", &inject];
        let output = below("strace", &strace, &["import", db, "t", csv, "--primary-key", "n"]);
        assert_eq!(status(&output), 0, "{answer}: {}", stderr(&output));
        let checked = highwater(&["check", db]);
        assert_eq!(status(&checked), 0, "{answer}: {}", stderr(&checked));
    }
}

/// What bash offers for the last of these words.
fn offered_by_bash(script: &Path, words: &[&str]) -> String {
    let line = "source \"$0\"; COMP_WORDS=(\"$@\"); COMP_CWORD=$(($# - 1)); \
                _highwater \"$1\" \"${@: -1}\" \"${@: -2:1}\"; echo \"${COMPREPLY[@]}\"";
    let output = Command::new("bash").args(["-c", line]).arg(script).args(words).output().expect("bash starts");
    assert!(output.status.success(), "{}", stderr(&output));
    String::from_utf8_lossy(&output.stdout).trim().to_string()
}

#[test]
fn bash_completes_commands_and_options() {
    let folder = tempfile::tempdir().expect("a folder");
    let script = folder.path().join("highwater.bash");
    let output = highwater(&["completions", "bash"]);
    assert_eq!((status(&output), &stderr(&output)[..]), (0, ""));
    std::fs::write(&script, &output.stdout).expect("the script is written");
    assert_eq!(offered_by_bash(&script, &["highwater", "comp"]), "compact completions");
    assert_eq!(offered_by_bash(&script, &["highwater", "shell", "--read-o"]), "--read-only");
    assert_eq!(offered_by_bash(&script, &["highwater", "completions", "f"]), "fish");
    for (shell, sign) in [("zsh", "#compdef highwater"), ("fish", "complete -c highwater")] {
        let output = highwater(&["completions", shell]);
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(status(&output) == 0 && text.contains(sign) && text.contains("read-only"), "{shell}");
    }
    assert_eq!(status(&highwater(&["completions", "tcsh"])), 2);
}

#[test]
fn manual_pages_are_printed() {
    let output = highwater(&["man", "inspect", "page"]);
    let page = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(status(&output) == 0 && page.contains(".TH highwater-inspect-page 1"), "{page}");
    let output = highwater(&["man", "everything"]);
    assert_eq!(status(&output), 2);
    assert!(stderr(&output).contains("there is no command \"everything\" of highwater"), "{}", stderr(&output));
}

/// What `bench` runs while its clients run: processes that export, a deletion of most rows, the build of an index.
#[test]
fn others_read_most_rows_are_deleted_and_an_index_is_built_with_clients() {
    let folder = tempfile::tempdir().expect("a folder");
    let (db, shrink) = (folder.path().join("db"), folder.path().join("shrink"));
    let [db, shrink] = [&db, &shrink].map(|path| path.to_str().expect("a readable path"));
    let line = ["bench", "ycsb", "a", "--records", "300", "--seconds", "3", "--dir", db, "--reader-processes", "2"];
    let read = highwater(&line);
    assert_eq!(status(&read), 0, "{}", stderr(&read));
    let said = String::from_utf8_lossy(&read.stdout).into_owned();
    assert!(said.contains("2 reader processes exported") && !said.contains("exported 0 tables"), "{said}");
    let line = ["bench", "shrink", "--bytes", "2M", "--seconds", "0.1", "--dir", shrink, "--json", "-"];
    let shrunk = highwater(&line);
    assert_eq!(status(&shrunk), 0, "{}", stderr(&shrunk));
    let result: Value = serde_json::from_slice(&shrunk.stdout).expect("JSON and nothing else");
    assert!(result["rows_after"].as_u64().expect("a number") * 9 < result["rows_before"].as_u64().expect("a number"));
    assert_eq!(result["clients"][3]["while"], "compacting");
    assert!(std::fs::read_dir(folder.path()).expect("a folder").count() == 2, "the backups are removed");
    let again = highwater(&line);
    assert!(status(&again) == 2 && stderr(&again).contains("name a new one"), "{}", stderr(&again));
    let online = folder.path().join("online");
    let online = online.to_str().expect("a readable path");
    let line =
        ["bench", "online-index", "--rows", "3000", "--seconds", "0.1", "--dir", online, "--rebuild", "--json", "-"];
    for _ in 0..2 {
        let built = highwater(&line);
        assert_eq!(status(&built), 0, "{}", stderr(&built));
        let result: Value = serde_json::from_slice(&built.stdout).expect("JSON and nothing else");
        assert_eq!((&result["rows"], &result["builds"][1]["what"]), (&3000.into(), &"rebuild".into()));
        assert!(result["clients"][1]["max_ms"].as_f64().expect("a number") < 5000.0, "{result}");
    }
    let other = highwater(&["bench", "online-index", "--rows", "3001", "--dir", online]);
    assert!(status(&other) == 2 && stderr(&other).contains("table_size=3000"), "{}", stderr(&other));
}
