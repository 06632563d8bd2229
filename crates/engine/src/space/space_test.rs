//! Growth over several extent-map groups, with the power cut at every change it makes.

use super::allocation::BATCH_MAPS;
use super::growth::{FULL_FOR, FULL_KNOWN_FOR, READY_EXTENTS};
use super::layout::CHUNKS;
use super::reserve::SpacePriority;
use super::*;
use crate::db::open_parts::OpenParts;
use crate::page::{PageOp, PageType};
use crate::pool::FlushReason;
use crate::testing::{open, small_options};
use crate::types::Lsn;
use highwater_storage::{Device, Faults, FlushMethod, MemoryDevice, StorageSet};
use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

pub(super) const SEGMENT: SegmentId = SegmentId(99);

/// Allocates and formats a page.
pub(super) fn new_page(parts: &OpenParts) -> Result<PageNo> {
    new_page_of(parts, SEGMENT)
}

fn new_page_of(parts: &OpenParts, segment: SegmentId) -> Result<PageNo> {
    parts.space.with_room(&parts.ctx, || {
        let mut mtr = parts.ctx.mtr_with(4096, 1)?;
        let page_no = parts.space.allocate(&mut mtr, segment, None)?;
        let page = mtr.new_page(page_no);
        mtr.apply(page, &PageOp::Format { page_type: PageType::Overflow, level: 0, owner: segment.0 });
        mtr.commit();
        Ok(page_no)
    })
}

pub(super) fn extents(parts: &OpenParts) -> u32 {
    parts.space.page_count() / EXTENT_PAGES
}

/// A closed database whose next growth but `before` reaches into the second group, all but full.
fn before_the_second_group() -> StorageSet {
    let storage = StorageSet::memory();
    let mut parts = open(storage.clone(), small_options());
    let group = parts.space.layout().group_extents();
    while extents(&parts) + extents(&parts) / 4 <= group {
        parts.space.grow(&parts.ctx).unwrap();
    }
    let _entitled = reserve::entitle(SpacePriority::Cleaning);
    while parts.space.state.lock().unowned_chunks() > READY_EXTENTS * CHUNKS {
        new_page(&parts).unwrap();
    }
    assert_eq!(parts.space.layout().groups(extents(&parts)), 1);
    parts.close().unwrap();
    storage
}

/// Grows the file into the second group and takes pages; those whose redo is durable go to `durable`.
pub(super) fn use_second_group(parts: &OpenParts, durable: &mut Vec<PageNo>) -> Result<()> {
    while parts.space.layout().groups(extents(parts)) < 2 {
        parts.space.grow(&parts.ctx)?;
    }
    for _ in 0..3 {
        let pages = (0..10).map(|_| new_page(parts)).collect::<Result<Vec<_>>>()?;
        parts.ctx.log.flush_to(parts.ctx.log.end_lsn())?;
        durable.extend(pages);
    }
    parts.ctx.pool.flush_oldest(Lsn(u64::MAX), 3, FlushReason::CheckpointAge).map(drop)
}

/// Every page that was acknowledged is there and owned; memory and maps agree; the space can be used further.
pub(super) fn assert_sound(parts: &OpenParts, durable: &[PageNo], case: &str) {
    for page in durable {
        assert_eq!(parts.space.owner(*page), Some(SEGMENT), "{case}: page {page}");
        parts.ctx.pool.fix_s(*page).unwrap_or_else(|e| panic!("{case}: {e}"));
    }
    let mut more = Vec::new();
    use_second_group(parts, &mut more).unwrap_or_else(|e| panic!("{case}: {e}"));
    assert!(more.iter().all(|page| !durable.contains(page)), "{case}");
}

