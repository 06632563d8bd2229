//! Auto-increment counters, with a catalog that is a cell.

use super::*;
use std::cell::Cell;

const ME: OwnerId = OwnerId(1);
const OTHER: OwnerId = OwnerId(2);

/// The number of a counter that is not locked.
fn to<T>(moved: Moved<T>) -> T {
    match moved {
        Moved::To(done) => done,
        Moved::IsLocked => panic!("the counter is locked"),
    }
}

#[test]
fn the_bound_is_written_before_a_number_is_given() {
    let written = Cell::new(1);
    let counter = AutoIncrement::new(1, u64::MAX);
    let persist = |bound| {
        written.set(bound);
        Ok(())
    };
    for expected in 1..3000 {
        let number = counter.take(ME, "id", persist).map(to).unwrap();
        assert_eq!(number, expected);
        assert!(number < written.get());
    }
    counter.persist_exact(persist).unwrap();
    assert_eq!(written.get(), 3000);
    counter.persist_exact(|_| panic!("nothing to write")).unwrap();
    // After a crash.
    assert!(AutoIncrement::new(written.get(), u64::MAX).take(ME, "id", persist).map(to).unwrap() >= 3000);
}

#[test]
fn explicit_values_move_the_counter() {
    let counter = AutoIncrement::new(1, 255);
    counter.observe(ME, 100, |_| Ok(())).unwrap();
    counter.observe(ME, 7, |_| panic!("nothing to write")).unwrap();
    assert_eq!(counter.take(ME, "id", |_| Ok(())).map(to).unwrap(), 101);
    counter.observe(ME, 255, |_| Ok(())).unwrap();
    let error = counter.take(ME, "id", |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("has reached 255"), "{error}");
    let counter = AutoIncrement::new(1, u64::MAX);
    counter.observe(ME, u64::MAX, |_| Ok(())).unwrap();
    counter.take(ME, "id", |_| Ok(())).unwrap_err();
}

/// By another thread, while the bound is written down.
#[test]
fn a_number_that_is_taken_during_a_close_is_given_once() {
    let counter = AutoIncrement::new(1, u64::MAX);
    counter.take(ME, "id", |_| Ok(())).map(to).unwrap();
    let (written, taken) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let take = || {
            let persist = |bound| {
                written.store(bound, Ordering::SeqCst);
                Ok(())
            };
            taken.store(counter.take(ME, "id", persist).map(to).unwrap(), Ordering::SeqCst);
        };
        let persist_exact = |bound| {
            written.store(bound, Ordering::SeqCst);
            scope.spawn(take);
            while counter.next.load(Ordering::SeqCst) == bound {
                std::thread::yield_now();
            }
            // It would be given by now, were it taken for covered.
            std::thread::sleep(std::time::Duration::from_millis(20));
            assert_eq!(taken.load(Ordering::SeqCst), 0);
            Ok(())
        };
        counter.persist_exact(persist_exact).unwrap();
    });
    assert!(taken.load(Ordering::SeqCst) == 2 && written.load(Ordering::SeqCst) > 2, "{written:?}");
}

#[test]
fn a_bound_after_a_close_that_failed_lies_above_every_number() {
    let (counter, written) = (AutoIncrement::new(1, u64::MAX), Cell::new(0));
    let persist = |bound| {
        written.set(bound);
        Ok(())
    };
    (1..500).for_each(|number| assert_eq!(counter.take(ME, "id", persist).map(to).unwrap(), number));
    counter.persist_exact(|_| Err(Error::Usage("full".into()))).unwrap_err();
    counter.observe(ME, 3, persist).unwrap();
    assert!(written.get() >= 500, "{written:?}");
}

#[test]
fn crashes_do_not_use_up_a_small_type() {
    let bound = Cell::new(1);
    for crash in 0..60 {
        let counter = AutoIncrement::new(bound.get(), 255);
        let taken = counter.take(ME, "id", |new| {
            bound.set(new);
            Ok(())
        });
        assert!(taken.is_ok(), "after {crash} crashes: {taken:?}");
    }
}

#[test]
fn a_value_that_the_counter_has_passed_is_covered_too() {
    let counter = AutoIncrement::new(1, u64::MAX);
    assert!(counter.observe(ME, 5000, |_| Err(Error::Usage("full".into()))).is_err());
    let written = Cell::new(0);
    counter
        .observe(ME, 3000, |new| {
            written.set(new);
            Ok(())
        })
        .unwrap();
    assert!(written.get() > 3000, "{}", written.get());
}

#[test]
fn a_bound_that_cannot_be_written_gives_no_number() {
    let counter = AutoIncrement::new(1, 255);
    assert!(counter.take(ME, "id", |_| Err(Error::Usage("full".into()))).is_err());
    assert_eq!(counter.take(ME, "id", |_| Ok(())).map(to).unwrap(), 2);
}

#[test]
fn only_the_owner_moves_a_locked_counter() {
    let counter = AutoIncrement::new(1, 255);
    let (two, persist) = (NumberRange { count: 2, ..NumberRange::default() }, |_| Ok(()));
    counter.set_locked_by(Some(ME));
    assert_eq!(counter.take(ME, "id", persist).unwrap(), Moved::To(1));
    assert_eq!(counter.take(OTHER, "id", persist).unwrap(), Moved::IsLocked);
    assert_eq!(counter.reserve(OTHER, "id", two, persist).unwrap(), Moved::IsLocked);
    assert_eq!(counter.observe(OTHER, 2, persist).unwrap(), Moved::IsLocked);
    assert_eq!(counter.observe(OTHER, 1, persist).unwrap(), Moved::To(()), "it has passed that one");
    assert_eq!(counter.reserve(ME, "id", two, persist).unwrap(), Moved::To(2));
    assert_eq!(counter.next(), Some(4));
    counter.set_locked_by(None);
    assert_eq!(counter.take(OTHER, "id", persist).unwrap(), Moved::To(4));
}
