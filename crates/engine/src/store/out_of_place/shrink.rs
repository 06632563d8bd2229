//! Making the file shorter: free segments at its end are cut off; before that the last ones are cleaned.
//!
//! Order (each needs the one before)
//! 1. Segments are free: nothing on the device refers to an image in them that counts ([`super::segments`], rule 3).
//! 2. They leave the table, so that no thread takes them.
//! 3. A slot says, durably, from which segment on batches may be gone, and up to which sequence: what a header
//!    elsewhere says of them is true no longer ([`super::scan`], rule 5).
//! 4. The file ends there. A crash before leaves free segments.
//!
//! Rules
//! 1. What stays holds all pages that are reserved, and is as empty as the user wants it
//!    ([`super::capacity`], rules 1 and 2).
//! 2. While the store is used, segments are cleaned for it only while the file is more than twice as long as it needs
//!    to be: then they are half empty on average. And the file is cut only by a part that is worth it.
//! 3. A device of fixed length keeps its segments.
//! 4. Where pages died evenly, each segment holds a few that are live and none is free: then the emptiest segment that
//!    stays is cleaned, until the last ones have where to go. What stays is on average as full as the user wants it, so
//!    there is one that is no fuller, and each such cleaning gains room.
//!
//! The caller keeps [`reserve`](crate::store::PageStore::reserve) from being called meanwhile.

use super::OutOfPlace;
use super::append::Appended;
use super::capacity;
use super::map::MAX_SEGMENTS;
use super::segments::Victim;
use crate::error::Result;

/// Which part of the file is worth a cut while it is used.
const MIN_PART: u32 = 8;
/// Segments that are worth one, at least.
const MIN_SEGMENTS: u32 = 5;

impl OutOfPlace {
    /// Cuts free segments at the end off, or cleans the last one that is not free; `thoroughly` as far as possible
    /// (rule 2). Says whether another step may do more.
    pub(super) fn shrink(&self, thoroughly: bool) -> Result<bool> {
        if self.device().has_fixed_len() {
            return Ok(false);
        }
        let (least, have) = (self.least_segments(), self.count());
        let cleans = thoroughly || have > 2 * least + MIN_SEGMENTS;
        if cleans {
            (0..self.groups()).try_for_each(|group| self.seal_behind(group, least))?;
        }
        self.free_cleared()?;
        let gain = if thoroughly { 1 } else { (have / MIN_PART).max(MIN_SEGMENTS) };
        self.cut_free(least, gain)?;
        Ok(cleans && self.count() > least && self.clean_last(least)?)
    }

    /// Segments, region 0 counted.
    fn count(&self) -> u32 {
        self.segments.usage().segments + capacity::FIRST_SEGMENT
    }

    /// Segments, region 0 counted, that the file has at least (rule 1).
    fn least_segments(&self) -> u32 {
        let usage = self.segments.usage();
        let wanted = capacity::wanted_segments(usage.live_bytes, self.fill_pct, self.sizes());
        let guaranteed = capacity::guaranteed_segments(self.segments.map.pages(), self.sizes());
        (wanted.max(guaranteed) + u64::from(usage.unreadable)).min(MAX_SEGMENTS.into()) as u32
    }

    /// Cuts the free segments at the end off that are behind the first `least`, if they are `gain` at least.
    fn cut_free(&self, least: u32, gain: u32) -> Result<()> {
        let _one_at_a_time = self.growing.lock();
        let Some(count) = self.segments.cut_free(least, gain) else { return Ok(()) };
        self.put_cut(count)?;
        self.stats.data_syncs.add(u64::from(self.data.sync()?));
        self.device().set_len_bytes(self.geometry.start_of(count))?;
        self.note_usage();
        Ok(())
    }

    /// Cleans the last segment behind the first `least` that holds something, or one that makes room for that (rule 4);
    /// false if there is none that can be.
    fn clean_last(&self, least: u32) -> Result<bool> {
        let mut buffer = self.cleaning.lock();
        let has_room = self.segments.free_below(least) > capacity::reserve_segments(self.groups());
        let victim = if has_room { self.segments.take_last(least) } else { self.take_emptiest(least) };
        let Some(victim) = victim else { return Ok(false) };
        let mut done = Appended::default();
        if self.copy_live(victim, &mut buffer, &mut done)? {
            self.finish(&done)?;
            self.free_cleared()?;
        }
        Ok(true)
    }

    fn take_emptiest(&self, least: u32) -> Option<Victim> {
        let most_live_bytes = self.geometry.segment_room() * self.fill_pct / 100;
        self.segments.take_emptiest(least, most_live_bytes)
    }
}
