//! Definitions and layouts round trip; garbage is refused.

use super::super::testing::any_table;
use super::super::value::Value;
use super::*;
use proptest::prelude::*;

#[test]
fn indexes_keep_their_columns_when_others_go() {
    let columns = ColumnIds { ids: vec![0, 4, 2], next: 5 };
    let index =
        IndexDefinition { name: "i".to_string(), columns: vec![2.into(), 1.into()], covered: vec![0], unique: false };
    let kept = columns.with_ids(&index);
    assert_eq!((&kept.columns[..], &kept.covered[..]), (&[2.into(), 4.into()][..], &[0][..]));
    assert_eq!(columns.with_positions(&kept), Some(index));
    let fewer = ColumnIds { ids: vec![4, 0, 2], next: 5 };
    let found = fewer.with_positions(&kept).unwrap();
    assert_eq!((found.columns, found.covered), (vec![2.into(), 0.into()], vec![1]));
    assert_eq!(ColumnIds { ids: vec![4, 2], next: 5 }.with_positions(&kept), None);
    assert_eq!(ColumnIds { ids: vec![0, 2], next: 5 }.with_positions(&kept), None);
}

#[test]
fn a_default_that_is_no_value_of_its_column_is_refused() {
    for (ty, bytes) in [(Type::U16, &[1u8][..]), (Type::Text(4), b"\xff"), (Type::Text(1), b"ab")] {
        assert_eq!(stored_value(ty, bytes), None);
    }
    assert_eq!(stored_value(Type::U16, &[1, 0]), Some(Value::UInt(1)));
}

proptest! {
    #[test]
    fn definitions_round_trip(mut table in any_table(), auto in any::<bool>(), attachment in any::<Vec<u8>>()) {
        table.auto_increment = auto.then_some(0);
        table.attachment = attachment;
        let columns = ColumnIds::first(table.columns.len());
        let bytes = encode_definition(&table, &columns);
        prop_assert_eq!(decode_definition(&bytes).unwrap(), DefinitionRecord { definition: table, columns });
        (0..bytes.len()).for_each(|len| assert!(decode_definition(&bytes[..len]).is_err()));
    }

    #[test]
    fn layouts_round_trip(table in any_table(), first in any::<u8>()) {
        let column = |(i, column): (usize, &Column)| {
            LayoutColumn { id: u16::from(first) + i as u16, ty: column.ty, nullable: column.nullable }
        };
        let columns: Vec<LayoutColumn> = table.columns.iter().enumerate().map(column).collect();
        let bytes = encode_layout(&columns);
        prop_assert_eq!(decode_layout(&bytes).unwrap(), columns);
        (0..bytes.len()).for_each(|len| assert!(decode_layout(&bytes[..len]).is_err()));
    }

    #[test]
    fn garbage_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        for versioned in [false, true] {
            if versioned && !bytes.is_empty() {
                bytes[0] = 1;
            }
            let _ = (decode_definition(&bytes), decode_layout(&bytes));
        }
    }
}
