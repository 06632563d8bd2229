//! `--metrics-listen`: the engine's metrics for Prometheus over HTTP.
//!
//! Rules
//! 1. The text is the engine's (`Database::metrics_text`), in the format that the request accepts: Prometheus' text
//!    format 0.0.4 or OpenMetrics.
//! 2. Only `GET /metrics` and `HEAD /metrics` are answered; text after a `?` is ignored.
//! 3. Each client has a separate thread, and a limit of time and bytes. If there are [`MAX_CLIENTS`], a new client
//!    replaces the oldest one, so that silent clients delay neither other scrapes nor the benchmark.
//! 4. A drop ends the server and all clients, so that none of them keeps the database open.

use crate::failure::Failure;
use highwater::MetricsFormat;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Longest wait for a client.
const TIMEOUT: Duration = Duration::from_millis(500);
/// Clients at the same time.
const MAX_CLIENTS: usize = 16;
/// Longest request head.
const HEAD_BYTES: usize = 8192;
/// Reads an address for the command line.
///
/// # Errors
/// What an address looks like.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    text.parse().map_err(|_| format!("{text:?} is not an address and port such as 127.0.0.1:9104"))
}

pub(crate) struct MetricsServer {
    address: SocketAddr,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MetricsServer {
    /// Listens at `address` and answers with what `render` writes.
    ///
    /// # Errors
    /// [`Failure::Usage`] if the address cannot be listened at.
    pub(crate) fn start(
        address: SocketAddr,
        render: impl Fn(MetricsFormat) -> String + Send + Sync + 'static,
    ) -> Result<MetricsServer, Failure> {
        let refuse = |error| Failure::Usage(format!("cannot listen at {address} for metrics: {error}"));
        let listener = TcpListener::bind(address).map_err(refuse)?;
        let address = listener.local_addr().map_err(refuse)?;
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread =
            std::thread::Builder::new().name("metrics".into()).spawn(move || serve(&listener, &stopped, &render));
        Ok(MetricsServer { address, stop, thread: Some(thread.map_err(refuse)?) })
    }

    /// The address on which it listens.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for MetricsServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        // Wakes the thread; if no connection is possible, the thread is not waited for.
        if TcpStream::connect_timeout(&self.address, TIMEOUT).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

/// Answers clients until `stopped`.
fn serve(listener: &TcpListener, stopped: &AtomicBool, render: &(impl Fn(MetricsFormat) -> String + Sync)) {
    let clients = Clients::default();
    std::thread::scope(|scope| {
        for client in listener.incoming() {
            if stopped.load(Ordering::Acquire) {
                break;
            }
            let Ok(mut client) = client else { continue };
            // A client that left, or for which no thread can be made, does not stop the server.
            let Ok(place) = clients.enter(&client) else { continue };
            let _ = std::thread::Builder::new().name("metrics client".into()).spawn_scoped(scope, move || {
                let _ = answer(&mut client, render);
                drop(place);
            });
        }
        clients.end_all();
    });
}

/// The clients being answered, oldest first.
#[derive(Default)]
struct Clients {
    connected: Mutex<(u64, VecDeque<(u64, TcpStream)>)>,
}

/// A client's place among the [`Clients`]; given up when dropped.
struct Place<'a> {
    clients: &'a Clients,
    number: u64,
}

impl Clients {
    /// Takes a slot for `client`, if necessary that of the oldest client, whose connection ends.
    fn enter(&self, client: &TcpStream) -> std::io::Result<Place<'_>> {
        let handle = client.try_clone()?;
        let mut connected = self.connected.lock();
        let (next, all) = &mut *connected;
        if all.len() == MAX_CLIENTS
            && let Some((_, oldest)) = all.pop_front()
        {
            // It may have ended by itself.
            let _ = oldest.shutdown(Shutdown::Both);
        }
        *next += 1;
        all.push_back((*next, handle));
        Ok(Place { clients: self, number: *next })
    }

    fn end_all(&self) {
        for (_, client) in &self.connected.lock().1 {
            let _ = client.shutdown(Shutdown::Both);
        }
    }
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        self.clients.connected.lock().1.retain(|(number, _)| *number != self.number);
    }
}

