//! The settings of the compared engines: the same for all, as far as an engine has such a setting.
//!
//! Rules
//! 1. `cache_bytes` is all that an engine may keep of the data in memory of its own: pages or blocks, and what was
//!    written and is not yet in its place. An engine that leaves caching to the operating system gets what the process
//!    is limited to.
//! 2. Durable: a commit that returned survives a power cut. Relaxed: it survives the end of the process, and at most
//!    about a second of commits is lost with the power. (redb has no level in between: a commit that it has not synced
//!    is lost with the process too.)
//! 3. Everything else is as the engine's documentation says; `docs/results/peers/settings.md` has a section on each.

use highwater_bench::Result;
use highwater_bench::peers::{self, Answer, Database, Request};
use highwater_bench::store::Store;
use std::marker::PhantomData;
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Memory for data.
    pub(crate) cache_bytes: u64,
    /// Whether a commit waits until it is durable.
    pub(crate) durable: bool,
    /// Clients there will be.
    pub(crate) clients: usize,
    /// Whether the data are larger than the memory.
    pub(crate) beyond_memory: bool,
    /// Options of Highwater by name, for Highwater only.
    pub(crate) options: Vec<(String, String)>,
}

impl From<&Request> for Settings {
    fn from(request: &Request) -> Settings {
        Settings {
            cache_bytes: request.cache_bytes,
            durable: request.durable,
            clients: request.clients,
            beyond_memory: request.beyond_memory,
            options: request.options.iter().map(|(name, value)| (name.clone(), value.clone())).collect(),
        }
    }
}

impl Settings {
    /// Of the cache, what engines with memtables get for them; the rest is their block cache.
    pub(crate) fn memtable_bytes(&self) -> u64 {
        self.cache_bytes / 4
    }
}

/// A store that can be opened and closed, and has a version.
pub(crate) trait Peer: Store {
    /// Opens or creates it in a folder.
    fn open(folder: &Path, settings: &Settings) -> Result<Self>;
    /// Makes everything durable and closes. No session and no other handle is used any more.
    fn close(self) -> Result<()>;
    fn version() -> String;
}

/// The database of a request, in this process.
struct Embedded<'r, P> {
    folder: &'r Path,
    settings: Settings,
    peer: PhantomData<P>,
}

impl<P: Peer> Database for Embedded<'_, P> {
    type Store = P;

    fn version(&self) -> String {
        P::version()
    }

    fn open(&mut self) -> Result<P> {
        P::open(self.folder, &self.settings)
    }

    fn close(&mut self, store: P) -> Result<()> {
        store.close()
    }
}

/// Does what is asked, on an engine.
pub(crate) fn measure<P: Peer>(request: &Request) -> Result<Answer> {
    let (folder, settings) = (request.folder.as_path(), Settings::from(request));
    peers::measure(request, &mut Embedded::<P> { folder, settings, peer: PhantomData })
}

/// Makes commits of an engine durable once a second that has no such thing, until it is dropped.
pub(crate) struct EverySecond {
    stop: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl EverySecond {
    /// Calls `sync` every second; the first failure ends it, and a later commit of the engine meets it too.
    pub(crate) fn start(mut sync: impl FnMut() -> Result<()> + Send + 'static) -> EverySecond {
        let (stop, stopped) = channel::<()>();
        let second = Duration::from_secs(1);
        let thread = std::thread::spawn(move || {
            while stopped.recv_timeout(second) == Err(RecvTimeoutError::Timeout) && sync().is_ok() {}
        });
        EverySecond { stop: Some(stop), thread: Some(thread) }
    }
}

impl Drop for EverySecond {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
