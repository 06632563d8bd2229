//! The catalog keeps what it was given over a reopening, and what a crash interrupts is found and removed.

use super::super::schema::Schema;
use super::super::types::Type;
use super::*;
use crate::btree::Seek;
use crate::check::check_test::forget_doublewrite;
use crate::db::open_parts::OpenParts;
use crate::space::ROOT_UNDO;
use crate::table::catalog_trees::CATALOG_TREES;
use crate::testing::{open, small_options, small_parts};
use highwater_storage::{FaultKind, Faults, Operation, StorageSet};

mod change;

fn catalog(parts: &OpenParts) -> Catalog {
    let opened = Catalog::open(parts.ctx.clone(), parts.space.clone(), false).unwrap();
    opened.trees().make_missing().unwrap();
    opened
}

/// As for a database that is looked at.
fn catalog_read_only(parts: &OpenParts) -> Catalog {
    Catalog::open(parts.ctx.clone(), parts.space.clone(), true).unwrap()
}

fn definition(name: &str, columns: usize) -> TableDefinition {
    let mut schema = Schema::new().column("id", Type::U64);
    for i in 0..columns {
        schema = schema.nullable(&format!("column_number_{i}"), Type::Text(100 + i as u32));
    }
    schema.auto_increment("id").primary_key(&["id"]).index("by_first", &["column_number_0"]).check(name).unwrap()
}

fn first_part(table: TableId) -> RecordKey {
    RecordKey::Part { table, copy: DefinitionCopy::First, part: 0 }
}

/// Pages that are not owned by the catalog or the undo log.
fn user_pages(parts: &OpenParts) -> u32 {
    parts
        .space
        .segments()
        .iter()
        .filter(|(segment, _)| (16..u32::MAX).contains(&segment.0))
        .map(|(_, pages)| pages)
        .sum()
}

fn reopen(parts: OpenParts) -> OpenParts {
    parts.ctx.log.flush_to(parts.ctx.log.end_lsn()).unwrap();
    let storage = parts.storage().clone();
    drop(parts);
    open(storage, small_options())
}

#[test]
fn tables_survive_a_reopening() {
    let parts = small_parts();
    let made = catalog(&parts);
    assert!(made.load().unwrap().0.is_empty());
    let small = made.create_table(definition("small", 1)).unwrap();
    let wide = made.create_table(definition("wide", 1000)).unwrap();
    assert_ne!(small.id, wide.id);
    drop(made);
    let parts = reopen(parts);
    let again = catalog(&parts);
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
    let parts = small_parts();
    let made = catalog(&parts);
    made.load().unwrap();
    let mut entry = made.create_table(definition("t", 40)).unwrap();
    // As after a crash before the last record was written.
    entry.record.state = ObjectState::Building;
    made.put(RecordKey::Table(entry.id), &entry.record.encode()).unwrap();
    drop(made);
    let parts = reopen(parts);
    let again = catalog(&parts);
    let (tables, leftovers) = again.load().unwrap();
    assert!(tables.is_empty() && user_pages(&parts) == 2);
    let [Leftover::Table(remains)] = &leftovers[..] else { panic!("{leftovers:?}") };
    assert_eq!((remains.segments.len(), &remains.keys), (3, &entry.remains().keys));
    again.finish_drop(remains).unwrap();
    assert_eq!(user_pages(&parts), 0);
    let (tables, leftovers) = again.load().unwrap();
    assert!(tables.is_empty() && leftovers.is_empty());
}

#[test]
fn records_without_a_state_record_are_remains_too() {
    let parts = small_parts();
    let made = catalog(&parts);
    made.put(first_part(TableId(99)), b"part").unwrap();
    let (tables, leftovers) = made.load().unwrap();
    assert!(tables.is_empty());
    let [Leftover::Table(remains)] = &leftovers[..] else { panic!("{leftovers:?}") };
    made.finish_drop(remains).unwrap();
    assert!(made.load().unwrap().1.is_empty());
}

#[test]
fn indexes_come_and_go() {
    let parts = small_parts();
    let made = catalog(&parts);
    made.load().unwrap();
    let table = made.create_table(definition("t", 3)).unwrap();
    let added = IndexDefinition {
        name: "added".to_string(),
        columns: vec![2.into(), 1.into()],
        covered: Vec::new(),
        unique: true,
    };
    let mut index = made.create_index(&table, &table.definition, &added).unwrap();
    // Not complete: what a crash now leaves is an index to be removed.
    let (tables, leftovers) = made.load().unwrap();
    assert_eq!((tables[0].indexes.len(), leftovers.len()), (1, 1));
    made.set_index_state(table.id, &mut index, ObjectState::Ready).unwrap();
    let (tables, leftovers) = made.load().unwrap();
    assert!(leftovers.is_empty());
    assert_eq!(tables[0].definition.indexes[1], added);
    made.set_index_state(table.id, &mut index, ObjectState::Dropping).unwrap();
    let (tables, leftovers) = made.load().unwrap();
    assert_eq!(tables[0].indexes.len(), 1);
    let [Leftover::Index(id, left)] = &leftovers[..] else { panic!("{leftovers:?}") };
    let before = user_pages(&parts);
    let keys = vec![RecordKey::Index(*id, left.tree.id)];
    made.finish_drop(&TableRemains { segments: vec![left.tree.segment], keys }).unwrap();
    assert_eq!(user_pages(&parts), before - 1);
}

