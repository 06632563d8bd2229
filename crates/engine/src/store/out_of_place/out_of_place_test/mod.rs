//! What only a store out of place can get wrong: cleaning, using segments again, deriving the map.

mod bad_blocks;
mod between;
mod damage;
mod failed_writes;
mod full;
mod model;
mod power_cuts;
mod raw_device;
mod slots;
mod together;
mod used_again;

use super::format::BLOCK_BYTES;
use super::*;
use crate::page::{self, PageOp, PageType};
use crate::store::{BATCH_PAGES, FileHeader, StoreKind, bootstrap, format_fixed};
use crate::testing::is_tried;
use crate::types::Lsn;
use highwater_storage::{Faults, Limited, MemoryDevice, Placement, StorageSet};
use std::collections::HashMap;

const PAGE_BYTES: usize = 4096;
const SEGMENT_BYTES: u64 = 256 << 10;
const NEW_PAGES: u32 = 64;

fn new_store() -> StorageSet {
    let storage = StorageSet::memory();
    create(&storage);
    storage
}

fn create(storage: &StorageSet) {
    try_create(storage).unwrap();
}

fn try_create(storage: &StorageSet) -> Result<()> {
    let kind = StoreKind::OutOfPlace { segment_bytes: SEGMENT_BYTES };
    let header = FileHeader { page_bytes: PAGE_BYTES, database_id: 77, kind };
    let mut first = page_of(PageNo(0), 0, 0);
    format_fixed(header, |op| op.apply(&mut first).unwrap());
    page::header::stamp(&mut first, PageNo(0));
    let second = page_of(PageNo(1), 0, 0);
    bootstrap::create(storage, NEW_PAGES, &first, &second)
}

fn settings(compression: PageCompression) -> Settings {
    Settings { protection: crate::store::Protection::None, compression, segment_fill_pct: 75, is_read_only: false }
}

/// Opens the store, as after a crash when the log's checkpoint was at `checkpoint`.
fn open_after(storage: &StorageSet, checkpoint: u64, compression: PageCompression) -> Result<Arc<dyn PageStore>> {
    let found = bootstrap::find(storage)?;
    found.repair(Lsn(checkpoint)..Lsn(u64::MAX))?;
    found.open(&settings(compression), Arc::new(Stats::default()))
}

fn open(storage: &StorageSet) -> Arc<dyn PageStore> {
    open_after(storage, 0, PageCompression::Lz4).unwrap()
}

/// Opens the store on a device that is not part of a set.
fn open_on(device: &Arc<dyn Device>, geometry: StoreGeometry) -> OutOfPlace {
    let scanned = scan(&**device, geometry, 1).unwrap();
    scanned.check_complete("data", Lsn(0)..Lsn(u64::MAX)).unwrap();
    let stats = Arc::new(Stats::default());
    OutOfPlace::open(device.clone(), geometry, scanned, &settings(PageCompression::Off), stats).unwrap()
}

fn geometry() -> StoreGeometry {
    StoreGeometry { page_bytes: PAGE_BYTES, segment_bytes: SEGMENT_BYTES, database_id: 77 }
}

/// A set in memory whose data device keeps this many lifetimes apart.
fn memory_with_streams(lifetime_streams: usize) -> StorageSet {
    let data = MemoryDevice::new().with_lifetime_streams(lifetime_streams);
    StorageSet::of_memory([data, MemoryDevice::new(), MemoryDevice::new()])
}

/// A new store of this many pages, on a device that keeps all lifetimes apart.
fn new_store_of(pages: u32) -> (StorageSet, Arc<dyn PageStore>) {
    let storage = memory_with_streams(lifetime::GROUPS);
    create(&storage);
    let store = open(&storage);
    store.reserve(NEW_PAGES..pages).unwrap();
    store.sync().unwrap();
    (storage, store)
}

/// A page whose bytes follow from its number and LSN; the higher `noise` (0 to 8), the less it can be compressed.
fn page_of(page_no: PageNo, lsn: u64, noise: usize) -> Vec<u8> {
    let mut bytes = vec![0; PAGE_BYTES];
    PageOp::Format { page_type: PageType::Overflow, level: 0, owner: 9 }.apply(&mut bytes).unwrap();
    let mut random = fastrand::Rng::with_seed(u64::from(page_no.0) << 32 | lsn);
    for (at, byte) in bytes[page::HEADER_BYTES..].iter_mut().enumerate() {
        *byte = if at % 8 < noise { random.u8(..) } else { lsn as u8 };
    }
    page::header::set_lsn(&mut bytes, Lsn(lsn));
    page::header::stamp(&mut bytes, page_no);
    bytes
}

