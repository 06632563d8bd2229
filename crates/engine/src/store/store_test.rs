//! What a caller of any store relies on: pages that were written are found after a power cut, nothing torn is read.

use super::hooks::Hooks;
use super::*;
use crate::error::Error;
use crate::page::{self, PageOp, PageType};
use crate::stats::Stats;
use crate::sync::atomic::{AtomicBool, Ordering::Relaxed};
use crate::testing::preferring_discards;
use crate::types::Lsn;
use highwater_storage::{AlignedBuf, Counted, FaultKind, Faults, Operation, StorageSet};
use std::sync::Arc;
use std::time::{Duration, Instant};

pub(super) const PAGE_BYTES: usize = 4096;
const NEW_PAGES: u32 = 64;
/// Pages that the tests write; the first two belong to creation.
const WRITTEN: Range<u32> = 2..40;

/// Segments as small as they can be.
const OUT_OF_PLACE: StoreKind = StoreKind::OutOfPlace { segment_bytes: 256 << 10 };
pub(super) const JOURNAL: Protection = Protection::Journal { bytes: 0 };
/// Both kinds, in place with each protection.
const STORES: [(StoreKind, Protection); 3] =
    [(StoreKind::InPlace, Protection::Doublewrite), (StoreKind::InPlace, JOURNAL), (OUT_OF_PLACE, Protection::None)];

pub(super) fn new_store(kind: StoreKind) -> StorageSet {
    let storage = StorageSet::memory();
    let header = FileHeader { page_bytes: PAGE_BYTES, database_id: 77, kind };
    let mut first = page_of(PageNo(0), PageType::FileHeader, 0);
    format_fixed(header, |op| op.apply(&mut first).unwrap());
    page::header::stamp(&mut first, PageNo(0));
    let second = page_of(PageNo(1), PageType::ExtentMap, 0);
    bootstrap::create(&storage, NEW_PAGES, &first, &second).unwrap();
    storage
}

pub(super) fn open_with(storage: &StorageSet, protection: Protection) -> Arc<dyn PageStore> {
    let compression = PageCompression::Off;
    let settings = Settings { protection, compression, segment_fill_pct: 75, is_read_only: false };
    bootstrap::find(storage).unwrap().expect(0).unwrap().open(&settings, Arc::new(Stats::default())).unwrap()
}

/// A page full of the low byte of its LSN.
pub(super) fn page_of(page_no: PageNo, page_type: PageType, lsn: u64) -> Vec<u8> {
    let mut bytes = vec![0; PAGE_BYTES];
    PageOp::Format { page_type, level: 0, owner: 9 }.apply(&mut bytes).unwrap();
    bytes[page::HEADER_BYTES..].fill(lsn as u8);
    page::header::set_lsn(&mut bytes, Lsn(lsn));
    page::header::stamp(&mut bytes, page_no);
    bytes
}

pub(super) fn write(store: &dyn PageStore, pages: &[u32], lsn: u64, lane: FlushLane) -> Result<()> {
    let mut batch = PageBatch::new(pages.len(), PAGE_BYTES);
    for page_no in pages.iter().map(|n| PageNo(*n)) {
        batch.push(&page_of(page_no, PageType::Overflow, lsn), page_no);
    }
    store.write(&mut batch, lane)
}

pub(super) fn read(store: &dyn PageStore, page: u32) -> AlignedBuf {
    let mut bytes = AlignedBuf::zeroed(PAGE_BYTES);
    store.read(PageNo(page), &mut bytes).unwrap();
    bytes
}

/// Batch `n` of a test: some pages with gaps, or one, in one of the lanes.
fn nth_batch(n: u64, seed: u64) -> (Vec<u32>, FlushLane) {
    let lane = [FlushLane::FlushList, FlushLane::LruList, FlushLane::SinglePage][(n + seed) as usize % 3];
    let pages = WRITTEN.filter(|page| (u64::from(*page) * 7 + n * 5 + seed).is_multiple_of(4));
    let max = if lane == FlushLane::SinglePage { 1 } else { usize::MAX };
    (pages.take(max).collect(), lane)
}

/// Writes batches until the power is cut; per page the LSN of its last batch that was acknowledged.
fn write_until_the_cut(storage: &StorageSet, protection: Protection, seed: u64, discards: bool) -> Vec<u64> {
    let faults = Faults::new();
    let device = |inner| if discards { preferring_discards(inner) } else { inner };
    let store = open_with(&storage.map(|inner| faults.wrap(device(inner))), protection);
    faults.power_off_after(1 + seed);
    let mut acknowledged = vec![0; WRITTEN.end as usize];
    for n in 1.. {
        let (pages, lane) = nth_batch(n, seed);
        if write(&*store, &pages, n, lane).is_err() {
            break;
        }
        pages.iter().for_each(|page| acknowledged[*page as usize] = n);
    }
    assert!(faults.is_power_off());
    acknowledged
}

