//! Rows of older layouts read, change and make keys as rows that were written in the present one.

use super::super::definition::{Column, IndexColumn, TableDefinition};
use super::super::definition_record::{ColumnIds, check_resolvable};
use super::super::key::KeyLayout;
use super::super::testing::{any_table, refs, row_of, same, value_of};
use super::super::types::Type;
use super::super::value::{Value, ValueRef};
use super::super::value_form::stored_bytes;
use super::*;
use crate::config::Collations;
use crate::error::Error;
use proptest::prelude::*;

/// The type that columns of this one were widened to.
fn wider(ty: Type) -> Type {
    match ty {
        Type::I8 => Type::I32,
        Type::I16 | Type::I32 => Type::I64,
        Type::U8 => Type::U16,
        Type::U16 | Type::U32 => Type::U64,
        Type::F32 => Type::F64,
        Type::Decimal(12, 2) => Type::Decimal(20, 4),
        Type::Text(max) => Type::Text(max * 1000),
        Type::Binary(max) => Type::Binary(max + 1),
        other => other,
    }
}

/// What is done to a column that is not the key.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Stays,
    Dropped,
    Widened,
    Nullable,
}

fn any_fate() -> impl Strategy<Value = Fate> {
    prop_oneof![Just(Fate::Stays), Just(Fate::Dropped), Just(Fate::Widened), Just(Fate::Nullable)]
}

/// A table with two layouts, the present one made by `fates` and by the columns of `added`.
struct Changed {
    old: RowLayout,
    definition: TableDefinition,
    layouts: RowLayouts,
    /// For each column that is left, its position before.
    kept: Vec<usize>,
}

fn changed(before: &TableDefinition, fates: &[Fate], added: &[(Type, Option<Value>)]) -> Changed {
    let first = ColumnIds::first(before.columns.len());
    let old_columns = present_columns(before, &first);
    let (mut definition, mut columns) = (before.clone(), ColumnIds { ids: Vec::new(), next: first.next });
    let fate = |i: usize| if i == 0 { Fate::Stays } else { fates[i % fates.len()] };
    let kept: Vec<usize> = (0..before.columns.len()).filter(|i| fate(*i) != Fate::Dropped).collect();
    definition.columns = kept.iter().map(|i| before.columns[*i].clone()).collect();
    columns.ids = kept.iter().map(|i| *i as u16).collect();
    for (column, i) in definition.columns.iter_mut().zip(&kept) {
        column.ty = if fate(*i) == Fate::Widened { wider(column.ty) } else { column.ty };
        column.nullable |= fate(*i) == Fate::Nullable;
    }
    for (n, (ty, default)) in added.iter().enumerate() {
        let nullable = default.is_none();
        let (name, default, collation) = (format!("new{n}"), default.clone(), None);
        definition.columns.push(Column { name, ty: *ty, nullable, default, collation });
        columns.ids.push(columns.next);
        columns.next += 1;
    }
    check_resolvable(&old_columns, &definition, &columns).unwrap();
    let resolved = |number, kept: &[LayoutColumn]| Arc::new(RowLayout::resolved(number, kept, &definition, &columns));
    let layouts = RowLayouts {
        present: resolved(2, &present_columns(&definition, &columns)),
        older: vec![resolved(1, &old_columns)],
        unknown: resolved(0, &[]),
    };
    Changed { old: RowLayout::new(before), definition, layouts, kept }
}

fn old_row(changed: &Changed, values: &[Value]) -> Vec<u8> {
    let mut bytes = Vec::new();
    changed.old.encode(&refs(values), None, &mut bytes).unwrap();
    bytes
}

