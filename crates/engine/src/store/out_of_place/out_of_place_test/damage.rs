//! Damage: pages do not disappear, and nothing panics.

use super::*;

fn damage(storage: &StorageSet, at: u64, len: usize) {
    let mut bytes = vec![0; len];
    storage.data.read_at(at, &mut bytes).unwrap();
    bytes.iter_mut().for_each(|byte| *byte ^= 0x55);
    storage.data.write_at(at, &bytes, Placement::Other).unwrap();
}

/// Where the batches of the first segment begin.
fn batches_of(storage: &StorageSet, segment: u64) -> Vec<u64> {
    let (mut at, mut found) = (segment * SEGMENT_BYTES, Vec::new());
    loop {
        let mut block = vec![0; BLOCK_BYTES];
        storage.data.read_at(at, &mut block).unwrap();
        let Some((header, _)) =
            format::parse_header(&block, format::identity(77, segment), (at % SEGMENT_BYTES) as usize)
        else {
            return found;
        };
        found.push(at);
        at += header.bytes as u64;
    }
}

#[test]
fn a_damaged_header_makes_no_page_disappear() {
    // With enough space nothing is cleaned, and these stay in the first segments.
    let (storage, store) = new_store_of(4096);
    for (lsn, first) in (1..).zip((20..119).step_by(9)) {
        write(&*store, &(first..first + 9).collect::<Vec<u32>>(), lsn, FlushLane::FlushList).unwrap();
    }
    for lsn in 12..200 {
        write(&*store, &(2..20).collect::<Vec<u32>>(), lsn, FlushLane::FlushList).unwrap();
    }
    drop(store);
    let segments = 1..storage.data.len_bytes().unwrap() / SEGMENT_BYTES;
    let mut segments = segments.filter(|segment| has_footer(&storage, *segment));
    let segment = segments.find(|segment| batches_of(&storage, *segment).len() > 3);
    let segment = segment.expect("a segment was sealed");
    let third = batches_of(&storage, segment)[2];
    let end = (segment + 1) * SEGMENT_BYTES;
    let damaged = |places: &[u64]| {
        let copy = storage.cut(0);
        places.iter().for_each(|at| damage(&copy, *at, 64));
        let store = open_after(&copy, 199, PageCompression::Off);
        store.map(|store| {
            (2..20).for_each(|page| assert_holds(&*store, page, 199, "one of two is enough"));
            (20..119).for_each(|page| assert_holds(&*store, page, u64::from(page - 11) / 9, "one of two is enough"));
        })
    };
    damaged(&[third]).unwrap();
    damaged(&[segment * SEGMENT_BYTES]).unwrap();
    damaged(&[end - BLOCK_BYTES as u64]).unwrap();
    damaged(&[end - 64]).unwrap();
    for header in [segment * SEGMENT_BYTES, third] {
        let error = damaged(&[header, end - BLOCK_BYTES as u64]).unwrap_err().to_string();
        assert!(error.contains(&format!("segment {segment} ")) && error.contains("damaged"), "{error}");
    }
}

/// A header that was written to the place of an earlier one hides what is between the two.
#[test]
fn a_header_at_another_place_of_its_segment_does_not_count() {
    let (storage, store) = new_store_of(512);
    for lsn in 1..6 {
        write(&*store, &[lsn as u32 * 10, lsn as u32 * 10 + 1], lsn, FlushLane::FlushList).unwrap();
    }
    drop(store);
    let batches = batches_of(&storage, 1);
    assert!(batches.len() > 4, "{batches:?}");
    let mut last = vec![0; BLOCK_BYTES];
    storage.data.read_at(batches[4], &mut last).unwrap();
    for at in &batches[1..3] {
        let copy = storage.cut(0);
        copy.data.write_at(*at, &last, Placement::Other).unwrap();
        let error = open_after(&copy, 5, PageCompression::Off).map(drop).unwrap_err().to_string();
        assert!(error.contains("damaged"), "{error}");
    }
}

fn has_footer(storage: &StorageSet, segment: u64) -> bool {
    let mut block = vec![0; BLOCK_BYTES];
    storage.data.read_at((segment + 1) * SEGMENT_BYTES - BLOCK_BYTES as u64, &mut block).unwrap();
    format::parse_footer(&block, format::identity(77, segment)).is_some_and(|footer| !footer.is_free)
}

