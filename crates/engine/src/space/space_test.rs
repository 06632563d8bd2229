//! Growth over several extent-map groups, with the power cut at every change it makes.

use super::allocation::BATCH_MAPS;
use super::growth::{FULL_FOR, FULL_KNOWN_FOR, READY_EXTENTS};
use super::layout::CHUNKS;
use super::reserve::Purpose;
use super::*;
use crate::db::core::Core;
use crate::page::{PageOp, PageType};
use crate::pool::FlushReason;
use crate::testing::{open, small_options};
use crate::types::Lsn;
use highwater_storage::{Device, Faults, FlushMethod, MemoryDevice, StorageSet};
use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

const SEGMENT: SegmentId = SegmentId(99);

/// Allocates and formats a page.
fn new_page(core: &Core) -> Result<PageNo> {
    new_page_of(core, SEGMENT)
}

fn new_page_of(core: &Core, segment: SegmentId) -> Result<PageNo> {
    core.space.with_room(&core.ctx, || {
        let mut mtr = core.ctx.mtr_with(4096, 1)?;
        let page_no = core.space.allocate(&mut mtr, segment, None)?;
        let page = mtr.new_page(page_no);
        mtr.apply(page, &PageOp::Format { page_type: PageType::Overflow, level: 0, owner: segment.0 });
        mtr.commit();
        Ok(page_no)
    })
}

fn extents(core: &Core) -> u32 {
    core.space.page_count() / EXTENT_PAGES
}

/// A closed database whose next growth but `before` reaches into the second group, all but full.
fn before_the_second_group() -> StorageSet {
    let storage = StorageSet::memory();
    let mut core = open(storage.clone(), small_options());
    let group = core.space.layout().group_extents();
    while extents(&core) + extents(&core) / 4 <= group {
        core.space.grow(&core.ctx).unwrap();
    }
    let _entitled = reserve::entitle(Purpose::Cleaning);
    while core.space.state.lock().unowned_chunks() > READY_EXTENTS * CHUNKS {
        new_page(&core).unwrap();
    }
    assert_eq!(core.space.layout().groups(extents(&core)), 1);
    core.close().unwrap();
    storage
}

/// Grows the file into the second group and takes pages; those whose redo is durable go to `durable`.
fn use_second_group(core: &Core, durable: &mut Vec<PageNo>) -> Result<()> {
    while core.space.layout().groups(extents(core)) < 2 {
        core.space.grow(&core.ctx)?;
    }
    for _ in 0..3 {
        let pages = (0..10).map(|_| new_page(core)).collect::<Result<Vec<_>>>()?;
        core.ctx.log.flush_to(core.ctx.log.end_lsn())?;
        durable.extend(pages);
    }
    core.ctx.pool.flush_oldest(Lsn(u64::MAX), 3, FlushReason::CheckpointAge).map(drop)
}

/// Every page that was acknowledged is there and owned; memory and maps agree; the space can be used further.
fn assert_sound(core: &Core, durable: &[PageNo], case: &str) {
    for page in durable {
        assert_eq!(core.space.owner(*page), Some(SEGMENT), "{case}: page {page}");
        core.ctx.pool.fix_s(*page).unwrap_or_else(|e| panic!("{case}: {e}"));
    }
    let mut more = Vec::new();
    use_second_group(core, &mut more).unwrap_or_else(|e| panic!("{case}: {e}"));
    assert!(more.iter().all(|page| !durable.contains(page)), "{case}");
}

