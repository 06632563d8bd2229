//! Records change together, of any lengths; what a change leaves that did not end is found.

use super::super::super::definition::{MAX_NAME_BYTES, MAX_TABLE_NAME_BYTES};
use super::super::super::table_change::{Altered, TableChange};
use super::*;

fn definition_of_one() -> TableDefinition {
    Schema::new().column("a", Type::U8).primary_key(&["a"]).check("u").unwrap()
}

/// Records of a table that is not there; each says how long it is.
fn records(lengths: &[usize]) -> Vec<([u8; 9], Vec<u8>)> {
    let key = |i: usize| RecordKey::Index(TableId(7), IndexId(i as u32)).encode();
    lengths.iter().enumerate().map(|(i, len)| (key(i), vec![*len as u8; *len])).collect()
}

fn changes(records: &[([u8; 9], Vec<u8>)]) -> Vec<(&[u8], RecordChange<'_>)> {
    records.iter().map(|(key, value)| (&key[..], RecordChange::Put(value))).collect()
}

fn lengths(trees: &CatalogTrees) -> Vec<usize> {
    assert_eq!(trees.difference(), None);
    let read = trees.read().unwrap();
    let of_table = |key: &[u8]| key.starts_with(&TableId(7).0.to_be_bytes());
    read.iter().filter(|(key, _)| of_table(key)).map(|(_, value)| value.len()).collect()
}

#[test]
fn records_of_any_lengths_change_together_whatever_a_power_cut_keeps() {
    let parts = small_parts();
    let made = catalog(&parts);
    // More than a leaf, so that the changes meet several.
    let before: Vec<usize> = (0..60).map(|i| 20 + i * 4).collect();
    for (key, value) in records(&before) {
        made.trees().put(&key, &value).unwrap();
    }
    made.flush().unwrap();
    let after: Vec<usize> =
        before.iter().enumerate().map(|(i, len)| if i % 3 == 0 { len + 60 } else { len / 2 }).collect();
    made.trees().change(&changes(&records(&after))).unwrap();
    assert_eq!(lengths(made.trees()), after);
    let mut seen = [false; 2];
    for seed in 0..24 {
        if seed == 12 {
            made.flush().unwrap();
        }
        let cut = open(parts.storage().cut(seed), small_options());
        let found = lengths(catalog(&cut).trees());
        assert!(found == before || found == after, "{found:?}");
        seen[usize::from(found == after)] = true;
    }
    assert_eq!(seen, [true; 2]);
}

#[test]
fn records_that_grow_by_more_than_one_may_have_are_left_as_they_are() {
    let parts = small_parts();
    let made = catalog(&parts);
    let before = vec![10; 20];
    for (key, value) in records(&before) {
        made.trees().put(&key, &value).unwrap();
    }
    let error = made.trees().change(&changes(&records(&[200; 20]))).unwrap_err();
    assert!(matches!(&error, Error::Schema(reason) if reason.contains("bytes longer together")), "{error}");
    assert_eq!(lengths(made.trees()), before);
    // As much as possible, in a leaf that is nearly full.
    made.trees().change(&changes(&records(&[75; 20]))).unwrap();
    assert_eq!(lengths(made.trees()), [75; 20]);
    let mut some = records(&[75; 20]);
    some.retain(|(key, _)| key[8] % 2 == 0);
    let removed: Vec<_> = some.iter().map(|(key, _)| (&key[..], RecordChange::Remove)).collect();
    made.trees().change(&removed).unwrap();
    assert_eq!(lengths(made.trees()), [75; 10]);
}

/// Whatever space a leaf has left: two records that grow need it for both.
#[test]
fn records_that_grow_have_room_together() {
    for count in 20..60 {
        let parts = small_parts();
        let made = catalog(&parts);
        let mut lens = vec![60; count];
        for (key, value) in records(&lens) {
            made.trees().put(&key, &value).unwrap();
        }
        let grown = count / 4..count / 4 + 2;
        lens[grown.clone()].fill(460);
        made.trees().change(&changes(&records(&lens)[grown])).unwrap();
        assert_eq!(lengths(made.trees()), lens);
    }
}

