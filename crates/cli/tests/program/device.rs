//! `highwater device` as a process: what it prints, its exit statuses, what it leaves behind.
//!
//! Mounting needs root, FUSE and loop devices; on a host without them the tests of the mount hold the command to a
//! clear refusal.
#![cfg(target_os = "linux")]

use highwater_device::mount::host;
use serde_json::Value;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, ChildStderr, Command, Output, Stdio};
use std::time::Duration;

const PROGRAM: &str = env!("CARGO_BIN_EXE_highwater");
const PROGRAMS: [&str; 4] = ["losetup", "mount", "umount", "mkfs.ext4"];

fn device(arguments: &[&str]) -> Output {
    Command::new(PROGRAM).arg("device").args(arguments).output().expect("the command starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The command must end with `status` and say `what`, on one line that begins with `error:`, without a panic.
fn refused(arguments: &[&str], status: i32, what: &str) {
    let output = device(arguments);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {said}");
    assert!(said.starts_with("error: ") && said.contains(what) && !said.contains("panicked"), "{arguments:?}: {said}");
    assert!(output.stdout.is_empty(), "{arguments:?}");
}

fn json(output: &Output) -> Value {
    assert_eq!(output.status.code(), Some(0), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).expect("JSON and nothing else")
}

#[test]
fn list_shows_every_device_and_its_sources() {
    let text = String::from_utf8(device(&["list"]).stdout).expect("text");
    let one = String::from_utf8(device(&["list", "samsung-pm953-960gb"]).stdout).expect("text");
    assert!(one.contains("published") && one.contains("assumed") && one.contains("timing.program_ns"), "{one}");
    let all = json(&device(&["list", "--json", "-"]));
    for preset in all.as_array().expect("an array") {
        assert!(text.contains(preset["name"].as_str().expect("a name")), "{text}");
        assert!(preset["capacity_bytes"].is_u64() && !preset["sources"].as_array().expect("an array").is_empty());
    }
    assert!(all.as_array().is_some_and(|a| a.len() >= 6));
    refused(&["list", "floppy"], 2, "wd10ezex-1tb");
}

/// A journal of 8 MiB at 64 MiB that is written round and round, and writes elsewhere, on a device of 128 MiB.
fn write_trace(path: &Path) {
    let mut text = String::from("time_us,op,lba,blocks\n");
    for i in 0..20_000u64 {
        let _ = writeln!(text, "{},W,{},4", i * 10, 16_384 + i % 512 * 4);
        let _ = writeln!(text, "{},W,{},1", i * 10 + 5, i.wrapping_mul(2_654_435_761) % 16_000);
    }
    std::fs::write(path, text + "200000,F,0,0\n").expect("a trace");
}

#[test]
fn replay_reports_in_every_form() {
    let folder = tempfile::tempdir().expect("a folder");
    let (trace, report, rules) =
        (folder.path().join("t.csv"), folder.path().join("r.html"), folder.path().join("rules.txt"));
    write_trace(&trace);
    std::fs::write(&rules, "1=journal # hot\n").expect("a file");
    let [trace, report, rules] = [&trace, &report, &rules].map(|p| p.to_str().expect("a readable path"));
    let base = ["replay", trace, "--capacity", "128M", "--passes", "2", "--range", "journal=16384+2048", "--json", "-"];
    let one = json(&device(&base));
    let two = json(&device(&[&base[..], &["--rules", rules, "--report", report]].concat()));
    let waf = |v: &Value| v["totals"]["write_amplification"].as_f64().expect("a number");
    assert!(waf(&two) < waf(&one) - 0.01, "a journal in a stream of its own: {} and {}", waf(&two), waf(&one));
    assert_eq!(two["streams"][1]["stream"], "1");
    assert_eq!(two["totals"]["host_written_bytes"], 20_000u64 * 5 * 4096);
    assert_eq!(two["passes"].as_array().map(Vec::len), Some(2));
    assert!(std::fs::read_to_string(report).expect("a report").to_lowercase().starts_with("<!doctype html>"));

    let shared = json(&device(&[&base[..], &["--stream", "1=journal", "--copy-back", "shared"]].concat()));
    assert!(waf(&shared) >= 1.0);
    let timed = ["--pace", "queue-depth:8", "--victim", "cost-benefit", "--age", "random:1"];
    let timed = json(&device(&[&base[..], &timed].concat()));
    assert!(timed["timing"]["device_s"].as_f64().is_some_and(|s| s > 0.0));
}

/// A preset is printed, changed and read back; traces of other programs are recognized by their content.
#[test]
fn a_device_of_a_file_replays_traces_of_other_programs() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a readable path").to_string();
    let printed = device(&["list", "simple-2gb", "--config"]);
    let text = String::from_utf8(printed.stdout).expect("text");
    assert!(text.contains("\"reserve_units\": 1,"), "{text}");
    std::fs::write(path("mine.json"), text.replace("simple-2gb", "mine").replace(": 1,", ": 3,")).expect("a file");
    let fio = "fio version 3 iolog\n0 f add\n0 f open\n5 f write 0 8192\n9 f read 4096 4096\n12 f close\n";
    std::fs::write(path("fio.log"), fio).expect("a file");
    std::fs::write(path("msr_0.csv"), "128166372003061629,msr,0,Write,4096,8192,41286\n").expect("a file");
    for trace in ["fio.log", "msr_0.csv"] {
        let small = ["--device", &path("mine.json"), "--capacity", "128M", "--json", "-"];
        let result = json(&device(&[&["replay", &path(trace)], &small[..]].concat()));
        assert_eq!(result["totals"]["host_written_bytes"], 8192, "{trace}");
        assert_eq!(
            (&result["device"]["ssd"]["name"], &result["device"]["ssd"]["reserve_units"]),
            (&"mine".into(), &3.into())
        );
    }
    std::fs::write(path("bad.json"), text.replace("\"streams\"", "\"stream\"")).expect("a file");
    refused(&["replay", &path("fio.log"), "--device", &path("bad.json")], 2, "bad.json: unknown field `stream`");
    refused(&["replay", &path("fio.log"), "--device", &path("none.json")], 2, "none.json");
}

#[test]
fn replay_refuses_bad_input() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a readable path").to_string();
    let trace = path("t.csv");
    write_trace(Path::new(&trace));
    let whole = std::fs::read(&trace).expect("a trace");
    std::fs::write(path("cut.csv"), &whole[..whole.len() / 2]).expect("a file");
    let packed = zstd::encode_all(&whole[..], 3).expect("compressed");
    std::fs::write(path("cut.csv.zst"), &packed[..packed.len() / 2]).expect("a file");
    let mut record = [0; 48];
    record[..4].copy_from_slice(&0x6561_7407u32.to_le_bytes());
    std::fs::write(path("cut.blktrace.0"), [&record[..], &record[..20]].concat()).expect("a file");
    std::fs::write(path("picture.png"), [0x89, b'P', b'N', b'G', 0, 1, 2]).expect("a file");
    std::fs::write(path("empty.csv"), "").expect("a file");

    let small = ["--capacity", "128M"];
    for name in ["cut.csv", "cut.csv.zst", "cut.blktrace.0"] {
        refused(&[&["replay", &path(name)], &small[..]].concat(), 1, name);
    }
    refused(&[&["replay", &path("cut.csv.zst")], &small[..]].concat(), 1, "truncated");
    for name in ["picture.png", "empty.csv"] {
        refused(&["replay", &path(name)], 2, "is not a trace: neither CSV");
    }
    refused(&["replay", &path("missing.csv")], 2, "missing.csv");
    refused(&["replay", &trace, "--capacity", "64M"], 2, "goes beyond the device's 16384 blocks");
    refused(&["replay", &trace, "--stream", "16=1+5"], 2, "the device has 16");
    let client = ["--device", "samsung-850-pro-256gb", "--capacity", "1G", "--stream", "1=1+5"];
    refused(&[&["replay", &trace], &client[..]].concat(), 2, "stream 1 asked for, but the device has 1");
    refused(&["replay", &trace, "--stream", "1=ibdata1"], 2, "no range of that name");
    refused(&["replay", &trace, "--device", "wd10ezex-1tb", "--victim", "greedy"], 2, "hard disk");
    refused(&["replay", &trace, "--json", "/no/such/folder/x"], 2, "/no/such/folder/x");
    assert!(device(&["replay", &trace, "--stream", "journal"]).status.code() == Some(2));
    refused(&["replay", &trace, "--capacity", "1M"], 2, "it must be at least");
    refused(&["replay", &trace, "--write-buffer", "7T"], 2, "--write-buffer must be at most");
    refused(&["replay", &trace, "--erase-unit", "4096"], 2, "--erase-unit must be 256K");
    refused(&["replay", &trace, "--report", "-"], 2, "--report needs the name of a file");
    std::fs::write(path("rules.txt"), [0xFF, 0xFE, 0]).expect("a file");
    refused(&["replay", &trace, "--rules", &path("rules.txt")], 2, "rules.txt");
    std::fs::write(path("far.csv"), "1,W,2000000,1\n").expect("a file");
    refused(&["replay", &path("far.csv"), "--device", "samsung-pm953-960gb"], 2, "--capacity makes it larger");
}

