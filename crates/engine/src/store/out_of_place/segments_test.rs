//! The states of segments, without a device.

use super::*;

const PAGES: u32 = 8;

/// Five segments, region 0 counted, and no page that has an image.
fn new_segments() -> Segments {
    let map = PageMap::default();
    map.grow(PAGES);
    Segments::new(5, map, &[])
}

fn location(segment: u32, unit: usize, life: u64) -> Location {
    Location::new(segment, unit * 4096, 4096, life)
}

/// Publishes one batch with one page in a segment that was taken.
fn publish_one(segments: &Segments, segment: u32, page: u32, to: Location, from: Option<Location>) {
    segments.publish(&[Move { page_no: PageNo(page), to, from }], std::iter::once(segment));
}

#[test]
fn a_cleaners_copy_takes_the_place_only_of_the_image_that_was_copied() {
    let segments = new_segments();
    let [old, new, copies] = [(); 3].map(|()| segments.take(0).unwrap());
    let first = location(old, 1, 1);
    for (n, segment) in [(1, old), (2, copies), (3, new)] {
        segments.begin(segment, n, n, 4096);
    }
    for page in [5, 6, 7] {
        segments.map.set(PageNo(page), None);
    }
    publish_one(&segments, old, 5, first, None);
    // While the cleaner copies page 5, it is written again; page 6 is forgotten, page 7 is not.
    let newer = location(new, 1, 3);
    publish_one(&segments, new, 5, newer, None);
    segments.begin(copies, 2, 4, 4096);
    let copy = location(copies, 1, 2);
    publish_one(&segments, copies, 5, copy, Some(first));
    assert_eq!(segments.map.get(PageNo(5)), Some(newer), "the copy is of an older version");
    publish_one(&segments, copies, 6, copy, Some(first));
    assert_eq!(segments.map.get(PageNo(6)), None, "the page was forgotten");
    segments.begin(copies, 2, 5, 4096);
    publish_one(&segments, copies, 5, location(copies, 2, 2), Some(newer));
    assert_eq!(segments.map.get(PageNo(5)), Some(location(copies, 2, 2)), "the image that was copied");
    assert_eq!(segments.problems(256 << 10), Vec::<String>::new());
}

#[test]
fn a_segment_is_not_cleaned_or_emptied_while_a_batch_in_it_is_unpublished() {
    let segments = new_segments();
    let segment = segments.take(0).unwrap();
    segments.begin(segment, 1, 1, 4096);
    segments.begin(segment, 1, 2, 4096);
    segments.seal(segment);
    let sizes = Sizes { page_bytes: 4096, segment_room: 256 << 10, lifetime_streams: 1 };
    let victim = |segments: &Segments| segments.take_victim(9, sizes).map(|victim| victim.segment);
    assert_eq!((victim(&segments), segments.take_emptied()), (None, vec![]));
    publish_one(&segments, segment, 5, location(segment, 1, 1), None);
    assert_eq!((victim(&segments), segments.take_emptied()), (None, vec![]));
    publish_one(&segments, segment, 5, location(segment, 3, 1), None);
    assert_eq!((victim(&segments), segments.take_emptied()), (Some(segment), vec![]));
    assert_eq!(victim(&segments), None, "it is being cleaned");
    segments.discard(5..6);
    assert_eq!(segments.take_emptied(), Vec::<u32>::new(), "it is being cleaned");
    segments.publish(&[], std::iter::once(segment));
    assert_eq!((victim(&segments), segments.usage().coming), (None, 1));
    assert_eq!(segments.take_emptied(), vec![segment]);
    assert_eq!(segments.usage().coming, 1, "its footer is being cleared");
    segments.note_cleared(&[segment]);
    assert_eq!(segments.usage().free, 3, "its footer is not durable yet");
    let cleared = segments.take_cleared();
    assert_eq!(segments.usage().coming, 1, "it is being released");
    cleared.iter().for_each(|segment| segments.release(*segment));
    assert_eq!((cleared, segments.usage().free), (vec![segment], 4));
}
