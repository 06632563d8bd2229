//! Middle diffs: two byte strings differ between a common prefix and a common suffix.

use crate::error::{Error, Result};

/// Lengths of the common prefix and the common suffix of two strings. The two never overlap in either string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DiffRange {
    /// Bytes common at the start.
    pub(crate) prefix: usize,
    /// Bytes common at the end.
    pub(crate) suffix: usize,
}

impl DiffRange {
    /// Nothing in common.
    pub(crate) const WHOLE: DiffRange = DiffRange { prefix: 0, suffix: 0 };

    /// Compares two strings.
    pub(crate) fn of(a: &[u8], b: &[u8]) -> DiffRange {
        let prefix = common_prefix(a, b);
        let suffix = common_suffix(&a[prefix..], &b[prefix..]);
        debug_assert!(prefix + suffix <= a.len().min(b.len()), "{prefix} and {suffix} bytes are in common");
        DiffRange { prefix, suffix }
    }

    /// The part of `whole` (one of the two strings) that differs.
    pub(crate) fn cut<'a>(&self, whole: &'a [u8]) -> &'a [u8] {
        &whole[self.prefix..whole.len() - self.suffix]
    }

    /// Changes one string into the other, whose differing part is `middle`.
    pub(crate) fn swap(&self, whole: &mut Vec<u8>, middle: &[u8]) -> Result<()> {
        let end = whole.len().checked_sub(self.suffix).filter(|end| self.prefix <= *end);
        let Some(end) = end else {
            return Err(Error::Corrupt(format!("an undo record with {self:?} does not fit a row of {}", whole.len())));
        };
        if end - self.prefix == middle.len() {
            whole[self.prefix..end].copy_from_slice(middle);
        } else {
            whole.splice(self.prefix..end, middle.iter().copied());
        }
        Ok(())
    }
}

/// Bytes compared at a time while the strings are the same.
const STEP: usize = 32;
/// Bytes compared at a time near the first difference, which is then found by counting zero bits.
const WORD: usize = 8;

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let (steps_a, steps_b) = (a.as_chunks::<STEP>().0, b.as_chunks::<STEP>().0);
    let mut same = steps_a.iter().zip(steps_b).take_while(|(x, y)| x == y).count() * STEP;
    while let Some((x, y)) = a[same..].first_chunk::<WORD>().zip(b[same..].first_chunk::<WORD>()) {
        let differing = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differing != 0 {
            return same + differing.trailing_zeros() as usize / 8;
        }
        same += WORD;
    }
    same + a[same..].iter().zip(&b[same..]).take_while(|(x, y)| x == y).count()
}

fn common_suffix(mut a: &[u8], mut b: &[u8]) -> usize {
    let whole = a.len();
    while let Some(((rest_a, x), (rest_b, y))) = a.split_last_chunk::<STEP>().zip(b.split_last_chunk::<STEP>())
        && x == y
    {
        (a, b) = (rest_a, rest_b);
    }
    while let Some(((rest_a, x), (rest_b, y))) = a.split_last_chunk::<WORD>().zip(b.split_last_chunk::<WORD>()) {
        let differing = u64::from_le_bytes(*x) ^ u64::from_le_bytes(*y);
        if differing != 0 {
            return whole - a.len() + differing.leading_zeros() as usize / 8;
        }
        (a, b) = (rest_a, rest_b);
    }
    whole - a.len() + a.iter().rev().zip(b.iter().rev()).take_while(|(x, y)| x == y).count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_strings_have_no_middle() {
        let text = b"the quick brown fox jumps";
        assert_eq!(DiffRange::of(text, text), DiffRange { prefix: text.len(), suffix: 0 });
        assert_eq!(DiffRange::of(b"", b""), DiffRange::WHOLE);
    }

    #[test]
    fn a_diff_that_does_not_fit_is_refused() {
        assert!(DiffRange { prefix: 3, suffix: 3 }.swap(&mut vec![0; 5], b"").is_err());
        assert!(DiffRange { prefix: 0, suffix: 6 }.swap(&mut vec![0; 5], b"").is_err());
    }

    proptest! {
        #[test]
        fn long_common_parts_are_found(start in 0usize..70, end in 0usize..70, a in 0usize..20, b in 0usize..20) {
            let whole = |middle: u8, n: usize| [vec![1; start], vec![middle; n], vec![2; end]].concat();
            let (a, b) = (whole(3, a + 1), whole(4, b + 1));
            prop_assert_eq!(DiffRange::of(&a, &b), DiffRange { prefix: start, suffix: end });
        }

        #[test]
        fn swap_turns_one_into_the_other(
            a in proptest::collection::vec(0u8..2, 0..90),
            b in proptest::collection::vec(0u8..2, 0..90),
        ) {
            let diff = DiffRange::of(&a, &b);
            let mut turned = b.clone();
            diff.swap(&mut turned, diff.cut(&a)).unwrap();
            prop_assert_eq!(&turned, &a);
            prop_assert!(diff.prefix + diff.suffix <= a.len().min(b.len()));
            let (x, y) = (diff.cut(&a), diff.cut(&b));
            prop_assert!(x.is_empty() || y.is_empty() || (x[0] != y[0] && x.last() != y.last()));
        }
    }
}