#[test]
fn a_power_cut_at_every_change_of_a_growth_into_a_new_group() {
    let base = before_the_second_group();
    let mut cuts = 0;
    for changes in 0.. {
        let memory = base.cut(0);
        let faults = Faults::new();
        let parts = open(memory.map(|device| faults.wrap(device)), small_options());
        faults.power_off_after(changes);
        let mut durable = Vec::new();
        let used = use_second_group(&parts, &mut durable);
        drop(parts);
        let case = format!("power off after {changes} changes");
        let cut = memory.cut(changes);
        // Recovery is cut short too, at a point that depends on the first cut.
        let again = Faults::new();
        again.power_off_after(changes % 7);
        drop(OpenParts::open(cut.map(|device| again.wrap(device)), small_options()));
        let parts = OpenParts::open(cut.cut(changes), small_options()).unwrap_or_else(|e| panic!("{case}: {e}"));
        assert_sound(&parts, &durable, &case);
        drop(OpenParts::open(parts.storage().cut(changes), small_options()).unwrap_or_else(|e| panic!("{case}: {e}")));
        if used.is_ok() {
            break;
        }
        cuts += 1;
    }
    assert!(cuts > 8, "{cuts}");
}

#[test]
fn what_lies_behind_the_counted_extents_may_be_anything() {
    let storage = before_the_second_group();
    // A growth that was cut after the new length, on a device that kept old bytes there.
    let [data, ..] = storage.memory_devices().unwrap();
    data.damage(|bytes| bytes.resize(bytes.len() + 30 * 64 * 4096 + 777, 0xD5));
    let parts = open(storage, small_options());
    assert_sound(&parts, &[], "old bytes");
    assert_eq!(parts.space.layout().groups(extents(&parts)), 2);
    open(parts.storage().cut(3), small_options());
}

#[test]
fn a_map_that_was_formatted_and_is_gone_is_damage() {
    let storage = before_the_second_group();
    let mut parts = open(storage.clone(), small_options());
    use_second_group(&parts, &mut Vec::new()).unwrap();
    let (map, extents) = (parts.space.layout().map_page(1), extents(&parts) as usize);
    close_uncut(&mut parts);
    let [data, ..] = storage.memory_devices().unwrap();
    data.damage(|bytes| bytes[map.0 as usize * 4096..][..4096].fill(0));
    let error = OpenParts::open(storage.clone(), small_options()).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains(&format!("page {map}")), "{error}");
    data.damage(|bytes| bytes.truncate(extents * 64 * 4096 - 1));
    let error = OpenParts::open(storage, small_options()).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("is cut"), "{error}");
}

/// A data file of many groups, all free: page 0 and the maps are written, the rest is a hole.
fn sparse_database(dir: &std::path::Path, extents: u32) -> StorageSet {
    let storage = StorageSet::open_dir(dir, None, FlushMethod::Fsync, true).unwrap();
    open(storage.clone(), small_options()).close().unwrap();
    let layout = SpaceLayout::new(4096);
    let file = std::fs::OpenOptions::new().read(true).write(true).open(dir.join("data")).unwrap();
    file.set_len(u64::from(extents) * layout.extent_bytes()).unwrap();
    let mut page = vec![0; 4096];
    file.read_exact_at(&mut page, 0).unwrap();
    header::set_extents(&extents.to_le_bytes()).apply(&mut page).unwrap();
    crate::page::header::stamp(&mut page, PageNo(0));
    file.write_all_at(&page, 0).unwrap();
    for map in (1..layout.groups(extents)).map(|group| layout.map_page(group)) {
        let mut page = vec![0; 4096];
        format_map_ops(|op| op.apply(&mut page).unwrap());
        crate::page::header::stamp(&mut page, map);
        file.write_all_at(&page, u64::from(map.0) * 4096).unwrap();
    }
    storage
}

/// Every segment gets a chunk of the first extents that have one: the chunks after the maps, in one group after the
/// other.
#[test]
fn a_file_with_more_maps_than_the_pool_has_frames_opens_and_is_used() {
    const GROUPS: u32 = 300;
    const SEGMENTS: u32 = 2050;
    let folder = tempfile::tempdir().unwrap();
    let group = SpaceLayout::new(4096).group_extents();
    let parts = open(sparse_database(folder.path(), GROUPS * group), small_options());
    assert!(parts.ctx.pool.frame_count() < GROUPS as usize);
    assert_eq!(parts.space.page_count(), GROUPS * group * EXTENT_PAGES);
    let _entitled = reserve::entitle(SpacePriority::Cleaning);
    let segments = || (0..SEGMENTS).map(|n| SegmentId(1000 + n));
    for _ in 0..2 {
        let pages: Vec<_> = segments().map(|segment| new_page_of(&parts, segment).unwrap()).collect();
        assert!(pages[SEGMENTS as usize - 1].0 > (SEGMENTS / 7 - 1) * group * EXTENT_PAGES);
    }
    for segment in segments().step_by(2) {
        while !parts.space.drop_segment_step(&parts.ctx, segment, 40).unwrap() {}
    }
    let pages: Vec<_> = segments().map(|segment| parts.space.pages_of(segment).len()).collect();
    assert!(pages.chunks(2).all(|two| two == [0, 2]), "{pages:?}");
}

