//! Verifies that a page's bytes are a node: every offset, every length, every order.
//!
//! Rules
//! 1. A page that passes is safe to search and to change: no read leaves the page, no two records overlap, a compaction
//!    finds as much space as the header says.
//! 2. The check never panics on any bytes.

use super::layout::*;
use super::view::Node;
use crate::error::{Error, Result};
use crate::page::bytes::PageBytes;
use crate::page::header::{self, PageType};
use crate::types::PageNo;
use std::ops::Range;

/// Offsets in a page have 16 bits.
const MAX_PAGE_BYTES: usize = 1 << 15;

type Verdict = std::result::Result<(), String>;

/// Verifies that `page` is a well-formed node of the tree layout (type, bounds, prefix, order, children).
///
/// # Errors
/// [`Error::CorruptPage`] says what is wrong.
pub(crate) fn check(page: &[u8], page_no: PageNo) -> Result<()> {
    check_type(page)
        .and_then(|()| check_frame(page))
        .and_then(|()| check_records(page))
        .and_then(|()| check_children(page))
        .map_err(|reason| Error::corrupt_page(page_no, reason))
}

/// Whether the page is a well-formed node: for assertions.
pub(super) fn is_sound(page: &[u8]) -> bool {
    check(page, PageNo(0)).is_ok()
}

fn ensure(holds: bool, reason: impl FnOnce() -> String) -> Verdict {
    if holds { Ok(()) } else { Err(reason()) }
}

fn check_type(page: &[u8]) -> Verdict {
    ensure(page.len() > SLOTS && page.len() <= MAX_PAGE_BYTES, || format!("a node cannot have {} bytes", page.len()))?;
    let level = header::level(page);
    match PageType::from_u8(page.u8_at(header::TYPE)) {
        Some(PageType::Leaf) => ensure(level == 0, || format!("a leaf at level {level}")),
        Some(PageType::Inner) => ensure(level > 0, || "an inner page at level 0".to_string()),
        Some(other) => Err(format!("a tree page was expected, its type is {other:?}")),
        None => Err(format!("unknown page type {}", page.u8_at(header::TYPE))),
    }
}

/// Length of a fence in the page.
fn fence_bytes(stored: u16) -> usize {
    if stored == NO_FENCE { 0 } else { stored as usize }
}

/// Checks what is not a record: fences, prefix, slot area, heap bounds.
fn check_frame(page: &[u8]) -> Verdict {
    let fences = fence_bytes(page.u16_at(LOWER_LEN)) + fence_bytes(page.u16_at(UPPER_LEN));
    ensure(SLOTS + fences <= page.len(), || format!("fences of {fences} bytes do not fit the page"))?;
    let node = Node::new(page);
    let slots_end = slot_at(page.u16_at(COUNT) as usize);
    let heap_start = page.u16_at(HEAP_START) as usize;
    let heap_end = page.len() - fences;
    ensure(slots_end <= heap_start && heap_start <= heap_end, || {
        format!("slots end at {slots_end}, the heap is {heap_start}..{heap_end}")
    })?;
    let prefix_len = page.u16_at(PREFIX_LEN) as usize;
    let expected = prefix_of(node.lower(), node.upper());
    ensure(prefix_len == expected, || format!("prefix of {prefix_len} bytes, the fences share {expected}"))?;
    match (node.lower(), node.upper()) {
        (Some(lower), Some(upper)) => {
            ensure(lower < upper, || "the lower fence is not below the upper one".to_string())
        }
        _ => Ok(()),
    }
}

