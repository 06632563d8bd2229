//! Changing many records of a node at once: appending, new fences. The rules of `edit` hold here too.

use super::edit::*;
use super::layout::*;
use super::view::Node;
use crate::page::bytes::{PageBytes, put_u16};
use crate::page::varint::Reader;
use crate::types::PageNo;
use std::ops::Range;

/// One record of the packed form `NodeAppend` carries.
struct Packed<'a> {
    suffix: &'a [u8],
    value: &'a [u8],
}

fn next_packed<'a>(reader: &mut Reader<'a>) -> Option<Packed<'a>> {
    let suffix_len = reader.u16()? as usize;
    let value_len = reader.u16()? as usize;
    Some(Packed { suffix: reader.bytes(suffix_len)?, value: reader.bytes(value_len)? })
}

/// Appends records packed by `op::pack_record` behind the last one.
pub fn append(page: &mut [u8], packed: &[u8]) -> Fit {
    let (count, _) = frame(page)?;
    let (added, bytes) = check_packed(page, packed)?;
    let node = Node::new(page);
    if node.skip() != 0 || node.contiguous_bytes() < bytes {
        rebuild(page, 0..count, None, 0, bytes)?;
    }
    let mut reader = Reader::new(packed);
    let (mut slot, mut free) = (count, page.u16_at(HEAP_START) as usize);
    while let Some(record) = next_packed(&mut reader) {
        free -= rest_len(record.suffix.len(), 0) + record.value.len();
        write_record(page, slot, free, 0, record.suffix, record.value);
        slot += 1;
    }
    put_u16(page, HEAP_START, free as u16);
    put_u16(page, COUNT, slot as u16);
    if added > 0 {
        put_u16(page, LAST_INSERT, slot as u16 - 1);
        put_u16(page, RUN, added as u16);
    }
    raise_skip(page);
    Ok(())
}

/// Checks that the packed records are well-formed, ascending, and fit; returns how many they are and their bytes.
fn check_packed(page: &[u8], packed: &[u8]) -> Fit<(usize, usize)> {
    let node = Node::new(page);
    let mut before = None;
    if node.count() > 0 {
        let mut last = Vec::new();
        node.append_suffix(node.count() - 1, &mut last);
        before = Some(last);
    }
    let mut before = before.as_deref();
    let mut reader = Reader::new(packed);
    let (mut records, mut bytes) = (0, 0);
    while !reader.is_at_end() {
        let record = next_packed(&mut reader).ok_or("the packed records are cut short")?;
        if before.is_some_and(|before| before >= record.suffix) {
            return Err("the packed records are not in order");
        }
        if !node.is_leaf() && record.value.len() != CHILD_BYTES {
            return Err("an inner record's value is a page number");
        }
        bytes += record_bytes(record.suffix.len(), record.value.len());
        before = Some(record.suffix);
        records += 1;
    }
    let first = next_packed(&mut Reader::new(packed)).map(|record| record.suffix);
    check_packed_bounds(node, first, before)?;
    if bytes > node.free_bytes() + node.skip() * node.count() { Err(NO_ROOM) } else { Ok((records, bytes)) }
}

/// Checks suffixes that are to be first and last against the fences.
fn check_packed_bounds(node: Node<'_>, first: Option<&[u8]>, last: Option<&[u8]>) -> Fit {
    let prefix_len = node.prefix_len();
    let bound = |fence: Option<&[u8]>| fence.map(|fence| fence.get(prefix_len..).unwrap_or(&[]).to_vec());
    let above = bound(node.lower()).is_none_or(|lower| first.is_none_or(|first| &lower[..] <= first));
    let below = bound(node.upper()).is_none_or(|upper| last.is_none_or(|last| last < &upper[..]));
    if above && below { Ok(()) } else { Err(NOT_IN_RANGE) }
}

/// Keeps the records `range` only and gives the page new fences (narrower or wider), rebuilding it with the new prefix.
pub fn refence(page: &mut [u8], range: Range<usize>, fences: Fences<'_>) -> Fit {
    let (count, _) = frame(page)?;
    if range.start > range.end || range.end > count {
        return Err(NO_SUCH_SLOT);
    }
    fences.check(page)?;
    rebuild(page, range, Some(fences), 0, 0)?;
    raise_skip(page);
    Ok(())
}

