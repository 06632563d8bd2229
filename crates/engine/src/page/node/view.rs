//! Reading a node: its records, its fences, and its free space.

use super::layout::*;
use super::run::{AscendingRun, Ascent};
use super::search::{self, child_at, count, covers};
use crate::page::bytes::{PageBytes, slice_at};
use crate::page::header::{self, PageType};
use crate::types::PageNo;
use std::ops::Range;

/// A node whose bytes do not change while this lives (latched, or a copy).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Node<'p> {
    page: &'p [u8],
}

impl<'p> Node<'p> {
    /// Views a page as a node, without a check: see [`check`].
    #[inline]
    pub(crate) fn new(page: &'p [u8]) -> Node<'p> {
        Node { page }
    }

    #[inline]
    pub(crate) fn count(self) -> usize {
        count(self.page)
    }

    /// Level in the tree, 0 = leaf.
    #[inline]
    pub(crate) fn level(self) -> u8 {
        header::level(self.page)
    }

    /// Whether the type byte says leaf.
    #[inline]
    pub(crate) fn is_leaf(self) -> bool {
        self.page.u8_at(header::TYPE) == PageType::Leaf as u8
    }

    /// Length of the lower fence, 0 for none.
    #[inline]
    fn lower_len(self) -> usize {
        let len = self.page.u16_at(LOWER_LEN);
        if len == NO_FENCE { 0 } else { len as usize }
    }

    /// Length of the upper fence, 0 for none.
    #[inline]
    fn upper_len(self) -> usize {
        let len = self.page.u16_at(UPPER_LEN);
        if len == NO_FENCE { 0 } else { len as usize }
    }

    /// First byte after the heap.
    #[inline]
    pub(crate) fn heap_end(self) -> usize {
        self.page.len().saturating_sub(self.lower_len() + self.upper_len())
    }

    /// First key the page may hold; `None` = no bound.
    #[inline]
    pub(crate) fn lower(self) -> Option<&'p [u8]> {
        let len = self.page.u16_at(LOWER_LEN);
        let start = self.page.len().wrapping_sub(len as usize);
        (len != NO_FENCE).then(|| slice_at(self.page, start, len as usize))
    }

