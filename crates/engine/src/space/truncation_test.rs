//! The end of the file is cut off, with the power cut at every change that makes.

use super::growth::READY_EXTENTS;
use super::space_test::{SEGMENT, assert_sound, checkpoint, close_uncut, extents, new_page, use_second_group};
use super::*;
use crate::config::{Doublewrite, Options, PageStoreKind};
use crate::db::open_overrides::OpenOverrides;
use crate::db::open_parts::OpenParts;
use crate::pool::cleaner;
use crate::testing::{open, small_options};
use crate::types::EXTENT_PAGES;
use highwater_storage::{Device, Faults, MemoryDevice, StorageSet};

/// In place with either protection, and out of place.
fn stores() -> [Options; 3] {
    [
        small_options(),
        Options { doublewrite: Doublewrite::Journal, journal_size: 8 << 20, ..small_options() },
        Options { page_store: PageStoreKind::OutOfPlace, segment_size: 256 << 10, ..small_options() },
    ]
}

fn fill(parts: &OpenParts, count: u32) {
    for _ in 0..count * EXTENT_PAGES {
        new_page(parts).unwrap();
    }
}

fn empty(parts: &OpenParts) {
    while !parts.space.drop_segment_step(&parts.ctx, SEGMENT, 16).unwrap() {}
}

fn bytes_on_disk(parts: &OpenParts) -> u64 {
    parts.storage().data.len_bytes().unwrap()
}

/// The file is cut when a checkpoint has passed the last change of its end, not before, and not while a backup runs;
/// what remains has the reserve.
#[test]
fn the_end_is_cut_once_a_checkpoint_has_passed_it() {
    for options in stores() {
        let parts = open(StorageSet::memory(), options.clone());
        let cut = || while parts.space.cut_step(&parts.ctx, Cut::InUse).unwrap() {};
        fill(&parts, 60);
        let (before, full_bytes) = (extents(&parts), bytes_on_disk(&parts));
        empty(&parts);
        cut();
        assert!(extents(&parts) > 60, "no checkpoint has passed what was logged of the pages: {options:?}");
        checkpoint(&parts, parts.ctx.log.end_lsn());
        let held = parts.space.hold_discards();
        cut();
        assert!(extents(&parts) > 60, "a backup needs the pages: {options:?}");
        drop(held);
        cut();
        let after = extents(&parts);
        assert!(after < before / 4, "{after} of {before} extents: {options:?}");
        assert!(bytes_on_disk(&parts) < full_bytes / 2, "{} of {full_bytes}: {options:?}", bytes_on_disk(&parts));
        let reserve = reserve::reserve_extents(after) + READY_EXTENTS;
        assert!(parts.space.state.lock().unowned_chunks() >= reserve * layout::CHUNKS, "{options:?}");
        fill(&parts, 60);
        assert_eq!(parts.space.pages_of(SEGMENT).len() as u32, 60 * EXTENT_PAGES, "{options:?}");
        parts.ctx.log.flush_to(parts.ctx.log.end_lsn()).unwrap();
        let again = open(parts.storage().cut(5), options);
        assert_eq!(again.space.pages_of(SEGMENT), parts.space.pages_of(SEGMENT));
    }
}

/// A small load that comes and goes does not cut the file each time.
#[test]
fn a_cut_has_to_be_worth_it() {
    for (have, needed, in_use, at_closing) in [
        (100, 93, false, true),
        (100, 92, false, true),
        (100, 87, true, true),
        (20, 12, true, true),
        (8, 8, false, false),
    ] {
        assert_eq!(truncation::Cut::InUse.is_worth(have, needed), in_use, "{have}, {needed}");
        assert_eq!(truncation::Cut::AtClosing.is_worth(have, needed), at_closing, "{have}, {needed}");
    }
}

/// A bare reserve gets its place before others are cut: on a full disk nothing is cut then.
#[test]
fn the_reserve_has_its_place_after_a_cut() {
    let data = MemoryDevice::limited(64 << 20);
    let storage = StorageSet::of_memory([data.clone(), MemoryDevice::new(), MemoryDevice::new()]);
    let parts = open(storage, small_options());
    fill(&parts, 60);
    empty(&parts);
    checkpoint(&parts, parts.ctx.log.end_lsn());
    let all = 1..extents(&parts);
    for extent in all.clone() {
        parts.space.state.lock().set_untouched(extent, 0);
    }
    data.discard(256 << 10, u64::from(all.end - 1) * (256 << 10)).unwrap();
    data.fill_up();
    assert!(!parts.space.cut_step(&parts.ctx, Cut::InUse).unwrap());
    assert_eq!(extents(&parts), all.end, "the reserve would be gone");
    data.others_leave();
    while parts.space.cut_step(&parts.ctx, Cut::InUse).unwrap() {}
    assert!(extents(&parts) < all.end / 4);
    data.fill_up();
    let _entitled = reserve::entitle(reserve::SpacePriority::Cleaning);
    fill(&parts, reserve::reserve_extents(extents(&parts)));
}

