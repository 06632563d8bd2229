//! The size of a store: pure functions.
//!
//! Rules
//! 1. Every reserved page can be written at any compressed size: the segments, filled to [`FULLEST_PCT`], hold all
//!    pages uncompressed, in addition to the open segments, the cleaner's reserve, and a batch of each lane in flight.
//!    (Until a batch is published, its pages use space twice, and its segments are not cleaned.) So cleaning always
//!    finds a segment that frees space.
//! 2. In addition the file grows while the segments are fuller than the user's `segment_fill_pct`: cleaning emptier
//!    segments copies less.
//! 3. A store has as many groups as the device has streams for lifetimes. On a device without streams, concurrent
//!    writes go to the same erase units, so one segment at a time is written. A small store has fewer groups, because
//!    each keeps a segment open.

use super::format::{BLOCK_BYTES, MAX_IMAGES, batch_bytes};
use super::lifetime::GROUPS;
use super::map::MAX_SEGMENTS;
use crate::store::{BATCH_PAGES, FlushLane};

/// Share of the segments that hold pages which images may take.
const FULLEST_PCT: u64 = 90;
/// A store has a group for each of this many segments.
const SEGMENTS_PER_GROUP: u32 = 32;
/// The number of the first segment; region 0 is not a segment.
pub(super) const FIRST_SEGMENT: u32 = 1;

/// Sizes that never change.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sizes {
    pub page_bytes: usize,
    /// Bytes of a segment that batches may take.
    pub segment_room: u64,
    /// Number of lifetimes that the device separates.
    pub lifetime_streams: usize,
}

/// Groups of a store with this many segments, region 0 counted, on a device that keeps this many lifetimes apart (rule
/// 3).
pub(super) fn groups(segments: u32, lifetime_streams: usize) -> usize {
    ((segments / SEGMENTS_PER_GROUP) as usize).min(lifetime_streams).clamp(1, GROUPS)
}

/// Free segments that only the cleaner may take: one for each group that survivors may go to, and one more.
pub(super) fn reserve_segments(groups: usize) -> usize {
    groups + 1
}

/// Free segments at which cleaning begins, those counted that wait for a sync: the reserve, one for each group, and
/// what two batches take, for a segment that is cleaned is free after the second sync. A store with little `slack`
/// (segments beyond those that its live bytes fill) leaves half of it where pages die.
pub(super) fn low_segments(groups: usize, slack: u32, sizes: Sizes) -> usize {
    let batch_bytes = BATCH_PAGES * sizes.page_bytes;
    let ahead = groups + 2 * batch_bytes.div_ceil(sizes.segment_room as usize);
    debug_assert!((1..=GROUPS).contains(&groups), "a store of {groups} groups");
    reserve_segments(groups) + ahead.min((slack as usize / 2).saturating_sub(reserve_segments(groups)))
}

/// Whether copies of `live_bytes` of images leave space for another image in their new segment.
pub(super) fn copies_leave_room(live_bytes: u64, sizes: Sizes) -> bool {
    let images = live_bytes.div_ceil(sizes.page_bytes as u64);
    let headers = images.div_ceil(MAX_IMAGES as u64) * BLOCK_BYTES as u64;
    live_bytes + headers + batch_bytes(1, sizes.page_bytes) as u64 <= sizes.segment_room
}

/// Segments, region 0 counted, with which every one of `pages` can be written (rule 1).
pub(super) fn guaranteed_segments(pages: u32, sizes: Sizes) -> u64 {
    let on_their_way = u64::from(pages).min((FlushLane::COUNT * BATCH_PAGES) as u64) * sizes.page_bytes as u64;
    with_overhead(holding(pages, sizes) + on_their_way.div_ceil(sizes.segment_room), sizes)
}

/// Segments, region 0 counted, that a store of `pages` has at least: older versions did not count the batches on their
/// way.
pub(super) fn min_segments(pages: u32, sizes: Sizes) -> u64 {
    with_overhead(holding(pages, sizes), sizes)
}