/// A device that reads the footer of another segment, which is free, does not make the pages of this one disappear.
#[test]
fn a_footer_of_another_segment_does_not_count() {
    let (storage, store) = new_store_of(512);
    write(&*store, &(2..400).collect::<Vec<u32>>(), 1, FlushLane::FlushList).unwrap();
    for lsn in 2..100 {
        write(&*store, &(2..60).collect::<Vec<u32>>(), lsn, FlushLane::FlushList).unwrap();
    }
    drop(store);
    let block_of = |segment: u64| {
        let mut block = vec![0; BLOCK_BYTES];
        storage.data.read_at((segment + 1) * SEGMENT_BYTES - BLOCK_BYTES as u64, &mut block).unwrap();
        block
    };
    let segments = 1..storage.data.len_bytes().unwrap() / SEGMENT_BYTES;
    let is_free = |segment: &u64| {
        let footer = format::parse_footer(&block_of(*segment), format::identity(77, *segment));
        footer.is_some_and(|footer| footer.is_free)
    };
    let free = segments.clone().filter(is_free).max_by_key(|segment| footer_newest(&block_of(*segment), *segment));
    let free = block_of(free.expect("a segment was emptied"));
    for segment in segments.filter(|segment| has_footer(&storage, *segment)) {
        let copy = storage.cut(0);
        let at = (segment + 1) * SEGMENT_BYTES - BLOCK_BYTES as u64;
        copy.data.write_at(at, &free, Placement::Other).unwrap();
        let store = open_after(&copy, 99, PageCompression::Off).unwrap();
        (2..60).for_each(|page| assert_holds(&*store, page, 99, "another footer"));
        (60..400).for_each(|page| assert_holds(&*store, page, 1, "another footer"));
    }
}

/// A torn write of a cleared footer leaves the old footer with its whole summary, or the new one.
#[test]
fn clearing_a_footer_leaves_the_summary_before_it() {
    let (storage, store) = new_store_of(512);
    let last_block = |segment: u64| {
        let mut block = vec![0; BLOCK_BYTES];
        storage.data.read_at((segment + 1) * SEGMENT_BYTES - BLOCK_BYTES as u64, &mut block).unwrap();
        block
    };
    let (mut sealed, mut cleared) = (HashMap::new(), 0);
    for lsn in 1..200 {
        write(&*store, &(2..60).collect::<Vec<u32>>(), lsn, FlushLane::FlushList).unwrap();
        for segment in 1..storage.data.len_bytes().unwrap() / SEGMENT_BYTES {
            let block = last_block(segment);
            if has_footer(&storage, segment) {
                sealed.insert(segment, block);
            } else if let Some(before) = sealed.remove(&segment) {
                assert!(before[..BLOCK_BYTES - 512] == block[..BLOCK_BYTES - 512], "segment {segment}");
                cleared += 1;
            }
        }
    }
    assert!(cleared > 10, "{cleared} segments cleared");
}

fn footer_newest(block: &[u8], segment: u64) -> u64 {
    format::parse_footer(block, format::identity(77, segment)).map_or(0, |footer| footer.newest)
}

#[test]
fn a_damaged_header_of_an_open_segment_is_noticed() {
    let storage = new_store();
    let store = open(&storage);
    for lsn in 1..6 {
        write(&*store, &[5, 6, 7], lsn, FlushLane::FlushList).unwrap();
    }
    drop(store);
    let mut segments = 1..storage.data.len_bytes().unwrap() / SEGMENT_BYTES;
    let segment = segments.find(|segment| batches_of(&storage, *segment).len() == 5).unwrap();
    damage(&storage, batches_of(&storage, segment)[2], 64);
    let error = open_after(&storage, 5, PageCompression::Off).err().expect("a header is damaged").to_string();
    assert!(error.contains(&format!("segment {segment} ")) && error.contains("damaged"), "{error}");
}

/// What opening says when the first header of a segment is damaged, and the log's checkpoint says `mark`.
fn lost_with_its_first_header(storage: &StorageSet, segment: u64, mark: u64) -> Option<String> {
    let copy = storage.cut(0);
    damage(&copy, segment * SEGMENT_BYTES, 64);
    let found = bootstrap::find(&copy).unwrap().expect(mark).unwrap();
    found.repair(Lsn(90)..Lsn(u64::MAX)).err().map(|error| error.to_string())
}