/// A failed replay leaves neither an empty result nor a part of one, and an earlier result as it was.
#[test]
fn a_failed_replay_leaves_no_result_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = |name: &str| folder.path().join(name).to_str().expect("a readable path").to_string();
    std::fs::write(path("t.csv"), "1,W,5,1\n2,X,5,1\n").expect("a file");
    std::fs::write(path("old.html"), "old").expect("a file");
    let results = ["--json", &path("new.json"), "--report", &path("old.html")];
    refused(&[&["replay", &path("t.csv")], &results[..]].concat(), 1, "line or record 2");
    assert_eq!(std::fs::read_to_string(path("old.html")).expect("the old report"), "old");
    let names = std::fs::read_dir(folder.path()).expect("the folder").count();
    assert_eq!(names, 2, "the trace and the old report");
    std::fs::write(path("t.csv"), "1,W,5,1\n").expect("a file");
    assert_eq!(device(&[&["replay", &path("t.csv")], &results[..]].concat()).status.code(), Some(0));
    let whole = std::fs::read_to_string(path("new.json")).expect("a result");
    assert!(serde_json::from_str::<Value>(&whole).is_ok() && whole.ends_with('\n'));
    assert_ne!(std::fs::read_to_string(path("old.html")).expect("a report"), "old");
}

