//! Taking, freeing and discarding in memory.

use super::super::extent_map::format_map_ops;
use super::super::layout::{ENTRIES_AT, ENTRY_BYTES, OWNERS_AT};
use super::*;

fn state(extents: u32) -> SpaceState {
    let mut state = SpaceState::new();
    state.add_free(&SpaceLayout::new(4096), extents);
    state
}

#[test]
fn small_segments_share_an_extent_and_large_ones_do_not() {
    let mut state = state(8);
    let (a, b) = (SegmentId(20), SegmentId(21));
    let first_a = state.take(a, None, 0).unwrap();
    let first_b = state.take(b, None, 0).unwrap();
    assert_eq!(first_a.0 / EXTENT_PAGES, first_b.0 / EXTENT_PAGES);
    let pages: Vec<_> = (0..200).map(|_| state.take(a, None, 0).unwrap()).collect();
    assert!(pages.iter().all(|p| state.owner(*p) == Some(a)));
    let unique: BTreeSet<_> = pages.iter().chain([&first_a, &first_b]).collect();
    assert_eq!(unique.len(), 202);
    assert_eq!(state.pages_of(a).len(), 201);
}

#[test]
fn an_emptied_chunk_goes_to_another_segment_and_the_last_chunks_are_kept() {
    let mut state = state(2);
    let (a, b) = (SegmentId(30), SegmentId(31));
    let pages: Vec<_> = std::iter::from_fn(|| state.take(a, None, 3)).collect();
    assert_eq!((pages.len(), state.unowned_chunks()), ((2 * 8 - 1 - 3) * 8, 3));
    assert_eq!(state.take(b, None, 3), None);
    pages[8..16].iter().for_each(|p| assert!(!state.clear(*p)));
    assert_eq!(state.unowned_chunks(), 4);
    let again: Vec<_> = std::iter::from_fn(|| state.take(b, None, 3)).collect();
    assert_eq!(again, pages[8..16]);
    let freed = pages[..8].iter().chain(&pages[16..]).chain(&again).filter(|p| state.clear(**p)).count();
    assert_eq!(freed, 2, "the one with a map too");
    assert_eq!((state.unowned_chunks(), state.segments().len()), (15, 1));
}

/// An extent that a large segment took whole is empty once the pages are freed that were used of it.
#[test]
fn chunks_that_were_never_used_do_not_keep_an_extent() {
    let mut state = state(8);
    let pages: Vec<_> = (0..SMALL_SEGMENT_PAGES + 3).map(|_| state.take(SegmentId(30), None, 0).unwrap()).collect();
    let last = pages[pages.len() - 1].0 / EXTENT_PAGES;
    let of_last: Vec<_> = pages.iter().filter(|page| page.0 / EXTENT_PAGES == last).collect();
    assert_eq!((of_last.len(), state.extents_of(SegmentId(30), 8).last()), (3, Some(&(last, 0xff))));
    let emptied: Vec<_> = of_last.iter().map(|page| state.clear(**page)).collect();
    assert_eq!(emptied, [false, false, true]);
    assert!(
        state.is_empty_extent(last) && state.unowned_chunks() == 8 * CHUNKS - 1 - SMALL_SEGMENT_PAGES / CHUNK_PAGES
    );
}

/// During a compaction pages are taken below its goal, wherever the segment's other pages are, while one is free there.
#[test]
fn new_pages_come_from_the_front_while_a_compaction_runs() {
    let mut state = state(6);
    let undo = SegmentId(30);
    let pages: Vec<_> = (0..3 * EXTENT_PAGES).map(|_| state.take(undo, None, 0).unwrap()).collect();
    let near = pages[pages.len() - 1];
    let goal = near.0 / EXTENT_PAGES;
    let front: Vec<_> = pages.iter().filter(|page| page.0 / EXTENT_PAGES < goal).collect();
    for page in &front {
        state.clear(**page);
    }
    state.prefer_below(goal);
    let taken: Vec<_> = (0..front.len()).map(|_| state.take(undo, Some(near), 0).unwrap()).collect();
    assert!(taken.iter().all(|page| page.0 / EXTENT_PAGES < goal), "{taken:?}");
    while state.take_below(undo, goal).is_some() {}
    let beyond = state.take(undo, Some(near), 0).unwrap();
    assert!(beyond.0 / EXTENT_PAGES >= goal, "none is free at the front: {beyond:?}");
    state.clear(taken[0]);
    state.prefer_below(u32::MAX);
    assert_eq!(state.take(undo, Some(near), 0).unwrap().0 / EXTENT_PAGES, goal, "the compaction has ended");
}

