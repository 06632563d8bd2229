//! What the journal promises: everything acknowledged is found after any power cut, whatever the openings before and
//! after it protected their pages with; nothing old comes back; a journal that was lost is noticed.

mod cut_repairs;
mod damage;

use super::*;
use crate::error::Error;
use crate::page;
use crate::store::store_test::{JOURNAL, PAGE_BYTES, new_store, open_with, page_of, read, write};
use crate::store::{BATCH_PAGES, FlushLane, PageStore, Protection, Settings, StoreKind, bootstrap};
use crate::testing::preferring_discards;
use crate::types::{Lsn, PageNo};
use highwater_storage::{Counted, FaultKind, Faults, Limited, Operation, Request, StorageSet, TestDevice};
use std::collections::BTreeMap;

/// Pages that the tests write: enough for batches that fill a segment.
const PAGES: std::ops::Range<u32> = 2..180;
const LAYOUT_PAGE: usize = PAGE_BYTES;

/// A store, and the contents of its devices that outlive a power cut.
struct World {
    storage: StorageSet,
    /// What the log's header says of the store.
    mark: u64,
    /// The newest LSN that was given to a page.
    lsn: u64,
    /// Per page the LSN that was acknowledged last.
    acknowledged: BTreeMap<u32, u64>,
}

impl World {
    fn new() -> World {
        let storage = new_store(StoreKind::InPlace);
        let store = open_with(&storage, Protection::None);
        store.reserve(PAGES).unwrap();
        store.sync().unwrap();
        World { storage, mark: 0, lsn: 1, acknowledged: BTreeMap::new() }
    }

    /// Opens it as a database does: the checkpoint has passed everything that was acknowledged.
    fn open(&self, storage: &StorageSet, protection: Protection) -> Result<Arc<dyn PageStore>> {
        let found = bootstrap::find(storage)?.expect(self.mark)?;
        let checkpoint = self.acknowledged.values().max().copied().unwrap_or(0);
        found.repair(Lsn(checkpoint)..Lsn(self.lsn))?;
        found.open(&settings(protection), Arc::default())
    }

    /// Writes batches until the power is off, `batches` at most; the header is written now and then.
    fn live(&mut self, store: &dyn PageStore, random: &mut fastrand::Rng, batches: u32) {
        for _ in 0..batches {
            let (pages, lane) = some_pages(random);
            self.lsn += 1;
            if write(store, &pages, self.lsn, lane).is_err() {
                return;
            }
            self.acknowledged.extend(pages.iter().map(|page| (*page, self.lsn)));
            if random.u32(..3) == 0 {
                self.mark = store.mark();
            }
        }
    }

    /// A byte of the newest image of a page in the journal.
    fn newest_image(&self, page_no: PageNo) -> usize {
        let header = bootstrap::find(&self.storage).unwrap().header();
        let mark = journal_scan::Mark::decode(self.mark);
        let scanned = ScannedJournal::read(&*self.storage.doublewrite, header, mark).unwrap();
        scanned.live[&page_no][0].at as usize + 100
    }

    fn assert_whole(&self, store: &dyn PageStore, when: &str) {
        for (page, least) in &self.acknowledged {
            let bytes = read(store, *page);
            page::header::verify(&bytes, PageNo(*page)).unwrap_or_else(|error| panic!("{when}: {error}"));
            let lsn = page::header::lsn(&bytes).0;
            assert!((*least..=self.lsn).contains(&lsn), "{when}: page {page} is of LSN {lsn}, {least} acknowledged");
        }
    }
}

fn settings(protection: Protection) -> Settings {
    let compression = crate::config::PageCompression::Off;
    Settings { protection, compression, segment_fill_pct: 75, is_read_only: false }
}

/// Some pages in order, often nearly as many as fit a segment; or one.
fn some_pages(random: &mut fastrand::Rng) -> (Vec<u32>, FlushLane) {
    let (first, count) = (random.u32(PAGES), [1, 3, 60, BATCH_PAGES][random.usize(..4)]);
    let pages: Vec<u32> = (first..PAGES.end).take(count).collect();
    let lane = if pages.len() == 1 { FlushLane::SinglePage } else { FlushLane::FlushList };
    (pages, lane)
}

fn segments(n: u64) -> Protection {
    Protection::Journal { bytes: n * JournalLayout::new(LAYOUT_PAGE).segment_bytes() }
}

