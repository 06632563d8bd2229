//! `highwater top DIR`: a live page of the metrics of the process that has a database open; `top ADDRESS`: the same
//! from the metrics that a process serves.
//!
//! Rules
//! 1. Nothing but the metrics is read (`Database::metrics_text`, which `bench --metrics-listen` serves, and each
//!    process to readers of its database): every program can be observed, and none is slowed by it.
//! 2. Rates are differences between two readings, divided by the time between them. A decreased counter belongs to
//!    another process: the previous reading is dropped.
//! 3. On a terminal the page is written again each interval, over itself, until Ctrl-C. Elsewhere, and with `--once`,
//!    each page is printed after the previous one.

use crate::failure::Failure;
use crate::output::Lines;
use crate::signals;
use clap::Args;
use highwater::{Database, MetricsFormat};
use highwater_bench::interrupt;
use std::collections::HashMap;
use std::fmt::{self, Write as _};
use std::io::{IsTerminal, Read, Write};
use std::net::{TcpStream, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

const EXAMPLES: &str = "\
Examples:
  highwater top /srv/shop
  highwater top 127.0.0.1:9104
  highwater top http://127.0.0.1:9104/metrics --interval 5
  highwater top 127.0.0.1:9104 --once

A folder is that of a database that a process on this machine has open. Over the network a program serves its metrics
with Database::metrics_text; `highwater bench ... --metrics-listen 127.0.0.1:9104` does.";

/// Longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer.
const MAX_BYTES: u64 = 16 << 20;

/// Show what a running process does
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct TopArgs {
    /// Folder of the database; or where the process serves its metrics: HOST:PORT, or the whole address
    #[arg(value_name = "DIR|ADDRESS:PORT")]
    target: String,
    /// Print one page, of one interval, and end
    #[arg(long)]
    once: bool,
    /// Seconds between two pages
    #[arg(long, default_value = "1", value_name = "SECONDS", value_parser = interval)]
    interval: Duration,
}

fn interval(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.05..=3600.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "seconds, from 0.05 to 3600".to_string())
}

/// Runs `top`.
///
/// # Errors
/// [`Failure::Usage`] if the target is neither a folder nor an address, [`Failure::Failed`] if nothing answers there
/// with metrics.
pub(crate) fn run(args: &TopArgs) -> Result<(), Failure> {
    signals::stop(None)?;
    let target = Target::of(&args.target)?;
    let lines = Lines { stdout_taken: false };
    let is_screen = !args.once && std::io::stdout().is_terminal();
    let mut before = target.read()?;
    loop {
        let until = before.at + args.interval;
        while let left = until.saturating_duration_since(Instant::now())
            && !left.is_zero()
        {
            if interrupt::is_requested() {
                return Ok(());
            }
            std::thread::sleep(left.min(Duration::from_millis(100)));
        }
        let now = target.read()?;
        let page = page(&target.to_string(), &before, &now);
        match is_screen {
            // To the upper left corner; each line ends by clearing its rest, the page by clearing what is below.
            true => lines.write(&format!("\x1b[H{}\x1b[J", page.replace('\n', "\x1b[K\n"))),
            false => lines.write(&page),
        }
        if args.once || interrupt::is_requested() {
            return Ok(());
        }
        before = now;
    }
}

/// The observed database or address.
#[derive(Debug, PartialEq)]
enum Target {
    Folder(PathBuf),
    Address { host: String, path: String },
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Target::Folder(folder) => write!(f, "{}", folder.display()),
            Target::Address { host, .. } => f.write_str(host),
        }
    }
}

impl Target {
    fn of(text: &str) -> Result<Target, Failure> {
        if Path::new(text).is_dir() {
            return Ok(Target::Folder(PathBuf::from(text)));
        }
        let (host, path) = address(text)?;
        Ok(Target::Address { host, path })
    }

    fn read(&self) -> Result<Reading, Failure> {
        let body = match self {
            Target::Folder(folder) => Database::open_reader(folder)?.metrics_text(MetricsFormat::Prometheus)?,
            Target::Address { host, path } => served(host, path)?,
        };
        let reading = parse(&body, Instant::now());
        match reading.samples.contains_key("highwater_trx_commits_total") {
            true => Ok(reading),
            false => Err(Failure::Failed(format!("{self}: these are no metrics of a Highwater database"))),
        }
    }
}