/// Segments that hold `pages`, not compressed, when as full as [`FULLEST_PCT`].
fn holding(pages: u32, sizes: Sizes) -> u64 {
    let bytes = u64::from(pages) * sizes.page_bytes as u64;
    (bytes * 100).div_ceil(sizes.segment_room * FULLEST_PCT)
}

/// Segments, region 0 counted, at which images that take `live_bytes` fill them to `fill_pct` (rule 2).
pub(super) fn wanted_segments(live_bytes: u64, fill_pct: u64, sizes: Sizes) -> u64 {
    with_overhead((live_bytes * 100).div_ceil(sizes.segment_room * fill_pct), sizes)
}

/// Adds what is open and what is reserved.
fn with_overhead(segments: u64, sizes: Sizes) -> u64 {
    // With these added there may be another group.
    let all = segments + (GROUPS + reserve_segments(GROUPS)) as u64;
    let groups = groups(all.min(MAX_SEGMENTS.into()) as u32, sizes.lifetime_streams);
    u64::from(FIRST_SEGMENT) + segments + (groups + reserve_segments(groups)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    const SIZES: Sizes = Sizes { page_bytes: 16384, segment_room: (4 << 20) - 4096, lifetime_streams: GROUPS };

    #[test]
    fn segments_hold_all_pages_when_nine_tenths_full() {
        for pages in [0, 1, 512, 100_000, 6_400_000] {
            let segments = guaranteed_segments(pages, SIZES);
            let groups = groups(segments as u32, GROUPS);
            let on_their_way = (u64::from(pages.min(3 * 128)) * 16384).div_ceil(SIZES.segment_room);
            let overhead = u64::from(FIRST_SEGMENT) + on_their_way + (groups + reserve_segments(groups)) as u64;
            let full = (segments - overhead) * SIZES.segment_room * FULLEST_PCT / 100;
            assert!(full >= u64::from(pages) * 16384, "{pages} pages, {segments} segments");
            assert_eq!(segments - min_segments(pages, SIZES), on_their_way, "{pages} pages");
        }
        assert_eq!(guaranteed_segments(512, SIZES), 1 + 3 + 2 + 1 + 2);
    }

    #[test]
    fn no_pages_are_promised_segments_that_cannot_be() {
        let small = Sizes { segment_room: 63 * 4096, lifetime_streams: 1, ..SIZES };
        assert!(guaranteed_segments(u32::MAX, small) * small.segment_room > u64::from(u32::MAX) * 16384);
        assert!(guaranteed_segments(u32::MAX, small) > MAX_SEGMENTS.into());
    }

    #[test]
    fn the_emptier_they_shall_be_the_more_there_are() {
        let at = |fill_pct| wanted_segments(40 << 30, fill_pct, SIZES);
        assert!(at(50) > at(75) && at(75) > at(90));
        assert!((20_500..20_600).contains(&at(50)), "{}", at(50));
    }

    #[test]
    fn cleaning_begins_early_only_where_there_is_slack() {
        assert_eq!([0, 4, 6, 8, 1000].map(|slack| low_segments(1, slack, SIZES)), [2, 2, 3, 4, 2 + 1 + 2]);
        assert_eq!(low_segments(6, 1000, SIZES), 7 + 6 + 2);
    }

    #[test]
    fn a_larger_store_has_more_groups_as_far_as_the_device_keeps_them_apart() {
        assert_eq!([0, 7, 64, 100, 200, 100_000].map(|segments| groups(segments, 16)), [1, 1, 2, 3, 6, 6]);
        assert_eq!([0, 64, 100, 100_000].map(|segments| groups(segments, 2)), [1, 2, 2, 2]);
        assert_eq!([0, 64, 100_000].map(|segments| groups(segments, 1)), [1, 1, 1]);
    }
}
