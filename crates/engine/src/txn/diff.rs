//! Middle diffs: two byte strings differ between a common prefix and a common suffix.

use crate::error::{Error, Result};

/// How much of two strings is common at both ends. The two parts never overlap in either string.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Middle {
    /// Bytes common at the start.
    pub(crate) prefix: usize,
    /// Bytes common at the end.
    pub(crate) suffix: usize,
}

impl Middle {
    /// Nothing in common.
    pub(crate) const WHOLE: Middle = Middle { prefix: 0, suffix: 0 };

    /// Compares two strings.
    pub(crate) fn of(a: &[u8], b: &[u8]) -> Middle {
        let prefix = common_prefix(a, b);
        let suffix = common_suffix(&a[prefix..], &b[prefix..]);
        Middle { prefix, suffix }
    }

    /// The part of `whole` (one of the two strings) that differs.
    pub(crate) fn cut<'a>(&self, whole: &'a [u8]) -> &'a [u8] {
        &whole[self.prefix..whole.len() - self.suffix]
    }

    /// Turns one string into the other, whose differing part is `middle`.
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

fn word(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |chunk| u64::from_le_bytes(*chunk))
}

fn common_prefix(a: &[u8], b: &[u8]) -> usize {
    let limit = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= limit {
        let difference = word(&a[at..]) ^ word(&b[at..]);
        if difference != 0 {
            return at + (difference.trailing_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < limit && a[at] == b[at] {
        at += 1;
    }
    at
}

fn common_suffix(a: &[u8], b: &[u8]) -> usize {
    let limit = a.len().min(b.len());
    let mut at = 0;
    while at + 8 <= limit {
        let difference = word(&a[a.len() - at - 8..]) ^ word(&b[b.len() - at - 8..]);
        if difference != 0 {
            return at + (difference.leading_zeros() / 8) as usize;
        }
        at += 8;
    }
    while at < limit && a[a.len() - 1 - at] == b[b.len() - 1 - at] {
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn equal_strings_have_no_middle() {
        let text = b"the quick brown fox jumps";
        assert_eq!(Middle::of(text, text), Middle { prefix: text.len(), suffix: 0 });
        assert_eq!(Middle::of(b"", b""), Middle::WHOLE);
    }

    #[test]
    fn a_diff_that_does_not_fit_is_refused() {
        assert!(Middle { prefix: 3, suffix: 3 }.swap(&mut vec![0; 5], b"").is_err());
        assert!(Middle { prefix: 0, suffix: 6 }.swap(&mut vec![0; 5], b"").is_err());
    }

    proptest! {
        #[test]
        fn swap_turns_one_into_the_other(a in proptest::collection::vec(0u8..3, 0..40), b in proptest::collection::vec(0u8..3, 0..40)) {
            let diff = Middle::of(&a, &b);
            let mut turned = b.clone();
            diff.swap(&mut turned, diff.cut(&a)).unwrap();
            prop_assert_eq!(&turned, &a);
            prop_assert!(diff.prefix + diff.suffix <= a.len().min(b.len()));
            let (x, y) = (diff.cut(&a), diff.cut(&b));
            prop_assert!(x.is_empty() || y.is_empty() || (x[0] != y[0] && x.last() != y.last()));
        }
    }
}
