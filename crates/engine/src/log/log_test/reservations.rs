//! Space in the ring: which threads wait, and what wakes them.

use super::*;

#[test]
fn reservations_are_released() {
    let log = started(&new_device());
    for n in 0..100 {
        drop(log.reserve(CAPACITY - 28 * n - 8).unwrap());
        log.append(log.reserve(CAPACITY / 2).unwrap(), &payload(n, 20), |_, _| {});
    }
    let rest = CAPACITY - 100 * 28;
    drop(log.reserve(rest - 8).unwrap());
    log.checkpoint(log.end_lsn()).unwrap();
    drop(log.reserve(CAPACITY - 8).unwrap());
    assert_eq!(log.ring().stats().log_waits.get(), 0);
}

#[test]
fn reserve_waits_for_a_checkpoint_and_asks_for_it() {
    let log = Arc::new(started(&new_device()));
    append(&log, 1, CAPACITY as usize - 100);
    let asked = Arc::new(AtomicUsize::new(0));
    let (counter, weak) = (asked.clone(), Arc::downgrade(&log));
    log.on_pressure(Box::new(move || {
        // The third request is heard, without a thread of its own: what a simulator does.
        if counter.fetch_add(1, Ordering::SeqCst) == 2 {
            let log = weak.upgrade().unwrap();
            log.checkpoint(log.end_lsn()).unwrap();
        }
    }));
    append(&log, 2, 5000);
    assert_eq!(asked.load(Ordering::SeqCst), 3);
    assert_eq!(log.ring().stats().log_waits.get(), 1);
    assert!(log.ring().stats().log_wait_us.get() > 0);
}

#[test]
fn a_waiter_goes_on_when_another_releases_its_reservation() {
    let log = started(&new_device());
    let held = log.reserve(CAPACITY - 100).unwrap();
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| log.reserve(1000).map(|_| ()));
        while log.space_waiting() == 0 {
            std::thread::yield_now();
        }
        drop(held);
        waiter.join().unwrap().unwrap();
    });
}

#[test]
fn poison_wakes_waiters_for_room() {
    let log = started(&new_device());
    let _held = log.reserve(CAPACITY - 100).unwrap();
    std::thread::scope(|scope| {
        let waiters: Vec<_> = (0..3).map(|_| scope.spawn(|| log.reserve(1000).map(|_| ()))).collect();
        while log.space_waiting() < 3 {
            std::thread::yield_now();
        }
        log.ring().poison().set("a test");
        for waiter in waiters {
            assert!(is_poisoned(waiter.join().unwrap()));
        }
    });
    assert!(is_poisoned(log.reserve(1).map(drop)));
    assert!(is_poisoned(log.checkpoint(log.end_lsn())));
    assert!(is_poisoned(log.commit(log.end_lsn(), None)));
}

#[test]
fn many_threads_in_a_tiny_ring_all_get_through() {
    let device = new_device();
    let log = Arc::new(started(&device));
    let weak = Arc::downgrade(&log);
    log.on_pressure(Box::new(move || {
        let log = weak.upgrade().unwrap();
        log.checkpoint(log.end_lsn()).unwrap();
    }));
    std::thread::scope(|scope| {
        for thread in 0..8u64 {
            let log = &log;
            scope.spawn(move || {
                for n in 0..200 {
                    let max = if thread == 0 { CAPACITY - 8 } else { 8000 };
                    let reservation = log.reserve(max).unwrap();
                    log.append(reservation, &payload(n, 1 + (n * 97 % 3000) as usize), |_, _| {});
                }
            });
        }
    });
    log.checkpoint(log.end_lsn()).unwrap();
    drop(log.reserve(CAPACITY - 8).unwrap());
}

#[test]
fn after_a_checkpoint_there_is_room_for_one_ring_and_no_more() {
    let log = started(&new_device());
    for n in 0..5 {
        append(&log, n, 3000);
        log.checkpoint(log.end_lsn()).unwrap();
        let half = log.reserve(CAPACITY / 2 - 8).unwrap();
        assert!(log.reserve_at_once(CAPACITY - CAPACITY / 2 - 8).is_some());
        assert!(log.reserve_at_once(CAPACITY - CAPACITY / 2 - 7).is_none());
        drop(half);
    }
}