    /// First key beyond the page; `None` = no bound.
    #[inline]
    pub(crate) fn upper(self) -> Option<&'p [u8]> {
        let len = self.page.u16_at(UPPER_LEN);
        let start = self.page.len().wrapping_sub(self.lower_len() + len as usize);
        (len != NO_FENCE).then(|| slice_at(self.page, start, len as usize))
    }

    /// Bytes every key of the page begins with.
    #[inline]
    pub(crate) fn prefix(self) -> &'p [u8] {
        let len = self.page.u16_at(PREFIX_LEN) as usize;
        slice_at(self.page, self.page.len().wrapping_sub(self.lower_len()), len)
    }

    /// The page's prefix length.
    #[inline]
    pub(crate) fn prefix_len(self) -> usize {
        self.page.u16_at(PREFIX_LEN) as usize
    }

    /// Suffix bytes before the head.
    #[inline(always)]
    pub(crate) fn skip(self) -> usize {
        self.page.u16_at(SKIP) as usize
    }

    /// The bytes all suffixes of the page begin with, as far as `skip` goes.
    #[inline]
    pub(crate) fn skipped(self) -> &'p [u8] {
        slice_at(self.page, self.page.u16_at(SLOTS) as usize, self.skip())
    }

    /// Whether the page covers `key`: `lower <= key < upper`.
    #[inline]
    pub(crate) fn covers(self, key: &[u8]) -> bool {
        covers(self.page, key)
    }

    /// Whether the page holds the keys just below `key`: `lower < key <= upper`.
    #[inline]
    pub(crate) fn is_before(self, key: &[u8]) -> bool {
        self.lower().is_none_or(|lower| lower < key) && self.upper().is_none_or(|upper| key <= upper)
    }

    /// The offsets of a record's parts; meaningless for a slot that does not exist.
    #[inline(always)]
    pub(crate) fn record(self, slot: usize) -> NodeRecord {
        search::record(self.page, slot)
    }

    /// Head of a record.
    #[inline(always)]
    pub(crate) fn head(self, slot: usize) -> u32 {
        self.page.u32_at(slot_at(slot) + SLOT_HEAD)
    }

    /// Suffix of a record without its head.
    #[inline]
    pub(crate) fn rest(self, slot: usize) -> &'p [u8] {
        let record = self.record(slot);
        slice_at(self.page, record.offset, record.rest_len)
    }

    /// Appends the suffix of a record to `out`.
    #[inline]
    pub(crate) fn append_suffix(self, slot: usize, out: &mut Vec<u8>) {
        let record = self.record(slot);
        self.append_around_head(slot, &record, slice_at(self.page, record.offset, record.rest_len), out);
    }

    /// Appends the suffix of a record to `out`; returns the value, or `None` if the record is not inside the page.
    #[inline]
    pub(crate) fn append_record(self, slot: usize, out: &mut Vec<u8>) -> Option<&'p [u8]> {
        let record = self.record(slot);
        let bytes = self.page.get(record.offset..record.offset + record.heap_bytes())?;
        let (rest, value) = bytes.split_at(record.rest_len);
        self.append_around_head(slot, &record, rest, out);
        Some(value)
    }

    /// Appends the suffix: the bytes that the record has itself, with the head between them.
    #[inline]
    fn append_around_head(self, slot: usize, record: &NodeRecord, rest: &[u8], out: &mut Vec<u8>) {
        let (before, behind) = rest.split_at(self.skip().min(rest.len()));
        if !before.is_empty() {
            out.extend_from_slice(before);
        }
        let head = self.head(slot).to_be_bytes();
        out.extend_from_slice(&head[..(record.suffix_len - record.rest_len).min(HEAD_BYTES)]);
        if !behind.is_empty() {
            out.extend_from_slice(behind);
        }
    }

    /// Length of the common prefix of two records' suffixes.
    pub(crate) fn common_suffix_len(self, one: usize, other: usize) -> usize {
        let (first, second) = (self.record(one), self.record(other));
        let least = first.suffix_len.min(second.suffix_len);
        let until_head = self.skip() + (self.head(one) ^ self.head(other)).leading_zeros() as usize / 8;
        if until_head < self.skip() + HEAD_BYTES || least <= until_head {
            return until_head.min(least);
        }
        let behind = |slot| self.rest(slot).get(self.skip()..).unwrap_or(&[]);
        until_head + common_prefix(behind(one), behind(other))
    }

    /// Replaces `out` with the whole key of `slot` (empty for a slot that does not exist).
    #[inline]
    pub(crate) fn key_into(self, slot: usize, out: &mut Vec<u8>) {
        out.clear();
        self.append_key(slot, out);
    }

    /// Appends the whole key of `slot` to `out` (nothing for a slot that does not exist).
    #[inline]
    pub(crate) fn append_key(self, slot: usize, out: &mut Vec<u8>) {
        if slot < self.count() {
            out.extend_from_slice(self.prefix());
            self.append_suffix(slot, out);
        }
    }

    /// The whole key of `slot`, in a buffer of its own.
    pub(crate) fn key(self, slot: usize) -> Vec<u8> {
        let mut key = Vec::new();
        self.key_into(slot, &mut key);
        key
    }

    /// Value of `slot` (empty for a slot that does not exist).
    #[inline]
    pub(crate) fn value(self, slot: usize) -> &'p [u8] {
        if slot >= self.count() {
            return &[];
        }
        let record = self.record(slot);
        slice_at(self.page, record.value_offset(), record.value_len)
    }

    /// `Ok(slot)` of the key, or `Err(slot)` where it would be.
    #[inline]
    pub(crate) fn search(self, key: &[u8]) -> std::result::Result<usize, usize> {
        search::search(self.page, key)
    }

    /// The child at a position; the record count stands for the upper child.
    #[inline]
    pub(crate) fn child(self, slot: usize) -> PageNo {
        child_at(self.page, slot)
    }

    /// Free bytes in one piece between slots and heap.
    #[inline(always)]
    pub(crate) fn contiguous_bytes(self) -> usize {
        (self.page.u16_at(HEAP_START) as usize).saturating_sub(slot_at(self.count()))
    }

    /// Free bytes, garbage included.
    #[inline(always)]
    pub(crate) fn free_bytes(self) -> usize {
        self.contiguous_bytes() + self.page.u16_at(GARBAGE) as usize
    }

    /// Bytes of the page that records and fences could take.
    #[inline]
    pub(crate) fn capacity_bytes(self) -> usize {
        self.page.len().saturating_sub(SLOTS)
    }

    /// Bytes taken by records and fences.
    #[inline]
    pub(crate) fn used_bytes(self) -> usize {
        self.capacity_bytes().saturating_sub(self.free_bytes())
    }

    /// About how many records the page has when it is full, if those to come are as those it has.
    #[inline]
    pub(crate) fn full_count(self) -> usize {
        self.count() * self.capacity_bytes() / self.used_bytes().max(1)
    }

    /// Bytes kept free for later growth of records on a leaf that is being filled in ascending order: a sixteenth of
    /// the page, as InnoDB does.
    #[inline]
    fn reserved_bytes(self) -> usize {
        let is_filled = AscendingRun::of(self.page).fills_end(self.count());
        if is_filled && self.is_leaf() { self.page.len() / 16 } else { 0 }
    }

    /// Whether a record with a whole key of `key_bytes` and a value of `value_bytes` should be inserted here.
    #[inline]
    pub(crate) fn fits(self, key_bytes: usize, value_bytes: usize) -> bool {
        let rest = rest_len(key_bytes.saturating_sub(self.prefix_len()), self.skip());
        self.free_bytes() >= SLOT_BYTES + rest + value_bytes + self.reserved_bytes()
    }

    /// Whether a record can grow by `bytes`.
    #[inline]
    pub(crate) fn fits_growth(self, bytes: usize) -> bool {
        self.free_bytes() >= bytes
    }

    /// The run of insertions that fills the page, if an insertion at `slot` would continue with it.
    pub(crate) fn ascent_at(self, slot: usize) -> Option<Ascent> {
        AscendingRun::of(self.page).ascent_at(slot, self.count())
    }

    /// Bytes the records `range` would take (slots included, fences not) on a page with a prefix of `prefix_len` bytes
    /// and no `skip`.
    pub(crate) fn rebuilt_bytes(self, range: Range<usize>, prefix_len: usize) -> usize {
        self.rebuilt_bytes_with(range, prefix_len, 0)
    }

    /// As `rebuilt_bytes`, with a `skip`.
    pub(crate) fn rebuilt_bytes_with(self, range: Range<usize>, prefix_len: usize, skip: usize) -> usize {
        let old_prefix_len = self.prefix_len();
        range
            .map(|slot| {
                let record = self.record(slot);
                let suffix_len = (old_prefix_len + record.suffix_len).saturating_sub(prefix_len);
                SLOT_BYTES + rest_len(suffix_len, skip) + record.value_len
            })
            .sum()
    }
}
