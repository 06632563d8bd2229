//! The catalog keeps what it was given over a reopening, and what a crash interrupts is found and removed.

use super::super::schema::Schema;
use super::super::types::Type;
use super::*;
use crate::btree::Seek;
use crate::check::check_test::forget_doublewrite;
use crate::db::core::Core;
use crate::space::ROOT_UNDO;
use crate::table::catalog_trees::CATALOG_TREES;
use crate::testing::{open, small_core, small_options};
use highwater_storage::{FaultKind, Faults, Operation, StorageSet};

fn catalog(core: &Core) -> Catalog {
    let opened = Catalog::open(core.ctx.clone(), core.space.clone(), false).unwrap();
    opened.trees().make_missing().unwrap();
    opened
}

/// As for a database that is looked at.
fn catalog_read_only(core: &Core) -> Catalog {
    Catalog::open(core.ctx.clone(), core.space.clone(), true).unwrap()
}

fn definition(name: &str, columns: usize) -> TableDefinition {
    let mut schema = Schema::new().column("id", Type::U64);
    for i in 0..columns {
        schema = schema.nullable(&format!("column_number_{i}"), Type::Text(100 + i as u32));
    }
    schema.auto_increment("id").primary_key(&["id"]).index("by_first", &["column_number_0"]).check(name).unwrap()
}

/// Pages that are not owned by the catalog or the undo log.
fn user_pages(core: &Core) -> u32 {
    core.space
        .segments()
        .iter()
        .filter(|(segment, _)| (16..u32::MAX).contains(&segment.0))
        .map(|(_, pages)| pages)
        .sum()
}

fn reopen(core: Core) -> Core {
    core.ctx.log.flush_to(core.ctx.log.end_lsn()).unwrap();
    let storage = core.storage().clone();
    drop(core);
    open(storage, small_options())
}

#[test]
fn tables_survive_a_reopening() {
    let core = small_core();
    let made = catalog(&core);
    assert!(made.load().unwrap().0.is_empty());
    let small = made.create_table(definition("small", 1)).unwrap();
    let wide = made.create_table(definition("wide", 1000)).unwrap();
    assert_ne!(small.id, wide.id);
    drop(made);
    let core = reopen(core);
    let again = catalog(&core);
    let (tables, leftovers) = again.load().unwrap();
    assert!(leftovers.is_empty());
    for (made, found) in [small, wide].iter().zip(&tables) {
        assert_eq!(
            (made.id, made.record, &made.definition, &made.indexes),
            (found.id, found.record, &found.definition, &found.indexes)
        );
        assert_ne!(found.record.clustered.root, PageNo(0));
    }
    let next = again.create_table(definition("next", 1)).unwrap();
    assert!(next.id > tables[1].id && next.indexes[0].tree.id > tables[1].indexes[0].tree.id);
    assert!(next.record.clustered.segment > tables[1].indexes[0].tree.segment);
}

#[test]
fn a_table_half_made_leaves_no_trace() {
    let core = small_core();
    let made = catalog(&core);
    made.load().unwrap();
    let mut entry = made.create_table(definition("t", 40)).unwrap();
    // As after a crash before the last record was written.
    entry.record.state = State::Building;
    made.put(RecordKey::Table(entry.id), &entry.record.encode()).unwrap();
    drop(made);
    let core = reopen(core);
    let again = catalog(&core);
    let (tables, leftovers) = again.load().unwrap();
    assert!(tables.is_empty() && user_pages(&core) == 2);
    let [Leftover::Table(remains)] = &leftovers[..] else { panic!("{leftovers:?}") };
    assert_eq!((remains.segments.len(), &remains.keys), (3, &entry.remains().keys));
    again.finish_drop(remains).unwrap();
    assert_eq!(user_pages(&core), 0);
    let (tables, leftovers) = again.load().unwrap();
    assert!(tables.is_empty() && leftovers.is_empty());
}

#[test]
fn records_without_a_state_record_are_remains_too() {
    let core = small_core();
    let made = catalog(&core);
    made.put(RecordKey::Part(TableId(99), 0), b"part").unwrap();
    let (tables, leftovers) = made.load().unwrap();
    assert!(tables.is_empty());
    let [Leftover::Table(remains)] = &leftovers[..] else { panic!("{leftovers:?}") };
    made.finish_drop(remains).unwrap();
    assert!(made.load().unwrap().1.is_empty());
}