/// Whether this host can mount. Where HIGHWATER_TEST_MOUNTS is set it must.
fn able() -> bool {
    let able = host::check(&PROGRAMS);
    assert!(able.is_ok() || std::env::var_os("HIGHWATER_TEST_MOUNTS").is_none(), "{able:?}");
    able.is_ok()
}

/// A mount of the command, and the first lines it printed.
struct Mounted {
    child: Child,
    stderr: BufReader<ChildStderr>,
    loop_device: String,
}

impl Mounted {
    /// None where the host cannot mount; then the refusal has been checked.
    fn start(place: &Path, more: &[&str]) -> Option<Mounted> {
        let place = place.to_str().expect("a readable path");
        if !able() {
            refused(&[&["mount", place], more].concat(), 2, "");
            return None;
        }
        let mut command = Command::new(PROGRAM);
        command.args(["device", "mount", place, "--capacity", "64M", "--interval", "0.1"]).args(more);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the command starts");
        let mut line = String::new();
        let mut stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        stderr.read_line(&mut line).expect("a line");
        let loop_device = line.split(" as ").nth(1).and_then(|rest| rest.split(' ').next()).unwrap_or_default();
        assert!(loop_device.starts_with("/dev/loop"), "{line}");
        Some(Mounted { loop_device: loop_device.into(), child, stderr })
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill").args(["-s", name, &self.child.id().to_string()]).status();
        assert!(sent.expect("kill").success());
    }

    /// Whether mount, loop device and FUSE folder are gone.
    fn is_gone(&self, place: &Path) -> bool {
        let mounts = std::fs::read_to_string("/proc/mounts").expect("the mounts");
        let name = self.loop_device.trim_start_matches("/dev/");
        let backing = std::fs::read_to_string(format!("/sys/block/{name}/loop/backing_file")).unwrap_or_default();
        let ours = format!("highwater-device-{}-", self.child.id());
        !mounts.contains(place.to_str().expect("a readable path"))
            && !mounts.contains(&ours)
            && !backing.contains(&ours)
    }
}

