//! Finding a slot by its key, in latched pages and optimistic views alike.

use super::layout::*;
use crate::page::bytes::PageBytes;
use crate::types::PageNo;
use std::cmp::Ordering;
use std::ops::Range;

/// The part of a key after its head, ready to be compared many times.
#[derive(Clone, Copy)]
struct Behind<'k> {
    /// Bytes of the key from the head on.
    tail_len: usize,
    /// Bytes after the head.
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

/// The order of the first `skip` bytes of all suffixes relative to a suffix.
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

/// Continues among the records of `range`; the heads of the first few are that of the key.
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
pub(crate) fn search<B: PageBytes + ?Sized>(page: &B, key: &[u8]) -> std::result::Result<usize, usize> {
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

/// Position of the child of an inner page that covers `key`; the record count stands for the upper child. `key` is
/// within the page's fences.
#[inline]
pub(crate) fn child_slot_covering<B: PageBytes + ?Sized>(page: &B, key: &[u8]) -> usize {
    let prefix_len = page.u16_at(PREFIX_LEN) as usize;
    match search_suffix(page, key.get(prefix_len..).unwrap_or(&[])) {
        Ok(slot) => slot + 1,
        Err(slot) => slot,
    }
}

/// Position of the child of an inner page that holds the keys just below `key` (`lower < key <= upper`).
#[inline]
pub(crate) fn child_slot_before<B: PageBytes + ?Sized>(page: &B, key: &[u8]) -> usize {
    let prefix_len = page.u16_at(PREFIX_LEN) as usize;
    match search_suffix(page, key.get(prefix_len..).unwrap_or(&[])) {
        Ok(slot) | Err(slot) => slot,
    }
}

/// Whether the page's fences cover `key`: `lower <= key < upper`.
#[inline]
pub(crate) fn covers<B: PageBytes + ?Sized>(page: &B, key: &[u8]) -> bool {
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

/// Whether the page has no fence: it covers every key, as a root must.
#[inline]
pub(crate) fn is_unbounded<B: PageBytes + ?Sized>(page: &B) -> bool {
    page.u16_at(LOWER_LEN) == NO_FENCE && page.u16_at(UPPER_LEN) == NO_FENCE
}

/// The offsets of a record's parts; meaningless for a slot that does not exist.
#[inline(always)]
pub(crate) fn record<B: PageBytes + ?Sized>(page: &B, slot: usize) -> NodeRecord {
    let at = slot_at(slot);
    let suffix_len = page.u16_at(at + SLOT_KEY_LEN) as usize;
    NodeRecord {
        offset: page.u16_at(at) as usize,
        suffix_len,
        rest_len: rest_len(suffix_len, page.u16_at(SKIP) as usize),
        value_len: page.u16_at(at + SLOT_VALUE_LEN) as usize,
    }
}

/// The child at a position.
#[inline]
pub(crate) fn child_at<B: PageBytes + ?Sized>(page: &B, slot: usize) -> PageNo {
    if slot >= count(page) {
        return PageNo(page.u32_at(UPPER_CHILD));
    }
    let offset = slot_at(slot);
    let rest = rest_len(page.u16_at(offset + SLOT_KEY_LEN) as usize, page.u16_at(SKIP) as usize);
    PageNo(page.u32_at(page.u16_at(offset) as usize + rest))
}

/// Whether the child at `slot` of an inner page has the fences that its parent's separators give it, so that both are
/// of the same version of the tree.
pub(crate) fn fences_child<P, C>(parent: &P, slot: usize, child: &C) -> bool
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

/// Offset of the first byte of the heap.
#[inline]
pub(crate) fn heap_start<B: PageBytes + ?Sized>(page: &B) -> usize {
    page.u16_at(HEAP_START) as usize
}

#[inline]
pub(crate) fn count<B: PageBytes + ?Sized>(page: &B) -> usize {
    page.u16_at(COUNT) as usize
}
