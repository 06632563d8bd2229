//! The pages that are being written to the store. They are tracked with debug assertions only, to check the rule.
//!
//! Rule: a page is in one unfinished batch at most (rule 4 of [`crate::store`]). Two copies of a page that are written
//! at once could end in either order, and a crash could leave the older one.

use crate::store::PageBatch;
#[cfg(all(debug_assertions, not(shuttle)))]
use crate::{sync::Mutex, types::PageNo};
#[cfg(all(debug_assertions, not(shuttle)))]
use std::collections::BTreeSet;

/// The pages of all unfinished batches. Not tracked under the model checker, which would take the mutex for one that
/// threads of the model wait for.
#[derive(Default)]
pub(super) struct PagesInFlight {
    #[cfg(all(debug_assertions, not(shuttle)))]
    pages: Mutex<BTreeSet<PageNo>>,
}

impl PagesInFlight {
    /// The write of a batch begins.
    pub(super) fn begin(&self, _batch: &PageBatch) {
        #[cfg(all(debug_assertions, not(shuttle)))]
        for entry in _batch.entries() {
            let is_new = self.pages.lock().insert(entry.page_no);
            debug_assert!(is_new, "page {} is in two unfinished batches", entry.page_no);
        }
    }

    /// A batch is durable in the store; or its write has failed, and the database stops.
    pub(super) fn end(&self, _batch: &PageBatch) {
        #[cfg(all(debug_assertions, not(shuttle)))]
        for entry in _batch.entries() {
            let was_there = self.pages.lock().remove(&entry.page_no);
            debug_assert!(was_there, "page {} is in no unfinished batch", entry.page_no);
        }
    }
}