/// An open database of this many extents on a small disk.
fn on_a_limited_disk(extents_min: u32) -> (MemoryDevice, OpenParts) {
    let data = MemoryDevice::limited(64 << 20);
    let storage = StorageSet::of_memory([data.clone(), MemoryDevice::new(), MemoryDevice::new()]);
    let parts = open(storage, small_options());
    while extents(&parts) < extents_min {
        parts.space.grow(&parts.ctx).unwrap();
    }
    (data, parts)
}

pub(super) fn checkpoint(parts: &OpenParts, lsn: Lsn) {
    parts.ctx.pool.flush_all().unwrap();
    parts.ctx.log.flush_to(parts.ctx.log.end_lsn()).unwrap();
    parts.ctx.log.checkpoint(lsn).unwrap();
}

/// Closes the core with all its extents, and discards none.
pub(super) fn close_uncut(parts: &mut OpenParts) {
    let space = parts.space.clone();
    let _held = space.hold_discards();
    parts.close().unwrap();
}

/// A mini-transaction that frees the page.
fn giving_back(parts: &OpenParts, page: PageNo) -> Mtr<'_> {
    let mut mtr = parts.ctx.mtr().unwrap();
    parts.space.keep_map(&mut mtr, page).unwrap();
    parts.space.free(&mut mtr, page);
    mtr
}

#[test]
fn a_page_that_is_released_is_free_once_that_has_committed() {
    let parts = open(StorageSet::memory(), small_options());
    let page = new_page(&parts).unwrap();
    let mtr = giving_back(&parts, page);
    assert_eq!(parts.space.owner(page), Some(SEGMENT), "a crash now would leave it in use");
    mtr.commit();
    assert_eq!(parts.space.owner(page), None);
}

#[test]
fn a_page_that_is_free_is_not_freed_again() {
    let parts = open(StorageSet::memory(), small_options());
    let [_kept, page] = [(); 2].map(|()| new_page(&parts).unwrap());
    giving_back(&parts, page).commit();
    let end = parts.ctx.log.end_lsn();
    giving_back(&parts, page).commit();
    assert_eq!(parts.ctx.log.end_lsn(), end, "nothing is changed");
    assert_eq!((parts.space.owner(page), parts.space.pages_in(SEGMENT)), (None, 1));
    let [one, other] = [(); 2].map(|()| new_page(&parts).unwrap());
    assert_ne!(one, other, "a page is allocated twice");
    assert_eq!(parts.space.pages_in(SEGMENT), 3);
}

#[test]
fn a_chunk_that_changes_hands_belongs_to_the_new_owner_after_an_opening_too() {
    let storage = StorageSet::memory();
    let mut parts = open(storage.clone(), small_options());
    let page = new_page_of(&parts, SegmentId(0x68)).unwrap();
    giving_back(&parts, page).commit();
    assert_eq!(new_page_of(&parts, SegmentId(0x63)).unwrap(), page);
    parts.close().unwrap();
    assert_eq!(open(storage, small_options()).space.owner(page), Some(SegmentId(0x63)));
}

#[test]
fn what_a_backup_holds_is_discarded_afterwards() {
    let (data, parts) = on_a_limited_disk(32);
    for _ in 0..16 * EXTENT_PAGES {
        new_page(&parts).unwrap();
    }
    while !parts.space.drop_segment_step(&parts.ctx, SEGMENT, 16).unwrap() {}
    checkpoint(&parts, parts.ctx.log.end_lsn());
    let held = parts.space.hold_discards();
    parts.space.discard_step(&parts.ctx);
    assert_eq!(data.discarded_bytes(), 0);
    drop(held);
    parts.space.discard_step(&parts.ctx);
    assert!(data.discarded_bytes() > 0);
}