/// The host with its port, and the path, of an address.
fn address(text: &str) -> Result<(String, String), Failure> {
    let rest = text.strip_prefix("http://").unwrap_or(text);
    let (host, path) = rest.split_once('/').map_or((rest, "metrics"), |(host, path)| (host, path));
    let has_port = host.rsplit_once(':').is_some_and(|(name, port)| !name.is_empty() && port.parse::<u16>().is_ok());
    match has_port {
        true => Ok((host.to_string(), if path.is_empty() { "metrics" } else { path }.to_string())),
        false => {
            let what = "is neither the folder of a database nor an address and port such as 127.0.0.1:9104";
            Err(Failure::Usage(format!("{text:?} {what}")))
        }
    }
}

struct Reading {
    at: Instant,
    samples: HashMap<String, f64>,
    version: String,
}

/// The response of an address.
fn served(host: &str, path: &str) -> Result<String, Failure> {
    let failed = |what: String| Failure::Failed(format!("http://{host}/{path}: {what}"));
    let body = fetch(host, path).map_err(|error| failed(error.to_string()))?;
    let (head, body) = body.split_once("\r\n\r\n").ok_or_else(|| failed("the answer is not HTTP".to_string()))?;
    let status = head.split_whitespace().nth(1).unwrap_or_default();
    if status != "200" {
        return Err(failed(format!("the answer is {}", head.lines().next().unwrap_or_default())));
    }
    Ok(body.to_string())
}

fn fetch(host: &str, path: &str) -> std::io::Result<String> {
    let mut failure = std::io::Error::other("the name has no address");
    for address in host.to_socket_addrs()? {
        let mut stream = match TcpStream::connect_timeout(&address, TIMEOUT) {
            Ok(stream) => stream,
            Err(error) => {
                failure = error;
                continue;
            }
        };
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.set_write_timeout(Some(TIMEOUT))?;
        write!(stream, "GET /{path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/plain\r\nConnection: close\r\n\r\n")?;
        let mut answer = Vec::new();
        stream.take(MAX_BYTES).read_to_end(&mut answer)?;
        return Ok(String::from_utf8_lossy(&answer).into_owned());
    }
    Err(failure)
}

/// The samples of a text; other lines are skipped.
fn parse(text: &str, at: Instant) -> Reading {
    let (mut samples, mut version) = (HashMap::new(), String::new());
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let Some((name, value)) = line.rsplit_once(' ') else { continue };
        if let Some(label) = name.strip_prefix("highwater_build_info{version=\"") {
            version = label.trim_end_matches("\"}").to_string();
        }
        if let Ok(value) = value.parse() {
            samples.insert(name.to_string(), value);
        }
    }
    Reading { at, samples, version }
}

/// The differences between two readings.
struct Between<'r> {
    before: &'r Reading,
    now: &'r Reading,
    seconds: f64,
}

impl Between<'_> {
    fn gauge(&self, name: &str) -> f64 {
        self.now.samples.get(&format!("highwater_{name}")).copied().unwrap_or(0.0)
    }

    /// The growth of a counter, or of a sample of a histogram.
    fn growth(&self, name: &str) -> f64 {
        let of = |reading: &Reading| reading.samples.get(&format!("highwater_{name}")).copied().unwrap_or(0.0);
        (of(self.now) - of(self.before)).max(0.0)
    }

    fn rate(&self, counter: &str) -> f64 {
        self.growth(&format!("{counter}_total")) / self.seconds
    }

    /// Seconds that are not exceeded by 99 of 100 of what a histogram has counted; `None` if that is nothing.
    fn p99(&self, name: &str) -> Option<f64> {
        let count = self.growth(&format!("{name}_seconds_count"));
        let prefix = format!("highwater_{name}_seconds_bucket{{le=\"");
        let bounds = self.now.samples.keys().filter_map(|key| key.strip_prefix(&prefix)?.strip_suffix("\"}"));
        let mut bounds: Vec<(f64, &str)> = bounds.filter_map(|text| Some((text.parse().ok()?, text))).collect();
        bounds.sort_by(|a, b| a.0.total_cmp(&b.0));
        let within = |text: &str| self.growth(&format!("{name}_seconds_bucket{{le=\"{text}\"}}"));
        let found = bounds.iter().find(|(_, text)| within(text) >= 0.99 * count);
        found.filter(|_| count > 0.0).map(|(bound, _)| *bound)
    }
}

/// A rate or a count, in at most six characters.
fn number(value: f64) -> String {
    match value {
        value if value < 9.95 && value.fract() != 0.0 => format!("{value:.1}"),
        value if value < 99_999.5 => format!("{value:.0}"),
        value if value < 9_999_500.0 => format!("{:.0}k", value / 1e3),
        value => format!("{:.0}M", value / 1e6),
    }
}