#[test]
fn a_power_cut_at_every_change_of_a_growth_into_a_new_group() {
    let base = before_the_second_group();
    let mut cuts = 0;
    for changes in 0.. {
        let memory = base.cut(0);
        let faults = Faults::new();
        let core = open(memory.map(|device| faults.wrap(device)), small_options());
        faults.power_off_after(changes);
        let mut durable = Vec::new();
        let used = use_second_group(&core, &mut durable);
        drop(core);
        let case = format!("power off after {changes} changes");
        let cut = memory.cut(changes);
        // Recovery is cut short too, at a point that depends on the first cut.
        let again = Faults::new();
        again.power_off_after(changes % 7);
        drop(Core::open(cut.map(|device| again.wrap(device)), small_options()));
        let core = Core::open(cut.cut(changes), small_options()).unwrap_or_else(|e| panic!("{case}: {e}"));
        assert_sound(&core, &durable, &case);
        drop(Core::open(core.storage().cut(changes), small_options()).unwrap_or_else(|e| panic!("{case}: {e}")));
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
    let core = open(storage, small_options());
    assert_sound(&core, &[], "old bytes");
    assert_eq!(core.space.layout().groups(extents(&core)), 2);
    open(core.storage().cut(3), small_options());
}

#[test]
fn a_map_that_was_formatted_and_is_gone_is_damage() {
    let storage = before_the_second_group();
    let mut core = open(storage.clone(), small_options());
    use_second_group(&core, &mut Vec::new()).unwrap();
    let (map, extents) = (core.space.layout().map_page(1), extents(&core) as usize);
    core.close().unwrap();
    let [data, ..] = storage.memory_devices().unwrap();
    data.damage(|bytes| bytes[map.0 as usize * 4096..][..4096].fill(0));
    let error = Core::open(storage.clone(), small_options()).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains(&format!("page {map}")), "{error}");
    data.damage(|bytes| bytes.truncate(extents * 64 * 4096 - 1));
    let error = Core::open(storage, small_options()).err().map(|e| e.to_string()).unwrap_or_default();
    assert!(error.contains("is cut"), "{error}");
}

/// A data file of many groups, all free: page 0 and the maps are written, the rest is a hole.
fn sparse_database(dir: &std::path::Path, extents: u32) -> StorageSet {
    let storage = StorageSet::open_dir(dir, None, FlushMethod::Fsync, true).unwrap();
    open(storage.clone(), small_options()).close().unwrap();
    let layout = Layout::new(4096);
    let file = std::fs::OpenOptions::new().read(true).write(true).open(dir.join("data")).unwrap();
    file.set_len(u64::from(extents) * layout.extent_bytes()).unwrap();
    let mut page = vec![0; 4096];
    file.read_exact_at(&mut page, 0).unwrap();
    header::set_extents(&extents.to_le_bytes()).apply(&mut page).unwrap();
    crate::page::header::seal(&mut page, PageNo(0));
    file.write_all_at(&page, 0).unwrap();
    for map in (1..layout.groups(extents)).map(|group| layout.map_page(group)) {
        let mut page = vec![0; 4096];
        format_map_ops(|op| op.apply(&mut page).unwrap());
        crate::page::header::seal(&mut page, map);
        file.write_all_at(&page, u64::from(map.0) * 4096).unwrap();
    }
    storage
}

/// Every segment gets a chunk of the first extents that have one: the chunks behind the maps, in one group after the
/// other.
#[test]
fn a_file_with_more_maps_than_the_pool_has_frames_opens_and_is_used() {
    const GROUPS: u32 = 300;
    const SEGMENTS: u32 = 2050;
    let folder = tempfile::tempdir().unwrap();
    let group = Layout::new(4096).group_extents();
    let core = open(sparse_database(folder.path(), GROUPS * group), small_options());
    assert!(core.ctx.pool.frame_count() < GROUPS as usize);
    assert_eq!(core.space.page_count(), GROUPS * group * EXTENT_PAGES);
    let _entitled = reserve::entitle(Purpose::Cleaning);
    let segments = || (0..SEGMENTS).map(|n| SegmentId(1000 + n));
    for _ in 0..2 {
        let pages: Vec<_> = segments().map(|segment| new_page_of(&core, segment).unwrap()).collect();
        assert!(pages[SEGMENTS as usize - 1].0 > (SEGMENTS / 7 - 1) * group * EXTENT_PAGES);
    }
    for segment in segments().step_by(2) {
        while !core.space.drop_segment_step(&core.ctx, segment, 40).unwrap() {}
    }
    let pages: Vec<_> = segments().map(|segment| core.space.pages_of(segment).len()).collect();
    assert!(pages.chunks(2).all(|two| two == [0, 2]), "{pages:?}");
}

/// An open database of this many extents on a small disk.
fn on_a_limited_disk(extents_min: u32) -> (MemoryDevice, Core) {
    let data = MemoryDevice::limited(64 << 20);
    let storage = StorageSet::of_memory([data.clone(), MemoryDevice::new(), MemoryDevice::new()]);
    let core = open(storage, small_options());
    while extents(&core) < extents_min {
        core.space.grow(&core.ctx).unwrap();
    }
    (data, core)
}

fn checkpoint(core: &Core, lsn: Lsn) {
    core.ctx.pool.flush_all().unwrap();
    core.ctx.log.flush_to(core.ctx.log.end_lsn()).unwrap();
    core.ctx.log.checkpoint(lsn).unwrap();
}

