//! Range locks of one index: intervals of keys into which only their owner may insert.
//!
//! Rules
//! 1. The intervals of one owner are disjoint and do not touch: an interval that touches others is joined with them
//!    when it is added.
//! 2. All intervals are in one interval tree, so the intervals over a key are found in logarithmic time for any number
//!    of owners and intervals. The intervals of one owner are also in a separate map, to find the neighbours to join.
//! 3. Bounds are *cuts*: positions between keys. So the cut before k and the cut after k differ.

use super::holder::OwnerId;
use super::interval_tree::IntervalTree;
use super::key_bound::KeyBound;
use std::collections::{BTreeMap, HashMap};

/// The range locks of one index.
#[derive(Debug, Default)]
pub(crate) struct IndexRanges {
    all: IntervalTree,
    /// For each owner, where its intervals begin and end.
    owned: HashMap<OwnerId, BTreeMap<KeyBound, KeyBound>>,
}

impl IndexRanges {
    /// Whether a transaction other than `me` has a range over `key`.
    pub(crate) fn is_blocked(&self, me: OwnerId, key: &[u8]) -> bool {
        self.all.any_over(key, |owner| owner != me)
    }

    /// Transactions other than `me` whose ranges cover `key`.
    pub(crate) fn blockers(&self, me: OwnerId, key: &[u8]) -> Vec<OwnerId> {
        let mut found = Vec::new();
        self.all.any_over(key, |owner| {
            if owner != me {
                found.push(owner);
            }
            false
        });
        found
    }

    /// Whether `owner` has ranges here.
    pub(crate) fn has_ranges_of(&self, owner: OwnerId) -> bool {
        self.owned.contains_key(&owner)
    }

    /// Adds an interval to those of `owner`, joined with the ones it touches.
    pub(crate) fn add(&mut self, owner: OwnerId, mut lower: KeyBound, mut upper: KeyBound) {
        if lower >= upper {
            return;
        }
        let owned = self.owned.entry(owner).or_default();
        while let Some((low, high)) = owned.range(..=&upper).next_back() {
            if *high < lower {
                break;
            }
            if *low <= lower && *high >= upper {
                return;
            }
            let low = low.clone();
            let high = owned.remove(&low).expect("it was found just now");
            self.all.remove(owner, &low);
            (lower, upper) = (lower.min(low), upper.max(high));
        }
        let is_apart = |(low, high): (&KeyBound, &KeyBound)| *high < lower || upper < *low;
        debug_assert!(owned.range(..=&upper).next_back().is_none_or(is_apart), "rule 1: an interval touches {lower:?}");
        self.all.insert(owner, lower.clone(), upper.clone());
        owned.insert(lower, upper);
    }

    /// Drops up to `limit` intervals of `owner`; whether it has more.
    pub(crate) fn remove_some_of(&mut self, owner: OwnerId, limit: usize) -> bool {
        let Some(owned) = self.owned.get_mut(&owner) else { return false };
        for _ in 0..limit {
            match owned.pop_first() {
                Some((lower, _)) => self.all.remove(owner, &lower),
                None => break,
            }
        }
        let more = !owned.is_empty();
        if !more {
            self.owned.remove(&owner);
        }
        more
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.owned.is_empty()
    }

    /// Nodes looked at so far.
    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        self.all.steps()
    }
}

#[cfg(test)]
#[path = "range_locks_test.rs"]
mod range_locks_test;