fn noise_of(page: u32) -> usize {
    page as usize % 9
}

fn write(store: &dyn PageStore, pages: &[u32], lsn: u64, lane: FlushLane) -> Result<()> {
    let mut batch = PageBatch::new(pages.len(), PAGE_BYTES);
    pages.iter().for_each(|page| batch.push(&page_of(PageNo(*page), lsn, noise_of(*page)), PageNo(*page)));
    store.write(&mut batch, lane)
}

/// Appends new images of pages, as the first half of writing them.
fn append(store: &OutOfPlace, pages: Range<u32>, lsn: u64) -> Result<Appended> {
    let mut batch = PageBatch::new(pages.len(), PAGE_BYTES);
    pages.for_each(|page| batch.push(&page_of(PageNo(page), lsn, noise_of(page)), PageNo(page)));
    let (mut images, mut done) = (Vec::new(), Appended::default());
    let groups = store.images(&batch, &mut images);
    let mut listed = groups.iter().enumerate();
    listed.try_for_each(|(group, listed)| store.append(group, listed, &images, AppendSource::Flush, &mut done))?;
    Ok(done)
}

fn read(store: &dyn PageStore, page: u32) -> AlignedBuf {
    let mut bytes = AlignedBuf::zeroed(PAGE_BYTES);
    store.read(PageNo(page), &mut bytes).unwrap();
    bytes
}

/// Reads runs of pages together: what became of each, in the order of the runs.
fn read_together(store: &dyn PageStore, runs: &[Range<u32>]) -> Vec<Result<AlignedBuf>> {
    let mut buffers: Vec<AlignedBuf> = runs.iter().map(|run| AlignedBuf::zeroed(run.len() * PAGE_BYTES)).collect();
    let pairs = runs.iter().zip(&mut buffers);
    let mut reads: Vec<_> = pairs.map(|(run, buf)| PageRead { first: PageNo(run.start), buf }).collect();
    let mut told: Vec<Option<Result<()>>> = runs.iter().map(|_| None).collect();
    store.read_many(&mut reads, &mut |n, result| assert!(told[n].replace(result.map(drop)).is_none(), "told once"));
    told.into_iter().zip(buffers).map(|(told, buffer)| told.expect("it was told").map(|()| buffer)).collect()
}

fn assert_holds(store: &dyn PageStore, page: u32, lsn: u64, when: &str) {
    let expected = if lsn == 0 { vec![0; PAGE_BYTES] } else { page_of(PageNo(page), lsn, noise_of(page)) };
    assert!(read(store, page)[..] == expected, "{when}: page {page} should be of LSN {lsn}");
}

fn assert_sound(store: &dyn PageStore, when: &str) {
    assert_eq!(store.problems(), Vec::<String>::new(), "{when}");
}

/// Some pages of a store of `pages`, the first two left out; low numbers more often.
fn some_pages(random: &mut fastrand::Rng, pages: u32, max: usize) -> Vec<u32> {
    let count = random.usize(1..=max);
    let hot = 2..2 + pages / 8;
    let mut chosen: Vec<u32> =
        (0..count).map(|_| if random.u8(..4) > 0 { random.u32(hot.clone()) } else { random.u32(2..pages) }).collect();
    chosen.sort_unstable();
    chosen.dedup();
    chosen
}

/// Writes that turn the store over many times, with growth, pages forgotten, and openings between.
#[test]
fn every_page_is_what_was_last_written_however_often_segments_are_used_again() {
    for seed in (0..8).filter(|seed| is_tried(*seed)) {
        let (storage, mut random) = (new_store(), fastrand::Rng::with_seed(seed));
        let (mut pages, mut model, mut cleaned) = (NEW_PAGES, HashMap::new(), 0);
        let mut store = open(&storage);
        for lsn in 1..1500 {
            match random.u32(..100) {
                0 => {
                    store.reserve(pages..pages + 64).unwrap();
                    store.sync().unwrap();
                    pages += 64;
                }
                1 => {
                    let first = random.u32(2..pages);
                    let range = first..(first + 8).min(pages);
                    store.discard(range.clone());
                    model.retain(|page, _| !range.contains(page));
                }
                2..6 => cleaned += u64::from(store.clean_step().unwrap()),
                6 => {
                    drop(store);
                    let codec = PageCompression::ALL[random.usize(..3)];
                    store = open_after(&storage, lsn, codec).unwrap();
                    (2..pages)
                        .filter(|page| !model.contains_key(page))
                        .for_each(|page| assert!(store.discard_unused(page..page + 1)));
                }
                chance => {
                    let (lane, max) = if chance < 20 { (FlushLane::SinglePage, 1) } else { (FlushLane::FlushList, 40) };
                    let chosen = some_pages(&mut random, pages, max);
                    write(&*store, &chosen, lsn, lane).unwrap();
                    model.extend(chosen.iter().map(|page| (*page, lsn)));
                }
            }
        }
        assert_sound(&*store, &format!("seed {seed}"));
        (2..pages).for_each(|page| assert_holds(&*store, page, model.get(&page).copied().unwrap_or(0), "at the end"));
        assert!(cleaned > 10, "{cleaned} segments cleaned");
    }
}

