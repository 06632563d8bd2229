//! Offsets of the fields of a node, and sizes of records.

use crate::page::bytes::PageBytes;
use crate::page::header::HEADER_BYTES;

pub(super) const COUNT: usize = HEADER_BYTES;
pub(super) const HEAP_START: usize = HEADER_BYTES + 2;
pub(super) const GARBAGE: usize = HEADER_BYTES + 4;
pub(super) const PREFIX_LEN: usize = HEADER_BYTES + 6;
pub(super) const LOWER_LEN: usize = HEADER_BYTES + 8;
pub(super) const UPPER_LEN: usize = HEADER_BYTES + 10;
pub(super) const UPPER_CHILD: usize = HEADER_BYTES + 12;
pub(super) const LAST_INSERT: usize = HEADER_BYTES + 16;
pub(super) const RUN: usize = HEADER_BYTES + 18;
pub(super) const SKIP: usize = HEADER_BYTES + 20;
/// First slot.
pub(crate) const SLOTS: usize = HEADER_BYTES + 22;
pub(super) const SLOT_BYTES: usize = 10;
pub(super) const SLOT_KEY_LEN: usize = 2;
pub(super) const SLOT_VALUE_LEN: usize = 4;
pub(super) const SLOT_HEAD: usize = 6;
/// Bytes of a suffix that live in its slot.
pub(super) const HEAD_BYTES: usize = 4;
/// Length that stands for "no fence".
pub(super) const NO_FENCE: u16 = u16::MAX;
/// `last_insert` when it is unknown.
pub(super) const NO_SLOT: u16 = u16::MAX;
/// Bytes of an inner record's value.
pub(crate) const CHILD_BYTES: usize = 4;

const _: () = assert!(SLOTS == 54 && SLOT_HEAD + HEAD_BYTES == SLOT_BYTES);

/// Longest key of a tree that is not declared to have long ones: an eighth of the page.
pub(crate) const fn max_key_bytes(page_bytes: usize) -> usize {
    page_bytes / 8
}

/// Longest key of any tree: seven 32nds of the page. Two fences and two separators of that length fit an inner page, so
/// that it can always be split.
pub(crate) const fn max_long_key_bytes(page_bytes: usize) -> usize {
    page_bytes / 32 * 7
}

/// Maximum bytes of key and value of a leaf's record, in a tree whose keys have up to `max_key_bytes`: half the page
/// less the longest key and 48 bytes. Two such records fit together with the longest fences, so a split always gives
/// enough space.
pub(super) const fn max_record_bytes(page_bytes: usize, max_key_bytes: usize) -> usize {
    page_bytes / 2 - max_key_bytes - 48
}

/// The offsets of a record's parts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct NodeRecord {
    /// Heap offset of the suffix without its head.
    pub offset: usize,
    pub suffix_len: usize,
    /// Length of the suffix without its head.
    pub rest_len: usize,
    pub value_len: usize,
}

impl NodeRecord {
    #[inline(always)]
    pub(crate) fn heap_bytes(self) -> usize {
        self.rest_len + self.value_len
    }

    #[inline(always)]
    pub(crate) fn value_offset(self) -> usize {
        self.offset + self.rest_len
    }
}

/// The maximum lengths of a tree's keys and records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TreeLimits {
    /// Longest key.
    pub max_key_bytes: usize,
    /// Most bytes of key and value together; see [`max_record_bytes`].
    pub max_record_bytes: usize,
}

impl TreeLimits {
    /// The limits of a tree whose keys have up to `max_key_bytes`; 0 means the longest key that a page of this size
    /// takes.
    pub(crate) const fn of(page_bytes: usize, max_key_bytes: usize) -> TreeLimits {
        let longest = max_long_key_bytes(page_bytes);
        let max_key_bytes = if max_key_bytes == 0 || max_key_bytes > longest { longest } else { max_key_bytes };
        TreeLimits { max_key_bytes, max_record_bytes: max_record_bytes(page_bytes, max_key_bytes) }
    }

    /// The limits of a tree that is not declared to have long keys.
    pub(crate) const fn usual(page_bytes: usize) -> TreeLimits {
        TreeLimits::of(page_bytes, max_key_bytes(page_bytes))
    }

    /// Longest value that a leaf takes with a key of this length.
    pub(crate) const fn max_value_bytes(self, key_bytes: usize) -> usize {
        self.max_record_bytes.saturating_sub(key_bytes)
    }
}

/// Whether two records fit a leaf and two separators an inner page, each in addition to two fences, in a tree of these
/// limits.
const fn limits_hold(page_bytes: usize, limits: TreeLimits) -> bool {
    let frame = SLOTS + 2 * limits.max_key_bytes;
    let separator = SLOT_BYTES + limits.max_key_bytes + CHILD_BYTES;
    frame + 2 * (SLOT_BYTES + limits.max_record_bytes) <= page_bytes && frame + 2 * separator <= page_bytes
}

const _: () = {
    let mut page_bytes = 4096;
    while page_bytes <= 16384 {
        let mut max_key_bytes = 1;
        while max_key_bytes <= max_long_key_bytes(page_bytes) {
            assert!(limits_hold(page_bytes, TreeLimits::of(page_bytes, max_key_bytes)));
            max_key_bytes += 1;
        }
        page_bytes *= 2;
    }
};

/// Offset of a slot.
#[inline(always)]
pub(super) const fn slot_at(slot: usize) -> usize {
    SLOTS + slot * SLOT_BYTES
}

/// Bytes of a suffix kept in the heap: all but the head. Grows with `skip` for suffixes that end within the head.
#[inline(always)]
pub(super) const fn rest_len(suffix_len: usize, skip: usize) -> usize {
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
pub(super) fn head_of(tail: &[u8]) -> u32 {
    (tail.word_at(0, tail.len().min(HEAD_BYTES)) >> 32) as u32
}

/// Length of the longest common prefix.
pub(crate) fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (words_a, words_b) = (a.as_chunks::<8>().0, b.as_chunks::<8>().0);
    let equal = words_a.iter().zip(words_b).take_while(|(x, y)| x == y).count() * 8;
    equal + a[equal..].iter().zip(&b[equal..]).take_while(|(x, y)| x == y).count()
}

/// Length of the prefix of a page with these fences.
pub(crate) fn prefix_of(lower: Option<&[u8]>, upper: Option<&[u8]>) -> usize {
    match (lower, upper) {
        (Some(lower), Some(upper)) => common_prefix(lower, upper),
        _ => 0,
    }
}

/// The shortest key `s` with `below < s <= above` that begins `above`. Needs `below < above`.
pub(crate) fn shortest_separator<'k>(below: &[u8], above: &'k [u8]) -> &'k [u8] {
    let len = common_prefix(below, above) + 1;
    above.get(..len).unwrap_or(above)
}
