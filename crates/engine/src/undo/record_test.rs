//! Records read back as they were written, and damaged ones are refused.

use super::*;
use crate::row::format::OVERFLOW_REF_FIRST_AT;
use crate::undo::new_record::*;

fn one(bytes: &[u8]) -> UndoRecord<'_> {
    UndoRecord::parse(bytes).unwrap().unwrap()
}

#[test]
fn headers() {
    let mut bytes = Vec::new();
    put_header(&mut bytes, TxnId(0x1234_5678_9abc));
    assert_eq!(bytes.len(), HEADER_RECORD_BYTES);
    assert_eq!(one(&bytes).header().unwrap(), (TxnId(0x1234_5678_9abc), TxnState::Active, 0));
    bytes[HEADER_STATE_AT] = TxnState::Committed as u8;
    bytes[HEADER_TRX_NO_AT..HEADER_TRX_NO_AT + 8].copy_from_slice(&99u64.to_le_bytes());
    assert_eq!(one(&bytes).header().unwrap(), (TxnId(0x1234_5678_9abc), TxnState::Committed, 99));
    bytes[HEADER_STATE_AT] = 77;
    assert!(one(&bytes).header().is_err());
}

#[test]
fn rows() {
    let mut bytes = Vec::new();
    put_insert(&mut bytes, TableId(7), b"key");
    assert_eq!(one(&bytes).row().unwrap(), (TableId(7), &b"key"[..]));
    assert!(!one(&bytes).needs_purge() && one(&bytes).change().is_err());
    bytes.clear();
    let old = RowHeader { flags: 0, trx_id: TxnId(5), roll_ptr: RollPtr::new(PageNo(9), 64) };
    let (old_row, mut row) = (b"name=Ada;n=1;".to_vec(), b"name=Grace;n=1;".to_vec());
    let middle = DiffRange::of(&old_row, &row);
    let old_middle = middle.cut(&old_row);
    let mut entries = Vec::new();
    put_entry(&mut entries, IndexId(3), b"Ada");
    put_entry(&mut entries, IndexId(9), b"");
    let change = NewChange {
        delete: false,
        table: TableId(7),
        key: b"key",
        old,
        entries_changed: true,
        middle,
        old_middle,
        chains: &[],
        entries: Some(&entries),
    };
    put_change(&mut bytes, &change);
    let record = one(&bytes);
    assert_eq!((record.row().unwrap(), record.bytes), ((TableId(7), &b"key"[..]), bytes.len()));
    assert!(record.needs_purge() && record.entries_changed());
    let change = record.change().unwrap();
    assert_eq!((change.old, change.key), (old, &b"key"[..]));
    change.apply(&mut row).unwrap();
    assert_eq!(row, old_row);
    let mut left = change.entries.unwrap();
    assert_eq!(next_entry(&mut left).unwrap(), Some((IndexId(3), &b"Ada"[..])));
    assert_eq!(next_entry(&mut left).unwrap(), Some((IndexId(9), &b""[..])));
    assert_eq!(next_entry(&mut left).unwrap(), None);
    assert!(next_entry(&mut &entries[..8]).is_err(), "cut short");
    bytes[KIND_AT] |= DEAD;
    assert!(one(&bytes).dead && !one(&bytes).needs_purge());
}

#[test]
fn overflow_references_can_be_found_in_place() {
    let mut bytes = Vec::new();
    let reference = |first: u32| OverflowRef { total_bytes: 1 << 20, first: PageNo(first), stamp: 99 };
    let old = RowHeader { flags: OVERFLOW, ..RowHeader::default() };
    put_change(
        &mut bytes,
        &NewChange {
            delete: false,
            table: TableId(1),
            key: b"k",
            old,
            entries_changed: true,
            middle: DiffRange::WHOLE,
            old_middle: b"old",
            chains: &[reference(0x0102_0304), reference(7)],
            entries: Some(b""),
        },
    );
    let change = one(&bytes).change().unwrap();
    let chains: Vec<_> = change.chains().collect();
    assert_eq!(chains.iter().map(|(_, chain)| *chain).collect::<Vec<_>>(), [reference(0x0102_0304), reference(7)]);
    assert_eq!((change.old_middle, change.entries), (&b"old"[..], Some(&b""[..])));
    assert!(one(&bytes).needs_purge());
    let first_at = chains[0].0 + OVERFLOW_REF_FIRST_AT;
    assert_eq!(bytes[first_at..][..4], [4, 3, 2, 1]);
    bytes[first_at..][..4].fill(0);
    assert_eq!(one(&bytes).change().unwrap().chains().count(), 1, "the first is freed");
    bytes.clear();
    put_overflow(&mut bytes, TableId(3), PageNo(0x0102_0304), 99);
    assert_eq!(bytes.len(), OVERFLOW_RECORD_BYTES);
    assert_eq!(bytes[OVERFLOW_FIRST_PAGE_AT..][..4], [4, 3, 2, 1]);
    assert_eq!(one(&bytes).overflow().unwrap(), (TableId(3), PageNo(0x0102_0304), 99));
}

