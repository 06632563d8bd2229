//! Properties that hold when arbitrary bytes are decoded: each function takes any bytes and panics if a law is broken.
//!
//! Laws
//! 1. Nothing panics on any bytes; bytes that are not a record are an error.
//! 2. What was decoded is encoded to something that decodes to the same.
//! 3. A page operation either fits its page, and then changes the records as its name says, or leaves every byte of it.
//! 4. A page that passes its check is in order: each key is found in its slot.
//! 5. Keys compare as bytes as the values compare in them.

use crate::config::Collations;
use crate::inspect::operations;
use crate::page::node::{self, LeafChange};
use crate::page::{Node, PageOp, PageType, header};
use crate::row::format::{EntryValue, RowHeader, entry_header};
use crate::table::definition_record::{decode_definition, decode_layout, encode_definition, encode_layout};
use crate::table::key::KeyLayout;
use crate::table::record::{IdCounters, IndexRecord, RecordKey, TableRecord};
use crate::table::statistics::StoredIndexStatistics;
use crate::table::{IndexColumn, RowLayout, RowRef, TableDefinition, Type, Value, ValueRef};
use crate::txn::overflow_columns::{OverflowRow, put_refs};
use crate::types::PageNo;
use crate::undo::record::{UndoRecord, next_entry};
use std::cmp::Ordering;
use std::collections::BTreeMap;

type Records = Vec<(Vec<u8>, Vec<u8>)>;

/// The records of a tree page that passes its check.
fn records(page: &[u8]) -> Option<Records> {
    node::check(page, PageNo(1)).ok()?;
    let node = Node::new(page);
    Some((0..node.count()).map(|slot| (node.key(slot), node.value(slot).to_vec())).collect())
}

/// Decodes a redo operation from the start of `input` and applies it to the page; returns how many bytes it took.
pub fn operation(page: &mut [u8], input: &[u8]) -> Option<usize> {
    let _ = operations(input);
    let (page_no, op, used) = PageOp::decode(input).ok()?;
    let mut encoded = Vec::new();
    op.encode(page_no, &mut encoded);
    let again = PageOp::decode(&encoded).expect("what was encoded decodes");
    assert_eq!(again, (page_no, op, encoded.len()), "law 2");
    let (before, old) = (records(page), page.to_vec());
    match op.apply(page) {
        Err(_) => assert!(page == &old[..], "law 3: {} failed and changed its page", op.name()),
        Ok(()) => {
            let expected = before.and_then(|before| after(&op, &old, before));
            if let (Some(expected), Some(found)) = (expected, records(page)) {
                assert_eq!(found, expected, "law 3: {}", op.name());
            }
        }
    }
    Some(used)
}

/// The records that an operation on records makes of these; `None` for an operation of another kind.
fn after(op: &PageOp<'_>, page: &[u8], mut records: Records) -> Option<Records> {
    match *op {
        PageOp::NodeFormat { .. } => records.clear(),
        PageOp::NodeInsert { slot, key, value } => records.insert(slot.into(), (key.to_vec(), value.to_vec())),
        PageOp::NodeRemove { slot } => drop(records.remove(slot.into())),
        PageOp::NodeSplice { slot, at, remove, bytes } => {
            let from = usize::from(at);
            records[usize::from(slot)].1.splice(from..from + usize::from(remove), bytes.iter().copied());
        }
        PageOp::NodeRefence { from, to, .. } => records = records.drain(usize::from(from)..to.into()).collect(),
        PageOp::NodeSetChild { slot, child } if usize::from(slot) < records.len() => {
            records[usize::from(slot)].1 = child.0.to_le_bytes().to_vec();
        }
        PageOp::NodeSetChild { .. } => {}
        PageOp::LeafChanges { changes, .. } => return changed(changes, records),
        // Packed records lack the page's prefix.
        PageOp::NodeAppend { packed } => {
            let mut target = page.to_vec();
            node::append(&mut target, packed).ok()?;
            let all = self::records(&target)?;
            assert!(all.starts_with(&records), "law 3: append keeps what was there");
            return Some(all);
        }
        _ => return None,
    }
    Some(records)
}

fn changed(changes: &[u8], records: Records) -> Option<Records> {
    let mut records: BTreeMap<Vec<u8>, Vec<u8>> = records.into_iter().collect();
    for change in node::changes(changes) {
        match change.ok()? {
            LeafChange::Put { key, value } => drop(records.insert(key.to_vec(), value.to_vec())),
            LeafChange::Remove { key } => drop(records.remove(key)),
            LeafChange::Flag { key, flag } => {
                if let Some(value) = records.get_mut(key) {
                    *value.first_mut()? = flag;
                }
            }
        }
    }
    Some(records.into_iter().collect())
}

