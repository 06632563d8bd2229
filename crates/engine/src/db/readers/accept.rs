//! Readers are accepted: the thread that waits for them, and the start of a thread for each. The rules are those of
//! [`super::server`].

use super::connection::Connection;
use super::message::{Answer, Failure, put_message};
use super::offers::{Offers, OwnOffer};
use super::server::{ReaderServer, Served, Shared};
use super::socket::{Listener, Stream};
use crate::db::database::Database;
use crate::db::handle_thread::HandleThread;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicBool, Ordering};
use crate::sync::event::event;
use crate::sync::thread::{Builder, sleep};
use std::io::{Result as IoResult, Write};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Pause when the process has no file descriptor or thread left for a reader.
const EXHAUSTED_PAUSE: Duration = Duration::from_millis(100);

impl ReaderServer {
    /// Serves readers of a database in a folder; `None` if there can be no socket (rule 6 of the module).
    pub(in crate::db) fn start(db: &Database) -> Option<Arc<ReaderServer>> {
        let max_readers = db.options().max_readers as usize;
        let folder = db.storage().folders()?.0.to_path_buf();
        if max_readers == 0 {
            return None;
        }
        match ReaderServer::listen(db, &folder, max_readers) {
            Ok(server) => Some(Arc::new(server)),
            Err(error) => {
                event!(WARN, folder = folder.display(), error = error, "readers of other processes are not served");
                None
            }
        }
    }

    fn listen(db: &Database, folder: &Path, max_readers: usize) -> IoResult<ReaderServer> {
        let listener = Listener::bind(folder)?;
        let waker = listener.waker(folder)?;
        let stats = Arc::clone(&db.inner.ctx.stats);
        let (stops, served) = (AtomicBool::new(false), Mutex::default());
        let shared = Arc::new(Shared { stops, served, max_readers, stats });
        let (db, thread_shared) = (db.clone(), Arc::clone(&shared));
        let wait = move || thread_shared.wait(&db, &listener);
        let waiting = HandleThread::new(Builder::new().name("hw-readers".to_string()).spawn(wait)?);
        Ok(ReaderServer { folder: folder.to_path_buf(), waker, shared, waiting })
    }
}

impl Shared {
    /// Waits for readers until the server stops.
    fn wait(self: Arc<Shared>, db: &Database, listener: &Listener) {
        let offers = Arc::new(Offers::default());
        for number in 0.. {
            let accepted = listener.accept();
            if self.stops.load(Ordering::Acquire) {
                return;
            }
            let begun = accepted.and_then(|stream| Arc::clone(&self).begin(number, db, stream, &offers));
            if let Err(error) = begun {
                event!(WARN, error = error, "a reader is not served");
                sleep(EXHAUSTED_PAUSE);
            }
        }
    }

    /// Starts the thread of a reader.
    fn begin(self: Arc<Shared>, number: u64, db: &Database, mut stream: Stream, offers: &Arc<Offers>) -> IoResult<()> {
        let mut served = self.served.lock();
        if served.len() >= self.max_readers {
            let mut refusal = Vec::new();
            let reason = format!("{} processes or snapshots read already, as many as max_readers allows", served.len());
            put_message(&Answer::Failed(Failure::Other(reason)), &mut refusal);
            // Short enough for the socket's buffer.
            return stream.write_all(&refusal);
        }
        let interrupt = db.interrupt_handle();
        let offer = OwnOffer::new(Arc::clone(offers));
        let connection = Connection::new(db.with_interrupt(&interrupt), stream.try_clone()?, offer);
        let shared = Arc::clone(&self);
        let serve = move || {
            // A panic is the end of this reader alone: it has changed nothing.
            let _ = catch_unwind(AssertUnwindSafe(|| connection.serve()));
            let mut served = shared.served.lock();
            served.remove(&number);
            shared.stats.readers.set(served.len() as u64);
        };
        let thread = Builder::new().name(format!("hw-reader-{number}")).spawn(serve)?;
        let another = served.insert(number, Served { stream, interrupt, thread: Some(thread) });
        debug_assert!(another.is_none(), "two readers have the number {number}");
        debug_assert!(served.len() <= self.max_readers, "{} readers of {}", served.len(), self.max_readers);
        self.stats.readers.set(served.len() as u64);
        self.stats.readers_served.inc();
        Ok(())
    }
}