/// A mini-transaction that gives the page back.
fn giving_back(core: &Core, page: PageNo) -> Mtr<'_> {
    let mut mtr = core.ctx.mtr().unwrap();
    core.space.keep_map(&mut mtr, page).unwrap();
    core.space.free(&mut mtr, page);
    mtr
}

#[test]
fn a_page_that_is_given_back_is_free_once_that_has_committed() {
    let core = open(StorageSet::memory(), small_options());
    let page = new_page(&core).unwrap();
    let mtr = giving_back(&core, page);
    assert_eq!(core.space.owner(page), Some(SEGMENT), "a crash now would leave it in use");
    mtr.commit();
    assert_eq!(core.space.owner(page), None);
}

#[test]
fn a_chunk_that_changes_hands_belongs_to_the_new_owner_after_an_opening_too() {
    let storage = StorageSet::memory();
    let mut core = open(storage.clone(), small_options());
    let page = new_page_of(&core, SegmentId(0x68)).unwrap();
    giving_back(&core, page).commit();
    assert_eq!(new_page_of(&core, SegmentId(0x63)).unwrap(), page);
    core.close().unwrap();
    assert_eq!(open(storage, small_options()).space.owner(page), Some(SegmentId(0x63)));
}

#[test]
fn what_a_backup_holds_is_discarded_afterwards() {
    let (data, core) = on_a_limited_disk(32);
    for _ in 0..16 * EXTENT_PAGES {
        new_page(&core).unwrap();
    }
    while !core.space.drop_segment_step(&core.ctx, SEGMENT, 16).unwrap() {}
    checkpoint(&core, core.ctx.log.end_lsn());
    let held = core.space.hold_discards();
    core.space.discard_step(&core.ctx);
    assert_eq!(data.discarded_bytes(), 0);
    drop(held);
    core.space.discard_step(&core.ctx);
    assert!(data.discarded_bytes() > 0);
}

#[test]
fn an_extent_is_discarded_once_a_checkpoint_has_passed_the_last_change_of_its_pages() {
    let (data, core) = on_a_limited_disk(32);
    let take = || (0..16 * EXTENT_PAGES).map(|_| new_page(&core).unwrap()).collect::<Vec<_>>();
    let pages = take();
    while !core.space.drop_segment_step(&core.ctx, SEGMENT, 16).unwrap() {}
    let dropped = core.ctx.log.end_lsn();
    let again = take();
    let extents_of = |pages: &[PageNo]| pages.iter().map(|page| page.0 / EXTENT_PAGES).collect::<BTreeSet<_>>();
    assert_eq!(extents_of(&again), extents_of(&pages), "what was dropped is taken again");
    checkpoint(&core, dropped);
    for page in again {
        giving_back(&core, page).commit();
    }
    core.space.discard_step(&core.ctx);
    assert_eq!(data.discarded_bytes(), 0, "the checkpoint has passed the drop only");
    checkpoint(&core, core.ctx.log.end_lsn());
    core.space.discard_step(&core.ctx);
    assert!(data.discarded_bytes() > 4 * core.space.layout().extent_bytes(), "{}", data.discarded_bytes());
}

/// Takes 32 extents and frees them again; returns the bytes of those beside the reserve.
fn empty_extents(core: &Core) -> u64 {
    for _ in 0..32 * EXTENT_PAGES {
        new_page(core).unwrap();
    }
    while !core.space.drop_segment_step(&core.ctx, SEGMENT, 16).unwrap() {}
    let kept = reserve::reserve_extents(extents(core)) + READY_EXTENTS;
    u64::from(32 - kept) * core.space.layout().extent_bytes()
}

#[test]
fn a_closing_discards_what_was_emptied() {
    let (data, mut core) = on_a_limited_disk(64);
    let emptied_bytes = empty_extents(&core);
    core.close().unwrap();
    assert!(data.discarded_bytes() >= emptied_bytes, "{} of {emptied_bytes}", data.discarded_bytes());
}