/// Reads the page in every way in which a tree reads it, and looks for `key`.
pub fn page(page: &[u8], key: &[u8]) {
    let _ = header::verify(page, PageNo(1));
    let is_sound = node::check(page, PageNo(1)).is_ok();
    let node = Node::new(page);
    let (found, count) = (node.search(key), node.count());
    let _ = (node.covers(key), node.is_before(key), node::covers(page, key), node.lower(), node.upper());
    let slots = [node::child_slot_covering(page, key), node::child_slot_before(page, key)];
    for slot in slots {
        let _ = (node::child_at(page, slot), node::fences_child(page, slot, page));
    }
    let mut before: Option<Vec<u8>> = None;
    for slot in 0..count.min(page.len()) {
        let (own, _) = (node.key(slot), node.value(slot));
        if is_sound {
            assert_eq!(node.search(&own), Ok(slot), "law 4");
            assert!(before.as_ref().is_none_or(|before| *before < own), "law 4: slot {slot} is in order");
            match own[..].cmp(key) {
                Ordering::Less => assert!(found.map_or_else(|at| at > slot, |at| at > slot), "law 4"),
                Ordering::Equal => assert_eq!(found, Ok(slot), "law 4"),
                Ordering::Greater => assert!(found.map_or_else(|at| at <= slot, |at| at < slot), "law 4"),
            }
        }
        before = Some(own);
    }
}

/// A page with the header of a tree page, or of another type.
pub fn format_page(page: &mut [u8], page_type: u8, level: u8, owner: u32) {
    let page_type = PageType::from_u8(page_type % 9).unwrap_or(PageType::Leaf);
    PageOp::Format { page_type, level, owner }.apply(page).expect("a format fits every page");
}

/// Decodes catalog records.
pub fn catalog(key: &[u8], value: &[u8]) {
    if let Ok(key) = RecordKey::decode(key) {
        assert_eq!(RecordKey::decode(&key.encode()).ok(), Some(key), "law 2");
    }
    if let Ok(found) = IdCounters::decode(value) {
        assert_eq!(found.encode(), value, "law 2");
    }
    if let Ok(found) = TableRecord::decode(value) {
        assert_eq!(found.encode(), value, "law 2");
    }
    if let Ok(found) = StoredIndexStatistics::decode(value) {
        assert_eq!(found.encode(), value, "law 2");
    }
    if let Ok(found) = decode_layout(value) {
        assert_eq!(encode_layout(&found), value, "law 2");
    }
    if let Ok(found) = IndexRecord::decode(value) {
        assert_eq!(IndexRecord::decode(&found.encode()).ok(), Some(found), "law 2");
    }
}

/// Decodes a table's definition; returns it if it is valid.
pub fn definition(bytes: &[u8]) -> Option<TableDefinition> {
    let found = decode_definition(bytes).ok()?;
    found.definition.validate().ok()?;
    let again = encode_definition(&found.definition, &found.columns);
    // As bytes: a default can be a number that is not equal to itself.
    assert_eq!(again, bytes, "law 2");
    Some(found.definition)
}

/// Decodes undo records, one after another, and what they hold.
pub fn undo(mut bytes: &[u8], payload: &[u8]) {
    while let Ok(Some(record)) = UndoRecord::parse(bytes) {
        let _ = (record.header().is_ok(), record.row().is_ok(), record.overflow().is_ok());
        if let Ok(change) = record.change() {
            let _ = change.chains().count();
            let mut rest = change.entries.unwrap_or(&[]);
            while let Ok(Some(_)) = next_entry(&mut rest) {}
            let mut changed = payload.to_vec();
            let _ = change.apply(&mut changed);
        }
        bytes = &bytes[record.bytes..];
    }
}

/// Decodes what is in front of a row, and what is in its place.
pub fn stored(bytes: &[u8], key_bytes: usize) {
    if let Ok(header) = RowHeader::decode(bytes) {
        assert_eq!(RowHeader::decode(&header.encode()).ok(), Some(header), "law 2");
    }
    if let Ok(row) = OverflowRow::decode(bytes) {
        let mut again = row.row.to_vec();
        put_refs(&row.refs().collect::<Vec<_>>(), &mut again);
        assert_eq!(again, bytes, "law 2");
    }
    if let Ok(entry) = EntryValue::decode(bytes, key_bytes) {
        assert!(entry.prefix_bytes <= key_bytes);
        let [_, low, high] = entry_header(entry.prefix_bytes);
        assert_eq!([&[bytes[0], low, high], entry.covered].concat(), bytes, "law 2");
    }
}

/// Decodes bytes as a row of a table with this definition; returns the values of a row that verifies.
pub fn row(definition: &TableDefinition, bytes: &[u8]) -> Option<Vec<Value>> {
    let layout = RowLayout::new(definition);
    let row = RowRef::new(&layout, bytes);
    let values: Vec<Value> = row.values().map(ValueRef::to_value).collect();
    let _ = values.iter().map(|value| value.as_ref().to_string().len()).sum::<usize>();
    row.verify().ok()?;
    let columns = || definition.columns.iter();
    // Floats have one form of each value and decimals have bounds, which no row that was stored breaks.
    if !columns().any(|column| matches!(column.ty, Type::F32 | Type::F64 | Type::Decimal(..))) {
        assert_eq!(stored_row(definition, &values).as_deref(), Some(bytes), "law 2");
    }
    Some(values)
}