#[test]
fn an_interrupted_mount_is_unmounted_and_its_samples_are_there() {
    let folder = tempfile::tempdir().expect("a folder");
    let (place, samples, backing) =
        (folder.path().join("mnt"), folder.path().join("s.jsonl"), folder.path().join("disk"));
    let [samples_path, backing_path] = [&samples, &backing].map(|p| p.to_str().expect("a readable path"));
    let more = ["--journal-mode", "data", "--journal-size", "4M", "--stream", "1=journal"];
    let kept = ["--json", samples_path, "--backing", backing_path];
    let Some(mut mounted) = Mounted::start(&place, &[&more[..], &kept].concat()) else { return };
    std::fs::write(place.join("f"), vec![7; 300_000]).expect("a file");
    std::fs::File::open(place.join("f")).and_then(|f| f.sync_all()).expect("synced");
    mounted.signal("INT");
    assert_eq!(mounted.child.wait().expect("it ends").code(), Some(0));
    assert!(mounted.is_gone(&place));
    let text = std::fs::read_to_string(&samples).expect("samples");
    let last: Value = serde_json::from_str(text.lines().last().expect("a line")).expect("JSON");
    let journal = last["streams"].as_array().expect("streams").iter().find(|s| s["stream"] == "1").expect("stream 1");
    assert!(journal["host_written_bytes"].as_u64().is_some_and(|b| b >= 300_000), "{last}");

    let place_text = place.to_str().expect("a readable path");
    let capacity = ["mount", place_text, "--capacity", "64M", "--backing", backing_path];
    refused(&capacity, 2, "--keep");
    let mut again =
        Mounted::start(&place, &["--keep", "--json", samples_path, "--backing", backing_path]).expect("mounted");
    assert_eq!(std::fs::read(place.join("f")).expect("the file"), vec![7; 300_000]);
    again.signal("TERM");
    assert_eq!(again.child.wait().expect("it ends").code(), Some(0));
}

/// A full disk under the recorded trace: the file system continues, and the summary reports the error.
#[test]
fn a_recording_that_failed_is_reported_at_the_end() {
    let folder = tempfile::tempdir().expect("a folder");
    let (place, trace) = (folder.path().join("mnt"), folder.path().join("t.csv.zst"));
    std::os::unix::fs::symlink("/dev/full", &trace).expect("a link");
    let more = ["--json", "-", "--record", trace.to_str().expect("a readable path")];
    let Some(mut mounted) = Mounted::start(&place, &more) else { return };
    std::fs::write(place.join("f"), vec![7; 300_000]).expect("a file");
    mounted.signal("INT");
    let mut said = String::new();
    mounted.stderr.read_to_string(&mut said).expect("text");
    assert_eq!(mounted.child.wait().expect("it ends").code(), Some(1), "{said}");
    assert!(said.contains("the trace is incomplete"), "{said}");
    assert!(mounted.is_gone(&place));
}

#[test]
fn a_killed_mount_leaves_nothing_behind() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("mnt");
    let Some(mut mounted) = Mounted::start(&place, &["--json", "-"]) else { return };
    std::fs::write(place.join("f"), vec![1; 1_000_000]).expect("a file");
    mounted.signal("KILL");
    mounted.child.wait().expect("it ends");
    for _ in 0..1200 {
        if mounted.is_gone(&place) {
            return;
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    panic!("{} is still there", mounted.loop_device);
}

#[test]
fn mount_refuses_what_cannot_be() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("mnt");
    let place = place.to_str().expect("a readable path");
    refused(&["mount", place, "--journal-size", "1M"], 2, "at least 4 MiB");
    refused(&["mount", place, "--device", "floppy"], 2, "floppy");
    refused(&["mount", place, "--interval", "0"], 2, "--interval");
    refused(&["mount", place, "--capacity", "64M", "--journal-size", "1G"], 2, "--journal-size must be at most half");
    refused(&["mount", "/proc/version"], 2, "is not a folder");
    refused(&["mount", place, "--capacity", "1M"], 2, "--capacity is too small");
    refused(&["mount", place, "--backing", "/tmp"], 2, "is a folder");
    refused(&["mount"], 2, "MOUNTPOINT");
    refused(&["mount", place, "--fs", "none"], 2, "leave out the MOUNTPOINT");
    refused(&["mount", "--fs", "none", "--journal-mode", "data"], 2, "do not go with --fs none");
    if !able() {
        return;
    }
    refused(&["mount", place, "--capacity", "64M", "--stream", "16=journal"], 2, "the device has 16");
    refused(&["mount", place, "--capacity", "64M", "--record", "trace.csv"], 2, "NAME.csv.zst");
    refused(&["mount", place, "--capacity", "64M", "--stream", "1=99999999+5"], 2, "beyond the device's");
    refused(&["mount", "--fs", "none", "--capacity", "64M", "--stream", "1=journal"], 2, "no other has a name");
}

