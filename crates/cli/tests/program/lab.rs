//! `highwater lab` as a process: a whole experiment, resuming, interrupting, refusals.

use serde_json::Value;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

fn lab(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.arg("lab").args(arguments).stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    lab(arguments).output().expect("the command starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// Arguments of a smoke run of an experiment on Highwater.
fn smoke<'a>(experiment: &'a str, out: &'a Path) -> Vec<&'a str> {
    let out = out.to_str().expect("a readable path");
    vec!["run", experiment, "--scale", "smoke", "--subject", "highwater", "--device", "local", "--out", out]
}

fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<String> =
        entries.map(|e| e.expect("an entry").file_name().into_string().expect("text")).collect();
    names.sort();
    names
}

#[test]
fn an_experiment_runs_reports_and_resumes() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let arguments = [smoke("flush-neighbors", &out), vec!["--json", "-"]].concat();
    let output = run(&arguments);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let result: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    assert_eq!((&result["experiment"], &result["scale"]), (&"flush-neighbors".into(), &"smoke".into()));
    let rows = result["rows"].as_array().expect("rows");
    assert_eq!(rows.len(), 8);
    for row in rows {
        assert!(row["measured"]["pages_flushed"].is_number() && row["measured"]["tps"].as_f64() > Some(0.0), "{row}");
        assert_eq!(row["measured"]["transactions"], 976.0);
    }
    assert!(rows.iter().any(|row| row["paper"]["tps"] == 2068.68));
    let claims = result["claims"].as_array().expect("claims");
    assert!(claims.iter().all(|claim| claim["verdict"].is_string() && claim["detail"] != ""), "{claims:?}");
    assert_eq!(names(&out), ["cells", "plan.json", "report.html", "result.json", "rows.csv"]);

    // One cell is lost: only that one is measured again.
    let cells = names(&out.join("cells"));
    std::fs::remove_file(out.join("cells").join(&cells[0])).expect("a cell");
    let refused = run(&arguments);
    assert_eq!(refused.status.code(), Some(2));
    assert!(stderr(&refused).contains("--resume"), "{}", stderr(&refused));
    let resumed = run(&[arguments, vec!["--resume"]].concat());
    assert_eq!(resumed.status.code(), Some(0), "{}", stderr(&resumed));
    assert!(stderr(&resumed).contains("7 of them by an earlier run"), "{}", stderr(&resumed));
    assert_eq!(names(&out.join("cells")), cells);
}

/// Waits until the run has come to a point.
fn wait_for(child: &mut Child, is_there: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_there() {
        assert!(child.try_wait().expect("a status").is_none(), "ended before it was interrupted");
        assert!(started.elapsed() < Duration::from_secs(300), "not there after five minutes");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// The work folders in the output folder.
fn work_folders(out: &Path) -> Vec<String> {
    names(out).into_iter().filter(|name| name.starts_with("highwater-lab-")).collect()
}

#[test]
fn an_interrupted_run_cleans_up_and_a_killed_one_is_cleaned_up_after() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let arguments = smoke("buffer-pool-size", &out);
    for signal in ["TERM", "KILL"] {
        let resume: &[&str] = if signal == "TERM" { &[] } else { &["--resume"] };
        let mut child =
            lab(&arguments).args(resume).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
        wait_for(&mut child, || {
            let has_cell = out.join("cells").is_dir() && !names(&out.join("cells")).is_empty();
            has_cell && work_folders(&out).len() == 1
        });
        let killed = Command::new("kill").args(["-s", signal, &child.id().to_string()]).status().expect("kill");
        assert!(killed.success());
        let output = child.wait_with_output().expect("it ends");
        let left = work_folders(&out);
        if signal == "TERM" {
            assert_eq!(output.status.code(), Some(1));
            assert!(
                stderr(&output).contains("interrupted") && stderr(&output).contains("--resume"),
                "{}",
                stderr(&output)
            );
            assert!(left.is_empty(), "{left:?}");
        } else {
            assert_eq!(left.len(), 1, "the killed process can remove nothing");
        }
    }
    let output = lab(&arguments).arg("--resume").output().expect("it starts");
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("by an earlier run"), "{}", stderr(&output));
    assert_eq!(names(&out), ["cells", "plan.json", "report.html", "result.json", "rows.csv"]);
}

/// What of a mount of the process is left.
fn mounted_by(pid: u32) -> String {
    let mounts = std::fs::read_to_string("/proc/mounts").expect("mounts");
    let ours = [format!("highwater-device-{pid}-"), format!("highwater-lab-{pid}/")];
    mounts.lines().filter(|line| ours.iter().any(|name| line.contains(name))).collect::<Vec<_>>().join("; ")
}