fn present_row(changed: &Changed, values: &[ValueRef<'_>]) -> Vec<u8> {
    let mut bytes = Vec::new();
    changed.layouts.present().encode(values, None, &mut bytes).unwrap();
    bytes
}

fn any_added() -> impl Strategy<Value = Vec<(Type, Option<Value>)>> {
    let types = prop_oneof![Just(Type::U16), Just(Type::Text(9)), Just(Type::Decimal(38, 2)), Just(Type::F32)];
    let column = types.prop_flat_map(|ty| (Just(ty), prop::option::of(value_of(ty, false))));
    prop::collection::vec(
        column.prop_filter("fits", |(ty, value)| value.as_ref().is_none_or(|value| stored_bytes(*ty, value).is_some())),
        0..4,
    )
}

/// A table, a row of it, what becomes of its columns, and the columns added.
type Case = (TableDefinition, Vec<Value>, Vec<Fate>, Vec<(Type, Option<Value>)>);

fn table_row_and_fates() -> impl Strategy<Value = Case> {
    any_table().prop_flat_map(|table| {
        let row = row_of(&table);
        (Just(table), row, prop::collection::vec(any_fate(), 1..6), any_added())
    })
}

proptest! {
    #[test]
    fn a_row_of_an_older_layout_has_its_values_and_the_defaults(
        (table, values, fates, added) in table_row_and_fates(),
    ) {
        let changed = changed(&table, &fates, &added);
        let bytes = old_row(&changed, &values);
        let row = changed.layouts.read(&bytes).unwrap();
        row.verify().unwrap();
        let added_values = added.iter().map(|(_, default)| default.clone().unwrap_or_default());
        let expected: Vec<Value> = changed.kept.iter().map(|i| values[*i].clone()).chain(added_values).collect();
        for (i, (found, wanted)) in row.values().zip(&expected).enumerate() {
            prop_assert!(same(changed.definition.columns[i].ty, found, wanted.as_ref()), "{i}: {found:?} {wanted:?}");
        }
        // As a row that was written in the present layout: values, keys, and what an update makes of it.
        let present = present_row(&changed, &refs(&expected));
        let written = changed.layouts.read(&present).unwrap();
        let all: Vec<_> = (0..expected.len()).map(IndexColumn::from).collect();
        let key = KeyLayout::new(&changed.definition, &all, &Collations::default());
        prop_assert!(!key.differs(row, written) && !key.differs(written, row));
        let keys = [row, written].map(|row| {
            let mut out = Vec::new();
            key.encode_row(row, &mut out).unwrap();
            out
        });
        prop_assert_eq!(&keys[0], &keys[1]);
        let mut changes = Changes::new(changed.layouts.present());
        changes.put(0, expected[0].as_ref());
        let mut updated = Vec::new();
        changed.layouts.rebuild(&bytes, &changes, &mut updated).unwrap();
        prop_assert_eq!(updated, present);
    }

    #[test]
    fn garbage_of_any_layout_never_panics(
        (table, _, fates, added) in table_row_and_fates(),
        mut bytes in prop::collection::vec(any::<u8>(), 0..60),
        number in 0u8..4,
    ) {
        let changed = changed(&table, &fates, &added);
        if let Some(first) = bytes.first_mut() {
            *first = number;
        }
        let row = changed.layouts.row(&bytes);
        let all: Vec<_> = (0..row.columns()).map(IndexColumn::from).collect();
        let _ = (row.verify().is_ok(), row.values().count());
        let key = KeyLayout::new(&changed.definition, &all, &Collations::default());
        key.encode_row(row, &mut Vec::new()).unwrap();
        let is_known = bytes.first().is_some_and(|number| (1..=2).contains(number));
        prop_assert_eq!(changed.layouts.read(&bytes).is_ok(), is_known);
        if let Ok(row) = changed.layouts.to_row(&bytes) {
            prop_assert_eq!(row.values().count(), all.len());
        }
    }
}

#[test]
fn a_layout_that_is_not_known_is_damage() {
    let table = TableDefinition {
        name: "t".to_string(),
        columns: vec![Column { name: "a".to_string(), ty: Type::U8, nullable: false, default: None, collation: None }],
        primary_key: vec![0.into()],
        auto_increment: None,
        expires: None,
        long_keys: false,
        log_changes: false,
        indexes: Vec::new(),
        attachment: Vec::new(),
    };
    let changed = changed(&table, &[Fate::Stays], &[]);
    for bytes in [&[][..], &[0, 1], &[3, 1], &[255, 1]] {
        for error in [
            changed.layouts.read(bytes).map(drop),
            changed.layouts.to_row(bytes).map(drop),
            changed.layouts.row(bytes).verify(),
            changed.layouts.rebuild(bytes, &Changes::new(changed.layouts.present()), &mut Vec::new()),
        ] {
            assert!(matches!(&error, Err(Error::Corrupt(reason)) if reason.contains("layout")), "{error:?}");
        }
    }
    assert_eq!(changed.layouts.read(&[1, 9]).unwrap().u64(0), 9);
}

#[test]
fn layouts_that_cannot_be_read_are_refused() {
    let column = |ty, nullable| Column { name: "c".to_string(), ty, nullable, default: None, collation: None };
    let definition = |column| TableDefinition {
        name: "t".to_string(),
        columns: vec![column],
        primary_key: vec![0.into()],
        auto_increment: None,
        expires: None,
        long_keys: false,
        log_changes: false,
        indexes: Vec::new(),
        attachment: Vec::new(),
    };
    let (first, kept) = (ColumnIds::first(1), |ty, nullable| [LayoutColumn { id: 0, ty, nullable }]);
    assert!(check_resolvable(&kept(Type::U8, false), &definition(column(Type::U16, true)), &first).is_ok());
    assert!(check_resolvable(&kept(Type::U16, false), &definition(column(Type::U8, false)), &first).is_err());
    assert!(check_resolvable(&kept(Type::U8, true), &definition(column(Type::U8, false)), &first).is_err());
    assert!(check_resolvable(&[], &definition(column(Type::U8, false)), &first).is_err());
    assert!(check_resolvable(&[], &definition(column(Type::U8, true)), &first).is_ok());
}