#[test]
fn indexes_come_and_go() {
    let core = small_core();
    let made = catalog(&core);
    made.load().unwrap();
    let table = made.create_table(definition("t", 3)).unwrap();
    let added = IndexDefinition { name: "added".to_string(), columns: vec![2, 1], unique: true };
    let mut index = made.create_index(table.id, added.clone()).unwrap();
    // Not complete: what a crash now leaves is an index to be removed.
    let (tables, leftovers) = made.load().unwrap();
    assert_eq!((tables[0].indexes.len(), leftovers.len()), (1, 1));
    made.set_index_state(table.id, &mut index, State::Ready).unwrap();
    let (tables, leftovers) = made.load().unwrap();
    assert!(leftovers.is_empty());
    assert_eq!(tables[0].definition.indexes[1], added);
    made.set_index_state(table.id, &mut index, State::Dropping).unwrap();
    let (tables, leftovers) = made.load().unwrap();
    assert_eq!(tables[0].indexes.len(), 1);
    let [Leftover::Index(id, left)] = &leftovers[..] else { panic!("{leftovers:?}") };
    let before = user_pages(&core);
    made.finish_drop_index(*id, left).unwrap();
    assert_eq!(user_pages(&core), before - 1);
}

#[test]
fn a_power_cut_keeps_whole_tables_only() {
    let core = small_core();
    let made = catalog(&core);
    made.load().unwrap();
    for i in 0..4 {
        made.create_table(definition(&format!("t{i}"), 20)).unwrap();
        // What follows is not flushed: the cut may keep any part of it.
        let entry = made.new_ids(1, 1).unwrap();
        made.put(RecordKey::Part(entry.0, 0), b"part of a table to come").unwrap();
        for seed in 0..8 {
            let cut = open(core.storage().cut(seed), small_options());
            let (tables, leftovers) = catalog(&cut).load().unwrap();
            assert_eq!(tables.len(), i + 1);
            for leftover in leftovers {
                let Leftover::Table(remains) = leftover else { panic!() };
                catalog(&cut).finish_drop(&remains).unwrap();
            }
            assert_eq!(user_pages(&cut), 2 * (i as u32 + 1));
        }
    }
}

#[test]
fn a_damaged_definition_is_an_error() {
    let core = small_core();
    let made = catalog(&core);
    made.load().unwrap();
    let table = made.create_table(definition("t", 40)).unwrap();
    made.remove(RecordKey::Part(table.id, 1)).unwrap();
    let error = made.load().unwrap_err();
    assert!(matches!(&error, Error::Corrupt(text) if text.contains("definition of table")), "{error}");
}

#[test]
fn a_state_that_cannot_be_written_is_not_taken() {
    let core = small_core();
    let made = catalog(&core);
    made.load().unwrap();
    let mut table = made.create_table(definition("t", 3)).unwrap();
    let index_key = RecordKey::Index(table.id, table.indexes[0].tree.id);
    for key in [RecordKey::Table(table.id), index_key] {
        made.remove(key).unwrap();
        made.put(key, b"of another length").unwrap();
    }
    assert!(matches!(made.set_table_state(&mut table, State::Dropping), Err(Error::Corrupt(_))));
    assert!(matches!(made.set_index_state(table.id, &mut table.indexes[0], State::Dropping), Err(Error::Corrupt(_))));
    assert!(table.record.state == State::Ready && table.indexes[0].state == State::Ready);
}

/// The catalog has so many tables, and two equal trees.
fn assert_whole(catalog: &Catalog, tables: usize) {
    assert_eq!(catalog.load().unwrap().0.len(), tables);
    assert_eq!((catalog.trees().each().count(), catalog.trees().difference()), (2, None));
}

/// The root of each tree, which is its only page here.
fn roots(core: &Core) -> [PageNo; 2] {
    CATALOG_TREES.map(|tree| core.space.root(tree.root_slot).unwrap_or(PageNo(0)))
}