/// Highwater on a disk that its own process serves: killed, it must not wait for itself for ever.
#[test]
fn a_killed_run_on_its_own_mount_ends_and_is_unmounted() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let mut arguments = smoke("flush-method", &out);
    *arguments.iter_mut().find(|argument| **argument == "local").expect("a device") = "sata-7200rpm-500gb";
    for attempt in 0..3 {
        let mut child = lab(&arguments).stderr(Stdio::piped()).stdout(Stdio::null()).spawn().expect("it starts");
        let pid = child.id();
        let mut said = Vec::new();
        let mut lines = BufReader::new(child.stderr.take().expect("piped")).lines().map_while(Result::ok);
        if !lines.by_ref().inspect(|line| said.push(line.clone())).any(|line| line.contains("measuring")) {
            let said = said.join("\n");
            assert!(said.contains("root") || said.contains("/dev/fuse") || said.contains("loop"), "{said}");
            child.wait().expect("a status");
            return;
        }
        std::thread::sleep(Duration::from_millis(200 * attempt));
        child.kill().expect("killed");
        let ended = Instant::now();
        while !mounted_by(pid).is_empty() || Path::new(&format!("/run/highwater-device-{pid}-0")).exists() {
            assert!(ended.elapsed() < Duration::from_secs(300), "left: {}", mounted_by(pid));
            std::thread::sleep(Duration::from_millis(50));
        }
        child.wait().expect("a status");
        std::fs::remove_dir_all(&out).expect("removed");
    }
}

/// Every experiment that Highwater has, and the page about them; then again with one of them lost.
#[test]
fn all_experiments_run_one_after_the_other() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let arguments = [smoke("all", &out), vec!["--json", "-"]].concat();
    let output = run(&arguments);
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let overview: Value = serde_json::from_slice(&output.stdout).expect("JSON and nothing else");
    let parts = overview["experiments"].as_array().expect("experiments");
    let states: Vec<(&str, &str)> = parts
        .iter()
        .map(|part| (part["experiment"].as_str().expect("a name"), part["state"].as_str().expect("a state")))
        .collect();
    assert!(
        states.contains(&("stall", "finished")) && states.contains(&("journal-power-cut", "left_out")),
        "{states:?}"
    );
    let finished: Vec<&str> = states.iter().filter(|(_, state)| *state == "finished").map(|(name, _)| *name).collect();
    assert!(finished.len() >= 4, "{states:?}");
    assert!(said.contains(&format!("Experiment 1 of {}: {}", finished.len(), finished[0])), "{said}");
    let page = std::fs::read_to_string(out.join("index.html")).expect("the page");
    for name in &finished {
        assert!(page.contains(&format!("href=\"{name}/report.html\"")) && out.join(name).join("report.html").is_file());
    }

    std::fs::remove_dir_all(out.join("stall")).expect("removed");
    let refused = run(&arguments);
    assert!(refused.status.code() == Some(2) && stderr(&refused).contains("--resume"), "{}", stderr(&refused));
    let resumed = run(&[arguments, vec!["--resume"]].concat());
    assert_eq!(resumed.status.code(), Some(0), "{}", stderr(&resumed));
    assert!(stderr(&resumed).contains("by an earlier run") && out.join("stall/report.html").is_file());
}

#[test]
fn wrong_use_is_said_before_anything_is_done() {
    let folder = tempfile::tempdir().expect("a folder");
    let out = folder.path().join("out");
    let out_text = out.to_str().expect("a readable path");
    for (arguments, reason) in [
        (vec!["run", "flush-neighbours"], "there are: flush-neighbors, buffer-pool-size"),
        (vec!["run", "stall", "--subject", "oracle"], "oracle"),
        (
            vec!["run", "victim-policy", "--subject", "mysql"],
            "victim-policy does not run on mysql; it runs on: highwater",
        ),
        (vec!["run", "stall", "--subject", "highwater", "--device", "floppy"], "it runs on: "),
        (vec!["run", "stall", "--subject", "highwater", "--clients", "2"], "stall decides how many clients there are"),
        (vec!["run", "stall", "--subject", "highwater", "--scale", "huge"], "quick, standard, full"),
    ] {
        let output = run(&[arguments.clone(), vec!["--out", out_text]].concat());
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(stderr(&output).contains(reason), "{arguments:?}: {}", stderr(&output));
        assert!(!out.exists(), "{arguments:?}");
    }
}

#[test]
fn folders_that_cannot_be_used_are_wrong_use_without_a_word_of_resuming() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("afile");
    std::fs::write(&file, "x").expect("written");
    let (out, file) = (folder.path().join("out"), file.to_str().expect("a readable path"));
    let bad_work = [smoke("flush-neighbors", &out), vec!["--work-dir", file]].concat();
    for arguments in
        [smoke("flush-neighbors", Path::new(file)), smoke("flush-neighbors", Path::new("/proc/x1")), bad_work]
    {
        let output = run(&arguments);
        assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
        assert!(!stderr(&output).contains("--resume"), "{}", stderr(&output));
        assert!(!out.join("plan.json").exists());
    }
}

#[test]
fn the_list_names_every_experiment_with_its_devices() {
    let output = run(&["list"]);
    let text = String::from_utf8_lossy(&output.stdout);
    for name in ["flush-neighbors", "buffer-pool-size", "flush-method", "insert-buffer", "victim-policy", "stall"] {
        assert!(text.lines().any(|line| line == name), "{name}: {text}");
    }
    assert!(text.contains("samsung-850-pro-256gb") && text.contains("highwater, mysql, mariadb"), "{text}");
}
