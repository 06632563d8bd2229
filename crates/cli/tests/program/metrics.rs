//! The Prometheus endpoint of a running benchmark, scraped as Prometheus would.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

fn bench(dir: &std::path::Path, listen: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_highwater"));
    command.args([
        "bench",
        "sysbench",
        "read_write",
        "--tables",
        "1",
        "--table-size",
        "2000",
        "--threads",
        "2",
        "--dir",
    ]);
    command.arg(dir).args(["--buffer-pool-size", "4M", "--log-file-size", "8M", "--metrics-listen", listen]);
    command
}

fn refused(listen: &str, reason: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let output: Output = bench(&folder.path().join("db"), listen).output().expect("the command starts");
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains(reason), "{stderr}");
}

fn request(address: &str, request: &str) -> (String, String) {
    let mut stream = TcpStream::connect(address).expect("the server answers");
    stream.write_all(request.as_bytes()).expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    assert!(head.contains(&format!("Content-Length: {}", body.len())), "{head}");
    (head.to_string(), body.to_string())
}

/// Samples by name with labels; every one has HELP and TYPE, no name comes twice.
fn parsed(text: &str) -> BTreeMap<String, f64> {
    let (mut samples, mut types) = (BTreeMap::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("# TYPE ") {
            let (name, kind) = rest.split_once(' ').expect("a name and a type");
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", name.ends_with("_total"), "{line}");
            assert!(text.contains(&format!("# HELP {name} ")), "{line}");
            assert!(types.insert(name.to_string(), kind).is_none(), "{name} twice");
        } else if !line.starts_with('#') {
            let (name, value) = line.rsplit_once(' ').expect("a name and a value");
            let bare = name.split('{').next().unwrap_or(name);
            let known = ["", "_bucket", "_sum", "_count"]
                .iter()
                .any(|end| bare.strip_suffix(end).is_some_and(|n| types.contains_key(n)));
            assert!(known && bare.starts_with("highwater_"), "{line}");
            assert!(samples.insert(name.to_string(), value.parse().expect("a number")).is_none(), "{name} twice");
        }
    }
    samples
}

#[test]
fn counters_are_scraped_during_a_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = bench(&folder.path().join("db"), "127.0.0.1:0");
    command.args(["--seconds", "60"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("the command starts");
    let mut lines = BufReader::new(child.stderr.take().expect("stderr")).lines().map_while(Result::ok);
    let line = lines.find(|line| line.starts_with("Metrics at http://")).expect("a line that says where");
    let address = line.trim_start_matches("Metrics at http://").trim_end_matches("/metrics").to_string();
    // The first line of an interval: the run is on its way.
    let mut out = BufReader::new(child.stdout.take().expect("stdout")).lines().map_while(Result::ok);
    out.find(|line| line.starts_with("[ 1s ]")).expect("an interval");
    let get = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    let (head, body) = request(&address, get);
    let first = parsed(&body);
    let help = "# HELP highwater_free_frame_waits_total Times a thread found the free list empty and waited. \
                InnoDB: buffer_pool_wait_free.";
    assert!(body.contains(help), "{body}");
    let since = Instant::now();
    let commits = |samples: &BTreeMap<String, f64>| samples["highwater_trx_commits_total"];
    while commits(&parsed(&request(&address, get).1)) <= commits(&first) {
        assert!(since.elapsed() < Duration::from_secs(50), "the counters stay as they are");
        std::thread::sleep(Duration::from_millis(20));
    }
    let accept = "GET /metrics HTTP/1.1\r\naccept: application/openmetrics-text;version=1.0.0\r\n\r\n";
    let (open_head, open) = request(&address, accept);
    let others =
        ["GET / HTTP/1.1\r\n\r\n", "POST /metrics HTTP/1.1\r\n\r\n", "\r\n\r\n"].map(|r| request(&address, r).0);
    child.kill().expect("still running");
    child.wait().expect("ended");

    assert!(head.starts_with("HTTP/1.1 200 OK") && head.contains("text/plain; version=0.0.4"), "{head}");
    assert!(open_head.contains("application/openmetrics-text; version=1.0.0") && open.ends_with("# EOF\n"));
    assert!(first.keys().any(|name| name.starts_with("highwater_build_info{version=")), "{body}");
    assert!(first["highwater_log_sync_seconds_total"] < 60.0, "seconds");
    for (answer, status) in others.iter().zip(["404", "405", "400"]) {
        assert!(answer.starts_with(&format!("HTTP/1.1 {status}")), "{answer}");
    }
    assert!(first["highwater_pool_pages_data"] > 0.0 && first.contains_key("highwater_checkpoint_age_bytes"));
    for name in ["highwater_page_read_seconds", "highwater_free_frame_wait_seconds"] {
        let all = first[&format!("{name}_bucket{{le=\"+Inf\"}}")];
        assert_eq!(first[&format!("{name}_count")], all);
        assert!(first[&format!("{name}_bucket{{le=\"1e-5\"}}")] <= all);
        assert!(first.contains_key(&format!("{name}_sum")), "{name}");
    }
    assert!(first.len() > 50, "{} samples", first.len());
}

#[test]
fn addresses_that_cannot_be_are_wrong_use() {
    refused("localhost", "is not an address and port such as 127.0.0.1:9104");
    refused("127.0.0.1:99999", "is not an address and port");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    refused(&taken.local_addr().expect("an address").to_string(), "in use");
}