#[test]
fn an_extent_is_discarded_once_a_checkpoint_has_passed_the_last_change_of_its_pages() {
    let (data, parts) = on_a_limited_disk(32);
    let take = || (0..16 * EXTENT_PAGES).map(|_| new_page(&parts).unwrap()).collect::<Vec<_>>();
    let pages = take();
    while !parts.space.drop_segment_step(&parts.ctx, SEGMENT, 16).unwrap() {}
    let dropped = parts.ctx.log.end_lsn();
    let again = take();
    let extents_of = |pages: &[PageNo]| pages.iter().map(|page| page.0 / EXTENT_PAGES).collect::<BTreeSet<_>>();
    assert_eq!(extents_of(&again), extents_of(&pages), "what was dropped is taken again");
    checkpoint(&parts, dropped);
    for page in again {
        giving_back(&parts, page).commit();
    }
    parts.space.discard_step(&parts.ctx);
    assert_eq!(data.discarded_bytes(), 0, "the checkpoint has passed the drop only");
    checkpoint(&parts, parts.ctx.log.end_lsn());
    parts.space.discard_step(&parts.ctx);
    assert!(data.discarded_bytes() > 4 * parts.space.layout().extent_bytes(), "{}", data.discarded_bytes());
}

/// Takes 32 extents and frees them again; returns the bytes of those in addition to the reserve.
fn empty_extents(parts: &OpenParts) -> u64 {
    for _ in 0..32 * EXTENT_PAGES {
        new_page(parts).unwrap();
    }
    while !parts.space.drop_segment_step(&parts.ctx, SEGMENT, 16).unwrap() {}
    let kept = reserve::reserve_extents(extents(parts)) + READY_EXTENTS;
    u64::from(32 - kept) * parts.space.layout().extent_bytes()
}

#[test]
fn a_closing_discards_what_was_emptied() {
    let (data, mut parts) = on_a_limited_disk(64);
    let fill = |segment, extents| {
        (0..extents * EXTENT_PAGES).for_each(|_| assert!(new_page_of(&parts, segment).is_ok()));
    };
    fill(SEGMENT, 32);
    // The extents after it stay, so the database is not small.
    fill(SegmentId(0x68), 6);
    while !parts.space.drop_segment_step(&parts.ctx, SEGMENT, 16).unwrap() {}
    let kept = reserve::reserve_extents(extents(&parts)) + READY_EXTENTS;
    let emptied_bytes = u64::from(32 - kept) * parts.space.layout().extent_bytes();
    parts.close().unwrap();
    assert!(data.discarded_bytes() >= emptied_bytes, "{} of {emptied_bytes}", data.discarded_bytes());
}

#[test]
fn an_opening_discards_what_a_killed_process_emptied_but_for_the_reserve() {
    let (_, parts) = on_a_limited_disk(64);
    let (emptied_bytes, log) = (empty_extents(&parts), &parts.ctx.log);
    log.flush_to(log.end_lsn()).unwrap();
    let storage = parts.storage().cut(1);
    let data = storage.memory_devices().unwrap()[0].clone();
    let parts = open(storage, small_options());
    assert_eq!(data.discarded_bytes(), 0);
    while parts.space.discard_found_step(&parts.ctx) {}
    assert!(data.discarded_bytes() >= emptied_bytes, "{} of {emptied_bytes}", data.discarded_bytes());
    // Others take what was discarded: the reserve is still there.
    data.fill_up();
    let reserve = reserve::reserve_extents(extents(&parts));
    let _entitled = reserve::entitle(SpacePriority::Cleaning);
    for page in 0..reserve * EXTENT_PAGES {
        assert!(new_page(&parts).is_ok(), "page {page}");
    }
}

