//! Changing many records of a node at once: appending, new fences. The rules of `edit` hold here too.

use super::edit::*;
use super::layout::*;
use super::run::AscendingRun;
use super::view::Node;
use crate::page::bytes::{PageBytes, put_u16};
use crate::page::varint::VarintReader;
use crate::types::PageNo;
use std::ops::Range;

/// One record of the packed form `NodeAppend` carries.
struct Packed<'a> {
    suffix: &'a [u8],
    value: &'a [u8],
}

fn next_packed<'a>(reader: &mut VarintReader<'a>) -> Option<Packed<'a>> {
    let suffix_len = reader.u16()? as usize;
    let value_len = reader.u16()? as usize;
    Some(Packed { suffix: reader.bytes(suffix_len)?, value: reader.bytes(value_len)? })
}

/// Packed records that were checked.
struct Checked<'a> {
    records: usize,
    /// Bytes they take with `skip` 0.
    bytes: usize,
    first: &'a [u8],
    last: &'a [u8],
    /// Length of the shortest suffix.
    shortest: usize,
}

/// Appends records packed by `op::pack_record` after the last one.
pub(crate) fn append(page: &mut [u8], packed: &[u8]) -> Fit {
    let (count, _) = frame(page)?;
    let checked = check_packed(page, packed)?;
    let node = Node::new(page);
    if node.skip() != 0 || node.contiguous_bytes() < checked.bytes {
        rebuild(page, 0..count, None, 0, checked.bytes)?;
    }
    let skip = if count == 0 { skip_of(Node::new(page), packed, &checked) } else { 0 };
    let mut reader = VarintReader::new(packed);
    let (mut slot, mut free) = (count, page.u16_at(HEAP_START) as usize);
    while let Some(record) = next_packed(&mut reader) {
        free -= rest_len(record.suffix.len(), skip) + record.value.len();
        write_record(page, slot, free, skip, record.suffix, record.value);
        slot += 1;
    }
    debug_assert_eq!(slot, count + checked.records, "records are appended to {count}");
    debug_assert!(slot_at(slot) <= free, "{slot} slots reach into the heap at {free}");
    put_u16(page, HEAP_START, free as u16);
    put_u16(page, COUNT, slot as u16);
    put_u16(page, SKIP, skip as u16);
    if checked.records > 0 {
        AscendingRun::of_appended(checked.records, slot).write(page);
    }
    if count != 0 {
        raise_skip(page);
    }
    Ok(())
}

/// The `skip` of an empty page that gets these records: the same that [`raise_skip`] would give it.
fn skip_of(node: Node<'_>, packed: &[u8], checked: &Checked<'_>) -> usize {
    if checked.records < 2 {
        return 0;
    }
    let bytes = |skip| {
        let mut reader = VarintReader::new(packed);
        let records = std::iter::from_fn(|| next_packed(&mut reader));
        records.map(|record| SLOT_BYTES + rest_len(record.suffix.len(), skip) + record.value.len()).sum()
    };
    let common = common_prefix(checked.first, checked.last);
    let suffixes = Suffixes { common, shortest: || checked.shortest, bytes };
    worthwhile_skip(node, 0, node.free_bytes().saturating_sub(checked.bytes), suffixes)
}

