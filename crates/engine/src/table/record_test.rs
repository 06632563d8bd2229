//! Catalog records round trip, and what is no record is refused.

use super::super::definition::{MAX_COVERED_COLUMNS, MAX_INDEX_COLUMNS, MAX_NAME_BYTES};
use super::*;
use proptest::prelude::*;

fn tree() -> TreeRecord {
    TreeRecord { id: IndexId(17), segment: SegmentId(18), root: PageNo(19), max_key_bytes: 3584 }
}

fn index(unique: bool) -> IndexRecord {
    let columns = vec![
        IndexColumn { column: 3, descending: true, prefix_bytes: None },
        0.into(),
        IndexColumn { column: 1016, descending: false, prefix_bytes: Some(3072) },
    ];
    let definition = IndexDefinition { name: "by_näme".to_string(), columns, covered: vec![1, 1015], unique };
    IndexRecord { state: ObjectState::Building, tree: tree(), definition }
}

#[test]
fn records_round_trip() {
    let counters = IdCounters { next_table: 7, next_index: u32::MAX, next_create: 1 << 40 };
    assert_eq!(IdCounters::decode(&counters.encode()).unwrap(), counters);
    let table = TableRecord {
        state: ObjectState::Dropping,
        auto_increment_bound: u64::MAX,
        create_id: u64::MAX - 1,
        definition_bytes: 900,
        definition_copy: DefinitionCopy::Second,
        layout: 255,
        clustered: tree(),
        overflow: SegmentId(20),
    };
    assert_eq!(TableRecord::decode(&table.encode()).unwrap(), table);
    for unique in [false, true] {
        assert_eq!(IndexRecord::decode(&index(unique).encode()).unwrap(), index(unique));
    }
}

#[test]
fn keys_round_trip_and_sort_by_table() {
    let keys = [
        RecordKey::Counters,
        RecordKey::Table(TableId(1)),
        RecordKey::Part { table: TableId(1), copy: DefinitionCopy::First, part: 0 },
        RecordKey::Part { table: TableId(1), copy: DefinitionCopy::First, part: 300 },
        RecordKey::Part { table: TableId(1), copy: DefinitionCopy::Second, part: 0 },
        RecordKey::Index(TableId(1), IndexId(16)),
        RecordKey::Statistics(TableId(1), None),
        RecordKey::Statistics(TableId(1), Some(IndexId(16))),
        RecordKey::Layout { table: TableId(1), layout: 1, part: 700 },
        RecordKey::Layout { table: TableId(1), layout: 255, part: 0 },
        RecordKey::Table(TableId(256)),
    ];
    assert!(keys.map(RecordKey::encode).is_sorted());
    for key in keys {
        assert_eq!(RecordKey::decode(&key.encode()).unwrap(), key);
    }
    let unknown: [&[u8]; 5] =
        [&[0; 8], &[0; 10], &[0, 0, 0, 1, 9, 0, 0, 0, 0], &[0, 0, 0, 0, 1, 0, 0, 0, 0], &[0, 0, 0, 1, 4, 1, 0, 0, 0]];
    for wrong in unknown {
        assert!(RecordKey::decode(wrong).is_err());
    }
}

#[test]
fn a_newer_version_says_so() {
    let mut bytes = index(true).encode();
    bytes[0] = 2;
    let error = IndexRecord::decode(&bytes).unwrap_err();
    assert!(matches!(&error, Error::Incompatible(text) if text.contains("version 2")), "{error}");
}

#[test]
fn the_longest_records_fit_their_trees() {
    let name = "n".repeat(MAX_NAME_BYTES);
    let definition = IndexDefinition {
        name,
        columns: vec![0.into(); MAX_INDEX_COLUMNS],
        covered: vec![0; MAX_COVERED_COLUMNS],
        unique: true,
    };
    let longest = IndexRecord { state: ObjectState::Ready, tree: tree(), definition };
    let limit = crate::page::node::TreeLimits::usual(4096).max_value_bytes(9);
    assert!(longest.encode().len() <= limit && PART_BYTES <= limit);
}

#[test]
fn every_cut_and_every_tail_is_refused() {
    let bytes = index(true).encode();
    (0..bytes.len()).for_each(|len| assert!(IndexRecord::decode(&bytes[..len]).is_err()));
    assert!(IndexRecord::decode(&[&bytes[..], &[0]].concat()).is_err());
}

proptest! {
    #[test]
    fn garbage_never_panics(mut bytes in prop::collection::vec(any::<u8>(), 0..80)) {
        for versioned in [false, true] {
            if versioned && !bytes.is_empty() {
                bytes[0] = VERSION;
            }
            let _ = (IdCounters::decode(&bytes), TableRecord::decode(&bytes), IndexRecord::decode(&bytes));
            let _ = RecordKey::decode(&bytes);
        }
    }
}
