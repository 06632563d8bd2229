//! Starvation of the oldest page: the number of times that it was skipped because a thread held its latch.

use crate::pool::frames::FrameNo;
use crate::types::Lsn;

/// Flushes that may skip the oldest page.
const MISSES: u32 = 4;

/// The page that was oldest at the last flush, and how often it was skipped.
#[derive(Default)]
pub(super) struct OldestPageStarvation {
    oldest: Option<(FrameNo, Lsn)>,
    misses: u32,
}

impl OldestPageStarvation {
    /// Notes whether the oldest page was flushed; returns whether it is time to wait for it.
    pub(super) fn note(&mut self, oldest: (FrameNo, Lsn), is_missed: bool) -> bool {
        self.misses = match is_missed {
            true if self.oldest == Some(oldest) => self.misses + 1,
            true => 1,
            false => 0,
        };
        self.oldest = is_missed.then_some(oldest);
        self.misses >= MISSES
    }
}
