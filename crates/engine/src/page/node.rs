//! Node layout: how a tree page keeps its records, and reading them.
//!
//! ```text
//! 32  count        u16   records
//! 34  heap_start   u16   lowest byte the heap uses; the heap grows down towards the slots
//! 36  garbage      u16   heap bytes that belong to no record
//! 38  prefix_len   u16   bytes every key of the page begins with: what both fences have in common
//! 40  lower_len    u16   lower fence, 0xFFFF = none (no bound)
//! 42  upper_len    u16   upper fence, 0xFFFF = none
//! 44  upper_child  u32   inner page: the child right of the last separator; 0 on a leaf
//! 48  last_insert  u16   slot of the last insertion, 0xFFFF = unknown
//! 50  run          u16   insertions in a row that each went right behind the one before
//! 52  skip         u16   suffix bytes before the head, the same in every record
//! 54  slots        10 bytes each, in key order:
//!                  { offset u16, key_len u16, value_len u16, head u32 }
//! ..  free space
//! ..  heap         records { suffix without the head, value }
//! end-lower_len-upper_len  upper fence, then the lower fence at the very end
//! ```
//!
//! Terms
//! - Fences: the page covers keys in `[lower, upper)`. The root's outer fences are infinite.
//! - Suffix: a key without the page's prefix; only suffixes are stored. `key_len` is the suffix's length.
//! - Head: four bytes of the suffix as a big-endian number, padded with zeros. It decides most comparisons without touching the
//!   heap, and its bytes are not stored a second time there. It lies behind the suffix's first `skip` bytes, which all
//!   records of the page have in common beyond the prefix: on pages with an infinite fence (every root) the prefix is
//!   empty and the first four bytes of all keys would often be the same. Each record keeps its own copy of them, so that
//!   an insertion that does not share them lowers `skip` without needing room.
//! - Inner record: key = separator, value = child page number (u32); the child holds keys `< separator` and
//!   `>=` the separator before it.
//!
//! Rules
//! 1. Reading never panics, whatever the bytes; a page that passed [`check`] gives the right answers.
//! 2. A search runs on latched pages and on optimistic views alike ([`PageBytes`]).
//! 3. Sizes are planned with `skip` 0, the smallest they can be; a higher `skip` uses room that nobody needs.
//! 4. `last_insert` and `run` are a memory for choosing split points; they never decide what is true.
//!
//! Differs from InnoDB: no record chain and no page directory (slots are the order), no sibling links (fences instead), no
//! per-record transaction fields (they are part of the clustered value).

use super::bytes::{PageBytes, slice_at};
use super::header::{self, HEADER_BYTES, PageType};
use crate::types::PageNo;
use std::cmp::Ordering;
use std::ops::Range;

pub use super::node_check::check;

pub(crate) const COUNT: usize = HEADER_BYTES;
pub(crate) const HEAP_START: usize = HEADER_BYTES + 2;
pub(crate) const GARBAGE: usize = HEADER_BYTES + 4;
pub(crate) const PREFIX_LEN: usize = HEADER_BYTES + 6;
pub(crate) const LOWER_LEN: usize = HEADER_BYTES + 8;
pub(crate) const UPPER_LEN: usize = HEADER_BYTES + 10;
pub(crate) const UPPER_CHILD: usize = HEADER_BYTES + 12;
pub(crate) const LAST_INSERT: usize = HEADER_BYTES + 16;
pub(crate) const RUN: usize = HEADER_BYTES + 18;
pub(crate) const SKIP: usize = HEADER_BYTES + 20;
/// First slot.
pub(crate) const SLOTS: usize = HEADER_BYTES + 22;
pub(crate) const SLOT_BYTES: usize = 10;
pub(crate) const SLOT_KEY_LEN: usize = 2;
pub(crate) const SLOT_VALUE_LEN: usize = 4;
pub(crate) const SLOT_HEAD: usize = 6;
/// Bytes of a suffix that live in its slot.
pub(crate) const HEAD_BYTES: usize = 4;
/// Length that stands for "no fence".
pub(crate) const NO_FENCE: u16 = u16::MAX;
/// `last_insert` when it is unknown.
pub(crate) const NO_SLOT: u16 = u16::MAX;
/// Bytes of an inner record's value.
pub const CHILD_BYTES: usize = 4;
/// Insertions in a row after which a leaf is taken to be filled in ascending order.
const ASCENDING_RUN: u16 = 16;