/// Then nothing in it is found; headers elsewhere name its last batch.
#[test]
fn an_open_segment_whose_first_header_is_damaged_is_missed() {
    // Large enough for two groups.
    let (storage, store) = new_store_of(4096);
    (1..4).for_each(|lsn| write(&*store, &[lsn as u32 * 20], lsn, FlushLane::FlushList).unwrap());
    (4..90).for_each(|lsn| write(&*store, &(2..15).collect::<Vec<u32>>(), lsn, FlushLane::FlushList).unwrap());
    let mark = store.mark();
    drop(store);
    let segments = 1..storage.data.len_bytes().unwrap() / SEGMENT_BYTES;
    let is_open = |segment: &u64| !batches_of(&storage, *segment).is_empty() && !has_footer(&storage, *segment);
    let open: Vec<u64> = segments.filter(is_open).collect();
    assert_eq!(open.len(), 2);
    for segment in open {
        let error = lost_with_its_first_header(&storage, segment, 0).expect("a header is damaged");
        assert!(error.contains(&format!("segment {segment} ")) && error.contains("damaged"), "{error}");
    }
    let whole = bootstrap::find(&storage).unwrap().expect(mark).unwrap();
    whole.repair(Lsn(90)..Lsn(u64::MAX)).unwrap();
}

/// No header names it; but the log's checkpoint knows of it.
#[test]
fn the_last_batch_is_missed_if_its_header_is_damaged() {
    let storage = new_store();
    let store = open(&storage);
    write(&*store, &[5, 6], 4, FlushLane::FlushList).unwrap();
    let mark = store.mark();
    drop(store);
    assert_eq!(lost_with_its_first_header(&storage, 1, 0), None, "a crash may have torn it");
    let error = lost_with_its_first_header(&storage, 1, mark).expect("it was durable");
    assert!(error.contains("batch 1 was durable"), "{error}");
}

/// The last batch may have been torn by a crash; but not if its changes are before the log's checkpoint.
#[test]
fn a_torn_image_counts_as_damage_if_it_had_been_durable() {
    for (checkpoint, is_damage) in [(6, false), (7, true)] {
        let storage = new_store();
        let store = open(&storage);
        for lsn in [6, 7] {
            write(&*store, &[5, 8], lsn, FlushLane::FlushList).unwrap();
        }
        let Some(place) = store.place(PageNo(8)).unwrap() else { panic!("page 8 was written") };
        drop(store);
        damage(&storage, place.offset + 100, 8);
        let store = open_after(&storage, checkpoint, PageCompression::Off).unwrap();
        let mut bytes = AlignedBuf::zeroed(PAGE_BYTES);
        let whole = store.read(PageNo(8), &mut bytes).and_then(|()| page::header::verify(&bytes, PageNo(8)));
        assert_eq!(whole.is_err(), is_damage, "checkpoint {checkpoint}");
        if !is_damage {
            assert_holds(&*store, 8, 6, "the copy before counts");
        }
        assert_holds(&*store, 5, 7, "the other page");
    }
}

#[test]
fn a_copy_newer_than_the_log_is_refused() {
    let storage = new_store();
    write(&*open(&storage), &[5], 90, FlushLane::FlushList).unwrap();
    let error = bootstrap::find(&storage).unwrap().repair(Lsn(1)..Lsn(89)).unwrap_err().to_string();
    assert!(error.contains("page 5") && error.contains("lost its end"), "{error}");
}

/// No bytes of the file make it panic.
#[test]
fn damage_anywhere_is_an_error_or_another_page_never_a_panic() {
    let storage = new_store();
    let store = open(&storage);
    for lsn in 1..40 {
        write(&*store, &(2..20).collect::<Vec<u32>>(), lsn, FlushLane::FlushList).unwrap();
    }
    drop(store);
    let mut random = fastrand::Rng::with_seed(5);
    for _ in 0..300 {
        let copy = storage.cut(0);
        let at = random.u64(..copy.data.len_bytes().unwrap() - 64);
        damage(&copy, at, random.usize(1..64));
        let Ok(store) = open_after(&copy, 39, PageCompression::Off) else { continue };
        let mut bytes = AlignedBuf::zeroed(PAGE_BYTES);
        for page in 0..NEW_PAGES {
            let _ = store.read(PageNo(page), &mut bytes);
        }
        while store.clean_step().unwrap_or(false) {}
    }
}

