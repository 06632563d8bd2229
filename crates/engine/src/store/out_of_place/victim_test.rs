//! Tables of what is chosen.

use super::*;

/// A thousand images fit.
const ROOM: u64 = 1000 * 4096;
const SIZES: Sizes = Sizes { page_bytes: 4096, segment_room: ROOM, lifetime_streams: 1 };

/// The segment that is chosen; candidates are given as segment, live pages and age.
fn chosen(candidates: &[(u32, u64, u64)]) -> Option<u32> {
    let candidate =
        |&(segment, live, age): &(u32, u64, u64)| Candidate { segment, life: 1, live_bytes: live * 4096, age };
    choose(candidates.iter().map(candidate), SIZES).map(|candidate| candidate.segment)
}

#[test]
fn the_emptier_of_two_of_one_age_is_cleaned_and_the_older_of_two_as_full() {
    assert_eq!(chosen(&[(1, 500, 10), (2, 400, 10), (3, 600, 10)]), Some(2));
    assert_eq!(chosen(&[(1, 500, 10), (2, 500, 30), (3, 500, 20)]), Some(2));
}

#[test]
fn an_old_segment_is_cleaned_although_it_is_fuller() {
    assert_eq!(chosen(&[(1, 800, 1000), (2, 300, 10)]), Some(1));
    assert_eq!(chosen(&[(1, 800, 20), (2, 300, 10)]), Some(2));
}

#[test]
fn a_segment_without_anything_to_gain_is_left_alone() {
    assert_eq!(chosen(&[]), None);
    assert_eq!(chosen(&[(1, 1000, 1_000_000)]), None);
    // The copies take five headers, and what comes after them one more.
    assert_eq!([993, 994, 999].map(|live| chosen(&[(1, live, 0)])), [Some(1), None, None]);
}