/// Whatever is cut, a closing and an opening remember it.
#[test]
fn a_closing_cuts_all_that_is_not_needed() {
    for options in stores() {
        let storage = StorageSet::memory();
        let mut parts = open(storage.clone(), options.clone());
        fill(&parts, 10);
        let kept = new_page(&parts).unwrap();
        let grown = extents(&parts);
        parts.space.grow(&parts.ctx).unwrap();
        assert!(extents(&parts) > grown);
        parts.close().unwrap();
        let (count, len) = (extents(&parts), storage.data.len_bytes().unwrap());
        drop(parts);
        let parts = open(storage.clone(), options.clone());
        assert_eq!((extents(&parts), bytes_on_disk(&parts)), (count, len), "{options:?}");
        assert_eq!(parts.space.owner(kept), Some(SEGMENT), "{options:?}");
        let reserve = reserve::reserve_extents(count) + READY_EXTENTS;
        assert!(count <= 11 + 1 + reserve, "{count} extents: {options:?}");
        if options.page_store == PageStoreKind::InPlace {
            assert_eq!(len, u64::from(count) * parts.space.layout().extent_bytes());
        }
    }
}

/// A core whose groups have twelve extents.
fn open_small_groups(storage: StorageSet, options: &Options) -> Result<OpenParts> {
    let overrides =
        OpenOverrides { group_extents: 12, recovery_threads: 1, finding_threads: 1, ..OpenOverrides::default() };
    OpenParts::open_in(storage, options.clone(), &overrides)
}

/// The second group goes with its map, and comes back: the power is cut at every change, and in recovery once more.
#[test]
fn a_power_cut_at_every_change_of_a_cut_and_the_growth_after_it() {
    for (number, options) in stores().into_iter().enumerate() {
        let storage = StorageSet::memory();
        let mut parts = open_small_groups(storage.clone(), &options).unwrap();
        fill(&parts, 10);
        assert_eq!(parts.space.layout().groups(extents(&parts)), 2);
        close_uncut(&mut parts);
        drop(parts);
        let (mut cuts, mut shortened) = (0, 0);
        for changes in 0.. {
            let memory = storage.cut(0);
            let faults = Faults::new();
            let parts = open_small_groups(memory.map(|device| faults.wrap(device)), &options).unwrap();
            faults.power_off_after(changes);
            let mut durable = Vec::new();
            let used = cut_and_grow(&parts, &mut durable);
            drop(parts);
            let case = format!("store {number}, power off after {changes} changes");
            let cut = memory.cut(changes);
            let again = Faults::new();
            again.power_off_after(changes % 7);
            drop(open_small_groups(cut.map(|device| again.wrap(device)), &options));
            let parts = open_small_groups(cut.cut(changes), &options).unwrap_or_else(|e| panic!("{case}: {e}"));
            shortened += u32::from(parts.space.layout().groups(extents(&parts)) == 1);
            assert_sound(&parts, &durable, &case);
            if used.is_ok() {
                break;
            }
            cuts += 1;
        }
        assert!(cuts > 20 && shortened > 0, "{cuts} cuts, {shortened} left the file shorter");
    }
}

/// Recovery reads the map of a group that was just begun: the group stays until a checkpoint has passed that.
#[test]
fn a_new_map_stays_until_a_checkpoint_has_passed_it() {
    for options in stores() {
        let parts = open_small_groups(StorageSet::memory(), &options).unwrap();
        let groups = || parts.space.layout().groups(extents(&parts));
        while groups() < 2 {
            parts.space.grow(&parts.ctx).unwrap();
        }
        while parts.space.cut_step(&parts.ctx, Cut::Thorough).unwrap() {}
        assert_eq!(groups(), 2, "{options:?}");
        open_small_groups(parts.storage().cut(3), &options).unwrap();
        parts.ctx.pool.flush_all().unwrap();
        checkpoint_now(&parts).unwrap();
        while parts.space.cut_step(&parts.ctx, Cut::Thorough).unwrap() {}
        assert_eq!(groups(), 1, "{options:?}");
        open_small_groups(parts.storage().cut(3), &options).unwrap();
    }
}

/// Empties all, cuts, and grows into the second group again.
fn cut_and_grow(parts: &OpenParts, durable: &mut Vec<PageNo>) -> Result<()> {
    while !parts.space.drop_segment_step(&parts.ctx, SEGMENT, 200)? {}
    parts.ctx.pool.flush_all()?;
    checkpoint_now(parts)?;
    while parts.space.cut_step(&parts.ctx, Cut::Thorough)? {}
    assert_eq!(parts.space.layout().groups(extents(parts)), 1);
    use_second_group(parts, durable)
}

fn checkpoint_now(parts: &OpenParts) -> Result<()> {
    cleaner::checkpoint(&parts.ctx.pool, &parts.ctx.log, cleaner::checkpoint_target(&parts.ctx.pool, &parts.ctx.log))
}
