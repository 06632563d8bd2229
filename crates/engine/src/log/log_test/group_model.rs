//! Group commit in every order of its threads' steps, and of memory (loom).

use crate::sync::checked::loom_primitives as sync;
use crate::sync::checked::model;
use crate::types::Lsn;
#[path = "../group.rs"]
mod group;

use group::{CommitGroup, Durable};
use std::sync::Arc;
use sync::Mutex;
use sync::atomic::{AtomicBool, AtomicU64, Ordering};
use sync::thread;

/// A log that is only numbers: threads append by raising `end`, and a sync makes all of it durable.
struct Numbers {
    end: AtomicU64,
    durable: AtomicU64,
    stopped: AtomicBool,
    device: Mutex<()>,
    fails: bool,
    group: CommitGroup,
}

impl Durable for Numbers {
    type Error = ();

    fn durable_lsn(&self) -> Lsn {
        Lsn(self.durable.load(Ordering::Acquire))
    }

    fn has_stopped(&self) -> bool {
        self.stopped.load(Ordering::Acquire)
    }

    fn check(&self) -> Result<(), ()> {
        if self.has_stopped() { Err(()) } else { Ok(()) }
    }

    fn write_and_sync(&self, _lsn: Lsn) -> Result<(), ()> {
        let _device = self.device.lock();
        self.check()?;
        if self.fails {
            self.stopped.store(true, Ordering::Release);
            self.group.wake_all();
            return Err(());
        }
        self.durable.store(self.end.load(Ordering::Acquire), Ordering::Release);
        Ok(())
    }
}

impl Numbers {
    fn new(fails: bool) -> Arc<Numbers> {
        Arc::new(Numbers {
            end: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            device: Mutex::new(()),
            fails,
            group: CommitGroup::default(),
        })
    }

    fn commit(&self) -> Result<(), ()> {
        let lsn = Lsn(self.end.fetch_add(1, Ordering::AcqRel) + 1);
        self.group.flush_to(self, lsn)?;
        assert!(self.durable_lsn() >= lsn, "acknowledged, and not durable");
        Ok(())
    }

    fn committer(self: &Arc<Numbers>) -> thread::JoinHandle<Result<(), ()>> {
        let log = self.clone();
        thread::spawn(move || log.commit())
    }
}

/// Three threads commit: each is served, by itself or by another. One that is not woken is a deadlock, which loom
/// finds.
#[test]
fn every_commit_is_served() {
    model(2, || {
        let log = Numbers::new(false);
        let threads = [log.committer(), log.committer()];
        log.commit().unwrap();
        threads.into_iter().for_each(|thread| thread.join().unwrap().unwrap());
        assert_eq!(log.group.waiting(), 0);
    });
}

/// The leader's sync fails while another thread joins or waits: both get the error.
#[test]
fn a_failed_sync_is_an_error_for_all() {
    model(3, || {
        let log = Numbers::new(true);
        let thread = log.committer();
        assert!(log.commit().is_err());
        assert!(thread.join().unwrap().is_err());
    });
}