const _: () = assert!(SLOTS == 54 && SLOT_HEAD + HEAD_BYTES == SLOT_BYTES);

/// Longest key a page takes: an eighth of the page. Two fences and four separators of that length fit an inner page.
pub const fn max_key_bytes(page_bytes: usize) -> usize {
    page_bytes / 8
}

/// Longest value a leaf takes: a quarter of the page less 64 bytes. Four such records with short keys fit one leaf, and two
/// with the longest keys fit beside the longest fences, so that a split always makes room.
pub const fn max_value_bytes(page_bytes: usize) -> usize {
    page_bytes / 4 - 64
}

/// Offset of a slot.
#[inline(always)]
pub(crate) const fn slot_at(slot: usize) -> usize {
    SLOTS + slot * SLOT_BYTES
}

/// Bytes of a suffix kept in the heap: all but the head. Grows with `skip` for suffixes that end within the head.
#[inline(always)]
pub(crate) const fn rest_len(suffix_len: usize, skip: usize) -> usize {
    if suffix_len >= skip + HEAD_BYTES {
        suffix_len - HEAD_BYTES
    } else if suffix_len > skip {
        skip
    } else {
        suffix_len
    }
}

/// Bytes a record takes, slot included, on a page with `skip` 0.
#[inline(always)]
pub(crate) const fn record_bytes(suffix_len: usize, value_len: usize) -> usize {
    SLOT_BYTES + rest_len(suffix_len, 0) + value_len
}

/// The head, given the suffix from there on.
#[inline(always)]
pub(crate) fn head_of(tail: &[u8]) -> u32 {
    (tail.word_at(0, tail.len().min(HEAD_BYTES)) >> 32) as u32
}

/// Length of the longest common prefix.
pub fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    a.iter().zip(b).take_while(|(x, y)| x == y).count()
}

/// Length of the prefix of a page with these fences.
pub(crate) fn prefix_of(lower: Option<&[u8]>, upper: Option<&[u8]>) -> usize {
    match (lower, upper) {
        (Some(lower), Some(upper)) => common_prefix(lower, upper),
        _ => 0,
    }
}

/// The shortest key `s` with `below < s <= above` that begins `above`. Needs `below < above`.
pub fn shortest_separator<'k>(below: &[u8], above: &'k [u8]) -> &'k [u8] {
    let len = common_prefix(below, above) + 1;
    above.get(..len).unwrap_or(above)
}

/// A key from behind its head on, ready to be compared many times.
#[derive(Clone, Copy)]
struct Behind<'k> {
    /// Bytes of the key from the head on.
    tail_len: usize,
    /// Bytes behind the head.
    rest: &'k [u8],
    /// Their first eight.
    word: u64,
}

