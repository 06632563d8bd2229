//! A full disk: every page that was reserved can be written, again and again.

use super::*;

/// A store of `pages` on a disk that has space for what they need, and no more, and keeps this many lifetimes apart.
fn full_store(geometry: StoreGeometry, pages: u32, lifetime_streams: usize) -> OutOfPlace {
    let segments = capacity::guaranteed_segments(pages, geometry.sizes(lifetime_streams));
    let memory = MemoryDevice::new().with_lifetime_streams(lifetime_streams);
    let device: Arc<dyn Device> = Limited::new(Arc::new(memory), segments * geometry.segment_bytes);
    device.set_len_bytes(geometry.segment_bytes).unwrap();
    let store = open_on(&device, geometry);
    store.reserve(0..pages).unwrap();
    store.sync().unwrap();
    store
}

/// A page that cannot be compressed.
fn noisy(page: u32, lsn: u64, page_bytes: usize) -> Vec<u8> {
    let mut bytes = vec![0; page_bytes];
    PageOp::Format { page_type: PageType::Overflow, level: 0, owner: 9 }.apply(&mut bytes).unwrap();
    fastrand::Rng::with_seed(u64::from(page) << 32 | lsn).fill(&mut bytes[page::HEADER_BYTES..]);
    page::header::set_lsn(&mut bytes, Lsn(lsn));
    page::header::stamp(&mut bytes, PageNo(page));
    bytes
}

fn write_noisy(store: &OutOfPlace, pages: &[u32], lsn: u64) -> Result<()> {
    let page_bytes = store.geometry.page_bytes;
    let mut batch = PageBatch::new(pages.len(), page_bytes);
    pages.iter().for_each(|page| batch.push(&noisy(*page, lsn, page_bytes), PageNo(*page)));
    store.write(&mut batch, FlushLane::FlushList)
}

/// Every lane writes full batches of its own pages, any of `2..pages`, this many times.
fn turn_over_by_lanes(store: &OutOfPlace, pages: u32, seed: u64, batches: u64) {
    let lanes = FlushLane::COUNT as u32;
    std::thread::scope(|scope| {
        for lane in 0..lanes {
            scope.spawn(move || {
                let mut random = fastrand::Rng::with_seed(seed * u64::from(lanes) + u64::from(lane));
                let mut own: Vec<u32> = (2..pages).filter(|page| page % lanes == lane).collect();
                for lsn in 2..2 + batches {
                    random.shuffle(&mut own);
                    let mut some = own[..own.len().min(BATCH_PAGES)].to_vec();
                    some.sort_unstable();
                    let written = write_noisy(store, &some, lsn);
                    written.unwrap_or_else(|error| panic!("seed {seed}: {error}: {:?}", store.segments.usage()));
                }
            });
        }
    });
    assert_sound(store, &format!("seed {seed}"));
}

/// Each round seals a segment that is nearly empty: together they hold little, and would be no small store if each
/// counted as a full one.
#[test]
fn an_opening_reserves_all_that_the_closing_has_released() {
    let (geometry, pages, rounds) = (geometry(), 1024, 24);
    let disk = MemoryDevice::limited(64 << 20);
    let device: Arc<dyn Device> = Arc::new(disk.clone());
    device.set_len_bytes(geometry.segment_bytes).unwrap();
    for round in 0..rounds {
        let store = open_on(&device, geometry);
        assert_eq!(disk.discarded_bytes(), 0, "opening {round} leaves holes that a later write has to fill");
        store.reserve(0..pages).unwrap();
        write_noisy(&store, &[2 + 2 * round, 3 + 2 * round], 1 + u64::from(round)).unwrap();
        store.sync().unwrap();
        store.release_at_rest(&[]).unwrap();
        assert!(disk.discarded_bytes() > device.len_bytes().unwrap() / 2, "closing {round} releases nothing");
    }
    let store = open_on(&device, geometry);
    for page in 2..2 + 2 * rounds {
        let mut read = AlignedBuf::zeroed(PAGE_BYTES);
        store.read(PageNo(page), &mut read).unwrap();
        assert_eq!(&read[..], noisy(page, 1 + u64::from((page - 2) / 2), PAGE_BYTES), "page {page}");
    }
    assert_sound(&store, "after the rounds");
}

