//! Changing a node, a record at a time; many at once is in `bulk`. Called by `PageOp::apply` only.
//!
//! Rules
//! 1. The result of each function depends only on the page's bytes and its arguments (recovery repeats it).
//! 2. Everything is checked before the first byte changes; `Err` leaves the page unchanged.
//! 3. New records go to the low end of the heap; removed bytes are counted as garbage; a compaction reclaims them when
//!    (and only when) the space between slots and heap is too small.
//! 4. `skip` falls when an insertion does not share the bytes skipped, and rises again at certain record counts and
//!    after bulk changes. A fall never needs space.

use super::bulk::rebuild;
use super::layout::*;
use super::run::AscendingRun;
use super::view::Node;
use crate::page::bytes::{PageBytes, put_u16, put_u32};
use crate::page::header::{self, PageType};
use crate::types::PageNo;
use std::ops::Range;

/// The reason why an operation does not fit a page.
pub(crate) type Misfit = &'static str;
pub(super) type Fit<T = ()> = std::result::Result<T, Misfit>;

pub(super) const NOT_A_NODE: Misfit = "the page is not a valid node";
pub(super) const NO_SUCH_SLOT: Misfit = "no such slot";
pub(super) const NO_ROOM: Misfit = "not enough room";
pub(super) const NOT_IN_RANGE: Misfit = "a key outside the page's fences";

/// The new fences of a node.
#[derive(Clone, Copy)]
pub(crate) struct Fences<'a> {
    pub lower: Option<&'a [u8]>,
    pub upper: Option<&'a [u8]>,
    pub upper_child: PageNo,
}

impl Fences<'_> {
    /// Bytes they take in the heap.
    pub(crate) fn bytes(&self) -> usize {
        self.lower.map_or(0, <[u8]>::len) + self.upper.map_or(0, <[u8]>::len)
    }

    pub(crate) fn check(&self, page: &[u8]) -> Fit {
        let is_leaf = page.u8_at(header::TYPE) == PageType::Leaf as u8;
        let is_inner = page.u8_at(header::TYPE) == PageType::Inner as u8;
        if !(is_leaf || is_inner) || is_leaf != (header::level(page) == 0) || is_leaf != (self.upper_child == PageNo(0))
        {
            return Err("the type and level of the page do not match these fences");
        }
        if let (Some(lower), Some(upper)) = (self.lower, self.upper)
            && lower >= upper
        {
            return Err("the lower fence is not below the upper one");
        }
        if page.len() > 1 << 15 || SLOTS + self.bytes() > page.len() { Err(NO_ROOM) } else { Ok(()) }
    }
}

/// Makes the page an empty node.
pub(crate) fn format(page: &mut [u8], fences: Fences<'_>) -> Fit {
    fences.check(page)?;
    write_frame(page, fences);
    Ok(())
}

/// Writes header fields and fences of an empty node. The caller has checked that they fit.
pub(super) fn write_frame(page: &mut [u8], fences: Fences<'_>) {
    let len_of = |fence: Option<&[u8]>| fence.map_or(NO_FENCE, |bytes| bytes.len() as u16);
    let lower_at = page.len() - fences.lower.map_or(0, <[u8]>::len);
    let heap_end = page.len() - fences.bytes();
    page[lower_at..].copy_from_slice(fences.lower.unwrap_or(&[]));
    page[heap_end..lower_at].copy_from_slice(fences.upper.unwrap_or(&[]));
    put_u16(page, COUNT, 0);
    put_u16(page, HEAP_START, heap_end as u16);
    put_u16(page, GARBAGE, 0);
    put_u16(page, PREFIX_LEN, prefix_of(fences.lower, fences.upper) as u16);
    put_u16(page, LOWER_LEN, len_of(fences.lower));
    put_u16(page, UPPER_LEN, len_of(fences.upper));
    put_u32(page, UPPER_CHILD, fences.upper_child.0);
    AscendingRun::NONE.write(page);
    put_u16(page, SKIP, 0);
    let node = Node::new(page);
    debug_assert_eq!((node.lower(), node.upper()), (fences.lower, fences.upper), "fences are not read as written");
}