#[test]
fn discarded_extents_are_taken_only_once_they_are_reserved() {
    let mut state = state(6);
    assert!(
        !state.set_untouched(2, 2)
            && state.set_untouched(4, 2)
            && state.set_untouched(5, 2)
            && !state.set_untouched(5, 0)
    );
    let taken = std::iter::from_fn(|| state.take(SegmentId(30), None, 0)).count();
    assert_eq!((taken, state.untouched_run(9), state.untouched_run(1)), (4 * 64 - 8, 4..6, 4..5));
    state.note_reserved(4..6);
    assert_eq!((state.unowned_chunks(), state.untouched_run(9)), (16, 0..0));
    assert!(state.take(SegmentId(30), None, 0).is_some_and(|page| page.0 >= 4 * 64));
}

#[test]
fn an_extent_that_is_taken_again_is_not_discarded_before_it_is_emptied_again() {
    let mut state = state(6);
    let seg = SegmentId(30);
    let pages: Vec<_> = std::iter::from_fn(|| state.take(seg, None, 0)).collect();
    let in_last = |p: &&PageNo| p.0 / EXTENT_PAGES == 5;
    assert!(pages.iter().filter(in_last).filter(|p| state.clear(**p)).count() == 1);
    state.note_freed(5, Lsn(100));
    assert_eq!(state.next_to_discard(Lsn(99), 0), None);
    let again: Vec<_> = std::iter::from_fn(|| state.take(seg, None, 0)).collect();
    assert_eq!(again.len(), 64);
    assert!(again.iter().filter(|p| state.clear(**p)).count() == 1);
    state.note_freed(5, Lsn(200));
    assert_eq!(state.next_to_discard(Lsn(199), 0), None);
    assert_eq!((state.next_to_discard(Lsn(200), 0), state.next_to_discard(Lsn(300), 0)), (Some(5), None));
}

/// A chunk of which no page is used keeps its owner on disk: beyond the end of the file that means nothing either.
#[test]
fn an_idle_owner_behind_the_end_is_no_missing_extent() {
    let layout = SpaceLayout::new(4096);
    let mut map = vec![0; 4096];
    format_map_ops(|op| op.apply(&mut map).unwrap());
    let entry = |extent: usize| ENTRIES_AT + extent * ENTRY_BYTES;
    map[entry(3) + OWNERS_AT] = 30;
    let mut state = SpaceState::new();
    state.add_group(&layout, 0, 3, &map).unwrap();
    assert_eq!(state.extents(), 3);
    map[entry(3)] = 1;
    let error = SpaceState::new().add_group(&layout, 0, 3, &map).unwrap_err();
    assert!(error.to_string().contains("extent 3 is in use but missing"), "{error}");
    SpaceState::new().add_group(&layout, 0, 4, &map).unwrap();
}

#[test]
fn a_map_with_used_pages_of_no_segment_is_damage() {
    let layout = SpaceLayout::new(4096);
    let entry = |extent: usize| ENTRIES_AT + extent * ENTRY_BYTES;
    let mut map = vec![0; 4096];
    format_map_ops(|op| op.apply(&mut map).unwrap());
    map[entry(1)] = 1;
    map[entry(1) + OWNERS_AT] = 30;
    SpaceState::new().add_group(&layout, 0, 3, &map).unwrap();
    map[entry(2)] = 1;
    let error = SpaceState::new().add_group(&layout, 0, 3, &map).unwrap_err();
    assert!(error.is_damage() && error.to_string().contains("extent 2"), "{error}");
}

#[test]
fn pages_come_back_and_dropping_frees_everything() {
    let mut state = state(4);
    let seg = SegmentId(30);
    let free = state.unowned_chunks();
    let pages: Vec<_> = (0..100).map(|_| state.take(seg, None, 0).unwrap()).collect();
    assert!(pages.iter().step_by(2).all(|p| !state.clear(*p)));
    assert_eq!(state.pages_of(seg).len(), 50);
    let again: Vec<_> = (0..50).map(|_| state.take(seg, None, 0).unwrap()).collect();
    assert!(again.iter().all(|p| pages.contains(p)));
    while let Some((extent, chunks)) = state.extents_of(seg, 1).pop() {
        state.release_chunks(extent, chunks);
    }
    assert!(state.pages_of(seg).is_empty());
    assert_eq!(state.unowned_chunks(), free);
    while state.take(seg, None, 0).is_some() {}
    assert_eq!(state.pages_of(seg).len(), 4 * 64 - 8);
}
