//! Bytes of a stored row and of a secondary entry.
//!
//! ```text
//! clustered value   flags u8 | 0 u8 | trx_id u48 | roll_ptr u48 | 0 u16 | payload
//! payload           the row; with OVERFLOW references to overflow pages stand behind it (`overflow_columns.rs`)
//! OverflowRef       length u32 | first overflow page u32 | stamp of the chain u64
//! secondary value   flags u8 | length of the index-column part of the key u16 | covered bytes
//! ```
//! Integers are little-endian. `trx_id` is the transaction that wrote this version; `roll_ptr` the undo record that
//! leads to the version before it. Covered bytes are columns of the row that the entry has in addition to its key. They
//! are those of the row's visible version if the entry certainly belongs to that version ([`crate::txn::read`]), and
//! undefined in a delete-marked entry.

use crate::error::{Error, Result};
use crate::page::PageBytes;
use crate::types::{PageNo, RollPtr, TxnId};

/// Bytes in front of the payload.
pub(crate) const ROW_HEADER_BYTES: usize = 16;
/// Bytes of a secondary entry's value in front of its covered bytes.
pub(crate) const ENTRY_VALUE_BYTES: usize = 3;
/// Flag of a row or entry: deleted, kept for older snapshots until purge.
pub(crate) const DELETE_MARKED: u8 = 1;
/// Flag of a row: columns of it are on overflow pages.
pub(crate) const OVERFLOW: u8 = 2;
/// Bytes of a reference to a chain of overflow pages.
pub(crate) const OVERFLOW_REF_BYTES: usize = 16;
/// Offset of its first-page field.
pub(crate) const OVERFLOW_REF_FIRST_AT: usize = 4;
/// Offset of `trx_id` in the header; it and `roll_ptr` are neighbours, 12 bytes together.
pub(crate) const TRX_ID_AT: usize = 2;
const ROLL_PTR_AT: usize = 8;

/// The first 16 bytes of a clustered value.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct RowHeader {
    /// [`DELETE_MARKED`], [`OVERFLOW`].
    pub flags: u8,
    /// The transaction that wrote this version.
    pub trx_id: TxnId,
    /// Undo record that leads to the version before.
    pub roll_ptr: RollPtr,
}

impl RowHeader {
    /// Reads the header of a clustered value.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the value is too short to have one.
    #[inline]
    pub(crate) fn decode(value: &[u8]) -> Result<RowHeader> {
        let Some(head) = value.first_chunk::<ROW_HEADER_BYTES>() else {
            return Err(Error::Corrupt(format!("a row of {} bytes has no room for its header", value.len())));
        };
        Ok(RowHeader {
            flags: head[0],
            trx_id: TxnId(get_u48(&head[TRX_ID_AT..])),
            roll_ptr: RollPtr(get_u48(&head[ROLL_PTR_AT..])),
        })
    }

    #[inline]
    pub(crate) fn encode(&self) -> [u8; ROW_HEADER_BYTES] {
        let mut head = [0; ROW_HEADER_BYTES];
        head[0] = self.flags;
        put_u48(&mut head[TRX_ID_AT..], self.trx_id.0);
        put_u48(&mut head[ROLL_PTR_AT..], self.roll_ptr.0);
        debug_assert!(RowHeader::decode(&head).is_ok_and(|read| read == *self), "{self:?} is not read as written");
        head
    }

    /// Whether the row is deleted in this version.
    #[inline]
    pub(crate) fn is_delete_marked(&self) -> bool {
        self.flags & DELETE_MARKED != 0
    }

    /// Whether columns of the row are on overflow pages.
    #[inline]
    pub(crate) fn is_overflow(&self) -> bool {
        self.flags & OVERFLOW != 0
    }
}

/// A reference to bytes on overflow pages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct OverflowRef {
    /// Number of bytes in the chain.
    pub total_bytes: u32,
    /// First page of the chain.
    pub first: PageNo,
    /// Each page of the chain carries it; no other chain has it.
    pub stamp: u64,
}

