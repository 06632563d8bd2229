//! `--metrics-listen`: the engine's counters for Prometheus, in its text format (version 0.0.4), over HTTP.
//!
//! Rules
//! 1. Every counter of the engine's one table, by its name there: `highwater_NAME_total`, gauges `highwater_NAME`. What the
//!    table calls a gauge is one.
//! 2. `GET /metrics` is all there is. One request at a time, each with a limit of time and bytes: a slow client delays
//!    other scrapes by at most [`PATIENCE`], and the benchmark never.
//! 3. The server ends when it is dropped.

use crate::failure::Failure;
use highwater::Database;
use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait for a client.
const PATIENCE: Duration = Duration::from_secs(2);
/// Longest request head.
const HEAD_BYTES: usize = 8192;
/// Upper bounds of the page-read latency histogram, in microseconds.
const BOUNDS_US: [u64; 14] =
    [10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 100_000, 1_000_000, 10_000_000];

/// Reads an address for the command line.
///
/// # Errors
/// What an address looks like.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("{text:?} is not an address and port such as 127.0.0.1:9104"))
}

/// A server of metrics.
pub struct MetricsServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens at `address` and answers with what `render` writes.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the address cannot be listened at.
    pub fn start(address: SocketAddr, render: impl Fn() -> String + Send + 'static) -> Result<MetricsServer, Failure> {
        let refuse = |error| Failure::Usage(format!("cannot listen at {address} for metrics: {error}"));
        let listener = TcpListener::bind(address).map_err(refuse)?;
        let address = listener.local_addr().map_err(refuse)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::Builder::new().name("metrics".into()).spawn(move || {
            for client in listener.incoming() {
                if stopped.load(Ordering::Acquire) {
                    return;
                }
                // A client that went away is its own affair.
                let _ = client.and_then(|mut client| answer(&mut client, &render));
            }
        });
        Ok(MetricsServer { address, stop, thread: Some(thread.map_err(refuse)?) })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Wakes the thread; if nobody can connect any more, it is not waited for.
        if TcpStream::connect_timeout(&self.address, PATIENCE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn answer(client: &mut TcpStream, render: &impl Fn() -> String) -> std::io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let head = read_head(client)?;
    let mut words = head.split_whitespace();
    let (status, extra, body) = match (words.next(), words.next()) {
        (Some("GET"), Some("/metrics")) => ("200 OK", "", render()),
        (Some("GET"), Some(_)) => ("404 Not Found", "", "only /metrics is here\n".to_string()),
        (Some(_), Some(_)) => ("405 Method Not Allowed", "Allow: GET\r\n", "only GET is answered\n".to_string()),
        _ => ("400 Bad Request", "", "no HTTP request\n".to_string()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: {length}\r\n\
         {extra}Connection: close\r\n\r\n"
    );
    client.write_all(head.as_bytes())?;
    client.write_all(body.as_bytes())
}

/// The request up to its empty line, or as far as it came in time and size.
fn read_head(client: &mut TcpStream) -> std::io::Result<String> {
    let (start, mut head, mut part) = (Instant::now(), Vec::new(), [0; 1024]);
    while head.len() < HEAD_BYTES && !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = PATIENCE.saturating_sub(start.elapsed());
        if left.is_zero() {
            break;
        }
        client.set_read_timeout(Some(left))?;
        match client.read(&mut part)? {
            0 => break,
            read => head.extend_from_slice(&part[..read]),
        }
    }
    Ok(String::from_utf8_lossy(&head).into_owned())
}

/// Every counter of the database, and the latency of page reads.
pub fn render(database: &Database) -> String {
    let mut out = String::new();
    for (name, doc, value) in database.stats().table() {
        let (name, kind, help) = match doc.strip_prefix("Gauge: ") {
            Some(help) => (format!("highwater_{name}"), "gauge", help),
            None => (format!("highwater_{name}_total"), "counter", doc),
        };
        let help = help.replace('\\', "\\\\").replace('\n', " ");
        // Writing to a String cannot fail.
        let _ = writeln!(out, "# HELP {name} {help}\n# TYPE {name} {kind}\n{name} {value}");
    }
    latency(&mut out, database);
    out
}

fn latency(out: &mut String, database: &Database) {
    let (name, found) = ("highwater_page_read_latency_us", database.page_read_latency());
    let _ = writeln!(
        out,
        "# HELP {name} Microseconds from missing a page to reading it, with the wait for a frame.\n# TYPE {name} histogram"
    );
    for bound in BOUNDS_US {
        let _ = writeln!(out, "{name}_bucket{{le=\"{bound}\"}} {}", found.count_within_us(bound));
    }
    let count = found.count();
    let _ = writeln!(out, "{name}_bucket{{le=\"+Inf\"}} {count}\n{name}_count {count}");
}
