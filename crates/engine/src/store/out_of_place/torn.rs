//! Images that do not verify, of batches that no batch header calls durable: torn by the crash, or damaged since.
//!
//! Rules
//! 1. An image of a batch that was durable is damage. The log proves two kinds durable: batches up to the store's mark
//!    in the log's header, and images whose changes all are before the log's checkpoint.
//! 2. An older image does not silently replace a damaged one: the page is mapped to the damaged image, and its reader
//!    gets the error. The exception is an older image with all changes up to the checkpoint: then the redo has all
//!    later changes, and recovery rebuilds the page.
//! 3. A torn image was never acknowledged: the older image is used, and the redo has all later changes. That holds
//!    because the mark is read after the checkpoint was chosen ([`crate::pool::cleaner::checkpoint`]): a page whose
//!    batch is above the mark still holds the checkpoint back. On a device with streams one batch may be durable and
//!    above the mark: one that was synced before an older one of another group.
//! 4. An unreadable image counts as an image that does not verify.

use super::map::Location;
use crate::types::{Lsn, PageNo};

/// An image that does not verify, of a batch that no header calls durable.
#[derive(Clone, Copy, Debug)]
pub(super) struct Torn {
    pub page_no: PageNo,
    pub lsn: Lsn,
    /// Of its batch.
    pub sequence: u64,
    pub location: Location,
    /// LSN of the copy that counts.
    pub counts: Lsn,
}

impl Torn {
    /// Whether the page is damaged (rules 1 and 2), of a database whose log starts at `checkpoint` and proves batches
    /// up to `mark` durable.
    pub(super) fn is_damage(&self, mark: u64, checkpoint: Lsn) -> bool {
        let was_durable = self.sequence <= mark || self.lsn <= checkpoint;
        let is_made_whole = self.counts >= self.lsn || self.counts >= checkpoint;
        was_durable && !is_made_whole
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_image_that_the_log_proves_durable_is_damage_unless_the_redo_makes_an_older_one_whole() {
        // (sequence, LSN of the image, of the copy that counts), with mark 10 and checkpoint 100.
        let table = [
            ((11, 150, 50), false, "torn: above the mark, with changes behind the checkpoint"),
            ((11, 100, 50), true, "its changes are before the checkpoint"),
            ((10, 150, 50), true, "a batch up to the mark"),
            ((10, 150, 0), true, "no other copy"),
            ((10, 150, 100), false, "the redo has all later changes"),
            ((10, 90, 90), false, "a copy that is as new"),
        ];
        for ((sequence, lsn, counts), expected, what) in table {
            let location = Location::new(1, 0, 128, 1);
            let torn = Torn { page_no: PageNo(7), lsn: Lsn(lsn), sequence, location, counts: Lsn(counts) };
            assert_eq!(torn.is_damage(10, Lsn(100)), expected, "{what}");
        }
    }
}