/// Checks the bounds of every record, the sum of the heap's bytes, and that keys ascend within the fences.
fn check_records(page: &[u8]) -> Verdict {
    let node = Node::new(page);
    let heap_start = page.u16_at(HEAP_START) as usize;
    let heap_end = node.heap_end();
    let mut heap_bytes = page.u16_at(GARBAGE) as usize;
    let mut taken = Taken([0; MAX_PAGE_BYTES / 64]);
    for slot in 0..node.count() {
        let record = node.record(slot);
        let end = record.offset + record.heap_bytes();
        let starts_inside = record.offset >= heap_start || record.heap_bytes() == 0;
        ensure(starts_inside && end <= heap_end, || {
            format!("record {slot} at {}..{end} is outside the heap {heap_start}..{heap_end}", record.offset)
        })?;
        ensure(taken.take(record.offset..end), || format!("record {slot} overlaps another one"))?;
        let padding = HEAD_BYTES.saturating_sub(record.suffix_len.saturating_sub(node.skip())) as u32 * 8;
        let kept = if padding >= 32 { 0 } else { node.head(slot) >> padding << padding };
        ensure(node.head(slot) == kept, || format!("the head of record {slot} is longer than its key"))?;
        ensure(shares_skipped(node, slot), || {
            format!("record {slot} does not start with the prefix that all others have")
        })?;
        ensure(slot == 0 || is_ascending(node, slot), || format!("record {slot} is not above the previous one"))?;
        heap_bytes += record.heap_bytes();
    }
    ensure(heap_bytes == heap_end - heap_start, || {
        format!("records and garbage are {heap_bytes} bytes, the heap {}", heap_end - heap_start)
    })?;
    check_bounds(node)
}

/// A bitmap of the page's bytes that belong to records seen so far.
struct Taken([u64; MAX_PAGE_BYTES / 64]);

impl Taken {
    /// Takes `bytes`, which are within the page; false if one of them is taken.
    fn take(&mut self, bytes: Range<usize>) -> bool {
        let mut are_free = true;
        let mut at = bytes.start;
        while at < bytes.end {
            let (first, end) = (at % 64, bytes.end.min(at / 64 * 64 + 64));
            let mask = (u64::MAX >> (64 - (end - at))) << first;
            are_free &= self.0[at / 64] & mask == 0;
            self.0[at / 64] |= mask;
            at = end;
        }
        are_free
    }
}

fn shares_skipped(node: Node<'_>, slot: usize) -> bool {
    let skip = node.skip();
    skip == 0 || (node.record(slot).suffix_len >= skip && node.rest(slot).get(..skip) == Some(node.skipped()))
}

fn is_ascending(node: Node<'_>, slot: usize) -> bool {
    let tail_len = |slot: usize| node.record(slot).suffix_len.saturating_sub(node.skip());
    let (before, here) = (node.head(slot - 1), node.head(slot));
    if before != here {
        return before < here;
    }
    if tail_len(slot - 1) <= HEAD_BYTES || tail_len(slot) <= HEAD_BYTES {
        return tail_len(slot - 1) < tail_len(slot);
    }
    node.rest(slot - 1) < node.rest(slot)
}

/// Checks the first and the last key against the fences. The separators of an inner page are strictly inside.
fn check_bounds(node: Node<'_>) -> Verdict {
    if node.count() == 0 {
        return Ok(());
    }
    let (first, last) = (node.key(0), node.key(node.count() - 1));
    let above_lower = node.lower().is_none_or(|lower| lower < &first[..] || (node.is_leaf() && lower == first));
    ensure(above_lower, || "the first key is below the lower fence".to_string())?;
    ensure(node.upper().is_none_or(|upper| &last[..] < upper), || {
        "the last key is not below the upper fence".to_string()
    })
}

fn check_children(page: &[u8]) -> Verdict {
    let node = Node::new(page);
    let upper_child = page.u32_at(UPPER_CHILD);
    if node.is_leaf() {
        return ensure(upper_child == 0, || format!("a leaf with child page {upper_child}"));
    }
    for slot in 0..node.count() {
        let len = node.record(slot).value_len;
        ensure(len == CHILD_BYTES, || format!("separator {slot} has a value of {len} bytes"))?;
    }
    let nowhere = (0..=node.count()).find(|slot| node.child(*slot) == PageNo(0));
    ensure(nowhere.is_none(), || "a child pointer to page 0".to_string())
}
