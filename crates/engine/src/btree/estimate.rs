//! An estimate of the number of records between two keys, from two descents; random leaves, for samples.
//!
//! Rules
//! 1. An estimate reads one page of each level for each end. Pages are latched one after another, so they may be of
//!    different moments: at a page that no longer matches its parent the descent ends, and the estimate is coarser.
//! 2. If both ends are in one leaf, the number is exact. Otherwise the subtrees between the ends count with the mean of
//!    a few more descents between the ends, for each level. (The last page of a level is often less full.)
//! 3. Delete-marked records count.

use super::search::TreeSearch;
use crate::context::Context;
use crate::error::Result;
use crate::page::header::{LEVEL, TYPE, identity};
use crate::page::node::child_slot_covering;
use crate::page::{Node, PageBytes, PageType};
use crate::pool::SharedPage;
use crate::types::PageNo;

/// Ways between the ends of a range.
const SAMPLES: usize = 6;

/// A step of a descent's path through a page: the slot of the child on the path, or of the first record after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Passage {
    page: PageNo,
    slot: usize,
    /// Children, or records of a leaf.
    count: usize,
}

/// About how many records have a key from `low` on and below `high` (`None`: to the end).
///
/// # Errors
/// A page that cannot be read.
pub(super) fn estimate_between(tree: &TreeSearch, ctx: &Context, low: &[u8], high: Option<&[u8]>) -> Result<u64> {
    let low = way(tree, ctx, |node, page| match node.is_leaf() {
        true => node.search(low).unwrap_or_else(|slot| slot),
        false => child_slot_covering(page, low),
    })?;
    let high = way(tree, ctx, |node, page| match high {
        Some(high) if node.is_leaf() => node.search(high).unwrap_or_else(|slot| slot),
        Some(high) => child_slot_covering(page, high),
        None => node.count(),
    })?;
    let Some(fork) = fork(&low, &high) else { return Ok(0) };
    let mut samples = Vec::new();
    let gap = high[fork].slot - low[fork].slot;
    for sample in 1..=SAMPLES.min(gap.saturating_sub(1)) {
        let mut level = 0;
        samples.push(way(tree, ctx, |node, _| {
            level += 1;
            match level - 1 {
                above if above < fork => low[above].slot.min(node.count()),
                at if at == fork => (low[fork].slot + gap * sample / (SAMPLES.min(gap - 1) + 1)).min(node.count()),
                _ => node.count() / 2,
            }
        })?);
    }
    Ok(between(fork, &low, &high, &samples))
}

/// A leaf that `pick` leads to: it gets how many children there are, and says which one is next. `None` if a page
/// on the way had changed.
///
/// # Errors
/// A page that cannot be read.
pub(super) fn sample_leaf<'c>(
    tree: &TreeSearch,
    ctx: &'c Context,
    pick: &mut dyn FnMut(usize) -> usize,
) -> Result<Option<SharedPage<'c>>> {
    let way = way(tree, ctx, |node, _| if node.is_leaf() { 0 } else { pick(node.count() + 1).min(node.count()) })?;
    let Some(last) = way.last() else { return Ok(None) };
    let page = ctx.pool.fix_s(last.page)?;
    Ok((page.u64_at(TYPE) == identity(PageType::Leaf, 0, tree.id().0)).then_some(page))
}

/// The pages from the root to a leaf (rule 1).
fn way(tree: &TreeSearch, ctx: &Context, mut slot_of: impl FnMut(Node<'_>, &[u8]) -> usize) -> Result<Vec<Passage>> {
    let (mut way, mut next) = (Vec::new(), Some(tree.root()));
    let mut level = None;
    while let Some(page_no) = next {
        let page = match ctx.pool.fix_s(page_no) {
            Ok(page) => page,
            // It may have been freed meanwhile.
            Err(error) if way.is_empty() || !error.is_damage() => return Err(error),
            Err(_) => break,
        };
        let own = page.u8_at(LEVEL);
        let page_type = if own == 0 { PageType::Leaf } else { PageType::Inner };
        if page.u64_at(TYPE) != identity(page_type, own, tree.id().0)
            || level.is_some_and(|level: u8| level.checked_sub(1) != Some(own))
        {
            break;
        }
        let node = Node::new(&page);
        let slot = slot_of(node, &page);
        way.push(Passage { page: page_no, slot, count: node.count() + usize::from(own > 0) });
        next = (own > 0).then(|| node.child(slot));
        level = Some(own);
    }
    Ok(way)
}

/// The level on which two ways part; `None` if there is nothing between them.
fn fork(low: &[Passage], high: &[Passage]) -> Option<usize> {
    let fork = (0..low.len().min(high.len())).find(|level| low[*level] != high[*level])?;
    (high[fork].page == low[fork].page && high[fork].slot > low[fork].slot).then_some(fork)
}

/// Rule 2.
fn between(fork: usize, low: &[Passage], high: &[Passage], samples: &[Vec<Passage>]) -> u64 {
    debug_assert!(low[fork].slot < high[fork].slot, "the ends fork the wrong way");
    let depth = low.len().min(high.len());
    let mean = |level: usize| {
        let sampled = samples.iter().filter_map(|way| way.get(level));
        let counts: Vec<_> = match samples.is_empty() {
            true => vec![low[level].count, high[level].count],
            false => sampled.map(|passage| passage.count).collect(),
        };
        counts.iter().sum::<usize>() as f64 / counts.len().max(1) as f64
    };
    // Records below one child on this level; the last level has the records themselves.
    let below = |level: usize| (level + 1..depth).map(mean).product::<f64>();
    // Whole children between the ends, and what the ends' own children have on the inner side.
    let mut records = (high[fork].slot - low[fork].slot - usize::from(fork + 1 < depth)) as f64 * below(fork);
    for level in fork + 1..depth {
        let is_inner = usize::from(level + 1 < depth);
        let behind_low = low[level].count.saturating_sub(low[level].slot + is_inner);
        records += (behind_low + high[level].slot) as f64 * below(level);
    }
    records.max(0.0).round() as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn way(passages: &[(u32, usize, usize)]) -> Vec<Passage> {
        passages.iter().map(|&(page, slot, count)| Passage { page: PageNo(page), slot, count }).collect()
    }

    fn about(low: &[Passage], high: &[Passage], samples: &[Vec<Passage>]) -> u64 {
        fork(low, high).map_or(0, |fork| between(fork, low, high, samples))
    }

    #[test]
    fn ends_in_one_leaf_are_exact_and_subtrees_between_count() {
        let (a, b) = (way(&[(1, 3, 9), (2, 10, 50)]), way(&[(1, 3, 9), (2, 35, 50)]));
        assert_eq!((about(&a, &b, &[]), about(&b, &a, &[]), about(&a, &a, &[])), (25, 0, 0));
        // From record 10 of child 3 to record 5 of child 6: 40 + 2 whole children + 5.
        let c = way(&[(1, 6, 9), (5, 5, 50)]);
        assert_eq!(about(&a, &c, &[]), 40 + 100 + 5);
        assert_eq!(about(&a, &c, &[way(&[(1, 4, 9), (7, 0, 80)])]), 40 + 160 + 5);
        // Three levels: children of 10 leaves of 50 records.
        let d = way(&[(1, 0, 3), (2, 9, 10), (3, 49, 50)]);
        let e = way(&[(1, 2, 3), (4, 1, 10), (5, 1, 50)]);
        assert_eq!(about(&d, &e, &[]), 1 + 500 + 50 + 1);
    }
}
