//! Closures of the caller that the engine runs while it holds a latch or a lock: row closures, which make the new row
//! of an update or read the rows of a scan, and closures that get the progress of a check or an index build, or change
//! options.
//!
//! Rules
//! 1. Row closures run under a page latch, so a thread must not call into the engine from one. It gets an error if it
//!    does.
//! 2. While a check runs, writers, schema changes and purge wait: its progress closure may read, but not close the
//!    database, change tables or options, or start another check; it gets an error if it does. The same holds for
//!    closures of an index build and of a change of options.

use crate::error::{Error, Result};
use std::cell::Cell;

/// The closure in which a thread is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Inside {
    Nothing,
    RowClosure,
    ProgressClosure,
}

crate::sync::thread_local! {
    static INSIDE: Cell<Inside> = const { Cell::new(Inside::Nothing) };
}

/// Runs a row closure, inside which this thread's calls into the engine fail (rule 1).
pub(crate) fn closed<R>(run: impl FnOnce() -> R) -> R {
    within(Inside::RowClosure, run)
}

/// Runs a closure that may read: see rule 2.
pub(crate) fn telling<R>(run: impl FnOnce() -> R) -> R {
    within(Inside::ProgressClosure, run)
}

fn within<R>(inside: Inside, run: impl FnOnce() -> R) -> R {
    struct Back(Inside);
    impl Drop for Back {
        fn drop(&mut self) {
            INSIDE.with(|inside| inside.set(self.0));
        }
    }
    let outside = INSIDE.with(|now| now.replace(inside));
    debug_assert!(outside != Inside::RowClosure, "rule 1: the engine runs a closure inside of a row closure");
    let _back = Back(outside);
    run()
}

/// Refuses a call from inside a row closure.
#[inline]
pub(crate) fn check_outside_row_closure() -> Result<()> {
    if INSIDE.with(Cell::get) == Inside::RowClosure {
        return Err(Error::Usage(
            "the database was called from inside a closure that changes or looks at a row (this is not allowed)"
                .to_string(),
        ));
    }
    Ok(())
}

/// Refuses a call from inside any of the closures.
pub(crate) fn check_outside_closures() -> Result<()> {
    if INSIDE.with(Cell::get) == Inside::ProgressClosure {
        return Err(Error::Usage(
            "inside a closure that gets a progress or changes options the database can only be read: return from the \
             closure first"
                .into(),
        ));
    }
    check_outside_row_closure()
}
