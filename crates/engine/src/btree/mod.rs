//! B+trees over byte strings.
//!
//! Terms
//! - *leaf*: covers the half-open range of keys between its fences `[lower, upper)`. No sibling links: the next leaf is
//!   found by descending to `upper`, the previous one by descending to "just below `lower`", or either through the
//!   parent if that is unchanged (`sibling`).
//! - *structure change*: a split, a merge, growth or collapse of the root. Each is a mini-transaction of its own, made
//!   before a row operation (`make_room`) or after it (`shrink`).
//!
//! Rules
//! 1. Row operations latch one leaf and change nothing else. Structure changes latch a parent and the children
//!    concerned; those of different parents run in parallel (`structure`).
//! 2. A descent reads inner pages without latches; it trusts a child number once the page it came from has validated.
//! 3. A latched leaf is the right one if the parent still validates, or if its type, owner and fences match; otherwise
//!    the descent starts again. A freed page is formatted as free in the mtr that frees it, so a late descent
//!    recognizes it.
//! 4. Levels fall by one at every step and every page carries the index number, so no damage can make a descent loop. A
//!    mismatch between unchanged pages is [`crate::error::Error::CorruptPage`].
//! 5. The root never moves: it grows by moving its records to two new children and collapses by taking the records of
//!    its only child.
//!
//! `TreeSearch` reads; `TreeStructure` is the search and what changes need; [`BTree`] has the calls of both. `tidy`
//! checks their order.
//!
//! | files | what |
//! |---|---|
//! | `seek`, `fill`, `leaf`, `hint`, `restarts`, `found` | targets and results of descents; latched leaves |
//! | `parent_check`, `search`, `sibling`, `estimate`, `read_ahead`, `non_resident` | `TreeSearch`: reading the tree |
//! | `free_classes`, `structure` | `TreeStructure`: common code of structure changes |
//! | `split`, `merge`, `relocate`, `given_up`, `build` | structure changes, a file each |
//! | `check` | verifying a tree |
//! | `tree` | [`BTree`] |
//!
//! Latch order within a tree: top-down, then left to right. No latch is held across I/O or a wait for frames or log
//! space. Only `check` holds, during its walk, the lock that excludes structure changes; it precedes every latch.
//!
//! Crash: the tree is consistent after every mini-transaction, so it is after any prefix of the log.

mod build;
pub(crate) mod check;
mod estimate;
mod fill;
mod found;
mod free_classes;
mod given_up;
mod hint;
mod leaf;
mod merge;
mod non_resident;
mod parent_check;
mod read_ahead;
mod relocate;
mod restarts;
mod search;
mod seek;
mod sibling;
mod split;
mod structure;
mod tree;

pub(crate) use build::Builder;
pub(crate) use found::LeafPosition;
pub(crate) use leaf::{Leaf, LeafMut};
pub(crate) use non_resident::NonResidentLeaf;
pub(crate) use read_ahead::max_leaves_ahead;
pub(crate) use relocate::{NodePlace, Relocation};
pub(crate) use restarts::Restarts;
pub(crate) use seek::Seek;
pub(crate) use tree::BTree;

#[cfg(test)]
mod btree_test;