/// A copy of a large store has holes where nothing was ever written.
#[test]
fn an_opening_reserves_the_free_segments_of_a_copy() {
    let (geometry, pages) = (geometry(), 4096);
    let disk = MemoryDevice::limited(64 << 20);
    let device: Arc<dyn Device> = Arc::new(disk.clone());
    device.set_len_bytes(geometry.segment_bytes).unwrap();
    let store = open_on(&device, geometry);
    store.reserve(0..pages).unwrap();
    let first: Vec<u32> = (2..pages / 2).collect();
    first.chunks(BATCH_PAGES).for_each(|some| write_noisy(&store, some, 1).unwrap());
    store.sync().unwrap();
    store.release_at_rest(&[]).unwrap();
    assert_eq!(disk.discarded_bytes(), 0, "the store is small");
    let free: Vec<u32> =
        store.segments.used_bytes().into_iter().filter(|(_, used)| *used == 0).map(|(n, _)| n).collect();
    drop(store);
    assert!(free.len() > 4, "{free:?}");
    for segment in free {
        let start = geometry.start_of(segment);
        device.discard(start, geometry.segment_bytes - BLOCK_BYTES as u64).unwrap();
    }
    let store = open_on(&device, geometry);
    assert_eq!(disk.discarded_bytes(), 0, "a later batch has to fill holes");
    let last: Vec<u32> = (pages / 2..pages).collect();
    last.chunks(BATCH_PAGES).for_each(|some| write_noisy(&store, some, 2).unwrap());
    assert_sound(&store, "after the copy");
}

/// All of the pages are in use, and cannot be compressed.
#[test]
fn all_lanes_at_once_find_room_on_a_full_disk() {
    let stores = [
        (16384, 256 << 10, 384, 1),
        (16384, 1 << 20, 1024, 1),
        (4096, 1 << 20, 512, 1),
        (16384, 256 << 10, 2048, lifetime::GROUPS),
    ];
    for (n, (page_bytes, segment_bytes, pages, streams)) in (0..).zip(stores) {
        if !is_tried(n) {
            continue;
        }
        let geometry = StoreGeometry { page_bytes, segment_bytes, database_id: 77 };
        for seed in 0..3 {
            let store = full_store(geometry, pages, streams);
            let all: Vec<u32> = (2..pages).collect();
            all.chunks(BATCH_PAGES).for_each(|some| write_noisy(&store, some, 1).unwrap());
            turn_over_by_lanes(&store, pages, seed, 30);
        }
    }
}

/// The reserve is what is free, and the space of the segment that the cleaner took from it.
#[test]
fn a_flush_leaves_the_cleaners_reserve_alone() {
    let store = full_store(geometry(), NEW_PAGES, 1);
    let (mut batch, mut images) = (PageBatch::new(1, PAGE_BYTES), Vec::new());
    batch.push(&noisy(3, 1, PAGE_BYTES), PageNo(3));
    let listed = store.images(&batch, &mut images).swap_remove(0);
    let mut done = Appended::default();
    let mut finds_room =
        |by: AppendSource| store.append_while_room(0, &listed, &images, by, &mut done).unwrap().is_empty();
    let reserve = capacity::reserve_segments(1);
    while store.segments.take(reserve).is_some() {}
    assert!(!finds_room(AppendSource::Flush), "what is free is the reserve");
    assert_eq!(store.segments.usage().free as usize, reserve);
    assert!(finds_room(AppendSource::Cleaner));
    assert!(!finds_room(AppendSource::Flush), "the room of the open segment was the reserve's");
}

/// The file cannot grow beyond what every page needs: cleaning has to do.
#[test]
fn on_a_full_disk_every_reserved_page_can_be_written_again_and_again() {
    for (_, codec) in (0..).zip(PageCompression::ALL).filter(|(n, _)| is_tried(*n)) {
        let storage = StorageSet::memory();
        let sizes = geometry().sizes(1);
        let least = capacity::guaranteed_segments(NEW_PAGES + 256, sizes) * SEGMENT_BYTES;
        let mut devices = 0..;
        let limited = storage.map(|device| {
            if devices.next() == Some(0) { Limited::new(device, least) as Arc<dyn Device> } else { device }
        });
        create(&limited);
        let store = open_after(&limited, 0, codec).unwrap();
        store.reserve(NEW_PAGES..NEW_PAGES + 256).unwrap();
        store.sync().unwrap();
        let refused = store.reserve(NEW_PAGES + 256..NEW_PAGES + 4096).unwrap_err();
        assert!(refused.is_full(), "{refused}");
        let mut random = fastrand::Rng::with_seed(3);
        for lsn in 1..2000 {
            let max = [60, BATCH_PAGES][lsn as usize % 2];
            write(&*store, &some_pages(&mut random, NEW_PAGES + 256, max), lsn, FlushLane::FlushList).unwrap();
        }
        // Every segment loses as much as the others: the emptiest is as full as they can be.
        for lsn in 2000..2100 {
            let strided: Vec<u32> = (2 + lsn as u32 % 10..NEW_PAGES + 256).step_by(10).collect();
            write(&*store, &strided, lsn, FlushLane::FlushList).unwrap();
        }
        (2..NEW_PAGES + 256).for_each(|page| write(&*store, &[page], 2100, FlushLane::SinglePage).unwrap());
        assert_sound(&*store, "full");
        (2..NEW_PAGES + 256).for_each(|page| assert_holds(&*store, page, 2100, "full"));
    }
}

