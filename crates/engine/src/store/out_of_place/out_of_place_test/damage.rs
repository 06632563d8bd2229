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
        let Some((header, _)) = format::parse_header(&block, 77) else { return found };
        found.push(at);
        at += header.bytes as u64;
    }
}

#[test]
fn a_damaged_header_makes_no_page_disappear() {
    let storage = new_store();
    let store = open(&storage);
    // With room enough nothing is cleaned, and these stay in the first segments.
    store.reserve(NEW_PAGES..4096).unwrap();
    store.sync().unwrap();
    for (lsn, first) in (1..).zip((20..119).step_by(9)) {
        write(&*store, &(first..first + 9).collect::<Vec<u32>>(), lsn, Lane::FlushList).unwrap();
    }
    for lsn in 12..200 {
        write(&*store, &(2..20).collect::<Vec<u32>>(), lsn, Lane::FlushList).unwrap();
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

fn has_footer(storage: &StorageSet, segment: u64) -> bool {
    let mut block = vec![0; BLOCK_BYTES];
    storage.data.read_at((segment + 1) * SEGMENT_BYTES - BLOCK_BYTES as u64, &mut block).unwrap();
    format::parse_footer(&block, 77).is_some_and(|footer| !footer.is_free)
}

#[test]
fn a_damaged_header_of_an_open_segment_is_noticed() {
    let storage = new_store();
    let store = open(&storage);
    for lsn in 1..6 {
        write(&*store, &[5, 6, 7], lsn, Lane::FlushList).unwrap();
    }
    drop(store);
    let mut segments = 1..storage.data.len_bytes().unwrap() / SEGMENT_BYTES;
    let segment = segments.find(|segment| batches_of(&storage, *segment).len() == 5).unwrap();
    damage(&storage, batches_of(&storage, segment)[2], 64);
    let error = open_after(&storage, 5, PageCompression::Off).err().expect("a header is damaged").to_string();
    assert!(error.contains(&format!("segment {segment} ")) && error.contains("damaged"), "{error}");
}

/// The last batch may have been torn by a crash; but not if its changes lie before the log's checkpoint.
#[test]
fn a_torn_image_counts_as_damage_if_it_had_been_durable() {
    for (checkpoint, is_damage) in [(6, false), (7, true)] {
        let storage = new_store();
        let store = open(&storage);
        for lsn in [6, 7] {
            write(&*store, &[5, 8], lsn, Lane::FlushList).unwrap();
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
    write(&*open(&storage), &[5], 90, Lane::FlushList).unwrap();
    let error = bootstrap::find(&storage).unwrap().repair(Lsn(1)..Lsn(89)).unwrap_err().to_string();
    assert!(error.contains("page 5") && error.contains("lost its end"), "{error}");
}

/// No bytes of the file make it panic.
#[test]
fn damage_anywhere_is_an_error_or_another_page_never_a_panic() {
    let storage = new_store();
    let store = open(&storage);
    for lsn in 1..40 {
        write(&*store, &(2..20).collect::<Vec<u32>>(), lsn, Lane::FlushList).unwrap();
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