/// Somebody who is not root, and a host without FUSE: as root both can be had.
#[test]
fn a_host_that_cannot_mount_is_refused_clearly() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("mnt");
    if !host::is_root() {
        return refused(&["mount", place.to_str().expect("a readable path")], 2, "root");
    }
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o755)).expect("permissions");
    let program = folder.path().join("highwater");
    std::fs::copy(PROGRAM, &program).expect("a copy where everybody may run it");
    let output = Command::new(&program).args(["device", "mount"]).arg(&place).uid(65_534).gid(65_534).output();
    let output = output.expect("the command starts");
    assert!(output.status.code() == Some(2) && stderr(&output).contains("needs root"), "{}", stderr(&output));

    let script = "mount -t tmpfs none /dev && exec \"$0\" device mount \"$1\"";
    let hidden = Command::new("unshare").args(["-m", "sh", "-c", script]).arg(PROGRAM).arg(&place).output();
    let Ok(hidden) = hidden else { return };
    if !stderr(&hidden).starts_with("error: ") {
        return;
    }
    assert!(hidden.status.code() == Some(2) && stderr(&hidden).contains("no FUSE"), "{}", stderr(&hidden));
}

/// A small benchmark in process whose data are five times the pool, so that pages must be written; further arguments at
/// the end.
fn bench(more: &[&str]) -> Output {
    let mut arguments = vec!["bench", "sysbench", "write_only", "--table-size", "120000", "--threads", "2"];
    arguments.extend(["--events", "600", "--buffer-pool-size", "5M"]);
    Command::new(PROGRAM).args(arguments).args(more).output().expect("the command starts")
}

/// Placements go to streams, and the device's counters are in JSON, summary and report.
#[test]
fn a_benchmark_runs_on_a_device() {
    let folder = tempfile::tempdir().expect("a folder");
    let report = folder.path().join("r.html");
    let place = ["--device", "simple-2gb", "--capacity", "256M", "--log-file-size", "8M"];
    let spread = json(&bench(&[&place[..], &["--clock", "virtual", "--json", "-"]].concat()));
    let (device, written) = (&spread["device"], &spread["bytes_written"]);
    let stream = |name: &str| {
        let found = device["streams"].as_array().expect("streams").iter().find(|s| s["stream"] == name);
        found.and_then(|s| s["host_written_bytes"].as_u64()).unwrap_or(0)
    };
    // Writes under way when the two are read stand in one of them: batches of two threads, each with its copies.
    const UNDER_WAY_BYTES: u64 = 4 << 20;
    let redo = written["redo"].as_u64().expect("redo");
    assert!(redo > 0 && (redo / 2..redo * 2).contains(&stream("1")), "redo has stream 1: {device}");
    assert!(stream("0") > 0, "{device}");
    let host = device["totals"]["host_written_bytes"].as_u64().expect("a number");
    let sum = written.as_object().expect("placements").values().filter_map(Value::as_u64).sum::<u64>();
    assert!(
        host.abs_diff(sum) <= UNDER_WAY_BYTES && sum > 2 * UNDER_WAY_BYTES,
        "the engine wrote {sum} bytes: {device}"
    );
    assert!(device["totals"]["write_amplification"].as_f64().is_some_and(|waf| waf >= 1.0));
    assert!(device["device_s"].as_f64().is_some_and(|s| s > 0.0) && spread["config"]["device_clock"] == "virtual");

    let report_path = report.to_str().expect("a readable path");
    let place = ["--device", "samsung-pm953-960gb", "--capacity", "256M", "--log-file-size", "8M"];
    let one = bench(&[&place[..], &["--placement", "one", "--report", report_path]].concat());
    let text = String::from_utf8_lossy(&one.stdout).into_owned();
    assert_eq!(one.status.code(), Some(0), "{}", stderr(&one));
    assert!(text.contains("Device (samsung-pm953-960gb") && !text.contains("stream 1:"), "{text}");
    assert!(std::fs::read_to_string(report).expect("a report").contains("Device write amplification"));
}