/// A cut that tore a batch left its header and, where its image should be, one of an earlier life: of the same page
/// with the same LSN, since page 0 changes without redo at openings and closings.
#[test]
fn an_old_image_does_not_pass_for_the_one_that_a_header_lists() {
    for codec in PageCompression::ALL {
        let storage = new_store();
        let store = open_after(&storage, 0, codec).unwrap();
        let version = |n: u8| {
            let mut page = page_of(PageNo(9), 5, 8);
            page[PAGE_BYTES / 2] = n;
            page::header::stamp(&mut page, PageNo(9));
            page
        };
        for n in 1..4 {
            let mut batch = PageBatch::new(1, PAGE_BYTES);
            batch.push(&version(n), PageNo(9));
            store.write(&mut batch, FlushLane::FlushList).unwrap();
        }
        let (cut, batches) = (storage.cut(0), batches_of(&storage, 1));
        let [first, _, last] = batches[..] else { panic!("three batches: {batches:?}") };
        let mut image = vec![0; PAGE_BYTES];
        let at = |batch: u64| batch + format::header_bytes(1) as u64;
        storage.data.read_at(at(first), &mut image).unwrap();
        cut.data.write_at(at(last), &image, Placement::Other).unwrap();
        let found = read(&*open(&cut), 9);
        assert!(found[..] == version(2)[..], "{codec:?}: version {}", found[PAGE_BYTES / 2]);
    }
}

/// Page 0 changes without another LSN, and other pages are appended to the segment of its older version: the newer one
/// counts.
#[test]
fn of_two_versions_of_page_0_with_one_lsn_the_one_changed_more_often_counts() {
    let storage = new_store();
    let store = open(&storage);
    let created = read(&*store, 0);
    let version = |changes: u64| {
        let mut page = created.to_vec();
        (0..changes).for_each(|_| page::header::count_unlogged_change(&mut page));
        page::header::stamp(&mut page, PageNo(0));
        page
    };
    let write_first = |changes: u64| {
        let mut batch = PageBatch::new(1, PAGE_BYTES);
        batch.push(&version(changes), PageNo(0));
        store.write(&mut batch, FlushLane::FlushList).unwrap();
    };
    // What the cleaner does when it copies a page that is written meanwhile: an older version comes last.
    [1, 3, 2].into_iter().for_each(write_first);
    drop(store);
    let changes = |storage: &StorageSet| page::header::unlogged_changes(&read(&*open(storage), 0));
    assert_eq!([changes(&storage), changes(&storage.cut(1))], [3, 3]);
}

/// Segments that cannot be read are not cleaned: the store takes more space, and continues.
#[test]
fn a_segment_that_cannot_be_read_is_passed_over() {
    let (storage, faults, stats) = (StorageSet::memory(), Faults::new(), Arc::new(Stats::default()));
    create(&storage);
    let found = bootstrap::find(&storage.map(|device| faults.wrap(device))).unwrap();
    let store = found.open(&settings(PageCompression::Off), stats.clone()).unwrap();
    let mut lsn = 0_u64;
    let mut turn_over = |times: u64| {
        for _ in 0..times {
            lsn += 1;
            // Pages that are seldom written keep segments from being emptied.
            let seldom = lsn.is_multiple_of(20).then_some(60 + lsn as u32 / 20 % 4);
            let pages: Vec<u32> = (2 + lsn as u32 % 3..60).step_by(3).chain(seldom).collect();
            write(&*store, &pages, lsn, FlushLane::FlushList).unwrap();
        }
        lsn
    };
    turn_over(100);
    assert!(stats.store_segments_cleaned.get() > 0);
    faults.fail(highwater_storage::Operation::Read, 1, highwater_storage::FaultKind::ErrorForGood);
    turn_over(100);
    assert!(stats.store_segments_unreadable.get() > 0);
    faults.clear();
    let (cleaned, lsn) = (stats.store_segments_cleaned.get(), turn_over(300));
    assert!(stats.store_segments_cleaned.get() > cleaned, "others are cleaned");
    (2..60).for_each(|page| {
        let newest = (lsn - 2..=lsn).find(|lsn| (page - 2) % 3 == *lsn as u32 % 3).unwrap();
        assert_holds(&*store, page, newest, "it was turned over");
    });
    assert_sound(&*store, "segments were passed over");
}
