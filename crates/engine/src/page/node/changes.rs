//! Changes of a leaf by key: they can be made without knowing the leaf, and are applied when it is read.
//!
//! ```text
//! change = kind u8, key length, for `Put` the value's length (variable-length numbers), flag u8 for `Flag`, key, value
//! ```
//!
//! Rules
//! 1. A list of changes is applied in order; each names its record by key and depends on that record alone. The result
//!    for a record depends only on the list's last change of the key, and on whether the record existed.
//! 2. So a list may be applied again to a leaf that has some or all of its changes, with the same resulting records.
//!    `canonical` then rewrites the page into the form that its records determine, so later logged operations fit in
//!    both cases.
//! 3. During its application a list never needs more space than the sum of [`LeafChange::max_bytes`] of its changes.

use super::bulk::rebuild;
use super::edit::*;
use super::layout::*;
use super::run::AscendingRun;
use super::search::search;
use super::view::Node;
use crate::page::bytes::PageBytes;
use crate::page::varint::{self, VarintReader};

/// One change of one record, named by its key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LeafChange<'a> {
    /// Insert the record, or replace the value of the existing one.
    Put { key: &'a [u8], value: &'a [u8] },
    /// Set the first byte of the value, if the record is there.
    Flag { key: &'a [u8], flag: u8 },
    /// Remove the record, if it is there.
    Remove { key: &'a [u8] },
}

const PUT: u8 = 1;
const FLAG: u8 = 2;
const REMOVE: u8 = 3;

impl<'a> LeafChange<'a> {
    /// The key of the record.
    pub(crate) fn key(&self) -> &'a [u8] {
        match *self {
            LeafChange::Put { key, .. } | LeafChange::Flag { key, .. } | LeafChange::Remove { key } => key,
        }
    }

    /// Most bytes of a leaf that the change takes.
    pub(crate) fn max_bytes(&self) -> usize {
        match self {
            LeafChange::Put { key, value } => record_bytes(key.len() + HEAD_BYTES, value.len()),
            LeafChange::Flag { .. } | LeafChange::Remove { .. } => 0,
        }
    }

    /// Appends the change to a list.
    pub(crate) fn encode(&self, list: &mut Vec<u8>) {
        let start = list.len();
        self.encode_into(list);
        debug_assert_eq!(changes(&list[start..]).next(), Some(Ok(*self)), "a change is not read as it is written");
    }

    fn encode_into(&self, list: &mut Vec<u8>) {
        let kind = match self {
            LeafChange::Put { .. } => PUT,
            LeafChange::Flag { .. } => FLAG,
            LeafChange::Remove { .. } => REMOVE,
        };
        list.push(kind);
        varint::put(list, self.key().len() as u64);
        match self {
            LeafChange::Put { value, .. } => varint::put(list, value.len() as u64),
            LeafChange::Flag { flag, .. } => list.push(*flag),
            LeafChange::Remove { .. } => {}
        }
        list.extend_from_slice(self.key());
        if let LeafChange::Put { value, .. } = self {
            list.extend_from_slice(value);
        }
    }

    /// The next change of a list; `None` if the bytes cannot be decoded.
    fn decode(reader: &mut VarintReader<'a>) -> Option<LeafChange<'a>> {
        let kind = reader.byte()?;
        let key_len = reader.u16()? as usize;
        Some(match kind {
            PUT => {
                let value_len = reader.u16()? as usize;
                LeafChange::Put { key: reader.bytes(key_len)?, value: reader.bytes(value_len)? }
            }
            FLAG => {
                let flag = reader.byte()?;
                LeafChange::Flag { key: reader.bytes(key_len)?, flag }
            }
            REMOVE => LeafChange::Remove { key: reader.bytes(key_len)? },
            _ => return None,
        })
    }

    fn apply(&self, page: &mut [u8]) -> Fit {
        match (*self, search(page, self.key())) {
            (LeafChange::Put { value, .. }, Ok(slot)) => {
                let old = Node::new(page).value(slot);
                if old == value { Ok(()) } else { splice(page, slot, 0, old.len(), value) }
            }
            (LeafChange::Put { key, value }, Err(slot)) => insert(page, slot, key, value),
            (LeafChange::Flag { flag, .. }, Ok(slot)) => splice(page, slot, 0, 1, &[flag]),
            (LeafChange::Remove { .. }, Ok(slot)) => remove(page, slot),
            (LeafChange::Flag { .. } | LeafChange::Remove { .. }, Err(_)) => Ok(()),
        }
    }
}

/// The changes of a list; an error where the bytes are no change.
pub(crate) fn changes(list: &[u8]) -> impl Iterator<Item = Fit<LeafChange<'_>>> {
    let mut reader = VarintReader::new(list);
    std::iter::from_fn(move || {
        if reader.is_at_end() {
            return None;
        }
        let change = LeafChange::decode(&mut reader);
        if change.is_none() {
            reader = VarintReader::new(&[]);
        }
        Some(change.ok_or("the list of changes cannot be decoded"))
    })
}

/// Applies a list to a leaf. An error may leave a part of it done: see [`apply_changes`].
pub(crate) fn apply_changes_in_place(page: &mut [u8], list: &[u8]) -> Fit {
    frame(page)?;
    if !Node::new(page).is_leaf() {
        return Err("changes by key are for leaves");
    }
    for change in changes(list) {
        let change = change?;
        if !Node::new(page).covers(change.key()) {
            return Err(NOT_IN_RANGE);
        }
        change.apply(page)?;
    }
    Ok(())
}

/// Applies a list to a leaf; `Err` leaves the page as it was.
pub(crate) fn apply_changes(page: &mut [u8], list: &[u8], canonical: bool) -> Fit {
    if !canonical && changes(list).nth(1).is_none() {
        // One change is made or not.
        return apply_changes_in_place(page, list);
    }
    let old = page.to_vec();
    let mut applied = apply_changes_in_place(page, list);
    if canonical {
        applied = applied.and_then(|()| make_canonical(page));
    }
    if applied.is_err() {
        page.copy_from_slice(&old);
    }
    applied
}

/// Writes the records of a leaf again, in the one form that its records give.
pub(crate) fn make_canonical(page: &mut [u8]) -> Fit {
    let (count, _) = frame(page)?;
    rebuild(page, 0..count, None, 0, 0)?;
    AscendingRun::NONE.write(page);
    raise_skip(page);
    debug_assert_eq!(page.u16_at(GARBAGE), 0, "rule 2: a canonical page has garbage");
    Ok(())
}

#[cfg(test)]
#[path = "changes_test.rs"]
mod tests;