/// Makes the lengths at both ends of a record, whose end was changed, those that it has.
fn with_length(record: &[u8]) -> Vec<u8> {
    let length = (record.len() as u16 + 2).to_le_bytes();
    [&length, &record[2..], &length].concat()
}

fn mark(format_id: i32, global: &[u8], branch: &[u8]) -> PreparedMark {
    PreparedMark { xid: Xid::new(format_id, global, branch).unwrap(), unix_us: u64::MAX - 1, records: 1 << 40 }
}

#[test]
fn names_of_prepared_transactions() {
    for mark in [mark(1, b"order-17", b"stock"), mark(i32::MIN, b"g", b""), mark(i32::MAX, &[255; 64], &[0; 64])] {
        let mut bytes = Vec::new();
        put_xid(&mut bytes, &mark);
        let record = one(&bytes);
        assert_eq!((record.kind, record.bytes, record.xid().unwrap()), (UndoKind::Xid, bytes.len(), mark));
        assert!(!record.needs_purge() && record.row().is_err() && record.change().is_err());
        assert!(record.header().is_err() && record.overflow().is_err());
        let inner = &bytes[..bytes.len() - 2];
        for cut in 4..inner.len() {
            assert!(one(&with_length(&inner[..cut])).xid().is_err(), "cut after {cut} bytes");
        }
        assert!(one(&with_length(&[inner, &[0]].concat())).xid().is_err(), "a byte too many");
    }
    let mut row = Vec::new();
    put_insert(&mut row, TableId(7), &[1; 40]);
    assert!(one(&row).xid().is_err(), "of another kind");
}

#[test]
fn garbage_is_no_name() {
    let mut bytes = Vec::new();
    put_xid(&mut bytes, &mark(1, &[1; 64], &[2; 64]));
    for (at, wrong) in [(20, &[255; 4][..]), (24, &[0, 128]), (24, &[65, 63]), (24, &[63, 65]), (24, &[255, 255])] {
        let mut broken = bytes.clone();
        broken[at..at + wrong.len()].copy_from_slice(wrong);
        assert!(one(&broken).xid().is_err(), "{wrong:?} at {at}");
    }
    // A record that is taken for a name is the record of that name.
    for at in 4..bytes.len() - 2 {
        for value in 0..=255 {
            let mut other = bytes.clone();
            other[at] = value;
            let mut again = Vec::new();
            if let Ok(mark) = one(&other).xid() {
                put_xid(&mut again, &mark);
                assert_eq!(again, other);
            }
        }
    }
}

#[test]
fn broken_records_are_refused() {
    assert!(UndoRecord::parse(&[]).unwrap().is_none() && UndoRecord::parse(&[0, 0, 9, 9]).unwrap().is_none());
    let mut bytes = Vec::new();
    put_insert(&mut bytes, TableId(7), b"key");
    for at in 0..bytes.len() {
        for value in [0, 1, 5, 0x7f, 0xff] {
            let mut broken = bytes.clone();
            broken[at] = value;
            if let Ok(Some(record)) = UndoRecord::parse(&broken) {
                // Whatever it says, it stays within its bytes.
                let _ = (record.row(), record.change().is_ok(), record.header(), record.overflow());
            }
        }
        assert!(!matches!(UndoRecord::parse(&bytes[..at]), Ok(Some(_))));
    }
}
