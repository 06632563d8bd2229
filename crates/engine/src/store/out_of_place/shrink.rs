//! Truncation of the file: the last segments are cleaned, and free segments at the end are cut off.
//!
//! Order (each needs the previous one)
//! 1. The segments are free: nothing on the device refers to a valid image in them ([`super::segments`], rule 3).
//! 2. They are removed from the table, so no thread uses them.
//! 3. A slot durably records the first removed segment and the highest sequence of its batches: references to them in
//!    headers elsewhere are then no longer valid ([`super::scan`], rule 5).
//! 4. The file is truncated. A crash before leaves free segments.
//!
//! Rules
//! 1. The remaining segments have space for all reserved pages, with the fill of the option ([`super::capacity`], rules
//!    1 and 2).
//! 2. While the store is in use, segments are cleaned for a truncation only while the file is more than twice as long
//!    as needed: then they are half empty on average. The file is truncated only by a worthwhile part.
//! 3. A device of fixed length keeps its segments.
//! 4. If live pages are spread evenly, no segment is free: then the emptiest of the remaining segments is cleaned,
//!    until there is space for the pages of the last ones. The remaining segments have on average the fill of the
//!    option, so one of them is at most as full, and each such cleaning frees space.
//!
//! The caller prevents calls of [`reserve`](crate::store::PageStore::reserve) meanwhile.

use super::OutOfPlace;
use super::appender::Appended;
use super::capacity;
use super::map::MAX_SEGMENTS;
use super::segments::Victim;
use crate::error::Result;

/// Minimum part of the file, as a fraction 1/N, that is truncated while the database is in use.
const MIN_PART: u32 = 8;
/// Segments that are worth one, at least.
const MIN_SEGMENTS: u32 = 5;

impl OutOfPlace {
    /// Truncates free segments at the end, or cleans the last segment that is not free; `thoroughly`: as far as
    /// possible (rule 2). Returns whether another step may do more.
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

    /// Truncates the free segments at the end, without the first `least` segments, if they are at least `gain`.
    fn cut_free(&self, least: u32, gain: u32) -> Result<()> {
        let _one_at_a_time = self.growing.lock();
        let Some(count) = self.segments.cut_free(least, gain) else { return Ok(()) };
        debug_assert!(count >= least, "rule 1: {count} segments are left, and {least} are needed");
        self.put_cut(count)?;
        self.stats.data_syncs.add(u64::from(self.data.sync()?));
        self.device().set_len_bytes(self.geometry.start_of(count))?;
        self.note_usage();
        Ok(())
    }

    /// Cleans the last non-empty segment after the first `least`, or a segment that frees space for its copies (rule
    /// 4); returns false if none can be cleaned.
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
