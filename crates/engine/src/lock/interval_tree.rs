//! An interval tree: intervals of keys with their owners, found by a key they cover.
//!
//! Rules
//! 1. A treap: ordered by the begin of intervals (then by owner), a heap by random priority; so its depth is
//!    logarithmic for any order of insertions.
//! 2. Each node has the highest end of the intervals below it. A search skips subtrees that end before its key or begin
//!    after it.
//! 3. A node is one allocation, released with its interval.

use super::holder::OwnerId;
use super::key_bound::KeyBound;

type Link = Option<Box<Node>>;

#[derive(Debug)]
struct Node {
    lower: KeyBound,
    upper: KeyBound,
    /// The farthest `upper` of this node and those below it.
    reach: KeyBound,
    owner: OwnerId,
    priority: u32,
    left: Link,
    right: Link,
}

/// See the head of this file.
#[derive(Debug, Default)]
pub(crate) struct IntervalTree {
    root: Link,
    random: u32,
    #[cfg(test)]
    steps: std::cell::Cell<u64>,
}

impl Node {
    fn update_reach(&mut self) {
        let below = [&self.left, &self.right].into_iter().flatten().map(|node| &node.reach);
        self.reach = below.chain([&self.upper]).max().expect("its own end is among them").clone();
        let below = || [&self.left, &self.right].into_iter().flatten();
        debug_assert!(below().all(|node| node.priority <= self.priority), "rule 1: a heap by priority");
        debug_assert!(self.left.iter().all(|left| left.is_before(&self.lower, self.owner)), "rule 1: an order");
        debug_assert!(self.right.iter().all(|right| self.is_before(&right.lower, right.owner)), "rule 1: an order");
    }

    fn is_before(&self, lower: &KeyBound, owner: OwnerId) -> bool {
        (&self.lower, self.owner) < (lower, owner)
    }
}

/// Splits into what comes before (`lower`, `owner`) and the rest.
fn split(link: Link, lower: &KeyBound, owner: OwnerId) -> (Link, Link) {
    let Some(mut node) = link else { return (None, None) };
    if node.is_before(lower, owner) {
        let (before, rest) = split(node.right.take(), lower, owner);
        node.right = before;
        node.update_reach();
        (Some(node), rest)
    } else {
        let (before, rest) = split(node.left.take(), lower, owner);
        node.left = rest;
        node.update_reach();
        (before, Some(node))
    }
}

/// Joins two trees; every interval of `left` comes before every one of `right`.
fn join(left: Link, right: Link) -> Link {
    match (left, right) {
        (None, one) | (one, None) => one,
        (Some(mut left), Some(mut right)) => {
            if left.priority > right.priority {
                left.right = join(left.right.take(), Some(right));
                left.update_reach();
                Some(left)
            } else {
                right.left = join(Some(left), right.left.take());
                right.update_reach();
                Some(right)
            }
        }
    }
}

/// Takes the interval (`lower`, `owner`) out, if it is there.
fn without(link: Link, lower: &KeyBound, owner: OwnerId) -> Link {
    let mut node = link?;
    if (&node.lower, node.owner) == (lower, owner) {
        return join(node.left, node.right);
    }
    let side = if node.is_before(lower, owner) { &mut node.right } else { &mut node.left };
    *side = without(side.take(), lower, owner);
    node.update_reach();
    Some(node)
}

impl IntervalTree {
    /// Adds an interval; there is none of this owner that begins at `lower`.
    pub(crate) fn insert(&mut self, owner: OwnerId, lower: KeyBound, upper: KeyBound) {
        // A multiplicative generator: priorities only have to be independent of the order of keys.
        self.random = self.random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let priority = self.random ^ self.random >> 15;
        let (before, rest) = split(self.root.take(), &lower, owner);
        let node = Node { reach: upper.clone(), lower, upper, owner, priority, left: None, right: None };
        self.root = join(join(before, Some(Box::new(node))), rest);
    }

    /// Takes the interval of `owner` out that begins at `lower`.
    pub(crate) fn remove(&mut self, owner: OwnerId, lower: &KeyBound) {
        self.root = without(self.root.take(), lower, owner);
    }

    /// Calls `found` with the owners of intervals over `key` until it says true; whether it did.
    pub(crate) fn any_over(&self, key: &[u8], mut found: impl FnMut(OwnerId) -> bool) -> bool {
        self.search(&self.root, key, &mut found)
    }

    fn search(&self, link: &Link, key: &[u8], found: &mut impl FnMut(OwnerId) -> bool) -> bool {
        #[cfg(test)]
        self.steps.set(self.steps.get() + 1);
        let Some(node) = link else { return false };
        if node.reach.is_before(key) {
            return false;
        }
        self.search(&node.left, key, found)
            || node.lower.is_before(key)
                && (!node.upper.is_before(key) && found(node.owner) || self.search(&node.right, key, found))
    }

    #[cfg(test)]
    pub(crate) fn steps(&self) -> u64 {
        self.steps.get()
    }
}