/// A life of the store: opened, written, cut off after `changes`, also while it opens; or killed there.
fn life(world: &mut World, protection: Protection, changes: u64, seed: u64) -> bool {
    let faults = Faults::new();
    let discards = seed.is_multiple_of(2);
    let wrapped = world.storage.map(|device| {
        let device = faults.wrap(device);
        if discards { preferring_discards(device) } else { device }
    });
    // Without protection a batch must not be cut.
    let is_cut = protection != Protection::None;
    if is_cut {
        faults.power_off_after(changes);
    }
    let mut random = fastrand::Rng::with_seed(seed);
    if let Ok(store) = world.open(&wrapped, protection) {
        // The header that an opening writes when recovery has ended.
        if !faults.is_power_off() {
            world.mark = store.mark();
        }
        world.live(&*store, &mut random, if is_cut { 24 } else { 4 });
    }
    // A killed process leaves behind what it wrote, durable or not.
    if !seed.is_multiple_of(3) {
        world.storage = world.storage.cut(seed);
    }
    faults.is_power_off()
}

#[test]
fn nothing_is_lost_by_a_cut_at_any_write_or_sync() {
    let mut cuts = 0;
    for changes in 0.. {
        let mut world = World::new();
        // Two lives: what the first one left in the ring is stale for the second one.
        let first = life(&mut world, JOURNAL, 40 + changes % 7, changes);
        let second = life(&mut world, JOURNAL, changes, changes + 1);
        let store = world.open(&world.storage, JOURNAL).unwrap_or_else(|e| panic!("{changes} changes: {e}"));
        world.assert_whole(&*store, &format!("{changes} changes"));
        cuts += u32::from(first) + u32::from(second);
        if !second {
            break;
        }
    }
    assert!(cuts > 150, "{cuts} cuts");
}

#[test]
fn any_protection_may_follow_any_other() {
    let protections = [JOURNAL, Protection::Doublewrite, segments(5), Protection::None, segments(4)];
    for seed in 0..150 {
        let (mut world, mut random) = (World::new(), fastrand::Rng::with_seed(seed));
        for number in 0..6 {
            let protection = protections[random.usize(..protections.len())];
            life(&mut world, protection, random.u64(..60), random.u64(..));
            let when = format!("seed {seed}, life {number} with {protection:?}");
            let looked = world.storage.cut(0);
            let store = world.open(&looked, Protection::None).unwrap_or_else(|error| panic!("{when}: {error}"));
            world.assert_whole(&*store, &when);
        }
    }
}

#[test]
fn lanes_share_the_ring() {
    for seed in 0..10 {
        let mut world = World::new();
        let faults = Faults::new();
        let store = world.open(&world.storage.map(|device| faults.wrap(device)), segments(3)).unwrap();
        faults.power_off_after(150 + seed * 20);
        // Each thread has pages of its own: a page is in one unfinished batch at most.
        let written: Vec<(u32, u64)> = std::thread::scope(|scope| {
            let thread = |n: u32| {
                let store = &*store;
                move || {
                    let pages: Vec<u32> = PAGES.filter(|page| page % 3 == n).take([60, 1, 20][n as usize]).collect();
                    let lane = [FlushLane::FlushList, FlushLane::SinglePage, FlushLane::LruList][n as usize];
                    let last = (2..2000).take_while(|lsn| write(store, &pages, *lsn, lane).is_ok()).last();
                    pages.into_iter().filter_map(move |page| Some((page, last?))).collect::<Vec<_>>()
                }
            };
            let threads: Vec<_> = (0..3).map(|n| scope.spawn(thread(n))).collect();
            threads.into_iter().flat_map(|thread| thread.join().unwrap()).collect()
        });
        (world.lsn, world.mark) = (2000, store.mark());
        world.acknowledged.extend(written);
        // The checkpoint of one thread's pages says nothing of the others'.
        let cut = world.storage.cut(seed);
        let found = bootstrap::find(&cut).unwrap().expect(world.mark).unwrap();
        found.repair(Lsn(1999)..Lsn(2000)).unwrap();
        let store = found.open(&settings(JOURNAL), Arc::default()).unwrap();
        world.assert_whole(&*store, &format!("seed {seed}"));
    }
}