/// Slot count, start and end of the heap, when they make sense together.
#[inline(always)]
pub(super) fn frame(page: &[u8]) -> Fit<(usize, usize)> {
    let count = page.u16_at(COUNT) as usize;
    let heap_start = page.u16_at(HEAP_START) as usize;
    let is_node = PageType::from_u8(page.u8_at(header::TYPE)).is_some_and(PageType::is_node);
    if is_node && slot_at(count) <= heap_start && heap_start <= page.len() {
        Ok((count, heap_start))
    } else {
        Err(NOT_A_NODE)
    }
}

/// Writes slot and heap bytes of a record whose heap bytes begin at `offset`.
#[inline(always)]
pub(super) fn write_record(page: &mut [u8], slot: usize, offset: usize, skip: usize, suffix: &[u8], value: &[u8]) {
    let (before, tail) = suffix.split_at(skip.min(suffix.len()));
    let behind = tail.get(HEAD_BYTES..).unwrap_or(&[]);
    let at = slot_at(slot);
    put_u16(page, at, offset as u16);
    put_u16(page, at + SLOT_KEY_LEN, suffix.len() as u16);
    put_u16(page, at + SLOT_VALUE_LEN, value.len() as u16);
    put_u32(page, at + SLOT_HEAD, head_of(tail));
    let target = &mut page[offset..offset + before.len() + behind.len() + value.len()];
    if !before.is_empty() {
        target[..before.len()].copy_from_slice(before);
    }
    let target = &mut target[before.len()..];
    target[..behind.len()].copy_from_slice(behind);
    target[behind.len()..].copy_from_slice(value);
}

pub(super) fn add_garbage(page: &mut [u8], bytes: usize) {
    let garbage = (page.u16_at(GARBAGE) as usize + bytes).min(page.len());
    put_u16(page, GARBAGE, garbage as u16);
}

/// Inserts a record with a whole key at `slot`.
pub(crate) fn insert(page: &mut [u8], slot: usize, key: &[u8], value: &[u8]) -> Fit {
    let node = Node::new(page);
    let (count, _) = frame(page)?;
    if slot > count {
        return Err(NO_SUCH_SLOT);
    }
    let Some(suffix) = key.strip_prefix(node.prefix()) else { return Err(NOT_IN_RANGE) };
    if !node.is_leaf() && value.len() != CHILD_BYTES {
        return Err("an inner record's value is a page number");
    }
    let mut skip = node.skip();
    if skip != 0 && !(count != 0 && suffix.starts_with(node.skipped()) && suffix.len() >= skip) {
        skip = lower_skip(page, suffix, value.len())?;
    }
    let heap_bytes = rest_len(suffix.len(), skip) + value.len();
    if Node::new(page).contiguous_bytes() < SLOT_BYTES + heap_bytes {
        compact(page, None, SLOT_BYTES + heap_bytes)?;
    }
    let offset = page.u16_at(HEAP_START) as usize - heap_bytes;
    debug_assert!(offset >= slot_at(count + 1), "record {slot} at {offset} reaches into the slots of {count}");
    page.copy_within(slot_at(slot)..slot_at(count), slot_at(slot + 1));
    write_record(page, slot, offset, skip, suffix, value);
    put_u16(page, HEAP_START, offset as u16);
    put_u16(page, COUNT, count as u16 + 1);
    debug_assert_eq!(Node::new(page).value(slot), value, "record {slot} is not read as it is inserted");
    AscendingRun::of(page).inserted(slot, || Node::new(page).full_count()).write(page);
    if matches!(count + 1, 8 | 32 | 128 | 512) {
        raise_skip(page);
    }
    Ok(())
}

/// Lowers `skip` to the bytes that `suffix` shares with the page's records, if a record with that `skip` fits.
#[cold]
fn lower_skip(page: &mut [u8], suffix: &[u8], value_len: usize) -> Fit<usize> {
    let node = Node::new(page);
    let skip = if node.count() == 0 { 0 } else { common_prefix(node.skipped(), suffix) };
    let need = SLOT_BYTES + rest_len(suffix.len(), skip) + value_len;
    if node.free_bytes() < need {
        return Err(NO_ROOM);
    }
    rebuild(page, 0..node.count(), None, skip, need)?;
    debug_assert_eq!(Node::new(page).skip(), skip, "rule 4: skip does not fall to {skip}");
    Ok(skip)
}