#[test]
fn a_power_cut_keeps_whole_tables_only() {
    let parts = small_parts();
    let made = catalog(&parts);
    made.load().unwrap();
    for i in 0..4 {
        made.create_table(definition(&format!("t{i}"), 20)).unwrap();
        // Later writes are not flushed: the cut may keep any part of them.
        let entry = made.new_ids(1, 1).unwrap();
        made.put(first_part(entry.table), b"part of a table to come").unwrap();
        for seed in 0..8 {
            let cut = open(parts.storage().cut(seed), small_options());
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
    let parts = small_parts();
    let made = catalog(&parts);
    made.load().unwrap();
    let table = made.create_table(definition("t", 40)).unwrap();
    made.remove(RecordKey::Part { table: table.id, copy: DefinitionCopy::First, part: 1 }).unwrap();
    let error = made.load().unwrap_err();
    assert!(matches!(&error, Error::Corrupt(text) if text.contains("definition of table")), "{error}");
}

#[test]
fn a_state_that_cannot_be_written_is_not_taken() {
    let parts = small_parts();
    let made = catalog(&parts);
    made.load().unwrap();
    let mut table = made.create_table(definition("t", 3)).unwrap();
    let index_key = RecordKey::Index(table.id, table.indexes[0].tree.id);
    for key in [RecordKey::Table(table.id), index_key] {
        made.remove(key).unwrap();
    }
    assert!(matches!(made.set_table_state(&mut table, ObjectState::Dropping), Err(Error::Corrupt(_))));
    assert!(matches!(
        made.set_index_state(table.id, &mut table.indexes[0], ObjectState::Dropping),
        Err(Error::Corrupt(_))
    ));
    assert!(table.record.state == ObjectState::Ready && table.indexes[0].state == ObjectState::Ready);
}

/// A part of the catalog that is older than others: a number that is in use would be reused, or a name exists twice.
#[test]
fn older_counters_and_two_tables_of_one_name_are_damage() {
    let parts = small_parts();
    let made = catalog(&parts);
    let entry = made.create_table(definition("small", 1)).unwrap();
    let (table, index) = (entry.id.0, entry.indexes[0].tree.id.0);
    for (next_table, next_index, says) in
        [(table, index + 1, format!("table {table}")), (table + 1, index, format!("index {index}"))]
    {
        let counters = IdCounters { next_table, next_index, next_create: 9 };
        made.put(RecordKey::Counters, &counters.encode()).unwrap();
        let error = made.load().unwrap_err().to_string();
        assert!(error.contains(&says) && error.contains("an old version"), "{error}");
    }
    made.put(RecordKey::Counters, &IdCounters { next_table: 90, next_index: 90, next_create: 9 }.encode()).unwrap();
    let bytes = encode_definition(&entry.definition, &entry.columns);
    made.put_definition(TableId(table + 1), DefinitionCopy::First, &bytes).unwrap();
    made.put(RecordKey::Table(TableId(table + 1)), &entry.record.encode()).unwrap();
    let error = made.load().unwrap_err().to_string();
    assert!(error.contains("two tables named small"), "{error}");
}

/// The catalog has this many tables, and two equal trees.
fn assert_whole(catalog: &Catalog, tables: usize) {
    assert_eq!(catalog.load().unwrap().0.len(), tables);
    assert_eq!((catalog.trees().each().count(), catalog.trees().difference()), (2, None));
}

/// The root of each tree, which is its only page here.
fn roots(parts: &OpenParts) -> [PageNo; 2] {
    CATALOG_TREES.map(|tree| parts.space.root(tree.root_slot).unwrap_or(PageNo(0)))
}

/// The storage of a closed database with one table, and where the trees are.
fn closed_with_a_table(columns: usize) -> (StorageSet, [PageNo; 2]) {
    let parts = small_parts();
    catalog(&parts).create_table(definition("t", columns)).unwrap();
    let roots = roots(&parts);
    (closed(parts), roots)
}

fn closed(mut parts: OpenParts) -> StorageSet {
    let storage = parts.storage().clone();
    parts.close().unwrap();
    // Else it would repair pages.
    forget_doublewrite(&storage);
    storage
}

fn closed_and_opened(parts: OpenParts) -> OpenParts {
    open(closed(parts), small_options())
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
        let parts = open(storage.clone(), small_options());
        let made = catalog(&parts);
        assert_whole(&made, 1);
        made.create_table(definition("u", 3)).unwrap();
        assert_whole(&made, 2);
    }
    let (storage, before) = closed_with_a_table(3);
    before.iter().for_each(|page| damage(&storage, *page));
    let parts = open(storage.clone(), small_options());
    let error = CatalogTrees::open(parts.ctx.clone(), parts.space.clone(), false).err().expect("both are damaged");
    assert!(error.to_string().contains(&format!("page {}", before[0])), "{error}");
    assert_eq!(roots(&parts), before, "nothing is made of nothing");
}

#[test]
fn a_damaged_tree_of_a_database_that_is_looked_at_stays() {
    let (storage, before) = closed_with_a_table(3);
    damage(&storage, before[0]);
    let parts = open(storage.clone(), small_options());
    let looked_at = catalog_read_only(&parts);
    assert_eq!((looked_at.load().unwrap().0.len(), roots(&parts)), (1, before));
}

/// Page 0 is whole and names no tree: such a database is not mistaken for a new one.
#[test]
fn a_catalog_without_trees_is_not_taken_for_an_empty_one() {
    let (storage, _) = closed_with_a_table(3);
    let parts = open(storage.clone(), small_options());
    let mut mtr = parts.ctx.mtr().unwrap();
    CATALOG_TREES.iter().for_each(|tree| parts.space.clear_root(&mut mtr, tree.root_slot));
    parts.space.set_root(&mut mtr, ROOT_UNDO, PageNo(1));
    mtr.commit();
    let error = Catalog::open(parts.ctx.clone(), parts.space.clone(), false).err().expect("no tree").to_string();
    assert!(error.contains("names no tree"), "{error}");
}

/// A write of a leaf was lost: the other tree has newer leaves.
#[test]
fn of_two_trees_that_differ_the_newer_counts() {
    for at in [0, 1] {
        let (storage, before) = closed_with_a_table(3);
        let old = image_of(&storage, before[at]);
        let parts = open(storage, small_options());
        let made = catalog(&parts);
        made.load().unwrap();
        made.create_table(definition("u", 3)).unwrap();
        drop(made);
        let storage = closed(parts);
        put_back(&storage, before[at], &old);
        let parts = open(storage, small_options());
        let again = catalog(&parts);
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
        let parts = small_parts();
        let made = catalog(&parts);
        let mut tables: Vec<_> =
            (0..10).map(|i| made.create_table(definition(&format!("t{i}"), 40)).unwrap()).collect();
        let leaf_of = |at: usize, id| {
            let (_, tree) = made.trees().each().nth(at).unwrap();
            tree.leaf(&parts.ctx, Seek::Covers(&RecordKey::Table(id).encode())).unwrap().page_no()
        };
        let (first, last) = (tables.remove(0), tables.pop().unwrap());
        let (lost, newest) = (leaf_of(at, first.id), leaf_of(1 - at, last.id));
        assert!(lost != leaf_of(at, last.id) && newest != leaf_of(1 - at, first.id));
        drop(made);
        let parts = closed_and_opened(parts);
        let old = [lost, newest].map(|page| (page, image_of(parts.storage(), page)));
        let made = catalog(&parts);
        made.load().unwrap();
        for (entry, bound) in [(&first, 5000), (&last, 7)] {
            let record = TableRecord { auto_increment_bound: bound, ..entry.record };
            made.put(RecordKey::Table(entry.id), &record.encode()).unwrap();
        }
        drop(made);
        let storage = closed(parts);
        old.iter().take(1 + usize::from(both)).for_each(|(page, old)| put_back(&storage, *page, old));
        let parts = open(storage, small_options());
        if both {
            let error =
                Catalog::open(parts.ctx.clone(), parts.space.clone(), false).err().expect("both lost something");
            assert!(error.to_string().contains("do not tell which one is right"), "{error}");
            continue;
        }
        let again = catalog(&parts);
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
        let parts = open(storage.clone(), small_options());
        // As if the damage had come after the opening.
        let trees = CatalogTrees::open_unread(parts.ctx.clone(), parts.space.clone(), false);
        let made = Catalog { trees, ..catalog_read_only(&parts) };
        made.load().unwrap();
        made.create_table(definition("u", 3)).unwrap();
        assert_eq!((made.trees().each().count(), roots(&parts)[at]), (1, PageNo(0)));
        let refused = made.trees().give_up(CATALOG_TREES[1 - at], Error::Corrupt("the reason".to_string()));
        assert!(refused.unwrap_err().to_string().contains("the reason"), "one tree stays");
        let parts = reopen(parts);
        let again = catalog(&parts);
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
        let parts = open(disks.map(|device| faults.wrap(device)), small_options());
        let made = catalog(&parts);
        faults.fail(Operation::Sync, 1, FaultKind::ErrorForGood);
        parts.ctx.log.flush_to(parts.ctx.log.end_lsn()).unwrap_err();
        drop((made, parts));
        let parts = open(disks.cut(seed), small_options());
        unfinished += u32::from(roots(&parts).contains(&PageNo(0)));
        let again = catalog(&parts);
        assert_whole(&again, 1);
    }
    assert!(unfinished > 10, "{unfinished} crashes between giving up and the end");
}