impl<'k> Behind<'k> {
    #[inline(always)]
    fn new(tail: &'k [u8]) -> Behind<'k> {
        let rest = tail.get(HEAD_BYTES..).unwrap_or(&[]);
        Behind { tail_len: tail.len(), rest, word: rest.word_at(0, rest.len()) }
    }
}

/// Compares the record of a slot with a key, both from the head on, when their heads are equal.
#[inline(always)]
fn cmp_behind_head<B: PageBytes + ?Sized>(page: &B, slot: usize, skip: usize, key: Behind<'_>) -> Ordering {
    let offset = slot_at(slot);
    let stored_len = (page.u16_at(offset + SLOT_KEY_LEN) as usize).saturating_sub(skip);
    if stored_len < HEAD_BYTES || key.tail_len < HEAD_BYTES {
        return stored_len.cmp(&key.tail_len);
    }
    let (rest_at, rest_len) = (page.u16_at(offset) as usize + skip, stored_len - HEAD_BYTES);
    let word = page.word_at(rest_at, rest_len);
    if word != key.word {
        return word.cmp(&key.word);
    }
    if rest_len <= 8 && key.rest.len() <= 8 {
        return rest_len.cmp(&key.rest.len());
    }
    page.cmp_at(rest_at, rest_len, key.rest)
}

/// How the first `skip` bytes of all suffixes compare with a suffix.
#[inline(always)]
fn cmp_skipped<B: PageBytes + ?Sized>(page: &B, skip: usize, suffix: &[u8]) -> Ordering {
    page.cmp_at(page.u16_at(SLOTS) as usize, skip, suffix.get(..skip).unwrap_or(suffix))
}

/// Binary search among the slots for a suffix.
#[inline(always)]
fn search_suffix<B: PageBytes + ?Sized>(page: &B, suffix: &[u8]) -> std::result::Result<usize, usize> {
    let count = page.u16_at(COUNT) as usize;
    let skip = page.u16_at(SKIP) as usize;
    let mut tail = suffix;
    if skip != 0 {
        match cmp_skipped(page, skip, suffix) {
            Ordering::Equal => tail = suffix.get(skip..).unwrap_or(&[]),
            Ordering::Less => return Err(count),
            Ordering::Greater => return Err(0),
        }
    }
    let head = head_of(tail);
    let low = page.lower_bound::<SLOT_BYTES>(SLOTS + SLOT_HEAD, count, head);
    if low >= count || page.u32_at(slot_at(low) + SLOT_HEAD) != head {
        return Err(low);
    }
    search_behind_head(page, low..count, skip, head, Behind::new(tail))
}

/// Goes on among the records of `range`; the heads of the first few are that of the key.
#[inline(always)]
fn search_behind_head<B: PageBytes + ?Sized>(
    page: &B,
    range: Range<usize>,
    skip: usize,
    head: u32,
    key: Behind<'_>,
) -> std::result::Result<usize, usize> {
    let mut low = range.start;
    match cmp_behind_head(page, low, skip, key) {
        Ordering::Equal => return Ok(low),
        Ordering::Greater => return Err(low),
        Ordering::Less => low += 1,
    }
    // Past the last record with this head, in growing steps.
    let has_head = |slot: usize| slot < range.end && page.u32_at(slot_at(slot) + SLOT_HEAD) == head;
    let mut step = 1;
    while has_head(low + step - 1) {
        if cmp_behind_head(page, low + step - 1, skip, key) == Ordering::Less {
            low += step;
            step *= 2;
        } else {
            break;
        }
    }
    let mut high = (low + step).min(range.end);
    while low < high {
        let middle = (low + high) / 2;
        let order = if has_head(middle) { cmp_behind_head(page, middle, skip, key) } else { Ordering::Greater };
        match order {
            Ordering::Less => low = middle + 1,
            Ordering::Greater => high = middle,
            Ordering::Equal => return Ok(middle),
        }
    }
    Err(low)
}

/// `Ok(slot)` of `key`, or `Err(slot)` where it would be. Any key may be asked for, also one outside the fences.
#[inline]
pub fn search<B: PageBytes + ?Sized>(page: &B, key: &[u8]) -> std::result::Result<usize, usize> {
    let prefix_len = page.u16_at(PREFIX_LEN) as usize;
    if prefix_len != 0 {
        let fence = page.page_len().wrapping_sub(page.u16_at(LOWER_LEN) as usize);
        match page.cmp_at(fence, prefix_len, key.get(..prefix_len).unwrap_or(key)) {
            Ordering::Equal => {}
            Ordering::Less => return Err(page.u16_at(COUNT) as usize),
            Ordering::Greater => return Err(0),
        }
    }
    search_suffix(page, key.get(prefix_len..).unwrap_or(&[]))
}

/// Position of the child of an inner page that covers `key`; the record count stands for the upper child.
/// `key` lies within the page's fences.
#[inline]
pub fn child_slot_covering<B: PageBytes + ?Sized>(page: &B, key: &[u8]) -> usize {
    let prefix_len = page.u16_at(PREFIX_LEN) as usize;
    match search_suffix(page, key.get(prefix_len..).unwrap_or(&[])) {
        Ok(slot) => slot + 1,
        Err(slot) => slot,
    }
}

/// Position of the child of an inner page that holds the keys just below `key` (`lower < key <= upper`).
#[inline]
pub fn child_slot_before<B: PageBytes + ?Sized>(page: &B, key: &[u8]) -> usize {
    let prefix_len = page.u16_at(PREFIX_LEN) as usize;
    match search_suffix(page, key.get(prefix_len..).unwrap_or(&[])) {
        Ok(slot) | Err(slot) => slot,
    }
}

/// Whether the page's fences cover `key`: `lower <= key < upper`.
#[inline]
pub fn covers<B: PageBytes + ?Sized>(page: &B, key: &[u8]) -> bool {
    let (lower_len, upper_len) = (page.u16_at(LOWER_LEN), page.u16_at(UPPER_LEN));
    let mut fence_at = page.page_len();
    if lower_len != NO_FENCE {
        fence_at = fence_at.wrapping_sub(lower_len as usize);
        if page.cmp_at(fence_at, lower_len as usize, key) == Ordering::Greater {
            return false;
        }
    }
    if upper_len == NO_FENCE {
        return true;
    }
    fence_at = fence_at.wrapping_sub(upper_len as usize);
    page.cmp_at(fence_at, upper_len as usize, key) == Ordering::Greater
}

/// The child at a position.
#[inline]
pub fn child_at<B: PageBytes + ?Sized>(page: &B, slot: usize) -> PageNo {
    if slot >= count(page) {
        return PageNo(page.u32_at(UPPER_CHILD));
    }
    let offset = slot_at(slot);
    let rest = rest_len(page.u16_at(offset + SLOT_KEY_LEN) as usize, page.u16_at(SKIP) as usize);
    PageNo(page.u32_at(page.u16_at(offset) as usize + rest))
}

/// Whether the child at `slot` of an inner page has the fences that its parent's separators give it, so that both are of the
/// same version of the tree.
pub fn fences_child<P, C>(parent: &P, slot: usize, child: &C) -> bool
where
    P: PageBytes + ?Sized,
    C: PageBytes + ?Sized,
{
    let (mut wanted, mut found) = (Vec::new(), Vec::new());
    let slot = slot.min(count(parent));
    let is_last = slot == count(parent);
    let has_lower =
        if slot == 0 { fence_into(parent, false, &mut wanted) } else { separator_into(parent, slot - 1, &mut wanted) };
    if fence_into(child, false, &mut found) != has_lower || found != wanted {
        return false;
    }
    let has_upper =
        if is_last { fence_into(parent, true, &mut wanted) } else { separator_into(parent, slot, &mut wanted) };
    fence_into(child, true, &mut found) == has_upper && found == wanted
}

/// Replaces `out` with the lower or upper fence; false if there is none.
fn fence_into<B: PageBytes + ?Sized>(page: &B, upper: bool, out: &mut Vec<u8>) -> bool {
    out.clear();
    let [lower_len, upper_len] = [LOWER_LEN, UPPER_LEN].map(|at| page.u16_at(at));
    let mut start = page.page_len();
    for (len, is_sought) in [(lower_len, !upper), (upper_len, upper)] {
        start = start.wrapping_sub(if len == NO_FENCE { 0 } else { len as usize });
        if is_sought && len != NO_FENCE {
            page.copy_at(start, len as usize, out);
            return true;
        }
    }
    false
}

/// Replaces `out` with the whole key of a slot; true.
fn separator_into<B: PageBytes + ?Sized>(page: &B, slot: usize, out: &mut Vec<u8>) -> bool {
    out.clear();
    let (prefix_len, skip) = (page.u16_at(PREFIX_LEN) as usize, page.u16_at(SKIP) as usize);
    page.copy_at(page.page_len().wrapping_sub(page.u16_at(LOWER_LEN) as usize), prefix_len, out);
    let (at, suffix_len) = (page.u16_at(slot_at(slot)) as usize, page.u16_at(slot_at(slot) + SLOT_KEY_LEN) as usize);
    let rest_len = rest_len(suffix_len, skip);
    let before = rest_len.min(skip);
    page.copy_at(at, before, out);
    let head = page.u32_at(slot_at(slot) + SLOT_HEAD).to_be_bytes();
    out.extend_from_slice(&head[..(suffix_len - rest_len).min(HEAD_BYTES)]);
    page.copy_at(at + before, rest_len - before, out);
    true
}

#[inline]
pub fn count<B: PageBytes + ?Sized>(page: &B) -> usize {
    page.u16_at(COUNT) as usize
}

/// A node whose bytes do not change while this lives (latched, or a copy).
#[derive(Clone, Copy, Debug)]
pub struct Node<'p> {
    page: &'p [u8],
}