/// Raises `skip` as far as [`worthwhile_skip`] says.
pub(super) fn raise_skip(page: &mut [u8]) {
    let node = Node::new(page);
    let Some(last) = node.count().checked_sub(1).filter(|last| *last > 0) else { return };
    let now = node.skip();
    let suffixes = Suffixes {
        common: node.common_suffix_len(0, last),
        shortest: || (0..=last).map(|slot| node.record(slot).suffix_len).min().unwrap_or(0),
        bytes: |skip| node.rebuilt_bytes_with(0..last + 1, node.prefix_len(), skip),
    };
    let skip = worthwhile_skip(node, now, node.free_bytes(), suffixes);
    if skip > now {
        // A page that is not a valid node keeps the skip it has.
        let _ = rebuild(page, 0..last + 1, None, skip, 0);
    }
}

/// The suffixes on which the choice of a `skip` depends.
pub(super) struct Suffixes<S, B> {
    /// Bytes that all suffixes begin with.
    pub common: usize,
    /// Length of the shortest one.
    pub shortest: S,
    /// Bytes of all records with a `skip`.
    pub bytes: B,
}

/// The best `skip` instead of `now`. On a leaf, the largest for which no record takes more space (the heads of the
/// shortest keys reach to their ends then). On an inner page, all bytes that the suffixes have in common, unless that
/// takes more than half of the `free` space.
pub(super) fn worthwhile_skip<S, B>(node: Node<'_>, now: usize, free: usize, suffixes: Suffixes<S, B>) -> usize
where
    S: FnOnce() -> usize,
    B: Fn(usize) -> usize,
{
    let mut skip = suffixes.common;
    if skip > now && node.is_leaf() {
        skip = skip.min((suffixes.shortest)().saturating_sub(HEAD_BYTES));
    }
    let takes = |skip| (suffixes.bytes)(skip).saturating_sub((suffixes.bytes)(now));
    if skip > now && (node.is_leaf() || takes(skip) <= free / 2) { skip } else { now }
}

/// Removes the record at `slot`.
pub(crate) fn remove(page: &mut [u8], slot: usize) -> Fit {
    let (count, heap_start) = frame(page)?;
    if slot >= count {
        return Err(NO_SUCH_SLOT);
    }
    let record = Node::new(page).record(slot);
    let heap_bytes = record.heap_bytes();
    page.copy_within(slot_at(slot + 1)..slot_at(count), slot_at(slot));
    put_u16(page, COUNT, count as u16 - 1);
    if record.offset == heap_start && heap_start + heap_bytes <= page.len() {
        put_u16(page, HEAP_START, (heap_start + heap_bytes) as u16);
    } else {
        add_garbage(page, heap_bytes);
    }
    AscendingRun::of(page).removed(slot).write(page);
    Ok(())
}

/// In the value of `slot`: replaces `remove` bytes at `at` with `bytes`.
pub(crate) fn splice(page: &mut [u8], slot: usize, at: usize, remove: usize, bytes: &[u8]) -> Fit {
    let node = Node::new(page);
    let (count, heap_start) = frame(page)?;
    if slot >= count {
        return Err(NO_SUCH_SLOT);
    }
    let record = node.record(slot);
    let value_end = record.value_offset() + record.value_len;
    let is_inside = record.offset >= heap_start || record.heap_bytes() == 0;
    if !is_inside || value_end > page.len() {
        return Err(NOT_A_NODE);
    }
    if at + remove > record.value_len {
        return Err("bytes beyond the value's end");
    }
    let value_len = record.value_len - remove + bytes.len();
    if !node.is_leaf() && value_len != CHILD_BYTES {
        return Err("an inner record's value is a page number");
    }
    let start = record.value_offset() + at;
    if bytes.len() > remove {
        return grow(page, slot, start..start + remove, bytes);
    }
    page[start..start + bytes.len()].copy_from_slice(bytes);
    if bytes.len() < remove {
        page.copy_within(start + remove..value_end, start + bytes.len());
        put_u16(page, slot_at(slot) + SLOT_VALUE_LEN, value_len as u16);
        add_garbage(page, remove - bytes.len());
    }
    let value = Node::new(page).value(slot);
    debug_assert_eq!(value.get(at..at + bytes.len()), Some(bytes), "record {slot} is not read as it is spliced");
    Ok(())
}

/// Replaces `hole` (page offsets within the value of `slot`) with more bytes than it has: the record moves to a new
/// place. The caller has checked slot and hole.
fn grow(page: &mut [u8], slot: usize, hole: Range<usize>, bytes: &[u8]) -> Fit {
    let node = Node::new(page);
    let record = node.record(slot);
    let new_len = record.value_len - hole.len() + bytes.len();
    let heap_bytes = record.heap_bytes() - hole.len() + bytes.len();
    if node.free_bytes() < bytes.len() - hole.len() || new_len > page.len() {
        return Err(NO_ROOM);
    }
    let end = record.offset + record.heap_bytes();
    let place = |page: &[u8]| page.u16_at(HEAP_START) as usize - heap_bytes;
    let offset = if node.contiguous_bytes() >= heap_bytes {
        let offset = place(page);
        let tail_at = offset + (hole.start - record.offset) + bytes.len();
        page.copy_within(record.offset..hole.start, offset);
        page.copy_within(hole.end..end, tail_at);
        add_garbage(page, record.heap_bytes());
        offset
    } else {
        let old = compact(page, Some(slot), heap_bytes)?;
        let offset = place(page);
        let tail_at = offset + (hole.start - record.offset) + bytes.len();
        page[offset..tail_at - bytes.len()].copy_from_slice(&old[record.offset..hole.start]);
        page[tail_at..tail_at + (end - hole.end)].copy_from_slice(&old[hole.end..end]);
        offset
    };
    debug_assert!(offset >= slot_at(Node::new(page).count()), "record {slot} grows to {offset}, into the slots");
    let bytes_at = offset + (hole.start - record.offset);
    page[bytes_at..bytes_at + bytes.len()].copy_from_slice(bytes);
    put_u16(page, slot_at(slot), offset as u16);
    put_u16(page, slot_at(slot) + SLOT_VALUE_LEN, new_len as u16);
    put_u16(page, HEAP_START, offset as u16);
    let grown = Node::new(page).record(slot);
    debug_assert_eq!((grown.offset, grown.value_len), (offset, new_len), "record {slot} grows, and is read elsewhere");
    Ok(())
}

/// Reclaims garbage: writes the records again, in slot order, if that gives `need` contiguous free bytes. The record of
/// slot `without` is left out (its slot stays and is set later). Returns the page as it was.
fn compact(page: &mut [u8], without: Option<usize>, need: usize) -> Fit<Vec<u8>> {
    if without.is_none() && Node::new(page).free_bytes() < need {
        return Err(NO_ROOM);
    }
    let old = page.to_vec();
    let node = Node::new(&old);
    let (count, _) = frame(&old)?;
    let kept = || (0..count).filter(|slot| Some(*slot) != without);
    let heap_end = node.heap_end();
    let mut left = heap_end.checked_sub(slot_at(count)).ok_or(NOT_A_NODE)?;
    for record in kept().map(|slot| node.record(slot)) {
        left = left.checked_sub(record.heap_bytes()).ok_or(NOT_A_NODE)?;
        if record.offset + record.heap_bytes() > old.len() {
            return Err(NOT_A_NODE);
        }
    }
    if left < need {
        return Err(NOT_A_NODE);
    }
    let mut free = heap_end;
    for slot in kept() {
        let record = node.record(slot);
        free -= record.heap_bytes();
        debug_assert!(free >= slot_at(count), "record {slot} moves to {free}, into the slots of {count}");
        page[free..free + record.heap_bytes()]
            .copy_from_slice(&old[record.offset..record.offset + record.heap_bytes()]);
        put_u16(page, slot_at(slot), free as u16);
    }
    debug_assert!(free - slot_at(count) >= need, "rule 3: a compaction finds {} of {need}", free - slot_at(count));
    put_u16(page, HEAP_START, free as u16);
    put_u16(page, GARBAGE, 0);
    Ok(old)
}

/// Sets a child pointer of an inner page; `slot` = record count means the upper child.
pub(crate) fn set_child(page: &mut [u8], slot: usize, child: PageNo) -> Fit {
    let (count, _) = frame(page)?;
    if slot > count || header::level(page) == 0 || child == PageNo(0) {
        return Err(NO_SUCH_SLOT);
    }
    if slot == count {
        put_u32(page, UPPER_CHILD, child.0);
        return Ok(());
    }
    let record = Node::new(page).record(slot);
    if record.value_len != CHILD_BYTES || record.value_offset() + CHILD_BYTES > page.len() {
        return Err(NOT_A_NODE);
    }
    put_u32(page, record.value_offset(), child.0);
    debug_assert_eq!(Node::new(page).child(slot), child, "the child of separator {slot} is read elsewhere");
    Ok(())
}
