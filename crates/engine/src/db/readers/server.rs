//! The server of readers: its state, and its end.
//!
//! Rules
//! 1. One thread waits for readers (`accept`), and each reader has a thread. They keep the database open, and end with
//!    the server: at a close, or when the last handle of the program is dropped.
//! 2. `db/handle_thread.rs` says when their end is awaited.
//! 3. Only the server that created the socket's file removes it: no other database is opened in the folder while this
//!    one holds its lock.

use super::socket::{self, Stream, Waker};
use crate::db::handle_thread::HandleThread;
use crate::db::interrupt_handle::InterruptHandle;
use crate::stats::Stats;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::thread::JoinHandle;
use crate::txn::check_outside_closures;
use std::collections::HashMap;
use std::net::Shutdown;
use std::path::PathBuf;
use std::sync::Arc;

/// A reader's thread, and what ends it.
pub(super) struct Served {
    pub(super) stream: Stream,
    pub(super) interrupt: InterruptHandle,
    pub(super) thread: Option<JoinHandle<()>>,
}

impl Served {
    fn end(&self) {
        let _ = self.stream.shutdown(Shutdown::Both);
        self.interrupt.interrupt();
    }
}

/// State that the threads share.
pub(super) struct Shared {
    pub(super) stops: AtomicBool,
    pub(super) served: Mutex<HashMap<u64, Served>>,
    pub(super) max_readers: usize,
    pub(super) stats: Arc<Stats>,
}

/// Serves readers until it is dropped.
pub(in crate::db) struct ReaderServer {
    pub(super) folder: PathBuf,
    /// Ends the waiting for readers.
    pub(super) waker: Waker,
    pub(super) shared: Arc<Shared>,
    pub(super) waiting: HandleThread,
}

impl ReaderServer {
    /// Ends every connection and waits for the threads (rule 2).
    pub(in crate::db) fn stop(&self) {
        if !self.waiting.is_here() || self.shared.stops.swap(true, Ordering::AcqRel) {
            return;
        }
        let is_woken = self.waker.wake();
        socket::remove(&self.folder);
        if is_woken {
            self.waiting.join();
        }
        let served: Vec<Served> = self.shared.served.lock().drain().map(|(_, served)| served).collect();
        served.iter().for_each(Served::end);
        if check_outside_closures().is_ok() {
            served.into_iter().filter_map(|served| served.thread).for_each(|thread| drop(thread.join()));
        }
    }
}

impl Drop for ReaderServer {
    fn drop(&mut self) {
        self.stop();
    }
}
