//! Each kind of damage is found and located.

use super::*;
use crate::db::testing::commit_all;

#[test]
fn a_flipped_byte_is_found_on_its_page() {
    let storage = closed(2000);
    let index = index_id(&storage, 1);
    let page = find_page(&storage, |page| is_leaf_of(page, index));
    data(&storage).damage(|bytes| bytes[page.0 as usize * PAGE_BYTES + 2000] ^= 4);
    let report = check(&storage).unwrap();
    expect(&report, &[&format!("page {page}: table person: index by_name: checksum")]);
    expect(&report, &["index by_name", "a page on the path is damaged"]);
    let scanned = inspect::scan(&*storage.data, &mut |_, _| {}).unwrap();
    expect(&scanned, &[&format!("page {page}"), "by_name", "checksum"]);
}

#[test]
fn swapped_pages_are_found() {
    let storage = closed(2000);
    let index = index_id(&storage, 0);
    let first = find_page(&storage, |page| is_leaf_of(page, index));
    let second = find_page(&storage, |page| is_leaf_of(page, index) && header::stored_page_no(page) != first);
    data(&storage).damage(|bytes| {
        let (low, high) = bytes.split_at_mut(second.0 as usize * PAGE_BYTES);
        low[first.0 as usize * PAGE_BYTES..][..PAGE_BYTES].swap_with_slice(&mut high[..PAGE_BYTES]);
    });
    let report = check(&storage).unwrap();
    expect(&report, &[&format!("page {first}: "), "PRIMARY", &format!("its header has the page number {second}")]);
    expect(&report, &[&format!("page {second}: "), "PRIMARY", &format!("its header has the page number {first}")]);
}

#[test]
fn an_old_copy_of_a_page_is_found() {
    let storage = purged(2000);
    let index = index_id(&storage, 0);
    let leaf = find_page(&storage, |page| is_leaf_of(page, index));
    let old = page(&storage, leaf);
    let db = Database::open_storage(storage.clone(), small_options()).unwrap();
    let table = db.table("person").unwrap();
    commit_all(&db, 1..2000u64, |txn, id| txn.update(&table, &values![id], &[(1, "new".into())]));
    db.close().unwrap();
    forget_doublewrite(&storage);
    data(&storage).damage(|bytes| bytes[leaf.0 as usize * PAGE_BYTES..][..PAGE_BYTES].copy_from_slice(&old));
    expect(&check(&storage).unwrap(), &["index by_name"]);
}

#[test]
fn a_lost_entry_and_a_stray_one_are_found() {
    let storage = purged(2000);
    let index = index_id(&storage, 1);
    let leaf = find_page(&storage, |page| is_leaf_of(page, index));
    let lost = copy(&storage);
    apply(&lost, leaf, &PageOp::NodeRemove { slot: 2 });
    let report = check(&lost).unwrap();
    assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
    expect(&report, &["table person: index by_name: row (", "it has no entry"]);

    let before = page(&storage, leaf);
    let (key, value) = (Node::new(&before).key(2), Node::new(&before).value(2).to_vec());
    let marked = copy(&storage);
    apply(&marked, leaf, &PageOp::NodeSplice { slot: 2, at: 0, remove: 1, bytes: &[1] });
    expect(&check(&marked).unwrap(), &["by_name", "its entry is delete-marked"]);

    let stray = copy(&storage);
    let other_row = [&key[..key.len() - 8], &77_777u64.to_be_bytes()].concat();
    apply(&stray, leaf, &PageOp::NodeInsert { slot: 3, key: &other_row, value: &value });
    let report = check(&stray).unwrap();
    assert_eq!(report.findings.len(), 1, "{:#?}", report.findings);
    expect(&report, &[&format!("page {leaf}: "), "by_name", "of row (77777): there is no such row"]);
}

#[test]
fn two_rows_with_one_unique_entry_are_found() {
    let storage = purged(500);
    let index = index_id(&storage, 2);
    let leaf = find_page(&storage, |page| is_leaf_of(page, index) && Node::new(page).key(0)[0] == 1);
    let before = page(&storage, leaf);
    let (key, value) = (Node::new(&before).key(2), Node::new(&before).value(2).to_vec());
    let twin = [&key[..key.len() - 8], &77_777u64.to_be_bytes()].concat();
    apply(&storage, leaf, &PageOp::NodeInsert { slot: 3, key: &twin, value: &value });
    expect(&check(&storage).unwrap(), &[&format!("page {leaf}: "), "by_code", "two rows have this entry"]);
}

#[test]
fn changed_rows_are_found() {
    let storage = purged(2000);
    let index = index_id(&storage, 0);
    let leaf = find_page(&storage, |page| is_leaf_of(page, index));
    let splice = |at, bytes: &[u8], expected: &[&str]| {
        let storage = copy(&storage);
        apply(&storage, leaf, &PageOp::NodeSplice { slot: 2, at, remove: bytes.len() as u16, bytes });
        expect(&check(&storage).unwrap(), expected);
    };
    let on_page = format!("page {leaf}: table person: index PRIMARY: row (");
    splice(0, &[8], &[&on_page, "unknown flag bits"]);
    splice(2, &[0xff; 6], &[&on_page, "ids are below"]);
    splice(8, &[0xff; 6], &[&on_page, "its roll pointer leads to page"]);
    // Behind the row header: the number of the layout, the NULL bitmap, the key column.
    splice(16, &[9], &[&on_page, "the unknown 9 for the number of its layout"]);
    // The nullable columns' bits: a NULL with a value.
    splice(17, &[3], &[&on_page, "does not decode"]);
    splice(18, &[0xee], &[&on_page, "its columns make the key"]);
}

