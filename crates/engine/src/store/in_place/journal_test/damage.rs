//! A journal that was lost, is older, or damaged.

use super::*;

#[test]
fn a_lost_or_older_journal_is_noticed_if_it_is_needed() {
    let mut world = World::new();
    let store = world.open(&world.storage, JOURNAL).unwrap();
    write(&*store, &[5, 6], 2, FlushLane::FlushList).unwrap();
    let older = world.storage.memory_devices().unwrap()[2].image();
    write(&*store, &[5, 6], 3, FlushLane::FlushList).unwrap();
    (world.lsn, world.mark) = (3, store.mark());
    let newest = journal_scan::Mark::decode(world.mark).newest;
    let start = JournalLayout::new(PAGE_BYTES).offset_of(0) as usize;
    for (what, image) in [("older", older), ("cut short", vec![0; start]), ("empty", Vec::new())] {
        let changed = world.storage.cut(1);
        changed.memory_devices().unwrap()[2].damage(|bytes| *bytes = image);
        let refused = world.open(&changed, JOURNAL).map(drop).unwrap_err();
        assert!(
            matches!(&refused, Error::Corrupt(text) if text.contains(&format!("is needed up to batch {newest}"))),
            "{what}: {refused}"
        );
        let mut settled = World { mark: journal_scan::Mark { newest, is_needed: false }.encode(), ..World::new() };
        settled.storage = changed;
        settled.open(&settled.storage, JOURNAL).unwrap_or_else(|e| panic!("{what} and not needed: {e}"));
    }
}

/// A needed image that is damaged is an error if its place holds an older version; else it is not missed.
#[test]
fn damage_in_what_is_needed_is_noticed() {
    let mut world = World::new();
    let store = world.open(&world.storage, JOURNAL).unwrap();
    write(&*store, &[5, 6], 4, FlushLane::FlushList).unwrap();
    let before = world.storage.memory_devices().unwrap()[0].image();
    (5..8).for_each(|lsn| write(&*store, &[5, 6], lsn, FlushLane::FlushList).unwrap());
    world.storage.data.sync().unwrap();
    (world.lsn, world.mark) = (7, store.mark());
    let newest_image = world.newest_image(PageNo(5));
    let opened = |page_is_old: bool, damaged: usize| {
        let changed = world.storage.cut(1);
        let [data, _, ring] = changed.memory_devices().unwrap();
        let page = 5 * PAGE_BYTES..if page_is_old { 6 } else { 5 } * PAGE_BYTES;
        data.damage(|bytes| bytes[page.clone()].copy_from_slice(&before[page.clone()]));
        ring.damage(|bytes| bytes[damaged] ^= 1);
        world.open(&changed, JOURNAL).map(drop)
    };
    opened(false, newest_image).unwrap();
    let refused = opened(true, newest_image).unwrap_err().to_string();
    assert!(refused.contains("the image of page 5 in the journal"), "{refused}");
    opened(true, 0).unwrap();
}

/// Its page was freed since, or it is new; then its reader finds zeros where a page should be.
#[test]
fn a_damaged_image_of_a_place_without_a_page_is_passed_over() {
    let mut world = World::new();
    let store = world.open(&world.storage, JOURNAL).unwrap();
    write(&*store, &[5, 6], 7, FlushLane::FlushList).unwrap();
    world.storage.data.discard(5 * PAGE_BYTES as u64, PAGE_BYTES as u64).unwrap();
    (world.lsn, world.mark) = (7, store.mark());
    let (header, mark) = (bootstrap::find(&world.storage).unwrap().header(), journal_scan::Mark::decode(world.mark));
    let scanned = ScannedJournal::read(&*world.storage.doublewrite, header, mark).unwrap();
    world.storage.memory_devices().unwrap()[2]
        .damage(|bytes| bytes[scanned.live[&PageNo(5)][0].at as usize + 100] ^= 1);
    world.open(&world.storage, JOURNAL).unwrap();
}

#[test]
fn no_bytes_make_the_scan_fail() {
    let mut world = World::new();
    life(&mut world, JOURNAL, 200, 3);
    let header = bootstrap::find(&world.storage).unwrap().header();
    let layout = JournalLayout::new(PAGE_BYTES);
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..200 {
        let damaged = world.storage.cut(1);
        let ring = damaged.memory_devices().unwrap()[2].clone();
        ring.damage(|bytes| {
            for _ in 0..random.usize(1..6) {
                let at = layout.offset_of(random.u64(..3)) as usize + random.usize(..64);
                bytes[at] ^= random.u8(1..);
            }
            bytes.truncate(bytes.len() - random.usize(..3) * 5000);
        });
        let scanned = ScannedJournal::read(&ring, header, journal_scan::Mark::default()).unwrap();
        let mut image = vec![0; PAGE_BYTES];
        for page_no in scanned.live.keys() {
            scanned.image(&ring, *page_no, &mut image).unwrap();
        }
    }
}

/// A torn write of a batch may leave, where an image should be, one of an earlier lap: whole and of the same LSN.
#[test]
fn an_image_of_an_earlier_lap_does_not_count() {
    let mut world = World::new();
    let store = world.open(&world.storage, JOURNAL).unwrap();
    let [_, _, ring] = world.storage.memory_devices().unwrap();
    let mut earlier = Vec::new();
    for version in 1..4 {
        write_version(&*store, version);
        (world.lsn, world.mark) = (2, store.mark());
        let at = world.newest_image(PageNo(9)) - 100;
        match version {
            1 => earlier = ring.image()[at..at + PAGE_BYTES].to_vec(),
            2 => store.sync_places().unwrap(),
            _ => ring.damage(|bytes| bytes[at..at + PAGE_BYTES].copy_from_slice(&earlier)),
        }
    }
    let store = world.open(&world.storage, JOURNAL).unwrap();
    assert_eq!(read(&*store, 9)[PAGE_BYTES - 1], 3);
}