/// A device that executes requests of this kind only while the gate is open.
fn gated(inner: Arc<dyn Device>, is_held: fn(&Request<'_>) -> bool, gate: &Arc<Mutex<()>>) -> Arc<dyn Device> {
    let gate = gate.clone();
    Arc::new(TestDevice::over(inner).before(move |request| {
        if is_held(&request) {
            drop(gate.lock());
        }
        Ok(())
    }))
}

/// Waits until other threads have come so far, and then for them to come further if they can.
fn reaches(is_there: impl Fn() -> bool) -> bool {
    let pause = || std::thread::sleep(std::time::Duration::from_millis(100));
    let comes = (0..100).any(|_| {
        is_there() || {
            pause();
            false
        }
    });
    pause();
    comes && is_there()
}

/// Batches that are on their way at once may reach over the whole ring: the newest durable one is not overwritten, and
/// of the lap before only the oldest segment may be torn.
#[test]
fn the_newest_durable_batch_is_found_whatever_is_on_its_way() {
    let (mut world, gate) = (World::new(), Arc::new(Mutex::new(())));
    let (counted, devices) = counting(&world.storage);
    let ring = gated(counted.doublewrite.clone(), |request| matches!(request, Request::Sync), &gate);
    let behind_it = StorageSet::of_devices(counted.data, counted.redo, ring);
    let store = world.open(&behind_it, segments(3)).unwrap();
    for lsn in 2..4 {
        write(&*store, &whole(), lsn, FlushLane::FlushList).unwrap();
        world.acknowledged.extend(whole().into_iter().map(|page| (page, lsn)));
    }
    (world.lsn, world.mark) = (5, store.mark());
    let written = || devices[2].counts().written_as(Placement::Journal);
    let before = written();
    std::thread::scope(|scope| {
        let closed = gate.lock();
        for _ in 0..3 {
            scope.spawn(|| write(&*store, &whole(), 5, FlushLane::FlushList));
        }
        let one = reaches(|| written() - before == JournalLayout::new(PAGE_BYTES).segment_bytes());
        let cuts: Vec<_> = (0..20).map(|seed| world.storage.cut(seed)).collect();
        drop(closed);
        assert!(one, "one segment is entered");
        for (seed, cut) in cuts.iter().enumerate() {
            let store = world.open(cut, JOURNAL).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
            world.assert_whole(&*store, &format!("seed {seed}"));
        }
    });
}

/// Pages that are written to their places meanwhile would not be durable there, and no longer be in the ring.
#[test]
fn a_turn_waits_for_what_is_on_its_way() {
    let (world, gate) = (World::new(), Arc::new(Mutex::new(())));
    let (counted, devices) = counting(&world.storage);
    let is_write = |request: &Request<'_>| matches!(request, Request::Write { .. });
    let behind_it = counted.map_data(|data| gated(data, is_write, &gate));
    let store = world.open(&behind_it, segments(3)).unwrap();
    let before = devices[0].counts().syncs;
    std::thread::scope(|scope| {
        let closed = gate.lock();
        let begin = || scope.spawn(|| write(&*store, &whole(), 2, FlushLane::FlushList));
        let none = store.mark();
        begin();
        // Until it is durable no other segment is entered.
        let one = reaches(|| store.mark() != none);
        (0..2).for_each(|_| drop(begin()));
        let ring = || devices[2].counts().written_as(Placement::Journal);
        let two = one && reaches(|| ring() == 2 * JournalLayout::new(PAGE_BYTES).segment_bytes());
        let data = devices[0].counts().syncs;
        drop(closed);
        assert!(two, "two batches, and no room for the third");
        assert_eq!(data, before, "no turn");
    });
    assert!(devices[0].counts().syncs > before);
}

/// Pages that fill a segment.
fn whole() -> Vec<u32> {
    (2..2 + BATCH_PAGES as u32).collect()
}

/// The same devices, counted.
fn counting(storage: &StorageSet) -> (StorageSet, Vec<Arc<Counted>>) {
    let mut all = Vec::new();
    let counted = storage.map(|device| {
        let device = Counted::new(device);
        all.push(device.clone());
        device
    });
    (counted, all)
}

#[test]
fn a_batch_costs_one_sync_and_a_lap_one_more() {
    let world = World::new();
    let (counted, devices) = counting(&world.storage);
    let store = open_with(&counted, segments(4));
    let [data, ring] = [&devices[0], &devices[2]];
    let before = [data.counts().syncs, ring.counts().syncs];
    for lsn in 2..14 {
        write(&*store, &whole(), lsn, FlushLane::FlushList).unwrap();
    }
    assert_eq!(ring.counts().syncs - before[1], 12);
    assert_eq!(data.counts().syncs - before[0], 3, "after each three segments, of four");
    assert_eq!(ring.counts().written_as(Placement::Journal), 12 * JournalLayout::new(PAGE_BYTES).segment_bytes());
}

#[test]
fn what_was_settled_does_not_come_back() {
    let mut world = World::new();
    let store = world.open(&world.storage, JOURNAL).unwrap();
    write(&*store, &[5, 6], 2, FlushLane::FlushList).unwrap();
    assert!(journal_scan::Mark::decode(store.mark()).is_needed);
    store.sync_places().unwrap();
    assert!(!journal_scan::Mark::decode(store.mark()).is_needed);
    (world.lsn, world.mark) = (2, store.mark());
    // Damage that no crash explains: the reader of the page reports it.
    world.storage.memory_devices().unwrap()[0].damage(|data| data[5 * PAGE_BYTES + 100] ^= 1);
    let store = world.open(&world.storage, JOURNAL).unwrap();
    assert!(page::header::verify(&read(&*store, 5), PageNo(5)).is_err());
    // The next batch says it too, without the header.
    write(&*store, &[7], 3, FlushLane::SinglePage).unwrap();
    (world.lsn, world.mark) = (3, 0);
    let store = world.open(&world.storage, JOURNAL).unwrap();
    assert!(page::header::verify(&read(&*store, 5), PageNo(5)).is_err());
}

/// Writes page 9, of LSN 2.
fn write_version(store: &dyn PageStore, version: u8) {
    let mut page = page_of(PageNo(9), page::PageType::Overflow, 2);
    page[PAGE_BYTES - 1] = version;
    let mut batch = PageBatch::new(1, PAGE_BYTES);
    batch.push(&page, PageNo(9));
    store.write(&mut batch, FlushLane::SinglePage).unwrap();
}

/// Page 0 changes without a new LSN when a database is opened: the image that was written last counts.
#[test]
fn of_two_images_with_one_lsn_the_later_one_counts() {
    let mut world = World::new();
    let store = world.open(&world.storage, JOURNAL).unwrap();
    (1..3).for_each(|version| write_version(&*store, version));
    world.lsn = 2;
    for seed in 0..20 {
        let cut = world.storage.cut(seed);
        let found = bootstrap::find(&cut).unwrap().expect(0).unwrap();
        let mut page = vec![0; PAGE_BYTES];
        found.pages().read(PageNo(9), &mut page).unwrap();
        assert_eq!(page[PAGE_BYTES - 1], 2, "as the journal will make it, seed {seed}");
        assert_eq!(read(&*world.open(&cut, JOURNAL).unwrap(), 9)[PAGE_BYTES - 1], 2, "seed {seed}");
    }
}

#[test]
fn an_image_newer_than_the_log_is_refused() {
    let world = World::new();
    write(&*world.open(&world.storage, JOURNAL).unwrap(), &[5], 4, FlushLane::SinglePage).unwrap();
    let before = world.storage.memory_devices().unwrap()[0].image();
    let refused = world.open(&world.storage.cut(3), JOURNAL).map(drop).unwrap_err().to_string();
    assert!(refused.contains("copy of page 5 with changes up to LSN 4"), "{refused}");
    assert!(before == world.storage.memory_devices().unwrap()[0].image());
}

#[test]
fn a_full_disk_at_its_creation_is_an_error_and_nothing_else() {
    let world = World::new();
    let mut devices = 0..;
    let full = world.storage.map(|device| match devices.next() {
        Some(2) => Limited::new(device, 2 << 20),
        _ => device,
    });
    let refused = world.open(&full, segments(4)).map(drop).unwrap_err();
    assert!(matches!(&refused, Error::Storage(error) if error.is_full()), "{refused}");
    world.open(&world.storage, Protection::Doublewrite).unwrap();
}

/// Else the turn would overwrite the images that repair what the failed batch tore.
#[test]
fn after_a_failed_batch_there_is_no_turn() {
    let world = World::new();
    let faults = Faults::new();
    let store = world.open(&world.storage.map(|device| faults.wrap(device)), segments(3)).unwrap();
    (2..4).for_each(|lsn| write(&*store, &whole(), lsn, FlushLane::FlushList).unwrap());
    faults.fail(Operation::Write, 2, FaultKind::ErrorOnce);
    assert!(write(&*store, &[2, 4], 5, FlushLane::LruList).is_err(), "the turn, the ring, then the first place");
    let before = world.storage.memory_devices().unwrap()[2].image();
    assert!(matches!(write(&*store, &whole(), 6, FlushLane::FlushList), Err(Error::Poisoned(_))));
    assert!(before == world.storage.memory_devices().unwrap()[2].image());
}
