//! The fill of a node, and the fill below which a merge is tried ([`super::merge`], rule 3).

use crate::page::Node;

/// Parts of a page that the rule counts.
const PARTS: usize = 32;
/// A node with fewer used parts is underfull.
const UNDERFULL_PARTS: usize = 12;

/// Number of whole parts that these used bytes fill.
fn part_of(node: Node<'_>, used_bytes: usize) -> usize {
    used_bytes / (node.capacity_bytes() / PARTS)
}

/// Whether a node is so empty that a neighbour is to take its records. (The fences of an empty leaf may be long.)
pub(super) fn is_underfull(node: Node<'_>) -> bool {
    part_of(node, node.used_bytes()) < UNDERFULL_PARTS || (node.is_leaf() && node.count() == 0)
}

/// Whether a merge is to be tried after a change of a leaf that had `before` used bytes (rule 3 there).
pub(super) fn is_due(node: Node<'_>, before: usize) -> bool {
    is_underfull(node) && (node.count() == 0 || part_of(node, node.used_bytes()) < part_of(node, before))
}
