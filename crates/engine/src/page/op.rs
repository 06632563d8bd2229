//! Page operations: all changes of pages, and their form in the redo log.
//! Forward processing and recovery change a page by the same `apply`.
//!
//! ```text
//! record = tag u8 { kind: low 4 bits, 0x40 = has a lower fence, 0x80 = has an upper fence }
//!          page_no, then the operation's numbers (all variable-length), then its byte strings
//! ```
//!
//! Rules
//! 1. `apply` depends on the page's bytes and the operation alone, and checks before it changes.
//! 2. `decode` accepts any bytes: a truncated record or a value out of range is an error.
//! 3. The first [`MAX_TRX_ID_OFFSET`] bytes of a page (checksum, place, LSN, type, level, owner) change only through
//!    `Format`.

use super::PageType;
use super::bytes::{PageBytes, put_u64};
use super::header::{self, MAX_TRX_ID_OFFSET};
use super::node::{self, Fences, Misfit};
use super::varint::{self, VarintHeader, VarintReader};
use crate::error::{Error, Result};
use crate::types::PageNo;

/// One change of one page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageOp<'a> {
    /// Zero the page and write its header. Recovery need not read the page before this.
    Format {
        /// The new type of the page.
        page_type: PageType,
        /// Level in the tree, 0 = leaf.
        level: u8,
        /// Index id of a tree page, segment of others.
        owner: u32,
    },
    /// Overwrite bytes in place.
    Write {
        /// Where, from the start of the page; at least [`MAX_TRX_ID_OFFSET`].
        offset: u16,
        /// The new bytes.
        bytes: &'a [u8],
    },
    /// Set bits of the little-endian u64 at `offset`.
    SetBits {
        /// Where, from the start of the page.
        offset: u16,
        mask: u64,
    },
    /// Clear bits of the little-endian u64 at `offset`.
    ClearBits {
        /// Where, from the start of the page.
        offset: u16,
        mask: u64,
    },
    /// Make the page an empty node with these fences (`None` = infinite). Needs `Format` before.
    NodeFormat {
        /// First key the page may hold.
        lower: Option<&'a [u8]>,
        /// First key beyond the page.
        upper: Option<&'a [u8]>,
        /// The right-most child of an inner page, 0 for a leaf.
        upper_child: PageNo,
    },
    /// Insert a record at `slot`.
    NodeInsert {
        /// Its place in key order.
        slot: u16,
        /// The whole key.
        key: &'a [u8],
        value: &'a [u8],
    },
    /// Remove the record at `slot`.
    NodeRemove { slot: u16 },
    /// In the value of `slot`: replace `remove` bytes at `at` with `bytes`.
    NodeSplice {
        /// The record.
        slot: u16,
        /// First byte within the value.
        at: u16,
        /// Bytes taken out.
        remove: u16,
        bytes: &'a [u8],
    },
    /// Append records after the last one.
    NodeAppend {
        /// Records as [`pack_record`] packs them.
        packed: &'a [u8],
    },
    /// Keep the records `from..to` only and give the node new fences, narrower or wider.
    NodeRefence {
        /// First record kept.
        from: u16,
        /// First record dropped after those kept.
        to: u16,
        /// New lower fence.
        lower: Option<&'a [u8]>,
        /// New upper fence.
        upper: Option<&'a [u8]>,
        /// New right-most child of an inner page, 0 for a leaf.
        upper_child: PageNo,
    },
    /// Change records of a leaf by key, in order, as [`node::LeafChange`] encodes them; raises the leaf's max_trx_id.
    LeafChanges {
        max_trx_id: u64,
        /// Give the page the form that depends on its records alone (the list may have been applied before).
        canonical: bool,
        changes: &'a [u8],
    },
    /// Set a child pointer of an inner page.
    NodeSetChild {
        /// The record; the record count stands for the upper child.
        slot: u16,
        child: PageNo,
    },
    /// Changes nothing: it records the time of the mini-transaction, in microseconds since 1970, and the transaction
    /// that it commits; 0 if none.
    CommitTime { trx_id: u64, unix_us: u64 },
}

const FORMAT: u8 = 1;
const WRITE: u8 = 2;
const SET_BITS: u8 = 3;
const CLEAR_BITS: u8 = 4;
const NODE_FORMAT: u8 = 5;
const NODE_INSERT: u8 = 6;
const NODE_REMOVE: u8 = 7;
const NODE_SPLICE: u8 = 8;
const NODE_APPEND: u8 = 9;
const NODE_REFENCE: u8 = 10;
const NODE_SET_CHILD: u8 = 11;
const LEAF_CHANGES: u8 = 12;
const COMMIT_TIME: u8 = 13;
const KIND_MASK: u8 = 0x0f;
const HAS_LOWER: u8 = 0x40;
const HAS_UPPER: u8 = 0x80;
const CANONICAL: u8 = 0x40;

