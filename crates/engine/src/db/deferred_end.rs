//! The end of a transaction that is dropped: it is rolled back.
//!
//! A transaction that is committed, rolled back or dropped inside the closure of a `modify` or a `visit` cannot end
//! there, because the closure runs while a page is latched: the call is a mistake of the program. The transaction is
//! kept with its locks, and rolled back as soon as the call that runs the closure returns.

use super::write_txn::WriteTxn;
use crate::txn::check_outside_row_closure;
use std::cell::RefCell;

crate::sync::thread_local! {
    static PUT_ASIDE: RefCell<Vec<WriteTxn>> = const { RefCell::new(Vec::new()) };
}

/// Puts a transaction aside until this thread's call is over.
fn defer_end(txn: WriteTxn) {
    debug_assert!(check_outside_row_closure().is_err(), "a transaction is deferred that no call takes up again");
    debug_assert!(txn.txn.is_some(), "a transaction is deferred that has ended");
    let mut txn = Some(txn);
    let is_put = PUT_ASIDE.try_with(|aside| aside.borrow_mut().extend(txn.take()));
    // A thread that is ending has no place, and dropped it would come here again: the next opening rolls it back.
    if is_put.is_err() {
        std::mem::forget(txn);
    }
}

impl Drop for WriteTxn {
    fn drop(&mut self) {
        if self.inner.ctx.poison.check_owner().is_err() {
            // The parent's: to roll it back, or to let its locks go, would wait for the parent's threads.
            return std::mem::forget((self.txn.take(), self.scratch.take()));
        }
        if self.txn.is_some() && check_outside_row_closure().is_err() {
            let (txn, scratch, inner) = (self.txn.take(), self.scratch.take(), self.inner.clone());
            let (schema_version, is_inside) = (self.schema_version, std::mem::take(&mut self.is_inside));
            return defer_end(WriteTxn { txn, scratch, inner, schema_version, is_inside, attempt: self.attempt });
        }
        if let Some(txn) = self.txn.take() {
            // A rollback that fails leaves the transaction active; recovery will undo it.
            let _ = self.inner.txn_system().rollback(txn);
        }
        self.release_tables();
        if let Some(scratch) = self.scratch.take() {
            self.inner.keep_scratch(scratch);
        }
    }
}

/// A call that runs a row closure; dropped when it is over, also by a panic: what was deferred is rolled back.
pub(super) struct ClosureCall;

impl Drop for ClosureCall {
    fn drop(&mut self) {
        // A call inside a closure was refused; the closure continues.
        if check_outside_row_closure().is_err() {
            return;
        }
        while let Ok(Some(txn)) = PUT_ASIDE.try_with(|aside| aside.borrow_mut().pop()) {
            drop(txn);
        }
    }
}
