//! The decisions of a simulation, drawn from a random generator or from given bytes, which a fuzzer varies.

use fastrand::Rng;
use std::ops::{Bound, RangeBounds};

/// A source of decisions.
pub struct Choices {
    rng: Rng,
    given: Option<Given>,
}

/// A source of bytes, used in order; after the last byte every decision is zero.
#[derive(Clone)]
struct Given {
    bytes: Vec<u8>,
    at: usize,
}

impl Given {
    /// A number up to `last`, from as few bytes as it needs.
    fn number(&mut self, last: u64) -> u64 {
        let bytes = (u64::BITS - last.leading_zeros()).div_ceil(8) as usize;
        let mut word = [0; 8];
        let taken = self.bytes.iter().skip(self.at).take(bytes);
        word.iter_mut().zip(taken).for_each(|(place, byte)| *place = *byte);
        self.at += bytes;
        let number = u64::from_le_bytes(word);
        if last == u64::MAX { number } else { number % (last + 1) }
    }
}

/// A number of a range, which is not empty, as [`Rng`] has it.
macro_rules! number {
    ($($name:ident: $type:ty,)*) => {
        $(pub fn $name(&mut self, range: impl RangeBounds<$type>) -> $type {
            let Some(given) = &mut self.given else { return self.rng.$name(range) };
            let low = match range.start_bound() {
                Bound::Included(low) => *low,
                Bound::Excluded(below) => *below + 1,
                Bound::Unbounded => <$type>::MIN,
            };
            let last = match range.end_bound() {
                Bound::Included(last) => *last,
                Bound::Excluded(end) => *end - 1,
                Bound::Unbounded => <$type>::MAX,
            };
            low + given.number((last - low) as u64) as $type
        })*
    };
}

impl Choices {
    /// Decisions by a random generator with this seed.
    pub fn of_seed(seed: u64) -> Choices {
        Choices { rng: Rng::with_seed(seed), given: None }
    }

    /// Decisions by these bytes.
    pub fn of_bytes(bytes: &[u8]) -> Choices {
        Choices { rng: Rng::with_seed(0), given: Some(Given { bytes: bytes.to_vec(), at: 0 }) }
    }

    /// Whether the decisions are by bytes, and all bytes are used.
    pub fn is_at_end(&self) -> bool {
        self.given.as_ref().is_some_and(|given| given.at >= given.bytes.len())
    }

    /// A new source derived from this one; its decisions do not affect those of this one.
    pub fn fork(&mut self) -> Choices {
        Choices { rng: self.rng.fork(), given: self.given.clone() }
    }

    number! {
        u32: u32,
        u64: u64,
        usize: usize,
    }

    /// Yes or no.
    pub fn bool(&mut self) -> bool {
        match &mut self.given {
            Some(given) => given.number(1) == 1,
            None => self.rng.bool(),
        }
    }

    /// One of these; `None` if there is none.
    pub fn choice<I: IntoIterator<IntoIter: ExactSizeIterator>>(&mut self, of: I) -> Option<I::Item> {
        if self.given.is_none() {
            return self.rng.choice(of);
        }
        let mut of = of.into_iter();
        match of.len() {
            0 => None,
            len => of.nth(self.usize(..len)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_decide_until_they_end() {
        let mut choices = Choices::of_bytes(&[7, 1, 2, 0, 1, 1]);
        assert_eq!((choices.u32(10..20), choices.u64(..1 << 16), choices.bool()), (17, 0x201, false));
        assert_eq!((choices.choice([5, 6, 7]), choices.is_at_end()), (Some(6), false));
        assert_eq!((choices.usize(3..=4), choices.is_at_end()), (4, true));
        assert_eq!((choices.u32(5..), choices.choice(Vec::<u8>::new())), (5, None));
    }

    #[test]
    fn a_seed_decides_as_the_generator_does() {
        let (mut choices, mut rng) = (Choices::of_seed(3), Rng::with_seed(3));
        let numbers = (choices.u32(..9), choices.bool(), choices.choice([1, 2, 3]), choices.u64(..));
        assert_eq!(numbers, (rng.u32(..9), rng.bool(), rng.choice([1, 2, 3]), rng.u64(..)));
        assert!(!choices.is_at_end());
    }
}