#[test]
fn a_benchmark_on_a_device_that_cannot_be_is_refused() {
    for (more, what) in [
        (&["--device", "floppy"][..], "no device preset named"),
        (&["--device", "samsung-850-pro-256gb", "--capacity", "1G", "--placement", "redo=1"], "stream 1 asked for"),
        (&["--device", "simple-2gb", "--capacity", "256M"], "leave no room for data"),
        (&["--device", "simple-2gb", "--log-dir", "/tmp"], "--log-dir"),
        (&["--device", "simple-2gb", "--placement", "index=1"], "no such placement"),
    ] {
        let output = bench(more);
        let said = stderr(&output);
        assert!(output.status.code() == Some(2) && said.contains(what), "{more:?}: {said}");
    }
}

/// `lab run stream-journal` on the reduced traces of the device crate, and without any.
#[test]
fn the_laboratory_replays_traces_from_a_folder() {
    let folder = tempfile::tempdir().expect("a folder");
    let run = |traces: &Path, out: &str| {
        let out = folder.path().join(out);
        let mut command = Command::new(PROGRAM);
        command.args(["lab", "run", "stream-journal", "--scale", "smoke", "--subject", "mysql", "--json", "-"]);
        command.arg("--traces").arg(traces).arg("--out").arg(out).output().expect("the command starts")
    };
    let without = run(folder.path(), "without");
    let said = stderr(&without);
    assert_eq!(without.status.code(), Some(2), "{said}");
    assert!(said.contains("tpcc-ordered-j8-dwb.csv.zst") && said.contains("--record"), "{said}");

    let traces = folder.path().join("traces");
    std::fs::create_dir(&traces).expect("a folder");
    let heads = Path::new(env!("CARGO_MANIFEST_DIR")).join("../device/tests/traces");
    for (head, name) in [
        ("tpcc-ordered-j8-dwb-head", "tpcc-ordered-j8-dwb"),
        ("tpcc-data-j8-head", "tpcc-data-j8"),
        ("tpcc-data-j8-head", "tpcc-data-j64"),
    ] {
        let (from, to) = (heads.join(format!("{head}.csv.zst")), traces.join(format!("{name}.csv.zst")));
        std::fs::copy(from, to).expect("a copy");
    }
    let outcome = json(&run(&traces, "with"));
    let rows = outcome["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 5);
    for row in rows {
        let waf = row["measured"]["write_amplification"].as_f64().expect("a number");
        assert!((1.0..10.0).contains(&waf), "{row}");
        assert!(row["paper"]["write_amplification"].is_number(), "{row}");
    }
    assert!(folder.path().join("with/report.html").is_file());
}

/// No one named traces and none are at hand: the program's own are replayed, and the report says so.
#[test]
fn the_laboratory_replays_its_own_traces_where_there_are_no_others() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(PROGRAM);
    command.args(["lab", "run", "stream-journal", "--scale", "smoke", "--subject", "mysql", "--json", "-"]);
    command.env("HOME", folder.path()).env_remove("XDG_CACHE_HOME").env_remove("HIGHWATER_TRACES");
    let outcome = json(&command.arg("--out").arg(folder.path().join("out")).output().expect("the command starts"));
    let rows = outcome["rows"].as_array().expect("rows");
    assert!(
        rows.len() == 5 && rows.iter().all(|row| row["info"]["trace"].as_str().expect("a text").contains("sampled"))
    );
    assert!(outcome["notes"][0].as_str().expect("a note").contains("sampled traces that the program carries"));
}