/// The storage of a closed database with one table, and where the trees are.
fn closed_with_a_table(columns: usize) -> (StorageSet, [PageNo; 2]) {
    let core = small_core();
    catalog(&core).create_table(definition("t", columns)).unwrap();
    let roots = roots(&core);
    (closed(core), roots)
}

fn closed(mut core: Core) -> StorageSet {
    let storage = core.storage().clone();
    core.close().unwrap();
    // Else it would repair pages.
    forget_doublewrite(&storage);
    storage
}

fn closed_and_opened(core: Core) -> Core {
    open(closed(core), small_options())
}

fn bytes_of(page: PageNo) -> std::ops::Range<usize> {
    let page_bytes = small_options().page_size.bytes().unwrap() as usize;
    page.0 as usize * page_bytes..(page.0 as usize + 1) * page_bytes
}

fn image_of(storage: &StorageSet, page: PageNo) -> Vec<u8> {
    storage.memory_devices().unwrap()[0].image()[bytes_of(page)].to_vec()
}

/// A page is what it was before, as where the device has lost a write.
fn put_back(storage: &StorageSet, page: PageNo, old: &[u8]) {
    storage.memory_devices().unwrap()[0].damage(|bytes| bytes[bytes_of(page)].copy_from_slice(old));
}

fn damage(storage: &StorageSet, page: PageNo) {
    let at = bytes_of(page).start + 100;
    storage.memory_devices().unwrap()[0].damage(|bytes| bytes[at] ^= 1);
}

#[test]
fn a_damaged_tree_is_made_again_from_the_other() {
    for at in [0, 1] {
        let (storage, before) = closed_with_a_table(3);
        damage(&storage, before[at]);
        let core = open(storage.clone(), small_options());
        let made = catalog(&core);
        assert_whole(&made, 1);
        made.create_table(definition("u", 3)).unwrap();
        assert_whole(&made, 2);
    }
    let (storage, before) = closed_with_a_table(3);
    before.iter().for_each(|page| damage(&storage, *page));
    let core = open(storage.clone(), small_options());
    let error = CatalogTrees::open(core.ctx.clone(), core.space.clone(), false).err().expect("both are damaged");
    assert!(error.to_string().contains(&format!("page {}", before[0])), "{error}");
    assert_eq!(roots(&core), before, "nothing is made of nothing");
}

#[test]
fn a_damaged_tree_of_a_database_that_is_looked_at_stays() {
    let (storage, before) = closed_with_a_table(3);
    damage(&storage, before[0]);
    let core = open(storage.clone(), small_options());
    let looked_at = catalog_read_only(&core);
    assert_eq!((looked_at.load().unwrap().0.len(), roots(&core)), (1, before));
}

/// Page 0 is whole and names no tree: such a database is not taken for a new one.
#[test]
fn a_catalog_without_trees_is_not_taken_for_an_empty_one() {
    let (storage, _) = closed_with_a_table(3);
    let core = open(storage.clone(), small_options());
    let mut mtr = core.ctx.mtr().unwrap();
    CATALOG_TREES.iter().for_each(|tree| core.space.clear_root(&mut mtr, tree.root_slot));
    core.space.set_root(&mut mtr, ROOT_UNDO, PageNo(1));
    mtr.commit();
    let error = Catalog::open(core.ctx.clone(), core.space.clone(), false).err().expect("no tree").to_string();
    assert!(error.contains("names no tree"), "{error}");
}

/// A write of a leaf was lost: the other tree has newer leaves.
#[test]
fn of_two_trees_that_differ_the_newer_counts() {
    for at in [0, 1] {
        let (storage, before) = closed_with_a_table(3);
        let old = image_of(&storage, before[at]);
        let core = open(storage, small_options());
        let made = catalog(&core);
        made.load().unwrap();
        made.create_table(definition("u", 3)).unwrap();
        drop(made);
        let storage = closed(core);
        put_back(&storage, before[at], &old);
        let core = open(storage, small_options());
        let again = catalog(&core);
        assert_whole(&again, 2);
        let mut reasons = Vec::new();
        again.trees().each_given_up(|(which, error)| reasons.push((which.id, error.to_string())));
        assert!(matches!(&reasons[..], [(id, text)] if *id == CATALOG_TREES[at].id && text.contains("older")));
    }
}