/// Where a record's parts are.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Record {
    /// Heap offset of the suffix without its head.
    pub(crate) offset: usize,
    pub(crate) suffix_len: usize,
    /// Length of the suffix without its head.
    pub(crate) rest_len: usize,
    pub(crate) value_len: usize,
}

impl Record {
    #[inline(always)]
    pub(crate) fn heap_bytes(self) -> usize {
        self.rest_len + self.value_len
    }

    #[inline(always)]
    pub(crate) fn value_offset(self) -> usize {
        self.offset + self.rest_len
    }
}

impl<'p> Node<'p> {
    /// Looks at a page as a node. No check is made: see [`check`].
    #[inline]
    pub fn new(page: &'p [u8]) -> Node<'p> {
        Node { page }
    }

    #[inline]
    pub fn count(self) -> usize {
        count(self.page)
    }

    /// Level in the tree, 0 = leaf.
    #[inline]
    pub fn level(self) -> u8 {
        header::level(self.page)
    }

    /// Whether the type byte says leaf.
    #[inline]
    pub fn is_leaf(self) -> bool {
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

    /// First byte behind the heap.
    #[inline]
    pub(crate) fn heap_end(self) -> usize {
        self.page.len().saturating_sub(self.lower_len() + self.upper_len())
    }

    /// First key the page may hold; `None` = no bound.
    #[inline]
    pub fn lower(self) -> Option<&'p [u8]> {
        let len = self.page.u16_at(LOWER_LEN);
        let start = self.page.len().wrapping_sub(len as usize);
        (len != NO_FENCE).then(|| slice_at(self.page, start, len as usize))
    }

    /// First key beyond the page; `None` = no bound.
    #[inline]
    pub fn upper(self) -> Option<&'p [u8]> {
        let len = self.page.u16_at(UPPER_LEN);
        let start = self.page.len().wrapping_sub(self.lower_len() + len as usize);
        (len != NO_FENCE).then(|| slice_at(self.page, start, len as usize))
    }