impl OverflowRef {
    pub(crate) fn read(bytes: &[u8; OVERFLOW_REF_BYTES]) -> OverflowRef {
        OverflowRef { total_bytes: bytes.u32_at(0), first: PageNo(bytes.u32_at(4)), stamp: bytes.u64_at(8) }
    }

    pub(crate) fn encode(&self) -> [u8; OVERFLOW_REF_BYTES] {
        let mut out = [0; OVERFLOW_REF_BYTES];
        out[..4].copy_from_slice(&self.total_bytes.to_le_bytes());
        out[4..8].copy_from_slice(&self.first.0.to_le_bytes());
        out[8..].copy_from_slice(&self.stamp.to_le_bytes());
        debug_assert_eq!(OverflowRef::read(&out), *self, "a reference is not read as it is written");
        out
    }
}

/// The header of the value of a live secondary entry whose key starts with `prefix_bytes` of index columns.
pub(crate) fn entry_header(prefix_bytes: usize) -> [u8; ENTRY_VALUE_BYTES] {
    debug_assert!(u16::try_from(prefix_bytes).is_ok(), "the columns of an entry have {prefix_bytes} bytes");
    let [low, high] = u16::try_from(prefix_bytes).unwrap_or(u16::MAX).to_le_bytes();
    [0, low, high]
}

/// A secondary entry's value, decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EntryValue<'a> {
    /// Whether the entry is delete-marked.
    pub delete_marked: bool,
    /// Length of the index-column part of its key.
    pub prefix_bytes: usize,
    /// The covered columns of its row.
    pub covered: &'a [u8],
}

impl<'a> EntryValue<'a> {
    /// Reads the value of a secondary entry whose key has `key_bytes`.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when it cannot be one.
    #[inline]
    pub(crate) fn decode(value: &'a [u8], key_bytes: usize) -> Result<EntryValue<'a>> {
        let Some((&[flags, low, high], covered)) = value.split_first_chunk() else {
            return Err(Error::Corrupt(format!("a secondary entry with a value of {} bytes", value.len())));
        };
        let prefix_bytes = usize::from(u16::from_le_bytes([low, high]));
        if prefix_bytes > key_bytes {
            return Err(Error::Corrupt(format!(
                "a secondary key of {key_bytes} bytes, {prefix_bytes} of them columns"
            )));
        }
        Ok(EntryValue { delete_marked: flags & DELETE_MARKED != 0, prefix_bytes, covered })
    }
}

/// Reads 48 bits; `bytes` has at least 6.
#[inline]
pub(crate) fn get_u48(bytes: &[u8]) -> u64 {
    u64::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3], bytes[4], bytes[5], 0, 0])
}

/// Writes the low 48 bits of `value`; `bytes` has at least 6.
#[inline]
pub(crate) fn put_u48(bytes: &mut [u8], value: u64) {
    debug_assert!(value < 1 << 48, "{value} has more than 48 bits");
    bytes[..6].copy_from_slice(&value.to_le_bytes()[..6]);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_survive_a_round_trip() {
        let header =
            RowHeader { flags: 3, trx_id: TxnId(0xffff_1234_5678), roll_ptr: RollPtr::new(PageNo(u32::MAX), 7) };
        assert_eq!(RowHeader::decode(&header.encode()).unwrap(), header);
        assert!(header.is_delete_marked() && header.is_overflow());
        assert!(RowHeader::decode(&[0; 15]).is_err());
    }

    #[test]
    fn references_and_entry_values_survive_a_round_trip() {
        let reference = OverflowRef { total_bytes: 8 << 20, first: PageNo(77), stamp: u64::MAX - 5 };
        assert_eq!(OverflowRef::read(&reference.encode()), reference);
        let bytes = [&entry_header(300)[..], b"more"].concat();
        let value = EntryValue::decode(&bytes, 300).unwrap();
        assert_eq!(value, EntryValue { delete_marked: false, prefix_bytes: 300, covered: b"more" });
        assert!(EntryValue::decode(&entry_header(300), 299).is_err());
        assert!(EntryValue::decode(&[0; 2], 299).is_err());
    }
}