/// On a disk that is full none of the free extents is the reserve for certain: those found stay as they are.
#[test]
fn without_a_reserve_an_opening_discards_nothing() {
    let (data, mut parts) = on_a_limited_disk(32);
    let storage = parts.storage().clone();
    close_uncut(&mut parts);
    let (extent_bytes, count) = (parts.space.layout().extent_bytes(), extents(&parts));
    assert!(count <= parts.space.layout().group_extents(), "one map");
    data.discard(extent_bytes, u64::from(count - 1) * extent_bytes).unwrap();
    data.fill_up();
    let discarded_bytes = data.discarded_bytes();
    let parts = open(storage, small_options());
    let mut steps = 0..1000;
    while parts.space.discard_found_step(&parts.ctx) {
        assert!(steps.next().is_some(), "the step ends");
    }
    assert_eq!(data.discarded_bytes(), discarded_bytes);
}

/// A database on a disk that is full, with fifty extents that have no place there.
fn on_a_full_disk_with_holes() -> OpenParts {
    let (data, mut parts) = on_a_limited_disk(70);
    let storage = parts.storage().clone();
    close_uncut(&mut parts);
    let bytes = parts.space.layout().extent_bytes();
    drop(parts);
    // The second map is after the holes.
    data.discard(bytes, 50 * bytes).unwrap();
    data.fill_up();
    open(storage, small_options())
}

#[test]
fn who_cleans_up_finds_the_reserve_behind_any_number_of_holes() {
    let parts = on_a_full_disk_with_holes();
    assert!(matches!(new_page(&parts), Err(Error::DiskFull { .. })));
    let _entitled = reserve::entitle(SpacePriority::Cleaning);
    for _ in 0..8 * EXTENT_PAGES {
        new_page(&parts).unwrap();
    }
}

/// The thread that tries them lets others that need space continue in between.
#[test]
fn holes_are_tried_a_few_at_a_time() {
    let parts = on_a_full_disk_with_holes();
    let _entitled = reserve::entitle(SpacePriority::Cleaning);
    let mut tries = 0..30;
    for left in [14, 0] {
        assert!(matches!(parts.space.make_ready(&parts.ctx, &mut tries), Err(Error::DiskFull { .. })));
        assert_eq!(tries.len(), left);
    }
}

#[test]
fn a_disk_that_was_full_long_ago_is_not_called_full() {
    let (_, mut parts) = on_a_limited_disk(8);
    parts.close().unwrap();
    let parts = open(parts.storage().clone(), small_options());
    let refused = |ago: Duration| {
        parts.space.state.lock().full_since = Some((Instant::now().checked_sub(ago).unwrap(), SpacePriority::Users));
        parts.space.allocate(&mut parts.ctx.mtr().unwrap(), SEGMENT, None).unwrap_err()
    };
    assert!(matches!(refused(FULL_FOR), Error::DiskFull { .. }));
    assert!(matches!(refused(FULL_KNOWN_FOR), Error::Usage(_)));
}

#[test]
fn a_batch_of_pages_touches_few_maps() {
    let (_, parts) = on_a_limited_disk(8);
    let group = parts.space.layout().group_extents() * EXTENT_PAGES;
    let mut pages = Vec::new();
    while parts.space.fits_batch(&pages, PageNo(pages.len() as u32 / 2 * group + 9)) {
        pages.push(PageNo(pages.len() as u32 / 2 * group + 9));
    }
    assert_eq!(pages.len(), 2 * BATCH_MAPS);
    assert!(parts.space.fits_batch(&pages, PageNo(group + 20)));
}

#[test]
fn segments_are_dropped_and_their_space_comes_back() {
    let parts = open(StorageSet::memory(), small_options());
    for _ in 0..500 {
        new_page(&parts).unwrap();
    }
    let before = parts.space.page_count();
    assert_eq!(parts.space.pages_of(SEGMENT).len(), 500);
    while !parts.space.drop_segment_step(&parts.ctx, SEGMENT, 2).unwrap() {}
    assert!(parts.space.pages_of(SEGMENT).is_empty());
    for _ in 0..500 {
        new_page(&parts).unwrap();
    }
    assert_eq!(parts.space.page_count(), before);
    let pages = parts.space.pages_of(SEGMENT);
    let lsn = parts.ctx.log.end_lsn();
    parts.ctx.log.flush_to(lsn).unwrap();
    let again = open(parts.storage().cut(1), small_options());
    assert_eq!(again.space.pages_of(SEGMENT), pages);
}