    /// Bytes every key of the page begins with.
    #[inline]
    pub fn prefix(self) -> &'p [u8] {
        let len = self.page.u16_at(PREFIX_LEN) as usize;
        slice_at(self.page, self.page.len().wrapping_sub(self.lower_len()), len)
    }

    /// The page's prefix length.
    #[inline]
    pub fn prefix_len(self) -> usize {
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
    pub fn covers(self, key: &[u8]) -> bool {
        covers(self.page, key)
    }

    /// Whether the page holds the keys just below `key`: `lower < key <= upper`.
    #[inline]
    pub fn is_before(self, key: &[u8]) -> bool {
        self.lower().is_none_or(|lower| lower < key) && self.upper().is_none_or(|upper| key <= upper)
    }

    /// Where the parts of a record are; meaningless offsets for a slot that does not exist.
    #[inline(always)]
    pub(crate) fn record(self, slot: usize) -> Record {
        let offset = slot_at(slot);
        let suffix_len = self.page.u16_at(offset + SLOT_KEY_LEN) as usize;
        Record {
            offset: self.page.u16_at(offset) as usize,
            suffix_len,
            rest_len: rest_len(suffix_len, self.skip()),
            value_len: self.page.u16_at(offset + SLOT_VALUE_LEN) as usize,
        }
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
        let head = self.head(slot).to_be_bytes();
        let rest = slice_at(self.page, record.offset, record.rest_len);
        let (before, behind) = rest.split_at_checked(self.skip()).unwrap_or((rest, &[]));
        out.extend_from_slice(before);
        out.extend_from_slice(&head[..(record.suffix_len - record.rest_len).min(HEAD_BYTES)]);
        out.extend_from_slice(behind);
    }

    /// Replaces `out` with the whole key of `slot` (empty for a slot that does not exist).
    #[inline]
    pub fn key_into(self, slot: usize, out: &mut Vec<u8>) {
        out.clear();
        if slot < self.count() {
            out.extend_from_slice(self.prefix());
            self.append_suffix(slot, out);
        }
    }

    /// The whole key of `slot`, in a buffer of its own.
    pub fn key(self, slot: usize) -> Vec<u8> {
        let mut key = Vec::new();
        self.key_into(slot, &mut key);
        key
    }

    /// Value of `slot` (empty for a slot that does not exist).
    #[inline]
    pub fn value(self, slot: usize) -> &'p [u8] {
        if slot >= self.count() {
            return &[];
        }
        let record = self.record(slot);
        slice_at(self.page, record.value_offset(), record.value_len)
    }

    /// `Ok(slot)` of the key, or `Err(slot)` where it would be.
    #[inline]
    pub fn search(self, key: &[u8]) -> std::result::Result<usize, usize> {
        search(self.page, key)
    }

    /// The child at a position; the record count stands for the upper child.
    #[inline]
    pub fn child(self, slot: usize) -> PageNo {
        child_at(self.page, slot)
    }

    /// Free bytes in one piece between slots and heap.
    #[inline(always)]
    pub(crate) fn contiguous_bytes(self) -> usize {
        (self.page.u16_at(HEAP_START) as usize).saturating_sub(slot_at(self.count()))
    }

    /// Free bytes, garbage included.
    #[inline(always)]
    pub fn free_bytes(self) -> usize {
        self.contiguous_bytes() + self.page.u16_at(GARBAGE) as usize
    }

    /// Bytes of the page that records and fences could take.
    #[inline]
    pub fn capacity_bytes(self) -> usize {
        self.page.len().saturating_sub(SLOTS)
    }

    /// Bytes taken by records and fences.
    #[inline]
    pub fn used_bytes(self) -> usize {
        self.capacity_bytes().saturating_sub(self.free_bytes())
    }

    /// Bytes kept free for later growth of records on a leaf that is being filled in ascending order: a sixteenth of the
    /// page, as InnoDB does.
    #[inline]
    fn reserved_bytes(self) -> usize {
        let run = self.page.u16_at(RUN);
        if run < ASCENDING_RUN || self.count() < ASCENDING_RUN as usize {
            return 0;
        }
        let at_end = self.page.u16_at(LAST_INSERT) as usize + 1 == self.count();
        if at_end && self.is_leaf() { self.page.len() / 16 } else { 0 }
    }

    /// Whether a record with a whole key of `key_bytes` and a value of `value_bytes` should be inserted here.
    #[inline]
    pub fn fits(self, key_bytes: usize, value_bytes: usize) -> bool {
        let rest = rest_len(key_bytes.saturating_sub(self.prefix_len()), self.skip());
        self.free_bytes() >= SLOT_BYTES + rest + value_bytes + self.reserved_bytes()
    }

    /// Whether a record can grow by `bytes`.
    #[inline]
    pub fn fits_growth(self, bytes: usize) -> bool {
        self.free_bytes() >= bytes
    }

    /// Whether an insertion at `slot` would go on with a run of ascending insertions.
    pub fn is_ascending_at(self, slot: usize) -> bool {
        let last = self.page.u16_at(LAST_INSERT);
        let run = self.page.u16_at(RUN) as usize;
        slot > 0 && last.wrapping_add(1) as usize == slot && run >= self.count().min(3)
    }

    /// Bytes the records `range` would take (slots included, fences not) on a page with a prefix of `prefix_len` bytes and
    /// no `skip`.
    pub fn rebuilt_bytes(self, range: Range<usize>, prefix_len: usize) -> usize {
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