#[test]
fn the_longest_names_and_an_attachment_survive_a_reopening() {
    let parts = small_parts();
    let made = catalog(&parts);
    let name = |letter: &str, bytes: usize| letter.repeat(bytes);
    let column = name("c", MAX_NAME_BYTES);
    let schema = Schema::new().column("id", Type::U64).column(&column, Type::Text(9)).primary_key(&["id"]);
    let schema = schema.index(&name("i", MAX_NAME_BYTES), &[&column]).default_value(&column, "new");
    let schema = schema.attachment(&[7; 70_000]);
    let definition = schema.check(&name("t", MAX_TABLE_NAME_BYTES)).unwrap();
    let entry = made.create_table(definition.clone()).unwrap();
    let next = made.create_table(definition_of_one());
    assert!(next.unwrap().record.create_id > entry.record.create_id);
    drop(made);
    let parts = reopen(parts);
    let tables = catalog(&parts).load().unwrap().0;
    assert_eq!((&tables[0].definition, tables[0].record), (&definition, entry.record));
    for bytes in [0, MAX_TABLE_NAME_BYTES + 1] {
        assert!(schema.check(&name("t", bytes)).is_err());
    }
}

#[test]
fn records_of_a_change_that_did_not_end_are_found_and_removed() {
    let parts = small_parts();
    let made = catalog(&parts);
    let table = made.create_table(definition("t", 3)).unwrap();
    let unused = [
        RecordKey::Part { table: table.id, copy: DefinitionCopy::Second, part: 0 },
        RecordKey::Layout { table: table.id, layout: 1, part: 0 },
        RecordKey::Layout { table: table.id, layout: 2, part: 0 },
    ];
    for key in unused {
        made.put(key, b"part").unwrap();
    }
    let (tables, leftovers) = made.load().unwrap();
    assert_eq!(tables[0].definition, table.definition);
    let [Leftover::Records(keys)] = &leftovers[..] else { panic!("{leftovers:?}") };
    assert_eq!(keys[..], unused);
    made.finish_drop(&TableRemains { keys: keys.clone(), ..TableRemains::default() }).unwrap();
    assert!(made.load().unwrap().1.is_empty());
}

fn altered(table: &TableEntry, changes: &[TableChange]) -> Altered {
    Altered::by(&table.definition, &table.columns, changes).unwrap()
}

/// The table as it is read again.
fn reread(catalog: &Catalog) -> TableEntry {
    catalog.load().unwrap().0.remove(0)
}

#[test]
fn a_definition_and_names_of_indexes_change_together_whatever_a_power_cut_keeps() {
    let wide = "column".repeat(40);
    let changes = [
        TableChange::widen_column("column_number_3", Type::Text(900)),
        TableChange::add_column(&wide, Type::U16, 5u8),
        TableChange::drop_column("column_number_7"),
        TableChange::rename_index("by_first", "by_the_first_of_all"),
    ];
    let mut seen = [false; 2];
    for cut in 0..24u64 {
        let (storage, faults) = (StorageSet::memory(), Faults::new());
        let parts = open(storage.map(|device| faults.wrap(device)), small_options());
        let made = catalog(&parts);
        let before = made.create_table(definition("t", 30)).unwrap();
        let expected = altered(&before, &changes).definition;
        faults.power_off_after(cut % 6);
        let after = made.alter_table(&before, altered(&before, &changes));
        drop((made, parts));
        let parts = open(storage.cut(cut), small_options());
        let again = catalog(&parts);
        let found = reread(&again);
        let is_new = found.definition == expected;
        assert!(is_new || (found.definition == before.definition && after.is_err()));
        assert_eq!((found.older_layouts.len(), found.record.layout), (usize::from(is_new), 1 + u8::from(is_new)));
        seen[usize::from(is_new)] = true;
        // Whatever it left is in the way of no other change.
        let twice = again.alter_table(&found, altered(&found, &[TableChange::add_nullable("more", Type::U8)])).unwrap();
        let read = reread(&again);
        assert_eq!((read.definition, read.older_layouts), (twice.definition, twice.older_layouts));
    }
    assert_eq!(seen, [true; 2]);
}