/// Longest record without its byte strings.
const HEADER_MAX_BYTES: usize = 32;

/// Appends a record to the packed form of [`PageOp::NodeAppend`]. `suffix` is the key without the target node's prefix.
pub(crate) fn pack_record(packed: &mut Vec<u8>, suffix: &[u8], value: &[u8]) {
    let longest = suffix.len().max(value.len());
    debug_assert!(longest <= usize::from(u16::MAX), "a packed record with {longest} bytes, which is not read again");
    varint::put(packed, suffix.len() as u64);
    varint::put(packed, value.len() as u64);
    packed.extend_from_slice(suffix);
    packed.extend_from_slice(value);
}

/// A header being encoded: tag and page number first.
#[inline(always)]
fn start(tag: u8, page_no: PageNo) -> VarintHeader<HEADER_MAX_BYTES> {
    let mut header = VarintHeader::new(tag);
    header.number(u64::from(page_no.0));
    header
}

#[inline(always)]
fn finish<const N: usize>(out: &mut Vec<u8>, header: &VarintHeader<HEADER_MAX_BYTES>, parts: [&[u8]; N]) {
    out.reserve(HEADER_MAX_BYTES + parts.iter().map(|part| part.len()).sum::<usize>());
    out.extend_from_slice(header.bytes());
    parts.iter().for_each(|part| out.extend_from_slice(part));
}

fn encode_bits(tag: u8, page_no: PageNo, offset: u16, mask: u64, out: &mut Vec<u8>) {
    let shift = if mask == 0 { 0 } else { mask.trailing_zeros() };
    let mut header = start(tag, page_no);
    header.number(u64::from(offset));
    header.byte(shift as u8);
    header.number(mask >> shift);
    finish(out, &header, []);
}

/// Encodes fences after the numbers already in `header`.
fn encode_fences(mut header: VarintHeader<HEADER_MAX_BYTES>, fences: Fences<'_>, out: &mut Vec<u8>) {
    header.number(u64::from(fences.upper_child.0));
    for fence in [fences.lower, fences.upper].into_iter().flatten() {
        header.number(fence.len() as u64);
    }
    finish(out, &header, [fences.lower.unwrap_or(&[]), fences.upper.unwrap_or(&[])]);
}

fn fence_flags(lower: Option<&[u8]>, upper: Option<&[u8]>) -> u8 {
    lower.map_or(0, |_| HAS_LOWER) | upper.map_or(0, |_| HAS_UPPER)
}

fn decode_fences<'a>(reader: &mut VarintReader<'a>, tag: u8) -> Option<Fences<'a>> {
    let upper_child = PageNo(reader.u32()?);
    let lower_len = if tag & HAS_LOWER != 0 { Some(reader.u16()?) } else { None };
    let upper_len = if tag & HAS_UPPER != 0 { Some(reader.u16()?) } else { None };
    let mut bytes = |len: Option<u16>| match len {
        Some(len) => reader.bytes(len as usize).map(Some),
        None => Some(None),
    };
    Some(Fences { lower: bytes(lower_len)?, upper: bytes(upper_len)?, upper_child })
}

fn decode_bits(reader: &mut VarintReader<'_>) -> Option<(u16, u64)> {
    let offset = reader.u16()?;
    let shift = u32::from(reader.byte()?);
    let bits = reader.number()?;
    let mask = bits.checked_shl(shift)?;
    (mask >> shift == bits).then_some((offset, mask))
}