#[test]
fn written_pages_are_found_whole_after_a_power_cut() {
    for (store, discards) in STORES.into_iter().flat_map(|store| [(store, false), (store, true)]) {
        let repaired: usize = (0..60).map(|seed| repaired_after_a_power_cut(store, seed, discards)).sum();
        let torn_in_place = store.0 == StoreKind::InPlace;
        assert!(!torn_in_place || repaired > 10, "{repaired} pages were torn in all: the test tests little");
    }
}

/// How many pages were torn; what was acknowledged is there.
fn repaired_after_a_power_cut((kind, protection): (StoreKind, Protection), seed: u64, discards: bool) -> usize {
    let storage = new_store(kind);
    let acknowledged = write_until_the_cut(&storage, protection, seed, discards);
    let cut = storage.cut(seed);
    let found = bootstrap::find(&cut).unwrap().expect(0).unwrap();
    let repaired = found.repair(Lsn(0)..Lsn(u64::MAX)).unwrap().len();
    let store = open_with(&cut, protection);
    for page in WRITTEN {
        let (bytes, least) = (read(&*store, page), acknowledged[page as usize]);
        if least == 0 && bytes.iter().all(|byte| *byte == 0) {
            continue;
        }
        page::header::verify(&bytes, PageNo(page)).unwrap_or_else(|e| panic!("seed {seed}: {e}"));
        let lsn = page::header::lsn(&bytes).0;
        assert!(lsn >= least, "seed {seed}: page {page} is of LSN {lsn}, {least} was acknowledged");
    }
    repaired
}

#[test]
fn copies_that_are_not_needed_are_discarded_where_the_device_wants_it() {
    for discards in [false, true] {
        let storage = new_store(StoreKind::InPlace);
        let counted = Counted::new(storage.doublewrite.clone());
        let device = if discards { preferring_discards(counted.clone()) } else { counted.clone() };
        let found = bootstrap::find(&storage).unwrap();
        let (data, stats) = (storage.data.clone(), Arc::new(Stats::default()));
        let store = {
            let journal = in_place::ScannedJournal::default();
            in_place::InPlace::open(data, device, found.header(), Protection::Doublewrite, &journal, stats).unwrap()
        };
        for (pages, lane) in
            [(&[5, 6, 9][..], FlushLane::FlushList), (&[7], FlushLane::SinglePage), (&[8, 5], FlushLane::LruList)]
        {
            write(&store, pages, 4, lane).unwrap();
        }
        let copies = if discards { 6 * PAGE_BYTES as u64 } else { 0 };
        assert_eq!(counted.counts().discarded_bytes, copies);
        let error = found.repair(Lsn(0)..Lsn(3)).unwrap_err();
        assert!(error.to_string().contains("changes up to LSN 4"), "the directories stay: {error}");
    }
}

#[test]
fn a_store_grows_by_what_is_reserved() {
    STORES.into_iter().for_each(grows_by_what_is_reserved);
}

fn grows_by_what_is_reserved((kind, protection): (StoreKind, Protection)) {
    let store = open_with(&new_store(kind), protection);
    let beyond = store.read(PageNo(NEW_PAGES), &mut AlignedBuf::zeroed(PAGE_BYTES)).unwrap_err();
    assert!(matches!(beyond, Error::CorruptPage { page, .. } if page.0 == NEW_PAGES), "{beyond}");
    assert_eq!(store.place(PageNo(NEW_PAGES)).unwrap(), None);
    store.reserve(NEW_PAGES..NEW_PAGES + 20).unwrap();
    store.sync().unwrap();
    assert_eq!(store.pages().unwrap(), u64::from(NEW_PAGES) + 20);
    write(&*store, &[NEW_PAGES + 19], 8, FlushLane::SinglePage).unwrap();
    assert_eq!(page::header::lsn(&read(&*store, NEW_PAGES + 19)), Lsn(8));
    assert!(store.place(PageNo(NEW_PAGES + 19)).unwrap().is_some());
    store.reserve(NEW_PAGES..NEW_PAGES + 5).unwrap();
    assert_eq!(store.pages().unwrap(), u64::from(NEW_PAGES) + 20, "reserving never makes it shorter");
}

#[test]
fn several_pages_are_read_at_once() {
    for (kind, protection) in STORES {
        let store = open_with(&new_store(kind), protection);
        write(&*store, &[5, 6, 7], 3, FlushLane::FlushList).unwrap();
        let mut run = AlignedBuf::zeroed(3 * PAGE_BYTES);
        store.read(PageNo(5), &mut run).unwrap();
        for (page, bytes) in (5..8).zip(run.chunks(PAGE_BYTES)) {
            assert_eq!(bytes, &page_of(PageNo(page), PageType::Overflow, 3)[..]);
        }
    }
}

