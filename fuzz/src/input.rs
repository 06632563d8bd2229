//! Decisions taken from the bytes of an input, from its begin to its end. An input that has ended gives zeros.

/// An input being read.
#[derive(Clone, Debug)]
pub struct Input<'a> {
    rest: &'a [u8],
}

impl<'a> Input<'a> {
    /// Reads from the first byte on.
    pub fn new(bytes: &'a [u8]) -> Input<'a> {
        Input { rest: bytes }
    }

    /// Whether nothing is left.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// A byte.
    pub fn byte(&mut self) -> u8 {
        self.number(1) as u8
    }

    /// Two bytes.
    pub fn u16(&mut self) -> u16 {
        self.number(2) as u16
    }

    /// Four bytes.
    pub fn u32(&mut self) -> u32 {
        self.number(4) as u32
    }

    /// Eight bytes.
    pub fn u64(&mut self) -> u64 {
        self.number(8)
    }

    /// A number below `end`, which is at least 1, of as few bytes as that takes.
    pub fn below(&mut self, end: usize) -> usize {
        let bytes = (usize::BITS - (end - 1).leading_zeros()).div_ceil(8) as usize;
        self.number(bytes) as usize % end
    }

    /// One of these.
    pub fn one_of<'t, T>(&mut self, of: &'t [T]) -> &'t T {
        &of[self.below(of.len())]
    }

    /// At most this many bytes; their number is read first, as far as one byte says it.
    pub fn some(&mut self, max: usize) -> &'a [u8] {
        let len = usize::from(self.byte()).min(max);
        self.take(len)
    }

    /// The next bytes, or those that are left.
    pub fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.rest.split_at(len.min(self.rest.len()));
        self.rest = rest;
        taken
    }

    /// All that is left.
    pub fn rest(self) -> &'a [u8] {
        self.rest
    }

    fn number(&mut self, bytes: usize) -> u64 {
        let mut word = [0; 8];
        let taken = self.take(bytes);
        word[..taken.len()].copy_from_slice(taken);
        u64::from_le_bytes(word)
    }
}
