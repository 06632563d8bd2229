//! Group commit: the leader, those it serves, the one it makes the next leader; power cuts and failures meanwhile.

use super::device::taking_turns;
use super::explore;
use crate::config::FlushLog;
use crate::error::Error;
use crate::log::{Log, format};
use crate::sync::atomic::{AtomicU64, Ordering::SeqCst};
use crate::sync::poison::Poison;
use crate::sync::thread::{self, JoinHandle};
use crate::types::Lsn;
use highwater_storage::{Device, FaultKind, Faults, MemoryDevice, Operation};
use shuttle::rand::{Rng, thread_rng};
use std::sync::Arc;

const ID: u64 = 0xDB;
const SIZE_BYTES: u64 = 18 * format::BLOCK_BYTES;
const COMMITTERS: u64 = 3;

fn open(device: Arc<dyn Device>, poison: Arc<Poison>) -> (Arc<Log>, Lsn) {
    let (log, scan) = Log::open(device, 1 << 20, FlushLog::Sync, ID, None, Arc::default(), poison).unwrap();
    (log, scan.end_lsn)
}

/// A new log on `memory`, started, over a device that `wrap` makes.
fn started(memory: &MemoryDevice, wrap: impl FnOnce(Arc<dyn Device>) -> Arc<dyn Device>) -> Arc<Log> {
    Log::create(Arc::new(memory.clone()), SIZE_BYTES, ID).unwrap();
    let (log, end) = open(taking_turns(Arc::new(memory.clone())), Arc::default());
    drop(log);
    let (log, _) = open(wrap(taking_turns(Arc::new(memory.clone()))), Arc::default());
    log.start(end).unwrap();
    log
}

/// Threads that append and commit twice each, until an error; `acknowledged` is the end of what was.
fn committers(log: &Arc<Log>, acknowledged: &Arc<AtomicU64>) -> Vec<JoinHandle<Option<Error>>> {
    let commit_twice = |log: &Log, acknowledged: &AtomicU64, thread: u64| {
        for n in 0..2 {
            let payload = vec![thread as u8; 40 + 100 * n];
            let reservation = log.reserve(payload.len() as u64)?;
            let lsn = log.append(reservation, &payload, |_, _| {});
            log.commit(lsn, None)?;
            assert!(log.durable_lsn() >= lsn);
            acknowledged.fetch_max(lsn.0, SeqCst);
        }
        Ok(())
    };
    (0..COMMITTERS)
        .map(|number| {
            let (log, acknowledged) = (log.clone(), acknowledged.clone());
            thread::spawn(move || commit_twice(&log, &acknowledged, number).err())
        })
        .collect()
}

/// After a power cut now the log holds all redo that was acknowledged before it.
fn assert_a_cut_keeps(memory: &MemoryDevice, acknowledged: &AtomicU64) {
    let before = Lsn(acknowledged.load(SeqCst));
    let cut = memory.cut(thread_rng().r#gen());
    let (_, end) = open(Arc::new(cut), Arc::default());
    assert!(end >= before, "{before} was acknowledged, and the log ends at {end}");
}

/// Threads commit at the same time, and the power is cut at any moment. All are served, and nothing that was
/// acknowledged is lost.
pub fn commits_that_share_a_sync_survive_a_power_cut() {
    explore(400, || {
        let memory = MemoryDevice::named("redo", format::BLOCK_BYTES as usize);
        let log = started(&memory, |device| device);
        let acknowledged = Arc::new(AtomicU64::new(0));
        let committers = committers(&log, &acknowledged);
        assert_a_cut_keeps(&memory, &acknowledged);
        committers.into_iter().for_each(|thread| assert!(thread.join().unwrap().is_none()));
        assert_a_cut_keeps(&memory, &acknowledged);
        assert_eq!(log.durable_lsn(), log.end_lsn());
    });
}

/// A sync or a write fails while threads wait for it: each of them gets the error, none waits on, and no commit that is
/// not durable returns success.
pub fn a_failed_sync_wakes_all_that_wait_for_it() {
    explore(400, || {
        let memory = MemoryDevice::named("redo", format::BLOCK_BYTES as usize);
        let faults = Faults::new();
        let log = started(&memory, |device| faults.wrap(device));
        let (operation, nth) = (thread_rng().gen_bool(0.8), thread_rng().gen_range(1..3));
        faults.fail(if operation { Operation::Sync } else { Operation::Write }, nth, FaultKind::ErrorForGood);
        let acknowledged = Arc::new(AtomicU64::new(0));
        let errors: Vec<_> = committers(&log, &acknowledged).into_iter().map(|thread| thread.join().unwrap()).collect();
        if faults.failures() > 0 {
            assert!(log.commit(log.end_lsn(), None).is_err(), "the log continues after a failure");
            assert!(errors.iter().any(|error| matches!(error, Some(Error::Storage(_)))), "{errors:?}");
        }
        let expected = |error: &Error| matches!(error, Error::Storage(_) | Error::Poisoned(_));
        assert!(errors.iter().flatten().all(expected), "{errors:?}");
        assert_a_cut_keeps(&memory, &acknowledged);
    });
}