fn decode_operation<'a>(reader: &mut VarintReader<'a>, tag: u8) -> Option<PageOp<'a>> {
    Some(match tag & KIND_MASK {
        FORMAT => {
            let page_type = PageType::from_u8(reader.byte()?)?;
            PageOp::Format { page_type, level: reader.byte()?, owner: reader.u32()? }
        }
        WRITE => {
            let (offset, len) = (reader.u16()?, reader.u16()?);
            PageOp::Write { offset, bytes: reader.bytes(len as usize)? }
        }
        SET_BITS => decode_bits(reader).map(|(offset, mask)| PageOp::SetBits { offset, mask })?,
        CLEAR_BITS => decode_bits(reader).map(|(offset, mask)| PageOp::ClearBits { offset, mask })?,
        NODE_FORMAT => {
            let Fences { lower, upper, upper_child } = decode_fences(reader, tag)?;
            PageOp::NodeFormat { lower, upper, upper_child }
        }
        NODE_INSERT => {
            let (slot, key_len, value_len) = (reader.u16()?, reader.u16()?, reader.u16()?);
            PageOp::NodeInsert { slot, key: reader.bytes(key_len as usize)?, value: reader.bytes(value_len as usize)? }
        }
        NODE_REMOVE => PageOp::NodeRemove { slot: reader.u16()? },
        NODE_SPLICE => {
            let (slot, at, remove, len) = (reader.u16()?, reader.u16()?, reader.u16()?, reader.u16()?);
            PageOp::NodeSplice { slot, at, remove, bytes: reader.bytes(len as usize)? }
        }
        NODE_APPEND => {
            let len = reader.u32()?;
            PageOp::NodeAppend { packed: reader.bytes(len as usize)? }
        }
        NODE_REFENCE => {
            let (from, to) = (reader.u16()?, reader.u16()?);
            let Fences { lower, upper, upper_child } = decode_fences(reader, tag)?;
            PageOp::NodeRefence { from, to, lower, upper, upper_child }
        }
        LEAF_CHANGES => {
            let (max_trx_id, len) = (reader.number()?, reader.u32()?);
            let changes = reader.bytes(len as usize)?;
            PageOp::LeafChanges { max_trx_id, canonical: tag & CANONICAL != 0, changes }
        }
        COMMIT_TIME => PageOp::CommitTime { trx_id: reader.number()?, unix_us: reader.number()? },
        NODE_SET_CHILD => PageOp::NodeSetChild { slot: reader.u16()?, child: PageNo(reader.u32()?) },
        _ => return None,
    })
}

impl<'a> PageOp<'a> {
    /// Appends the redo record for this change of `page_no`.
    #[inline]
    pub(crate) fn encode(&self, page_no: PageNo, out: &mut Vec<u8>) {
        let start = out.len();
        self.encode_into(page_no, out);
        if cfg!(debug_assertions) {
            let read = PageOp::decode(&out[start..]).ok();
            debug_assert_eq!(read, Some((page_no, *self, out.len() - start)), "redo is not read as it is written");
        }
    }

    #[inline]
    fn encode_into(&self, page_no: PageNo, out: &mut Vec<u8>) {
        match *self {
            PageOp::Format { page_type, level, owner } => {
                let mut header = start(FORMAT, page_no);
                header.byte(page_type as u8);
                header.byte(level);
                header.number(u64::from(owner));
                finish(out, &header, []);
            }
            PageOp::Write { offset, bytes } => {
                let mut header = start(WRITE, page_no);
                header.number(u64::from(offset));
                header.number(bytes.len() as u64);
                finish(out, &header, [bytes]);
            }
            PageOp::SetBits { offset, mask } => encode_bits(SET_BITS, page_no, offset, mask, out),
            PageOp::ClearBits { offset, mask } => encode_bits(CLEAR_BITS, page_no, offset, mask, out),
            PageOp::NodeInsert { slot, key, value } => {
                let mut header = start(NODE_INSERT, page_no);
                header.number(u64::from(slot));
                header.number(key.len() as u64);
                header.number(value.len() as u64);
                finish(out, &header, [key, value]);
            }
            PageOp::NodeRemove { slot } => {
                let mut header = start(NODE_REMOVE, page_no);
                header.number(u64::from(slot));
                finish(out, &header, []);
            }
            PageOp::NodeSplice { slot, at, remove, bytes } => {
                let mut header = start(NODE_SPLICE, page_no);
                header.number(u64::from(slot));
                header.number(u64::from(at));
                header.number(u64::from(remove));
                header.number(bytes.len() as u64);
                finish(out, &header, [bytes]);
            }
            _ => self.encode_structure(page_no, out),
        }
    }

    /// `encode` for structure changes.
    fn encode_structure(&self, page_no: PageNo, out: &mut Vec<u8>) {
        match *self {
            PageOp::NodeFormat { lower, upper, upper_child } => {
                let header = start(NODE_FORMAT | fence_flags(lower, upper), page_no);
                encode_fences(header, Fences { lower, upper, upper_child }, out);
            }
            PageOp::NodeAppend { packed } => {
                let mut header = start(NODE_APPEND, page_no);
                header.number(packed.len() as u64);
                finish(out, &header, [packed]);
            }
            PageOp::NodeRefence { from, to, lower, upper, upper_child } => {
                let mut header = start(NODE_REFENCE | fence_flags(lower, upper), page_no);
                header.number(u64::from(from));
                header.number(u64::from(to));
                encode_fences(header, Fences { lower, upper, upper_child }, out);
            }
            PageOp::LeafChanges { max_trx_id, canonical, changes } => {
                let mut header = start(LEAF_CHANGES | if canonical { CANONICAL } else { 0 }, page_no);
                header.number(max_trx_id);
                header.number(changes.len() as u64);
                finish(out, &header, [changes]);
            }
            PageOp::NodeSetChild { slot, child } => {
                let mut header = start(NODE_SET_CHILD, page_no);
                header.number(u64::from(slot));
                header.number(u64::from(child.0));
                finish(out, &header, []);
            }
            PageOp::CommitTime { trx_id, unix_us } => {
                let mut header = start(COMMIT_TIME, page_no);
                header.number(trx_id);
                header.number(unix_us);
                finish(out, &header, []);
            }
            _ => {}
        }
    }

