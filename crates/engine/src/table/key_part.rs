//! One column of a key: as bytes, and back. See `key.rs` for the rules.

use super::types::Type;
use super::value::{Value, ValueRef};
use super::value_form::{Stored, exactly, unfit};
use crate::config::Collation;
use crate::error::Result;
use std::borrow::Cow;

const NULL_MARKER: u8 = 0;
const VALUE_MARKER: u8 = 1;
pub(super) const END: u8 = 0;
const ESCAPE: u8 = 1;

/// One column of a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPart {
    /// Position of the column in its table.
    pub column: usize,
    /// Its type.
    pub ty: Type,
    /// Whether it may be NULL.
    pub nullable: bool,
    /// Whether greater values come first.
    pub descending: bool,
    /// Length of an indexed prefix in bytes; `None`: the whole column.
    pub prefix_bytes: Option<u16>,
    /// Collation of its texts; `None`: they compare as bytes.
    pub collation: Option<Collation>,
}

impl KeyPart {
    /// Whether the key has the column's value, and not only its beginning or its weights.
    pub fn is_reversible(&self) -> bool {
        self.prefix_bytes.is_none() && self.collation.is_none()
    }

    /// Bytes of the longest value without bytes that are escaped.
    pub(super) fn unescaped_bytes(&self) -> usize {
        let whole = self.ty.max_bytes();
        let kept = self.prefix_bytes.map_or(whole, |bytes| whole.min(bytes.into()));
        kept + usize::from(self.ty.fixed_bytes().is_none()) + usize::from(self.nullable)
    }

    #[inline]
    pub(super) fn encode(&self, stored: Stored<'_>, out: &mut Vec<u8>) -> Result<()> {
        if self.is_reversible() && !self.descending {
            encode_part(self, stored, out);
            return Ok(());
        }
        self.encode_as_declared(stored, out)
    }

    /// Rule 5.
    fn encode_as_declared(&self, stored: Stored<'_>, out: &mut Vec<u8>) -> Result<()> {
        let start = out.len();
        match stored {
            Stored::Bytes(bytes) if self.ty.fixed_bytes().is_none() => {
                encode_part(self, Stored::Bytes(&self.compared(bytes)?), out);
            }
            stored => encode_part(self, stored, out),
        }
        if self.descending {
            out[start..].iter_mut().for_each(|byte| *byte = !*byte);
        }
        Ok(())
    }

    /// The bytes by which a text or binary value compares.
    fn compared<'b>(&self, bytes: &'b [u8]) -> Result<Cow<'b, [u8]>> {
        let mut compared = Cow::Borrowed(bytes);
        if let Some(collation) = &self.collation {
            let mut weights = Vec::with_capacity(bytes.len());
            collation.append_weights(bytes, &mut weights)?;
            compared = Cow::Owned(weights);
        }
        let max = self.prefix_bytes.map_or(usize::MAX, usize::from);
        Ok(match compared {
            Cow::Borrowed(bytes) => Cow::Borrowed(&bytes[..bytes.len().min(max)]),
            Cow::Owned(mut bytes) => {
                bytes.truncate(max);
                Cow::Owned(bytes)
            }
        })
    }

    /// Whether a value has more bytes than count.
    pub(super) fn cuts(&self, value: ValueRef<'_>) -> Result<bool> {
        let Some(max) = self.prefix_bytes else { return Ok(false) };
        let bytes = match value {
            ValueRef::Text(text) => text.as_bytes(),
            ValueRef::Bytes(bytes) => bytes,
            _ => return Ok(false),
        };
        let whole = KeyPart { prefix_bytes: None, ..self.clone() };
        Ok(whole.compared(bytes)?.len() > usize::from(max))
    }
}

/// Appends one column. (NULL in a column that is never NULL is damage; it encodes as zero or empty.)
#[inline]
fn encode_part(part: &KeyPart, stored: Stored<'_>, out: &mut Vec<u8>) {
    if part.nullable {
        if matches!(stored, Stored::Null) {
            return out.push(NULL_MARKER);
        }
        out.push(VALUE_MARKER);
    }
    match stored {
        Stored::Word(word) => {
            let start = out.len();
            encode_word(part.ty, word, out);
            debug_assert_eq!(Some(out.len() - start), part.ty.fixed_bytes(), "{:?} has another length", part.ty);
        }
        Stored::Wide(wide) if part.ty == Type::Uuid => out.extend_from_slice(&wide.to_be_bytes()),
        Stored::Wide(wide) => out.extend_from_slice(&(wide ^ 1 << 127).to_be_bytes()),
        Stored::Bytes(bytes) => match part.ty {
            Type::Fixed(len) => out.extend_from_slice(exactly(len, bytes)),
            _ => encode_bytes(bytes, out),
        },
        Stored::Null if part.ty.fixed_bytes().is_none() => encode_bytes(&[], out),
        Stored::Null => encode_word(part.ty, 0, out),
    }
}