/// Checks that the packed records are well-formed, ascending, and fit.
fn check_packed<'a>(page: &[u8], packed: &'a [u8]) -> Fit<Checked<'a>> {
    let node = Node::new(page);
    let mut present = Vec::new();
    if let Some(last) = node.count().checked_sub(1) {
        node.append_suffix(last, &mut present);
    }
    let mut before = (node.count() > 0).then_some(&present[..]);
    let mut reader = VarintReader::new(packed);
    let mut checked = Checked { records: 0, bytes: 0, first: &[], last: &[], shortest: usize::MAX };
    while !reader.is_at_end() {
        let Packed { suffix, value } = next_packed(&mut reader).ok_or("the packed records are cut short")?;
        if before.is_some_and(|before| before >= suffix) {
            return Err("the packed records are not in order");
        }
        if !node.is_leaf() && value.len() != CHILD_BYTES {
            return Err("an inner record's value is a page number");
        }
        if checked.records == 0 {
            checked.first = suffix;
        }
        checked.records += 1;
        checked.bytes += record_bytes(suffix.len(), value.len());
        checked.shortest = checked.shortest.min(suffix.len());
        checked.last = suffix;
        before = Some(suffix);
    }
    check_packed_bounds(node, (checked.records > 0).then_some(checked.first), before)?;
    let is_room = checked.bytes <= node.free_bytes() + node.skip() * node.count();
    if is_room { Ok(checked) } else { Err(NO_ROOM) }
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
pub(crate) fn refence(page: &mut [u8], range: Range<usize>, fences: Fences<'_>) -> Fit {
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
pub(super) fn rebuild(
    page: &mut [u8],
    range: Range<usize>,
    fences: Option<Fences<'_>>,
    skip: usize,
    spare: usize,
) -> Fit {
    let old = page.to_vec();
    let node = Node::new(&old);
    let upper_child = PageNo(old.u32_at(UPPER_CHILD));
    let has_new_fences = fences.is_some();
    let fences = fences.unwrap_or(Fences { lower: node.lower(), upper: node.upper(), upper_child });
    fences.check(&old)?;
    let tails = Tails::new(node, range.clone(), fences)?;
    let bytes = node.rebuilt_bytes_with(range.clone(), tails.prefix_len, skip);
    if SLOTS + fences.bytes() + bytes + spare > page.len() {
        return Err(NO_ROOM);
    }
    let run = AscendingRun::of(&old[..]).kept(&range);
    write_frame(page, fences);
    if let Err(misfit) = rewrite(page, &tails, range.clone(), skip) {
        page.copy_from_slice(&old);
        return Err(misfit);
    }
    put_u16(page, COUNT, range.len() as u16);
    put_u16(page, SKIP, skip as u16);
    run.write(page);
    debug_assert_eq!(Node::new(page).count(), range.len(), "a rebuild of {range:?}");
    debug_assert!(
        has_new_fences || !super::check::is_sound(&old) || super::check::is_sound(page),
        "rule 1: a rebuild of {range:?} damages the page"
    );
    Ok(())
}

/// Writes records of a node into a page that has its new fences and enough space.
fn rewrite(page: &mut [u8], tails: &Tails<'_>, range: Range<usize>, skip: usize) -> Fit {
    let mut free = page.u16_at(HEAP_START) as usize;
    let mut tail = Vec::with_capacity(max_long_key_bytes(page.len()));
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
    /// The lower one of the new fences, if it is still to be written.
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
        let tails = Tails {
            node,
            before: prefix.get(shared..).unwrap_or(&[]),
            lower: rest(fences.lower),
            upper: rest(fences.upper),
            prefix_len,
            dropped: prefix_len - shared,
        };
        if let (false, Some(last)) = (range.is_empty(), range.end.checked_sub(1)) {
            tails.check_within(range.start)?;
            tails.check_within(last)?;
        }
        Ok(tails)
    }

    /// The suffix of the key of `slot` under the new prefix, built in `tail`, and the value. The record must be
    /// readable.
    #[inline]
    fn read<'t>(&self, slot: usize, tail: &'t mut Vec<u8>) -> Fit<(&'t [u8], &'a [u8])> {
        tail.clear();
        tail.extend_from_slice(self.before);
        let value = self.node.append_record(slot, tail).ok_or(NOT_A_NODE)?;
        tail.get(self.dropped..).map(|suffix| (suffix, value)).ok_or(NOT_IN_RANGE)
    }

    /// Checks that the record is within the new fences, so that it begins with the new prefix. As records are in order,
    /// the first and the last are enough.
    fn check_within(&self, slot: usize) -> Fit {
        let mut tail = self.before.to_vec();
        self.node.append_record(slot, &mut tail).ok_or(NOT_A_NODE)?;
        let above = self.lower.is_none_or(|lower| lower <= &tail[..]);
        let below = self.upper.is_none_or(|upper| &tail[..] < upper);
        if above && below { Ok(()) } else { Err(NOT_IN_RANGE) }
    }
}