fn bytes(value: f64) -> String {
    match value {
        value if value < 9_999.5 => format!("{value:.0} B"),
        value if value < 9_999.5 * 1024.0 => format!("{:.0} KiB", value / 1024.0),
        value if value < 9_999.5 * 1_048_576.0 => format!("{:.0} MiB", value / 1_048_576.0),
        value => format!("{:.1} GiB", value / 1_073_741_824.0),
    }
}

fn seconds(value: Option<f64>) -> String {
    match value {
        None => "-".to_string(),
        Some(value) if value < 0.001 => format!("{:.0} us", value * 1e6),
        Some(value) if value < 1.0 => format!("{:.1} ms", value * 1e3),
        Some(value) if value.is_finite() => format!("{value:.0} s"),
        Some(_) => "more than 10 s".to_string(),
    }
}

fn percent(part: f64, whole: f64) -> String {
    if whole > 0.0 { format!("{:.0}%", part * 100.0 / whole) } else { "-".to_string() }
}

fn page(host: &str, before: &Reading, now: &Reading) -> String {
    let commits = "highwater_trx_commits_total";
    let is_other = now.samples.get(commits) < before.samples.get(commits);
    let before = if is_other { now } else { before };
    let seconds = now.at.saturating_duration_since(before.at).as_secs_f64().max(1e-3);
    let between = Between { before, now, seconds };
    let mut out = format!("Highwater {} at {host}; each second, over {seconds:.1} s\n", now.version);
    for (title, rows) in [
        ("Transactions", transactions(&between)),
        ("Buffer pool", pool(&between)),
        ("Redo log", redo(&between)),
        ("Flushing", flushing(&between)),
        ("Waits", waits(&between)),
        ("Purge", purge(&between)),
    ] {
        let _ = writeln!(out, "\n{title}");
        for cells in rows.chunks(4) {
            let cells: Vec<String> = cells.iter().map(|(name, value)| format!("{name:<15} {value:>10}")).collect();
            let _ = writeln!(out, "  {}", cells.join("   ").trim_end());
        }
    }
    out.truncate(out.trim_end().len());
    out
}