/// The area of a batch that redo recreates is free while its places are written; that of another is not.
#[test]
fn an_area_without_copies_is_released_before_the_places_are_written() {
    for recreated_by_redo in [true, false] {
        let (storage, hooks) = (new_store(StoreKind::InPlace), Arc::new(Hooks::default()));
        let doublewrite = storage.doublewrite.clone();
        let with_hooks = storage.map_data(|inner| hooks.over(inner));
        let store = open_with(&with_hooks, Protection::Doublewrite);
        let write = move |store: &dyn PageStore, page: u32| {
            let mut batch = PageBatch::new(1, PAGE_BYTES);
            batch.push(&page_of(PageNo(page), PageType::Overflow, 1), PageNo(page));
            if recreated_by_redo {
                batch.last_is_recreated_by_redo();
            }
            store.write(&mut batch, FlushLane::FlushList).unwrap();
        };
        let (other_store, seen) = (store.clone(), Arc::new(AtomicBool::new(false)));
        let (sees, mut is_first) = (seen.clone(), true);
        let (started, thread) = std::sync::mpsc::channel();
        *hooks.before_sync.lock() = Some(Box::new(move || {
            if !std::mem::take(&mut is_first) {
                return;
            }
            let other_store = other_store.clone();
            started.send(std::thread::spawn(move || write(&*other_store, 9))).unwrap();
            let until =
                Instant::now() + if recreated_by_redo { Duration::from_secs(20) } else { Duration::from_millis(50) };
            while !lists(&*doublewrite, PageNo(9)) && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            sees.store(lists(&*doublewrite, PageNo(9)), Relaxed);
        }));
        write(&*store, 5);
        thread.recv().unwrap().join().unwrap();
        assert_eq!(seen.load(Relaxed), recreated_by_redo);
        // It keeps the store that keeps it.
        *hooks.before_sync.lock() = None;
    }
}

fn lists(file: &dyn Device, page: PageNo) -> bool {
    let header = FileHeader { page_bytes: PAGE_BYTES, database_id: 77, kind: StoreKind::InPlace };
    in_place::doublewrite::listed_copies(file, header).unwrap().iter().any(|copy| copy.page_no == page)
}

/// A later batch would also overwrite the copies that repair what the failed one tore.
#[test]
fn after_a_failed_write_no_batch_is_written() {
    let (data, doublewrite) = (0, 2);
    let [on, journal, out_of_place] = STORES;
    let off = (StoreKind::InPlace, Protection::None);
    let cases =
        [(on, data), (off, data), (on, doublewrite), (journal, data), (journal, doublewrite), (out_of_place, data)];
    for ((kind, protection), broken) in cases {
        let case = format!("{kind:?}, {protection:?}, device {broken} fails");
        let (storage, faults) = (new_store(kind), Faults::new());
        let mut devices = 0..;
        let wrapped = storage.map(|device| if devices.next() == Some(broken) { faults.wrap(device) } else { device });
        let store = open_with(&wrapped, protection);
        faults.fail(Operation::Write, 1, FaultKind::ErrorOnce);
        assert!(matches!(write(&*store, &[5], 1, FlushLane::FlushList), Err(Error::Storage(_))), "{case}");
        let before = [&storage.data, &storage.doublewrite].map(contents);
        let later = write(&*store, &[6], 2, FlushLane::FlushList);
        assert!(matches!(later, Err(Error::Poisoned(_))), "{case}: {later:?}");
        assert!(before == [&storage.data, &storage.doublewrite].map(contents), "{case}: a later batch was written");
    }
}

fn contents(device: &Arc<dyn Device>) -> Vec<u8> {
    let mut bytes = vec![0; device.len_bytes().unwrap() as usize];
    device.read_at(0, &mut bytes).unwrap();
    bytes
}

/// Not even by a later sync that succeeds: what the failed one lost is not known.
#[test]
fn after_a_failed_sync_nothing_is_acknowledged() {
    for ((kind, protection), nth) in [(STORES[0], 1), (STORES[0], 2), (STORES[1], 1), (STORES[2], 1)] {
        let faults = Faults::new();
        let store = open_with(&new_store(kind).map(|device| faults.wrap(device)), protection);
        faults.fail(Operation::Sync, nth, FaultKind::ErrorOnce);
        assert!(write(&*store, &[5], 1, FlushLane::FlushList).is_err());
        assert!(write(&*store, &[5], 1, FlushLane::FlushList).is_err());
    }
}