#[test]
fn pages_marked_wrongly_are_found() {
    let storage = purged(2000);
    let layout = SpaceLayout::new(PAGE_BYTES);
    let index = index_id(&storage, 1);
    let leaf = find_page(&storage, |page| is_leaf_of(page, index));
    let (map, bits_at, _) = layout.entry_of(leaf);
    let freed = copy(&storage);
    apply(&freed, map, &PageOp::ClearBits { offset: bits_at, mask: 1 << (leaf.0 % 64) });
    expect(&check(&freed).unwrap(), &[&format!("page {leaf}: "), "by_name", "but marked as free"]);

    let free = {
        let db = Database::open_storage_idle(copy(&storage), small_options()).unwrap();
        let extent = db.space().extent(leaf.0 / 64).unwrap();
        let owner = extent.owners[(leaf.0 % 64 / 8) as usize];
        let free = |bit: &u32| extent.used >> bit & 1 == 0 && extent.owners[(bit / 8) as usize] == owner;
        (0..64).find(free).map(|bit| PageNo(leaf.0 / 64 * 64 + bit))
    };
    if let Some(free) = free {
        let leaked = copy(&storage);
        apply(&leaked, map, &PageOp::SetBits { offset: bits_at, mask: 1 << (free.0 % 64) });
        change_page(&leaked, free, |bytes| {
            PageOp::Format { page_type: PageType::Leaf, level: 0, owner: index }.apply(bytes).unwrap();
        });
        expect(&check(&leaked).unwrap(), &[&format!("page {free}: "), "by_name", "nothing leads to it"]);
    }

    let given_away = copy(&storage);
    let owner_at = layout.entry_of(leaf).2;
    change_page(&given_away, map, |bytes| {
        bytes[owner_at as usize..owner_at as usize + 4].copy_from_slice(&SEGMENT_UNDO.0.to_le_bytes());
    });
    expect(&check(&given_away).unwrap(), &[&format!("page {leaf}: "), "by_name", "gives it to segment 2"]);
}

#[test]
fn broken_overflow_chains_are_found() {
    let storage = purged(500);
    let is_overflow = |page: &[u8]| header::page_type(page).unwrap() == PageType::Overflow;
    let next_of = |page: &[u8]| u32::from_le_bytes(page[32..36].try_into().unwrap());
    let chained = find_page(&storage, |page| is_overflow(page) && next_of(page) != 0);
    let cut = copy(&storage);
    change_page(&cut, chained, |bytes| bytes[32..36].fill(0));
    let report = check(&cut).unwrap();
    expect(&report, &["table person", "the overflow chain from here has"]);
    expect(&report, &["PRIMARY", "its overflow pages are damaged"]);
    let circle = copy(&storage);
    change_page(&circle, chained, |bytes| bytes[32..36].copy_from_slice(&chained.0.to_le_bytes()));
    expect(&check(&circle).unwrap(), &[&format!("page {chained}: table person: "), "more than one overflow chain"]);
    let astray = copy(&storage);
    change_page(&astray, chained, |bytes| bytes[32..36].copy_from_slice(&u32::MAX.to_le_bytes()));
    expect(&check(&astray).unwrap(), &["table person", "beyond the end of the data file"]);
}

#[test]
fn damaged_undo_is_found() {
    let storage = closed_idle(500);
    let undo = find_page(&storage, |page| {
        header::page_type(page).unwrap() == PageType::Undo && u32::from_le_bytes(page[36..40].try_into().unwrap()) != 0
    });
    let broken = copy(&storage);
    change_page(&broken, undo, |bytes| bytes[66] = 0x1f);
    match check(&broken) {
        Ok(report) => expect(&report, &[&format!("page {undo}: "), "undo record"]),
        Err(error) => assert!(error.to_string().contains("undo record"), "{error}"),
    }
}

#[test]
fn a_cut_file_is_found() {
    let storage = closed(2000);
    let len = data(&storage).image().len();
    data(&storage).damage(|bytes| bytes.truncate(len / 3 / PAGE_BYTES * PAGE_BYTES + 100));
    let error = check(&storage).unwrap_err();
    assert!(error.to_string().contains("cut"), "{error}");
    let scanned = inspect::scan(&*storage.data, &mut |_, _| {}).unwrap();
    expect(&scanned, &["the data file is cut"]);
}

#[test]
fn without_file_header_or_maps_the_scan_goes_on() {
    let storage = closed(500);
    let index = index_id(&storage, 1);
    let leaf = find_page(&storage, |page| is_leaf_of(page, index));
    data(&storage).damage(|bytes| {
        bytes[..2 * PAGE_BYTES].fill(7);
        bytes[leaf.0 as usize * PAGE_BYTES + 99] ^= 1;
    });
    assert!(check(&storage).is_err());
    let scanned = inspect::scan(&*storage.data, &mut |_, _| {}).unwrap();
    expect(&scanned, &["page 0: ", "not a Highwater database"]);
    expect(&scanned, &["page 1: ", "checksum"]);
    expect(&scanned, &[&format!("page {leaf}: "), "checksum"]);
    assert!(inspect::scan(&MemoryDevice::holding(vec![3; 1 << 20]), &mut |_, _| {}).is_err());
}

#[test]
fn damage_below_an_inner_page_is_said_once() {
    let storage = purged(3000);
    let index = index_id(&storage, 0);
    let root =
        find_page(&storage, |page| header::page_type(page).unwrap() == PageType::Inner && header::owner(page) == index);
    data(&storage).damage(|bytes| bytes[root.0 as usize * PAGE_BYTES + 77] ^= 1);
    let report = check(&storage).unwrap();
    expect(&report, &[&format!("page {root}: table person: index PRIMARY: checksum")]);
    expect(&report, &["PRIMARY", "are below the damaged page"]);
    assert!(report.findings.len() < 20, "{:#?}", report.findings);
}
