//! Cuts: positions between keys, where intervals begin and end.
//!
//! Rule: the cut before a key and the cut after it differ, and no cut is at a key.

use std::cmp::Ordering;
use std::ops::Bound;
use std::sync::Arc;

/// A place between keys.
#[derive(Clone, Debug)]
pub(crate) enum KeyBound {
    /// Before every key.
    Start,
    /// Just before a key.
    Before(Arc<[u8]>),
    /// Just after a key.
    After(Arc<[u8]>),
    /// Behind every key.
    End,
}

impl KeyBound {
    /// The start of an interval with this lower bound.
    pub(crate) fn lower(bound: Bound<&[u8]>) -> KeyBound {
        match bound {
            Bound::Included(key) => KeyBound::Before(key.into()),
            Bound::Excluded(key) => KeyBound::After(key.into()),
            Bound::Unbounded => KeyBound::Start,
        }
    }

    /// The end of an interval with this upper bound.
    pub(crate) fn upper(bound: Bound<&[u8]>) -> KeyBound {
        match bound {
            Bound::Included(key) => KeyBound::After(key.into()),
            Bound::Excluded(key) => KeyBound::Before(key.into()),
            Bound::Unbounded => KeyBound::End,
        }
    }

    /// Class, key, side: what cuts are ordered by.
    fn order(&self) -> (u8, &[u8], u8) {
        match self {
            KeyBound::Start => (0, &[], 0),
            KeyBound::Before(key) => (1, key, 0),
            KeyBound::After(key) => (1, key, 1),
            KeyBound::End => (2, &[], 0),
        }
    }

    /// Whether the cut is before `key`.
    pub(crate) fn is_before(&self, key: &[u8]) -> bool {
        self.order() <= (1, key, 0)
    }
}

impl Ord for KeyBound {
    fn cmp(&self, other: &KeyBound) -> Ordering {
        self.order().cmp(&other.order())
    }
}

impl PartialOrd for KeyBound {
    fn partial_cmp(&self, other: &KeyBound) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for KeyBound {
    fn eq(&self, other: &KeyBound) -> bool {
        self.cmp(other) == Ordering::Equal
    }
}

impl Eq for KeyBound {}
