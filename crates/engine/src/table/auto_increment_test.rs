//! Auto-increment counters, with a catalog that is a cell.

use super::*;
use std::cell::Cell;

#[test]
fn the_bound_is_written_before_a_number_is_given() {
    let written = Cell::new(1);
    let counter = AutoIncrement::new(1, u64::MAX);
    let persist = |bound| {
        written.set(bound);
        Ok(())
    };
    for expected in 1..3000 {
        let number = counter.take("id", persist).unwrap();
        assert_eq!(number, expected);
        assert!(number < written.get());
    }
    counter.persist_exact(persist).unwrap();
    assert_eq!(written.get(), 3000);
    counter.persist_exact(|_| panic!("nothing to write")).unwrap();
    // After a crash.
    assert!(AutoIncrement::new(written.get(), u64::MAX).take("id", persist).unwrap() >= 3000);
}

#[test]
fn explicit_values_move_the_counter() {
    let counter = AutoIncrement::new(1, 255);
    counter.observe(100, |_| Ok(())).unwrap();
    counter.observe(7, |_| panic!("nothing to write")).unwrap();
    assert_eq!(counter.take("id", |_| Ok(())).unwrap(), 101);
    counter.observe(255, |_| Ok(())).unwrap();
    let error = counter.take("id", |_| Ok(())).unwrap_err();
    assert!(error.to_string().contains("has reached 255"), "{error}");
    let counter = AutoIncrement::new(1, u64::MAX);
    counter.observe(u64::MAX, |_| Ok(())).unwrap();
    counter.take("id", |_| Ok(())).unwrap_err();
}

/// By another thread, while the bound is written down.
#[test]
fn a_number_that_is_taken_beside_a_close_is_given_once() {
    let counter = AutoIncrement::new(1, u64::MAX);
    counter.take("id", |_| Ok(())).unwrap();
    let (written, taken) = (AtomicU64::new(0), AtomicU64::new(0));
    std::thread::scope(|scope| {
        let take = || {
            let persist = |bound| {
                written.store(bound, Ordering::SeqCst);
                Ok(())
            };
            taken.store(counter.take("id", persist).unwrap(), Ordering::SeqCst);
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
    (1..500).for_each(|number| assert_eq!(counter.take("id", persist).unwrap(), number));
    counter.persist_exact(|_| Err(Error::Usage("full".into()))).unwrap_err();
    counter.observe(3, persist).unwrap();
    assert!(written.get() >= 500, "{written:?}");
}

#[test]
fn crashes_do_not_use_up_a_small_type() {
    let bound = Cell::new(1);
    for crash in 0..60 {
        let counter = AutoIncrement::new(bound.get(), 255);
        let taken = counter.take("id", |new| {
            bound.set(new);
            Ok(())
        });
        assert!(taken.is_ok(), "after {crash} crashes: {taken:?}");
    }
}

#[test]
fn a_value_that_the_counter_has_passed_is_covered_too() {
    let counter = AutoIncrement::new(1, u64::MAX);
    assert!(counter.observe(5000, |_| Err(Error::Usage("full".into()))).is_err());
    let written = Cell::new(0);
    counter
        .observe(3000, |new| {
            written.set(new);
            Ok(())
        })
        .unwrap();
    assert!(written.get() > 3000, "{}", written.get());
}

#[test]
fn a_bound_that_cannot_be_written_gives_no_number() {
    let counter = AutoIncrement::new(1, 255);
    assert!(counter.take("id", |_| Err(Error::Usage("full".into()))).is_err());
    assert_eq!(counter.take("id", |_| Ok(())).unwrap(), 2);
}