type Cells = Vec<(&'static str, String)>;

fn transactions(b: &Between<'_>) -> Cells {
    let rate = |name| number(b.rate(name));
    vec![
        ("commits", rate("trx_commits")),
        ("rollbacks", rate("trx_rollbacks")),
        ("deadlocks", rate("deadlocks")),
        ("lock timeouts", rate("row_lock_timeouts")),
        ("rows read", rate("rows_read")),
        ("inserted", rate("rows_inserted")),
        ("updated", rate("rows_updated")),
        ("deleted", rate("rows_deleted")),
    ]
}

fn pool(b: &Between<'_>) -> Cells {
    let (page, total) = (b.gauge("page_bytes"), b.gauge("pool_pages"));
    let (free, dirty) = (b.gauge("pool_pages_free"), b.gauge("pool_pages_dirty"));
    vec![
        ("size", bytes(total * page)),
        ("free", percent(free, total)),
        ("LRU list", number(b.gauge("pool_pages_lru"))),
        ("dirty", percent(dirty, total)),
        ("pages read", number(b.rate("pages_read"))),
        ("read ahead", number(b.rate("pages_read_ahead"))),
        ("evicted", number(b.rate("pages_evicted"))),
        ("read p99", seconds(b.p99("page_read"))),
    ]
}

fn redo(b: &Between<'_>) -> Cells {
    let (age, size) = (b.gauge("checkpoint_age_bytes"), b.gauge("log_file_size_bytes"));
    let (syncs, spent) = (b.growth("log_syncs_total"), b.growth("log_sync_seconds_total"));
    vec![
        ("bytes", bytes(b.rate("redo_bytes"))),
        ("syncs", number(b.rate("log_syncs"))),
        ("sync takes", seconds((syncs > 0.0).then(|| spent / syncs))),
        ("commits/sync", number(if syncs > 0.0 { b.growth("trx_commits_total") / syncs } else { 0.0 })),
        ("checkpoint age", bytes(age)),
        ("of the log", percent(age, size)),
        ("checkpoints", number(b.rate("checkpoints"))),
        ("archive lag", bytes(b.gauge("redo_archive_lag_bytes"))),
    ]
}

fn flushing(b: &Between<'_>) -> Cells {
    let rate = |name| number(b.rate(name));
    let written = ["index_leaf", "index_inner", "undo", "change_buffer", "other", "doublewrite", "journal"];
    let written: f64 = written.iter().map(|what| b.rate(&format!("bytes_written_{what}"))).sum();
    vec![
        ("pages", rate("pages_flushed")),
        ("LRU tail", rate("pages_flushed_lru_list")),
        ("dirty limit", rate("pages_flushed_dirty_pct")),
        ("redo age", rate("pages_flushed_checkpoint_age")),
        ("idle", rate("pages_flushed_idle")),
        ("sync", rate("pages_flushed_sync")),
        ("single page", rate("pages_flushed_single_page")),
        ("bytes", bytes(written)),
    ]
}

fn waits(b: &Between<'_>) -> Cells {
    // Seconds that threads waited in each second.
    let waited = |name: &str| seconds(Some(b.rate(&format!("{name}_seconds"))));
    vec![
        ("row locks", waited("row_lock_wait")),
        ("waiting now", number(b.gauge("row_lock_current_waits"))),
        ("free frames", waited("free_frame_wait")),
        ("log buffer", waited("log_wait")),
        ("doublewrite", waited("doublewrite_wait")),
        ("journal", waited("journal_wait")),
        ("sync flush", waited("sync_flush_wait")),
        ("free segments", waited("store_clean_wait")),
    ]
}

fn purge(b: &Between<'_>) -> Cells {
    vec![
        ("purged", number(b.rate("purged_records"))),
        ("history", number(b.gauge("history_list_length"))),
        ("undo", bytes(b.gauge("undo_bytes"))),
        ("oldest view", seconds(Some(b.gauge("oldest_view_age_seconds")))),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reading(text: &str, at: Instant) -> Reading {
        parse(text, at)
    }

    #[test]
    fn rates_and_latencies_are_differences() {
        let start = Instant::now();
        let text = |commits: u64, fast: u64, all: u64| {
            format!(
                "# HELP x y\nhighwater_build_info{{version=\"1.2.3\"}} 1\nhighwater_trx_commits_total {commits}\n\
                 highwater_page_read_seconds_bucket{{le=\"0.0001\"}} {fast}\n\
                 highwater_page_read_seconds_bucket{{le=\"+Inf\"}} {all}\nhighwater_page_read_seconds_count {all}\n\
                 highwater_row_lock_wait_seconds_total {}.5\nhighwater_pool_pages 200\n\
                 highwater_pool_pages_dirty 50\n",
                commits / 1000
            )
        };
        let before = reading(&text(1000, 10, 10), start);
        let now = reading(&text(5000, 1010, 1011), start + Duration::from_secs(2));
        let shown = page("host:1", &before, &now);
        for part in [
            "Highwater 1.2.3 at host:1",
            "commits               2000",
            "read p99            100 us",
            "dirty                  25%",
        ] {
            assert!(shown.contains(part), "{part:?} is not in\n{shown}");
        }
        assert!(shown.contains("row locks              2 s"), "{shown}");
        // Another process at the same address.
        assert!(page("host:1", &now, &before).contains("commits                  0"));
    }

    #[test]
    fn numbers_stay_short() {
        let shown: Vec<String> = [0.0, 0.25, 12.4, 99_999.0, 123_456.0, 2e9].map(number).to_vec();
        assert_eq!(shown, ["0", "0.2", "12", "99999", "123k", "2000M"]);
        assert_eq!([12.0, 1e6, 5e9, 5e12].map(bytes).to_vec(), ["12 B", "977 KiB", "4768 MiB", "4656.6 GiB"]);
        let times = [Some(0.000_02), Some(0.5), Some(3.0), Some(f64::INFINITY), None].map(seconds);
        assert_eq!(times.to_vec(), ["20 us", "500.0 ms", "3 s", "more than 10 s", "-"]);
    }

    #[test]
    fn addresses() {
        let of = |text: &str| address(text).map_err(|failure| failure.to_string());
        assert_eq!(of("127.0.0.1:9104"), Ok(("127.0.0.1:9104".to_string(), "metrics".to_string())));
        assert_eq!(of("http://db.example:80/x/m"), Ok(("db.example:80".to_string(), "x/m".to_string())));
        assert!(of("/srv/shop").unwrap_err().contains("neither the folder of a database nor an address"));
        assert!(of("localhost").is_err() && of(":80").is_err());
    }
}