#[inline]
fn encode_word(ty: Type, word: u64, out: &mut Vec<u8>) {
    match ty {
        Type::U64 => out.extend_from_slice(&word.to_be_bytes()),
        Type::U32 => out.extend_from_slice(&(word as u32).to_be_bytes()),
        Type::U16 => out.extend_from_slice(&(word as u16).to_be_bytes()),
        Type::U8 | Type::Bool => out.push(word as u8),
        Type::I32 | Type::Date => out.extend_from_slice(&(word as u32 ^ 1 << 31).to_be_bytes()),
        Type::I16 => out.extend_from_slice(&(word as u16 ^ 1 << 15).to_be_bytes()),
        Type::U24 => out.extend_from_slice(&(word as u32).to_be_bytes()[1..]),
        Type::I24 => out.extend_from_slice(&(word as u32 ^ 1 << 23).to_be_bytes()[1..]),
        Type::Fixed(len) => out.extend_from_slice(exactly(len, &[])),
        Type::I8 => out.push(word as u8 ^ 1 << 7),
        Type::F64 => out.extend_from_slice(&order_f64(word).to_be_bytes()),
        Type::F32 => out.extend_from_slice(&order_f32(word as u32).to_be_bytes()),
        // I64, DateTime, Time and small decimals.
        _ => out.extend_from_slice(&(word ^ 1 << 63).to_be_bytes()),
    }
}

#[inline]
fn order_f64(bits: u64) -> u64 {
    if bits >> 63 == 0 { bits ^ 1 << 63 } else { !bits }
}

#[inline]
fn order_f32(bits: u32) -> u32 {
    if bits >> 31 == 0 { bits ^ 1 << 31 } else { !bits }
}

#[inline]
fn encode_bytes(mut bytes: &[u8], out: &mut Vec<u8>) {
    let start = out.len();
    while let Some(at) = bytes.iter().position(|&b| b <= ESCAPE) {
        out.extend_from_slice(&bytes[..at]);
        out.extend_from_slice(&[ESCAPE, bytes[at] + 1]);
        bytes = &bytes[at + 1..];
    }
    out.extend_from_slice(bytes);
    debug_assert!(!out[start..].contains(&END), "rule 1 of keys: an encoding is the prefix of another");
    out.push(END);
}

/// Reads one column from the front of `rest`; `None` if the bytes are no value of it.
pub(super) fn decode_part(part: &KeyPart, rest: &mut &[u8], buffer: &mut Vec<u8>) -> Option<Value> {
    buffer.clear();
    if !append_stored(part, rest, buffer)? {
        return Some(Value::Null);
    }
    Some(match part.ty {
        Type::Text(_) if part.collation.is_some() => Value::Bytes(buffer.clone()),
        Type::Text(_) if part.prefix_bytes.is_some() => Value::Text(String::from_utf8_lossy(buffer).into_owned()),
        ty => unfit(ty, buffer).to_value(),
    })
}

/// Reads one column from the front of `rest`, and appends the bytes that a row keeps of it (the beginning or the
/// weights, where the key has only those); false: it is NULL. `None` if the bytes are no value of it.
pub(crate) fn append_stored(part: &KeyPart, rest: &mut &[u8], out: &mut Vec<u8>) -> Option<bool> {
    if !part.descending {
        return append_ascending(part, rest, out);
    }
    let inverted: Vec<u8> = rest.iter().map(|byte| !byte).collect();
    let mut left = &inverted[..];
    let is_value = append_ascending(part, &mut left, out)?;
    *rest = &rest[rest.len() - left.len()..];
    Some(is_value)
}

#[inline]
fn append_ascending(part: &KeyPart, rest: &mut &[u8], out: &mut Vec<u8>) -> Option<bool> {
    if part.nullable {
        match take::<1>(rest)?[0] {
            NULL_MARKER => return Some(false),
            VALUE_MARKER => {}
            _ => return None,
        }
    }
    match part.ty.fixed_bytes() {
        None => decode_bytes(rest, out)?,
        Some(len) => {
            let (bytes, tail) = rest.split_at_checked(len)?;
            *rest = tail;
            let start = out.len();
            match part.ty {
                Type::Fixed(_) => out.extend_from_slice(bytes),
                _ => out.extend(bytes.iter().rev()),
            }
            unorder(part.ty, &mut out[start..]);
        }
    }
    Some(true)
}

/// Turns the (already little-endian) bytes of a fixed-size key column into stored bytes.
fn unorder(ty: Type, bytes: &mut [u8]) {
    let Some(top) = bytes.len().checked_sub(1) else { return };
    match ty {
        Type::U8 | Type::U16 | Type::U24 | Type::U32 | Type::U64 | Type::Fixed(_) | Type::Bool | Type::Uuid => {}
        Type::F32 | Type::F64 if bytes[top] & 0x80 == 0 => bytes.iter_mut().for_each(|b| *b = !*b),
        _ => bytes[top] ^= 0x80,
    }
}

fn decode_bytes(rest: &mut &[u8], out: &mut Vec<u8>) -> Option<()> {
    loop {
        match take::<1>(rest)?[0] {
            END => return Some(()),
            ESCAPE => out.push(take::<1>(rest)?[0].checked_sub(1).filter(|b| *b <= ESCAPE)?),
            plain => out.push(plain),
        }
    }
}

fn take<const N: usize>(rest: &mut &[u8]) -> Option<[u8; N]> {
    let (head, tail) = rest.split_first_chunk::<N>()?;
    *rest = tail;
    Some(*head)
}
