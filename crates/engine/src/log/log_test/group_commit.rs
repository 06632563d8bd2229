//! Threads that commit together, and power cuts under them.

use super::*;
use highwater_storage::{Request, TestDevice};

/// A device whose syncs take a while.
pub(super) fn slow(inner: Arc<dyn Device>) -> Arc<dyn Device> {
    Arc::new(TestDevice::over(inner).before(|request| {
        if matches!(request, Request::Sync) {
            std::thread::sleep(Duration::from_millis(2));
        }
        Ok(())
    }))
}

#[test]
fn threads_that_commit_together_share_syncs() {
    const THREADS: u64 = 16;
    const COMMITS: u64 = 20;
    let memory = MemoryDevice::new();
    Log::create(Arc::new(memory.clone()), 4 << 20, ID).unwrap();
    let counted = Counted::new(slow(Arc::new(memory.clone())));
    let (log, scan) = open_as(counted.clone(), FlushLog::Sync).unwrap();
    log.start(scan.end_lsn).unwrap();
    let syncs = counted.counts().syncs;
    let together = std::sync::Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for thread in 0..THREADS {
            let (log, together) = (&log, &together);
            let commit = move |n: u64| {
                let lsn = append(log, thread * 1000 + n, 200);
                log.commit(lsn, None).unwrap();
                assert!(log.durable_lsn() >= lsn);
            };
            scope.spawn(move || {
                together.wait();
                (0..COMMITS).for_each(commit);
            });
        }
    });
    let syncs = counted.counts().syncs - syncs;
    assert!(syncs * 4 < THREADS * COMMITS, "{syncs} syncs");
    let (_, scan) = open(&memory.cut(9));
    assert_eq!(scan.groups.len() as u64, THREADS * COMMITS);
}

#[test]
fn power_cuts_under_many_threads_lose_nothing_acknowledged() {
    let memory = MemoryDevice::new();
    Log::create(Arc::new(memory.clone()), 256 << 10, ID).unwrap();
    let (log, scan) = open_as(Arc::new(memory.clone()), FlushLog::Sync).unwrap();
    log.start(scan.end_lsn).unwrap();
    let acknowledged = AtomicU64::new(0);
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (log, acknowledged, stop) = (&log, &acknowledged, &stop);
            scope.spawn(move || {
                let mut n = thread;
                while !stop.load(Ordering::Relaxed) {
                    let lsn = append(log, n, 1 + (n * 131 % 2500) as usize);
                    log.flush_to(lsn).unwrap();
                    acknowledged.fetch_max(lsn.0, Ordering::SeqCst);
                    if lsn.0.saturating_sub(log.checkpoint_lsn().0) > 150 << 10 {
                        log.checkpoint(lsn).unwrap();
                    }
                    n += 4;
                }
            });
        }
        let cut_loses = |seed: &u64| {
            let before = Lsn(acknowledged.load(Ordering::SeqCst));
            open_as(Arc::new(memory.cut(*seed)), FlushLog::Sync).map_or(true, |(_, scan)| scan.end_lsn < before)
        };
        // Until the ring has gone round, however slow the machine is; not for ever, should the writers fail.
        let goes_on = |seed: &u64| *seed < 300 || (*seed < 100_000 && acknowledged.load(Ordering::SeqCst) <= 300 << 10);
        let losses: Vec<u64> = (0..).take_while(goes_on).filter(cut_loses).collect();
        stop.store(true, Ordering::Relaxed);
        assert!(losses.is_empty(), "cuts {losses:?}");
    });
    assert!(acknowledged.into_inner() > 300 << 10);
}

/// No thread writes later what a commit does not wait for, once closing has begun.
#[test]
fn a_relaxed_commit_is_durable_or_fails_once_closing_has_begun() {
    let (log, found) = open_as(Arc::new(new_device()), FlushLog::EverySecond).unwrap();
    log.start(found.end_lsn).unwrap();
    let early = append(&log, 1, 100);
    log.commit(early, None).unwrap();
    assert!(log.durable_lsn() < early);
    log.begin_closing();
    log.flush_to(log.end_lsn()).unwrap();
    let late = append(&log, 2, 100);
    log.commit(late, None).unwrap();
    assert!(log.durable_lsn() >= late);
}