/// The bytes of a row, if the values fit.
pub fn stored_row(definition: &TableDefinition, values: &[Value]) -> Option<Vec<u8>> {
    let (layout, mut bytes) = (RowLayout::new(definition), Vec::new());
    let values: Vec<ValueRef<'_>> = values.iter().map(Value::as_ref).collect();
    layout.encode(&values, None, &mut bytes).ok()?;
    let row = RowRef::new(&layout, &bytes);
    row.verify().expect("a row that was encoded verifies");
    Some(bytes)
}

/// Decodes a key of these columns; gives its values.
pub fn key(definition: &TableDefinition, columns: &[IndexColumn], bytes: &[u8]) -> Option<Vec<Value>> {
    let layout = KeyLayout::new(definition, columns, &Collations::default());
    let (values, used) = layout.decode(bytes).ok()?;
    assert!(used <= bytes.len());
    Some(values)
}

/// Compares two keys of a table's primary key: as bytes and by their values, which `compare` orders.
pub fn order(definition: &TableDefinition, rows: [&[Value]; 2], compare: impl Fn(&Value, &Value) -> Ordering) {
    let columns = &definition.primary_key;
    let layout = KeyLayout::new(definition, columns, &Collations::default());
    let rows = rows.map(|row| columns.iter().map(|column| row[column.column].clone()).collect::<Vec<Value>>());
    let encoded = rows.each_ref().map(|row| {
        let values: Vec<ValueRef<'_>> = row.iter().map(Value::as_ref).collect();
        let mut key = Vec::new();
        layout.encode_full(definition, &values, &mut key).ok().map(|()| key)
    });
    let [Some(a), Some(b)] = encoded else { return };
    for (key, row) in [(&a, &rows[0]), (&b, &rows[1])] {
        let (values, used) = layout.decode(key).expect("a key that was encoded decodes");
        assert_eq!(used, key.len(), "law 2");
        assert!(values.iter().zip(row).all(|(x, y)| compare(x, y) == Ordering::Equal), "law 2: {values:?} {row:?}");
    }
    let by_part = columns.iter().zip(rows[0].iter().zip(&rows[1])).map(|(part, (x, y))| match part.descending {
        true => compare(y, x),
        false => compare(x, y),
    });
    let by_value = by_part.into_iter().find(|order| order.is_ne());
    assert_eq!(a.cmp(&b), by_value.unwrap_or(Ordering::Equal), "law 5: {rows:?}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::IndexId;

    #[test]
    fn random_operations_on_a_leaf_break_no_law() {
        let mut rng = fastrand::Rng::with_seed(7);
        let mut leaf = vec![0; 4096];
        format_page(&mut leaf, PageType::Leaf as u8, 0, IndexId(1).0);
        let mut format = Vec::new();
        PageOp::NodeFormat { lower: None, upper: None, upper_child: PageNo(0) }.encode(PageNo(1), &mut format);
        operation(&mut leaf, &format).unwrap();
        let mut applied = 0;
        for _ in 0..3000 {
            let key: Vec<u8> = (0..rng.usize(..4)).map(|_| rng.u8(..3)).collect();
            let slot = rng.u16(..8);
            let op = match rng.u8(..3) {
                0 | 1 => PageOp::NodeInsert { slot, key: &key, value: &[1, 2, 3] },
                _ => PageOp::NodeRemove { slot },
            };
            let (mut bytes, before) = (Vec::new(), leaf.clone());
            op.encode(PageNo(1), &mut bytes);
            operation(&mut leaf, &bytes).unwrap();
            match node::check(&leaf, PageNo(1)) {
                Ok(()) => applied += usize::from(leaf != before),
                Err(_) => leaf = before,
            }
            page(&leaf, &key);
        }
        assert!(applied > 100, "{applied}");
    }

    #[test]
    #[should_panic(expected = "law 5")]
    fn a_law_that_is_broken_is_noticed() {
        let definition = TableDefinition {
            name: "t".into(),
            columns: vec![crate::Column {
                name: "a".into(),
                ty: Type::U8,
                nullable: false,
                default: None,
                collation: None,
            }],
            primary_key: vec![0.into()],
            auto_increment: None,
            expires: None,
            long_keys: false,
            log_changes: false,
            indexes: Vec::new(),
            attachment: Vec::new(),
        };
        let rows = [[Value::UInt(1)], [Value::UInt(2)]];
        order(&definition, [&rows[0], &rows[1]], |a, b| if a == b { Ordering::Equal } else { Ordering::Greater });
    }
}