/// A catalog of several leaves: the lost write was of one that is not the newest. With the newest one of the other tree
/// lost too, neither tree has everything.
#[test]
fn of_two_trees_that_differ_the_leaf_that_misses_a_change_tells() {
    for (at, both) in [(0, false), (1, false), (0, true), (1, true)] {
        let core = small_core();
        let made = catalog(&core);
        let mut tables: Vec<_> =
            (0..10).map(|i| made.create_table(definition(&format!("t{i}"), 40)).unwrap()).collect();
        let leaf_of = |at: usize, id| {
            let (_, tree) = made.trees().each().nth(at).unwrap();
            tree.leaf(&core.ctx, Seek::Covers(&RecordKey::Table(id).encode())).unwrap().page_no()
        };
        let (first, last) = (tables.remove(0), tables.pop().unwrap());
        let (lost, newest) = (leaf_of(at, first.id), leaf_of(1 - at, last.id));
        assert!(lost != leaf_of(at, last.id) && newest != leaf_of(1 - at, first.id));
        drop(made);
        let core = closed_and_opened(core);
        let old = [lost, newest].map(|page| (page, image_of(core.storage(), page)));
        let made = catalog(&core);
        made.load().unwrap();
        for (entry, bound) in [(&first, 5000), (&last, 7)] {
            let record = TableRecord { auto_increment_bound: bound, ..entry.record };
            made.put(RecordKey::Table(entry.id), &record.encode()).unwrap();
        }
        drop(made);
        let storage = closed(core);
        old.iter().take(1 + usize::from(both)).for_each(|(page, old)| put_back(&storage, *page, old));
        let core = open(storage, small_options());
        if both {
            let error = Catalog::open(core.ctx.clone(), core.space.clone(), false).err().expect("both lost something");
            assert!(error.to_string().contains("do not tell which one is right"), "{error}");
            continue;
        }
        let again = catalog(&core);
        let (loaded, _) = again.load().unwrap();
        let found = loaded.iter().find(|table| table.id == first.id).unwrap().record.auto_increment_bound;
        let mut given_up = Vec::new();
        again.trees().each_given_up(|(which, _)| given_up.push(which.id));
        assert_eq!((found, given_up), (5000, vec![CATALOG_TREES[at].id]));
    }
}

/// It has all that was acknowledged, though a page of the other was lost while the database was open.
#[test]
fn a_change_gives_up_a_tree_that_cannot_be_read() {
    for at in [0, 1] {
        let (storage, before) = closed_with_a_table(3);
        damage(&storage, before[at]);
        let core = open(storage.clone(), small_options());
        // As if the damage had come after the opening.
        let trees = CatalogTrees::open_unread(core.ctx.clone(), core.space.clone(), false);
        let made = Catalog { trees, ..catalog_read_only(&core) };
        made.load().unwrap();
        made.create_table(definition("u", 3)).unwrap();
        assert_eq!((made.trees().each().count(), roots(&core)[at]), (1, PageNo(0)));
        let refused = made.trees().give_up(CATALOG_TREES[1 - at], Error::Corrupt("the reason".to_string()));
        assert!(refused.unwrap_err().to_string().contains("the reason"), "one tree stays");
        let core = reopen(core);
        let again = catalog(&core);
        assert_whole(&again, 2);
    }
}

/// Wherever a crash interrupts that, one tree is whole.
#[test]
fn making_a_tree_again_survives_a_crash() {
    let (storage, before) = closed_with_a_table(60);
    let mut unfinished = 0;
    for seed in 0..200 {
        let (disks, faults) = (storage.cut(seed), Faults::new());
        damage(&disks, before[seed as usize % 2]);
        let core = open(disks.map(|device| faults.wrap(device)), small_options());
        let made = catalog(&core);
        faults.fail(Operation::Sync, 1, FaultKind::ErrorForGood);
        core.ctx.log.flush_to(core.ctx.log.end_lsn()).unwrap_err();
        drop((made, core));
        let core = open(disks.cut(seed), small_options());
        unfinished += u32::from(roots(&core).contains(&PageNo(0)));
        let again = catalog(&core);
        assert_whole(&again, 1);
    }
    assert!(unfinished > 10, "{unfinished} crashes between giving up and the end");
}
