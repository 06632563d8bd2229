//! Each flush method as the system calls of a run under load, seen by strace.
//!
//! Rules
//! 1. What is asserted is what the table in `storage`'s `os/method.rs` promises: flags of the files, and which call
//!    makes which file durable.
//! 2. Without strace the tests fail and say how to get it: `apt-get install strace`.

use serde_json::Value;
use std::process::Command;

/// A traced run.
struct Trace {
    lines: Vec<String>,
    counters: Value,
}

impl Trace {
    /// Runs a small write load on data of four times the pool, so that pages must be flushed; pool and log have 4 MiB.
    fn of(method: &str, more: &[&str]) -> Trace {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let (db, out) = (folder.path().join("db"), folder.path().join("trace"));
        let mut command = Command::new("strace");
        command.args(["-f", "-y", "-qq", "-o"]).arg(&out);
        command.args(["-e", "trace=openat,pwrite64,fsync,fdatasync,fallocate,ftruncate,io_uring_setup,io_uring_enter"]);
        command.args([env!("CARGO_BIN_EXE_highwater"), "bench", "sysbench", "write_only", "--dir"]).arg(&db);
        command.args(["--tables", "1", "--table-size", "60000", "--threads", "2", "--events", "300", "--json", "-"]);
        command.args(["--buffer-pool-size", "4M", "--log-file-size", "4M", "--flush-method", method]).args(more);
        let output = command.output().unwrap_or_else(|e| panic!("strace: {e}; get it with: apt-get install strace"));
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{stderr} (strace needs the right to trace its child)");
        let result: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let text = std::fs::read_to_string(&out).expect("a trace");
        Trace { lines: text.lines().map(str::to_string).collect(), counters: result["counters"].clone() }
    }

    /// Calls of `call` on the database's file of that name.
    fn calls(&self, call: &str, file: &str) -> usize {
        let (call, file) = (format!(" {call}("), format!("/db/{file}>"));
        self.lines.iter().filter(|line| line.contains(&call) && line.contains(&file)).count()
    }

    /// Whether every opening of the file for writing has the flag (or none has).
    fn opened_with(&self, file: &str, flag: &str) -> bool {
        let name = format!("/db/{file}\", O_RDWR");
        let opened: Vec<bool> =
            self.lines.iter().filter(|line| line.contains(&name)).map(|line| line.contains(flag)).collect();
        assert!(!opened.is_empty(), "{file} was never opened");
        assert!(opened.iter().all(|with| *with == opened[0]), "{file} is opened with {flag} at times");
        opened[0]
    }

    /// Whether a ring for batches was made; where the kernel forbids it, pages are written one by one.
    fn has_ring(&self) -> bool {
        let setup = self.lines.iter().find(|line| line.contains("io_uring_setup"));
        setup.is_some_and(|line| !line.contains(" = -1"))
    }

    fn ring_submissions(&self) -> usize {
        self.lines.iter().filter(|line| line.contains(" io_uring_enter(")).count()
    }

    fn counter(&self, name: &str) -> u64 {
        self.counters[name].as_u64().unwrap_or_else(|| panic!("no counter {name}"))
    }
}

#[test]
fn fsync_writes_through_the_page_cache_and_calls_fsync() {
    let trace = Trace::of("fsync", &[]);
    for file in ["data", "redo", "doublewrite"] {
        assert!(!trace.opened_with(file, "O_DIRECT") && !trace.opened_with(file, "O_DSYNC"), "{file}");
        assert!(trace.calls("fsync", file) > 3, "{file}: {} fsync", trace.calls("fsync", file));
        assert_eq!(trace.calls("fdatasync", file), 0, "{file}");
        assert!(trace.calls("pwrite64", file) > 3, "{file}");
    }
    assert!(trace.calls("fsync", "redo") >= 150, "a group commit of two threads at most halves 300 commits");
    assert_eq!(trace.ring_submissions(), 0, "a copy into the page cache needs no ring");
    assert_eq!(trace.counter("os_ring_writes"), 0);
    assert!(trace.counter("os_syncs") >= 150);
}

#[test]
fn o_dsync_makes_each_redo_write_durable_and_syncs_the_data() {
    let trace = Trace::of("O_DSYNC", &[]);
    assert!(trace.opened_with("redo", "O_DSYNC"));
    for file in ["data", "doublewrite"] {
        assert!(!trace.opened_with(file, "O_DSYNC") && !trace.opened_with(file, "O_DIRECT"), "{file}");
        assert!(trace.calls("fdatasync", file) > 3, "{file}: {} fdatasync", trace.calls("fdatasync", file));
    }
    let commits = trace.calls("pwrite64", "redo");
    let syncs = trace.calls("fdatasync", "redo") + trace.calls("fsync", "redo");
    assert!(
        commits >= 150 && syncs <= 3,
        "{commits} redo writes, {syncs} syncs of the redo: only those of its creation"
    );
}

#[test]
fn o_direct_bypasses_the_page_cache_and_syncs_the_data() {
    let trace = Trace::of("O_DIRECT", &[]);
    for file in ["data", "redo", "doublewrite"] {
        assert!(trace.opened_with(file, "O_DIRECT") && !trace.opened_with(file, "O_DSYNC"), "{file}");
        assert!(trace.calls("fdatasync", file) > 3, "{file}: {} fdatasync", trace.calls("fdatasync", file));
    }
    if trace.has_ring() {
        assert!(trace.ring_submissions() > 3);
        assert!(trace.counter("os_ring_writes") > 0);
    } else {
        assert!(trace.calls("pwrite64", "data") > 100, "without a ring each page is a write");
    }
}

#[test]
fn o_direct_no_fsync_syncs_the_data_only_after_growth() {
    let trace = Trace::of("O_DIRECT_NO_FSYNC", &[]);
    for file in ["data", "redo", "doublewrite"] {
        assert!(trace.opened_with(file, "O_DIRECT"), "{file}");
    }
    assert!(trace.calls("fdatasync", "redo") >= 150, "commits are still synced");
    for file in ["data", "doublewrite"] {
        let syncs = trace.calls("fdatasync", file) + trace.calls("fsync", file);
        let growths = trace.calls("fallocate", file) + trace.calls("ftruncate", file);
        assert!(syncs <= growths + 1, "{file}: {syncs} syncs, {growths} changes of its length");
    }
    let direct = Trace::of("O_DIRECT", &[]);
    let (without, with) = (trace.calls("fdatasync", "data"), direct.calls("fdatasync", "data"));
    assert!(2 * without < with, "{without} against {with} syncs of the data with O_DIRECT");
}

#[test]
fn commits_that_are_not_synced_leave_the_redo_in_the_page_cache() {
    let trace = Trace::of("O_DIRECT", &["--flush-log-at-trx-commit", "2"]);
    assert!(trace.opened_with("data", "O_DIRECT") && !trace.opened_with("redo", "O_DIRECT"));
    let (writes, syncs) = (trace.calls("pwrite64", "redo"), trace.calls("fdatasync", "redo"));
    assert!(syncs < writes, "{syncs} syncs of {writes} redo writes");
}