#[test]
fn an_opening_discards_what_a_killed_process_emptied_but_for_the_reserve() {
    let (_, core) = on_a_limited_disk(64);
    let (emptied_bytes, log) = (empty_extents(&core), &core.ctx.log);
    log.flush_to(log.end_lsn()).unwrap();
    let storage = core.storage().cut(1);
    let data = storage.memory_devices().unwrap()[0].clone();
    let core = open(storage, small_options());
    assert_eq!(data.discarded_bytes(), 0);
    while core.space.discard_found_step(&core.ctx) {}
    assert!(data.discarded_bytes() >= emptied_bytes, "{} of {emptied_bytes}", data.discarded_bytes());
    // Others take what was discarded: the reserve is still there.
    data.fill_up();
    let reserve = reserve::reserve_extents(extents(&core));
    let _entitled = reserve::entitle(Purpose::Cleaning);
    for page in 0..reserve * EXTENT_PAGES {
        assert!(new_page(&core).is_ok(), "page {page}");
    }
}

/// On a disk that is full none of the free extents is the reserve for certain: those found stay as they are.
#[test]
fn without_a_reserve_an_opening_discards_nothing() {
    let (data, mut core) = on_a_limited_disk(32);
    let storage = core.storage().clone();
    core.close().unwrap();
    let (extent_bytes, count) = (core.space.layout().extent_bytes(), extents(&core));
    assert!(count <= core.space.layout().group_extents(), "one map");
    data.discard(extent_bytes, u64::from(count - 1) * extent_bytes).unwrap();
    data.fill_up();
    let discarded_bytes = data.discarded_bytes();
    let core = open(storage, small_options());
    let mut steps = 0..1000;
    while core.space.discard_found_step(&core.ctx) {
        assert!(steps.next().is_some(), "the step ends");
    }
    assert_eq!(data.discarded_bytes(), discarded_bytes);
}

#[test]
fn who_cleans_up_finds_the_reserve_behind_any_number_of_holes() {
    let (data, mut core) = on_a_limited_disk(70);
    let storage = core.storage().clone();
    core.close().unwrap();
    let bytes = core.space.layout().extent_bytes();
    drop(core);
    // The second map lies behind the holes.
    data.discard(bytes, 50 * bytes).unwrap();
    data.fill_up();
    let core = open(storage, small_options());
    assert!(matches!(new_page(&core), Err(Error::DiskFull { .. })));
    let _entitled = reserve::entitle(Purpose::Cleaning);
    for _ in 0..8 * EXTENT_PAGES {
        new_page(&core).unwrap();
    }
}

#[test]
fn a_disk_that_was_full_long_ago_is_not_called_full() {
    let (_, mut core) = on_a_limited_disk(8);
    core.close().unwrap();
    let core = open(core.storage().clone(), small_options());
    let refused = |ago: Duration| {
        core.space.state.lock().full_since = Some((Instant::now().checked_sub(ago).unwrap(), Purpose::Users));
        core.space.allocate(&mut core.ctx.mtr().unwrap(), SEGMENT, None).unwrap_err()
    };
    assert!(matches!(refused(FULL_FOR), Error::DiskFull { .. }));
    assert!(matches!(refused(FULL_KNOWN_FOR), Error::Usage(_)));
}

#[test]
fn a_batch_of_pages_touches_few_maps() {
    let (_, core) = on_a_limited_disk(8);
    let group = core.space.layout().group_extents() * EXTENT_PAGES;
    let mut pages = Vec::new();
    while core.space.fits_batch(&pages, PageNo(pages.len() as u32 / 2 * group + 9)) {
        pages.push(PageNo(pages.len() as u32 / 2 * group + 9));
    }
    assert_eq!(pages.len(), 2 * BATCH_MAPS);
    assert!(core.space.fits_batch(&pages, PageNo(group + 20)));
}

#[test]
fn segments_are_dropped_and_their_space_comes_back() {
    let core = open(StorageSet::memory(), small_options());
    for _ in 0..500 {
        new_page(&core).unwrap();
    }
    let before = core.space.page_count();
    assert_eq!(core.space.pages_of(SEGMENT).len(), 500);
    while !core.space.drop_segment_step(&core.ctx, SEGMENT, 2).unwrap() {}
    assert!(core.space.pages_of(SEGMENT).is_empty());
    for _ in 0..500 {
        new_page(&core).unwrap();
    }
    assert_eq!(core.space.page_count(), before);
    let pages = core.space.pages_of(SEGMENT);
    let lsn = core.ctx.log.end_lsn();
    core.ctx.log.flush_to(lsn).unwrap();
    let again = open(core.storage().cut(1), small_options());
    assert_eq!(again.space.pages_of(SEGMENT), pages);
}
