//! Row closures: the caller's code that makes the new row of an update.
//!
//! Rule: row closures run under a page latch, so a thread must not call into the engine from one. It gets an error if
//! it does.

use crate::error::{Error, Result};
use std::cell::Cell;

/// A row closure: gets the present payload, writes the new one, returns whether there is a change.
pub type RowChange<'f> = dyn FnMut(&[u8], &mut Vec<u8>) -> Result<bool> + 'f;

crate::sync::thread_local! {
    static IN_ROW_CLOSURE: Cell<bool> = const { Cell::new(false) };
}

/// Runs a row closure, under a latch, with the engine closed to this thread.
pub(super) fn closed<R>(run: impl FnOnce() -> R) -> R {
    struct Reopen;
    impl Drop for Reopen {
        fn drop(&mut self) {
            IN_ROW_CLOSURE.with(|within| within.set(false));
        }
    }
    IN_ROW_CLOSURE.with(|within| within.set(true));
    let _reopen = Reopen;
    run()
}

/// Refuses a call from inside a row closure.
pub(crate) fn check_open() -> Result<()> {
    if IN_ROW_CLOSURE.with(Cell::get) {
        return Err(Error::Usage(
            "the database was called from inside a closure that changes a row (this is not allowed)".to_string(),
        ));
    }
    Ok(())
}