fn answer(client: &mut TcpStream, render: &impl Fn(MetricsFormat) -> String) -> std::io::Result<()> {
    client.set_write_timeout(Some(TIMEOUT))?;
    let head = read_head(client)?;
    let mut words = head.split_whitespace();
    let method = words.next();
    let path = words.next().map(|target| target.split('?').next().unwrap_or(target));
    let format = accepted(&head);
    let (status, extra, body) = match (method, path) {
        (Some("GET" | "HEAD"), Some("/metrics")) => ("200 OK", "", render(format)),
        (Some("GET" | "HEAD"), Some(_)) => ("404 Not Found", "", "this server has only /metrics\n".to_string()),
        (Some(_), Some(_)) => {
            ("405 Method Not Allowed", "Allow: GET, HEAD\r\n", "only GET and HEAD are answered\n".to_string())
        }
        _ => ("400 Bad Request", "", "no HTTP request\n".to_string()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {}\r\nContent-Length: {length}\r\n\
         {extra}Connection: close\r\n\r\n",
        format.content_type()
    );
    client.write_all(head.as_bytes())?;
    if method == Some("HEAD") { Ok(()) } else { client.write_all(body.as_bytes()) }
}

/// The format that the lines of a request's head ask for.
fn accepted(head: &str) -> MetricsFormat {
    let value = |line: &str| {
        let (name, value) = line.split_once(':')?;
        name.trim().eq_ignore_ascii_case("accept").then(|| value.to_string())
    };
    head.lines().find_map(value).map_or(MetricsFormat::default(), |value| MetricsFormat::accepted(&value))
}

/// The request up to its empty line, or as far as it came in time and size.
fn read_head(client: &mut TcpStream) -> std::io::Result<String> {
    let (start, mut head, mut part) = (Instant::now(), Vec::new(), [0; 1024]);
    while head.len() < HEAD_BYTES && !head.windows(4).any(|four| four == b"\r\n\r\n") {
        let left = TIMEOUT.saturating_sub(start.elapsed());
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

#[cfg(test)]
mod tests {
    use super::*;

    fn server() -> MetricsServer {
        let address = SocketAddr::from(([127, 0, 0, 1], 0));
        MetricsServer::start(address, |_| "all is well\n".to_string()).expect("a port")
    }

    fn ask(server: &MetricsServer, request: &str) -> String {
        let mut client = TcpStream::connect(server.address()).expect("a connection");
        client.write_all(request.as_bytes()).expect("a request");
        let mut answer = String::new();
        client.read_to_string(&mut answer).expect("an answer");
        answer
    }

    #[test]
    fn silent_clients_delay_no_thread_and_end_with_the_server() {
        let server = server();
        let connect = |_| TcpStream::connect(server.address()).expect("a connection");
        let silent: Vec<TcpStream> = (0..3 * MAX_CLIENTS).map(connect).collect();
        let started = Instant::now();
        assert!(ask(&server, "GET /metrics HTTP/1.1\r\n\r\n").ends_with("\r\n\r\nall is well\n"));
        assert!(started.elapsed() < 3 * TIMEOUT, "{:?}", started.elapsed());
        drop(server);
        for mut client in silent {
            client.set_read_timeout(Some(TIMEOUT)).expect("a timeout");
            assert!(client.read_to_end(&mut Vec::new()).is_ok(), "the server has ended the connection");
        }
    }

    #[test]
    fn a_query_is_ignored_and_head_has_no_body() {
        let server = server();
        assert!(ask(&server, "GET /metrics?x=1 HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 OK"));
        let head = ask(&server, "HEAD /metrics HTTP/1.1\r\n\r\n");
        assert!(head.starts_with("HTTP/1.1 200 OK") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(head.contains("Content-Length: 12\r\n"), "{head}");
        assert!(ask(&server, "GET /metricsx HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404"));
        assert!(ask(&server, "PUT /metrics HTTP/1.1\r\n\r\n").contains("Allow: GET, HEAD"));
    }
}