    /// Reads one redo record; returns it and its length.
    ///
    /// # Errors
    /// [`Error::Corrupt`] when the bytes are no whole record.
    pub(crate) fn decode(input: &'a [u8]) -> Result<(PageNo, PageOp<'a>, usize)> {
        let mut reader = VarintReader::new(input);
        let mut read = || {
            let tag = reader.byte()?;
            let page_no = PageNo(reader.u32()?);
            Some((page_no, decode_operation(&mut reader, tag)?))
        };
        let (page_no, operation) =
            read().ok_or_else(|| Error::Corrupt("a redo record cannot be decoded".to_string()))?;
        Ok((page_no, operation, reader.position()))
    }

    /// Changes the page.
    ///
    /// # Errors
    /// [`Error::Corrupt`] means that the page does not fit the operation; nothing was changed.
    #[inline]
    pub(crate) fn apply(&self, page: &mut [u8]) -> Result<()> {
        self.apply_checked(page).map_err(|misfit| self.misfit(misfit))
    }

    #[cold]
    fn misfit(&self, misfit: Misfit) -> Error {
        Error::Corrupt(format!("page operation {} does not fit its page: {misfit}", self.name()))
    }

    /// Name of the operation, for messages and listings.
    pub(crate) const fn name(&self) -> &'static str {
        match self {
            PageOp::Format { .. } => "format",
            PageOp::Write { .. } => "write",
            PageOp::SetBits { .. } => "set_bits",
            PageOp::ClearBits { .. } => "clear_bits",
            PageOp::NodeFormat { .. } => "node_format",
            PageOp::NodeInsert { .. } => "node_insert",
            PageOp::NodeRemove { .. } => "node_remove",
            PageOp::NodeSplice { .. } => "node_splice",
            PageOp::NodeAppend { .. } => "node_append",
            PageOp::NodeRefence { .. } => "node_refence",
            PageOp::LeafChanges { .. } => "leaf_changes",
            PageOp::NodeSetChild { .. } => "node_set_child",
            PageOp::CommitTime { .. } => "commit_time",
        }
    }

    #[inline]
    fn apply_checked(&self, page: &mut [u8]) -> std::result::Result<(), Misfit> {
        match *self {
            PageOp::Format { page_type, level, owner } => {
                header::format(page, page_type, level, owner);
                Ok(())
            }
            PageOp::Write { offset, bytes } => write(page, offset as usize, bytes),
            PageOp::SetBits { offset, mask } => change_bits(page, offset as usize, |word| word | mask),
            PageOp::ClearBits { offset, mask } => change_bits(page, offset as usize, |word| word & !mask),
            PageOp::NodeFormat { lower, upper, upper_child } => {
                node::format(page, Fences { lower, upper, upper_child })
            }
            PageOp::NodeInsert { slot, key, value } => node::insert(page, slot as usize, key, value),
            PageOp::NodeRemove { slot } => node::remove(page, slot as usize),
            PageOp::NodeSplice { slot, at, remove, bytes } => {
                node::splice(page, slot as usize, at as usize, remove as usize, bytes)
            }
            PageOp::NodeAppend { packed } => node::append(page, packed),
            PageOp::NodeRefence { from, to, lower, upper, upper_child } => {
                node::refence(page, from as usize..to as usize, Fences { lower, upper, upper_child })
            }
            PageOp::LeafChanges { max_trx_id, canonical, changes } => {
                node::apply_changes(page, changes, canonical)?;
                header::raise_max_trx_id(page, max_trx_id);
                Ok(())
            }
            PageOp::NodeSetChild { slot, child } => node::set_child(page, slot as usize, child),
            PageOp::CommitTime { .. } => Ok(()),
        }
    }
}

#[inline]
fn write(page: &mut [u8], offset: usize, bytes: &[u8]) -> std::result::Result<(), Misfit> {
    if offset < MAX_TRX_ID_OFFSET {
        return Err("it would overwrite the page header");
    }
    let target = page.get_mut(offset..offset + bytes.len()).ok_or("it ends beyond the page")?;
    target.copy_from_slice(bytes);
    Ok(())
}

fn change_bits(page: &mut [u8], offset: usize, change: impl FnOnce(u64) -> u64) -> std::result::Result<(), Misfit> {
    if offset < MAX_TRX_ID_OFFSET {
        return Err("it would overwrite the page header");
    }
    if offset + 8 > page.len() {
        return Err("it ends beyond the page");
    }
    let word = change(page.u64_at(offset));
    put_u64(page, offset, word);
    Ok(())
}