#[test]
fn readers_find_whole_pages_while_segments_are_cleaned_and_used_again() {
    let storage = new_store();
    let store = open(&storage);
    let all: Vec<u32> = (2..NEW_PAGES).collect();
    write(&*store, &all, 1, FlushLane::FlushList).unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        for reader in 0..3 {
            let (store, stop) = (&store, &stop);
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(reader);
                let mut newest = HashMap::new();
                while !stop.load(Relaxed) {
                    let pages = some_pages(&mut random, NEW_PAGES, 8);
                    let runs: Vec<Range<u32>> = pages.iter().map(|page| *page..page + 1).collect();
                    let together = pages.iter().copied().zip(read_together(&**store, &runs));
                    let alone = pages.first().map(|page| (*page, Ok(read(&**store, *page))));
                    for (page, bytes) in together.chain(alone) {
                        let bytes = bytes.unwrap();
                        let lsn = page::header::lsn(&bytes).0;
                        assert!(bytes[..] == page_of(PageNo(page), lsn, noise_of(page)), "page {page}, LSN {lsn}");
                        let before = newest.insert(page, lsn).unwrap_or(0);
                        assert!(lsn >= before, "page {page} went back from LSN {before} to {lsn}");
                    }
                }
            });
        }
        let cleaner = scope.spawn(|| {
            while !stop.load(Relaxed) {
                store.clean_step().unwrap();
            }
        });
        let mut random = fastrand::Rng::with_seed(9);
        for lsn in 2..1200 {
            write(&*store, &some_pages(&mut random, NEW_PAGES, 30), lsn, FlushLane::FlushList).unwrap();
        }
        stop.store(true, Relaxed);
        cleaner.join().unwrap();
    });
    assert_sound(&*store, "at the end");
}

/// Lanes write at once, each its own pages.
#[test]
fn lanes_do_not_disturb_each_other() {
    let (storage, store) = new_store_of(512);
    std::thread::scope(|scope| {
        for lane in 0..4_u32 {
            let store = &store;
            scope.spawn(move || {
                let own: Vec<u32> = (2..512).filter(|page| page % 4 == lane).collect();
                for lsn in 1..150 {
                    write(&**store, &own[lsn as usize % 2 * 67..][..60], lsn, FlushLane::FlushList).unwrap();
                }
            });
        }
    });
    assert_sound(&*store, "at the end");
    drop(store);
    let store = open(&storage);
    for page in 2..512 {
        let lsn = page::header::lsn(&read(&*store, page)).0;
        assert!(lsn == 0 || lsn > 147, "page {page} is of LSN {lsn}");
        assert_holds(&*store, page, lsn, "after opening again");
    }
}

/// The syncs of batches make the cleaner's copies durable.
#[test]
fn cleaning_needs_hardly_a_sync_of_its_own() {
    for lifetime_streams in [1, lifetime::GROUPS] {
        let storage = memory_with_streams(lifetime_streams);
        create(&storage);
        let (stats, pages) = (Arc::new(Stats::default()), 8192);
        let found = bootstrap::find(&storage).unwrap();
        found.repair(Lsn(0)..Lsn(u64::MAX)).unwrap();
        let store = found.open(&settings(PageCompression::Off), stats.clone()).unwrap();
        store.reserve(NEW_PAGES..pages).unwrap();
        let (mut random, mut syncs) = (fastrand::Rng::with_seed(5), 0);
        for lsn in 1..1000 {
            if lsn == 500 {
                syncs = stats.data_syncs.get();
            }
            write(&*store, &some_pages(&mut random, pages, BATCH_PAGES), lsn, FlushLane::FlushList).unwrap();
        }
        let (own, cleaned) = (stats.data_syncs.get() - syncs - 500, stats.store_segments_cleaned.get());
        assert!(cleaned > 200 && own < 10, "{own} syncs for 500 batches, {cleaned} segments cleaned");
        assert_sound(&*store, "cleaned during batches");
    }
}