/// They are refused when they are reserved, not found missing when they are written.
#[test]
fn more_pages_than_segments_hold_are_refused() {
    let geometry = StoreGeometry { page_bytes: 16384, segment_bytes: SEGMENT_BYTES, database_id: 77 };
    let memory: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    memory.set_len_bytes(SEGMENT_BYTES).unwrap();
    let store = open_on(&memory, geometry);
    let pages = store.pages().unwrap();
    let refused = store.reserve(0..68_000_000).unwrap_err();
    assert!(refused.is_full() && refused.to_string().contains("that many segments"), "{refused}");
    assert_eq!(store.pages().unwrap(), pages);
}

/// A file that an older version filled has no space for batches on their way.
#[test]
fn a_full_store_of_an_older_version_opens() {
    let pages = 512;
    let segments = capacity::min_segments(pages, geometry().sizes(1));
    let device: Arc<dyn Device> = Limited::new(Arc::new(MemoryDevice::new()), segments * SEGMENT_BYTES);
    device.set_len_bytes(SEGMENT_BYTES).unwrap();
    let store = open_on(&device, geometry());
    assert!(store.reserve(0..pages).unwrap_err().is_full());
    store.grow_to(segments).unwrap();
    store.segments.map.grow(pages);
    store.sync().unwrap();
    write(&store, &(2..130).collect::<Vec<u32>>(), 1, FlushLane::FlushList).unwrap();
    drop(store);
    let store = open_on(&device, geometry());
    (2..130).for_each(|page| assert_holds(&store, page, 1, "opened again"));
    store.reserve(0..pages).unwrap();
    assert!(store.reserve(pages..pages + 1).unwrap_err().is_full());
}

/// As after crashes in the middle of cleaning: no segment is left for copies, though the disk has space.
#[test]
fn copies_that_find_no_segment_let_the_file_grow() {
    let memory: Arc<dyn Device> = Arc::new(MemoryDevice::new());
    memory.set_len_bytes(SEGMENT_BYTES).unwrap();
    let store = open_on(&memory, geometry());
    let all: Vec<u32> = (2..NEW_PAGES).collect();
    write(&store, &all, 1, FlushLane::FlushList).unwrap();
    all.iter().step_by(4).for_each(|page| write(&store, &[*page], 2, FlushLane::FlushList).unwrap());
    while store.segments.take(0).is_some() {}
    let before = store.segments.usage().segments;
    while store.segments.usage().segments == before {
        assert!(store.clean_step().unwrap(), "a segment to clean");
    }
    all.iter().for_each(|page| assert_holds(&store, *page, if page % 4 == 2 { 2 } else { 1 }, "cleaned"));
}

/// There is no space for an open segment for each stream.
#[test]
fn a_full_store_opens_on_a_device_with_more_streams() {
    let pages = 5000;
    let segments = capacity::guaranteed_segments(pages, geometry().sizes(1));
    assert!(segments < capacity::guaranteed_segments(pages, geometry().sizes(lifetime::GROUPS)));
    let memory = MemoryDevice::new().with_lifetime_streams(lifetime::GROUPS);
    let device: Arc<dyn Device> = Limited::new(Arc::new(memory), segments * SEGMENT_BYTES);
    device.set_len_bytes(SEGMENT_BYTES).unwrap();
    let open = || open_on(&device, geometry());
    let mut random = fastrand::Rng::with_seed(8);
    let mut turn_over = |store: &OutOfPlace, lsns: Range<u64>| {
        lsns.for_each(|lsn| {
            write(store, &some_pages(&mut random, pages, BATCH_PAGES), lsn, FlushLane::FlushList).unwrap()
        });
        (2..pages).for_each(|page| write(store, &[page], 10_000, FlushLane::SinglePage).unwrap());
        assert_sound(store, "full");
    };
    let mut store = open();
    store.lifetime_streams = 1;
    store.reserve(0..pages).unwrap();
    store.sync().unwrap();
    turn_over(&store, 1..300);
    drop(store);
    let store = open();
    assert!((1..lifetime::GROUPS).contains(&store.lifetime_streams), "{}", store.lifetime_streams);
    turn_over(&store, 300..600);
}