/// Writes the records `range` again with these fences (`None`: those it has) and this `skip`, which all of them
/// share. Checks first that `spare` bytes are free afterwards.
pub fn rebuild(page: &mut [u8], range: Range<usize>, fences: Option<Fences<'_>>, skip: usize, spare: usize) -> Fit {
    let old = page.to_vec();
    let node = Node::new(&old);
    let upper_child = PageNo(old.u32_at(UPPER_CHILD));
    let fences = fences.unwrap_or(Fences { lower: node.lower(), upper: node.upper(), upper_child });
    fences.check(&old)?;
    let tails = Tails::new(node, range.clone(), fences)?;
    let bytes = node.rebuilt_bytes_with(range.clone(), tails.prefix_len, skip);
    if SLOTS + fences.bytes() + bytes + spare > page.len() {
        return Err(NO_ROOM);
    }
    let (last, run) = (old.u16_at(LAST_INSERT), old.u16_at(RUN));
    write_frame(page, fences);
    if let Err(misfit) = rewrite(page, &tails, range.clone(), skip) {
        page.copy_from_slice(&old);
        return Err(misfit);
    }
    put_u16(page, COUNT, range.len() as u16);
    put_u16(page, SKIP, skip as u16);
    if last != NO_SLOT && range.contains(&(last as usize)) {
        put_u16(page, LAST_INSERT, last - range.start as u16);
        put_u16(page, RUN, run);
    }
    Ok(())
}

/// Writes records of a node into a page that has its new frame and room for them.
fn rewrite(page: &mut [u8], tails: &Tails<'_>, range: Range<usize>, skip: usize) -> Fit {
    let mut free = page.u16_at(HEAP_START) as usize;
    let mut tail = Vec::with_capacity(max_key_bytes(page.len()));
    for slot in range.clone() {
        let (suffix, value) = tails.read(slot, &mut tail)?;
        free -= rest_len(suffix.len(), skip) + value.len();
        write_record(page, slot - range.start, free, skip, suffix, value);
    }
    put_u16(page, HEAP_START, free as u16);
    Ok(())
}

/// The keys of a node on their way to other fences, without the bytes that the old and the new prefix share.
struct Tails<'a> {
    node: Node<'a>,
    /// The rest of the old prefix.
    before: &'a [u8],
    /// What is left of the new fences.
    lower: Option<&'a [u8]>,
    upper: Option<&'a [u8]>,
    /// Length of the new prefix, and what of it tails begin with.
    prefix_len: usize,
    dropped: usize,
}

impl<'a> Tails<'a> {
    fn new(node: Node<'a>, range: Range<usize>, fences: Fences<'a>) -> Fit<Tails<'a>> {
        let prefix_len = prefix_of(fences.lower, fences.upper);
        let shared = prefix_len.min(node.prefix_len());
        let prefix = node.prefix();
        if !range.is_empty() && prefix.len() != node.prefix_len() {
            return Err(NOT_A_NODE);
        }
        // Where `shared` is not 0 there are both fences, and they begin alike.
        if !range.is_empty() && fences.lower.is_some_and(|lower| lower.get(..shared) != prefix.get(..shared)) {
            return Err(NOT_IN_RANGE);
        }
        let rest = |fence: Option<&'a [u8]>| fence.map(|fence| fence.get(shared..).unwrap_or(&[]));
        Ok(Tails {
            node,
            before: prefix.get(shared..).unwrap_or(&[]),
            lower: rest(fences.lower),
            upper: rest(fences.upper),
            prefix_len,
            dropped: prefix_len - shared,
        })
    }

    /// The suffix that the key of `slot` has with the new prefix, made in `tail`, and the value. The record must be
    /// readable and lie within the new fences (so that it begins with the new prefix).
    #[inline]
    fn read<'t>(&self, slot: usize, tail: &'t mut Vec<u8>) -> Fit<(&'t [u8], &'a [u8])> {
        tail.clear();
        tail.extend_from_slice(self.before);
        let value = self.node.append_record(slot, tail).ok_or(NOT_A_NODE)?;
        let above = self.lower.is_none_or(|lower| lower <= &tail[..]);
        if !above || self.upper.is_some_and(|upper| &tail[..] >= upper) {
            return Err(NOT_IN_RANGE);
        }
        tail.get(self.dropped..).map(|suffix| (suffix, value)).ok_or(NOT_IN_RANGE)
    }
}
