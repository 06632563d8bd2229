//! Variable-length integers: 7 bits a byte, least significant first, the high bit says "more follows".
//!
//! Rules
//! 1. Reading never goes past the input and refuses values above 64 bits.

/// Longest encoding of a u64.
pub(crate) const MAX_BYTES: usize = 10;

/// A few small integers being encoded on the stack, to be appended to a log buffer in one go.
pub(crate) struct VarintHeader<const N: usize> {
    bytes: [u8; N],
    len: usize,
}

impl<const N: usize> VarintHeader<N> {
    /// Starts with a tag byte.
    #[inline(always)]
    pub(crate) fn new(tag: u8) -> Self {
        let mut bytes = [0; N];
        bytes[0] = tag;
        VarintHeader { bytes, len: 1 }
    }

    #[inline(always)]
    pub(crate) fn byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// Adds a variable-length integer.
    #[inline(always)]
    pub(crate) fn number(&mut self, mut value: u64) {
        while value >= 0x80 {
            self.byte(value as u8 | 0x80);
            value >>= 7;
        }
        self.byte(value as u8);
    }

    #[inline(always)]
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Appends a variable-length integer.
pub(crate) fn put(out: &mut Vec<u8>, value: u64) {
    let (start, mut left) = (out.len(), value);
    while left >= 0x80 {
        out.push(left as u8 | 0x80);
        left >>= 7;
    }
    out.push(left as u8);
    debug_assert_eq!(VarintReader::new(&out[start..]).number(), Some(value), "a number is not read as it is written");
}

/// Reads from the front of a byte string; every read is `None` when the input is too short or the value too large.
pub(crate) struct VarintReader<'a> {
    rest: &'a [u8],
    whole_len: usize,
}

impl<'a> VarintReader<'a> {
    /// Reads `input` from its start.
    #[inline]
    pub(crate) fn new(input: &'a [u8]) -> Self {
        VarintReader { rest: input, whole_len: input.len() }
    }

    /// Bytes read so far.
    #[inline]
    pub(crate) fn position(&self) -> usize {
        self.whole_len - self.rest.len()
    }

    #[inline]
    pub(crate) fn is_at_end(&self) -> bool {
        self.rest.is_empty()
    }

    #[inline]
    pub(crate) fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.rest.split_first()?;
        self.rest = rest;
        Some(*first)
    }

    /// One variable-length integer.
    #[inline]
    pub(crate) fn number(&mut self) -> Option<u64> {
        let mut value = 0u64;
        for index in 0..MAX_BYTES {
            let byte = self.byte()?;
            let bits = u64::from(byte & 0x7f);
            if index == MAX_BYTES - 1 && bits > 1 {
                return None;
            }
            value |= bits << (7 * index);
            if byte & 0x80 == 0 {
                return Some(value);
            }
        }
        None
    }

    /// One variable-length integer of at most 32 bits.
    #[inline]
    pub(crate) fn u32(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    /// One variable-length integer of at most 16 bits.
    #[inline]
    pub(crate) fn u16(&mut self) -> Option<u16> {
        u16::try_from(self.number()?).ok()
    }

    #[inline]
    pub(crate) fn bytes(&mut self, len: usize) -> Option<&'a [u8]> {
        let (first, rest) = self.rest.split_at_checked(len)?;
        self.rest = rest;
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_survive_a_round_trip() {
        for value in [0, 1, 127, 128, 300, 16383, 16384, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut out = Vec::new();
            put(&mut out, value);
            let mut header = VarintHeader::<16>::new(7);
            header.number(value);
            assert_eq!(&header.bytes()[1..], &out[..]);
            let mut reader = VarintReader::new(&out);
            assert_eq!(reader.number(), Some(value));
            assert!(reader.is_at_end());
        }
    }

    #[test]
    fn overlong_and_short_numbers_are_refused() {
        assert_eq!(VarintReader::new(&[0xff; 11]).number(), None);
        assert_eq!(VarintReader::new(&[0x80, 0x80]).number(), None);
        assert_eq!(VarintReader::new(&[0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 2]).number(), None);
        assert_eq!(VarintReader::new(&[0xff, 0xff, 0x07]).u16(), None);
        assert_eq!(VarintReader::new(&[]).number(), None);
    }
}
