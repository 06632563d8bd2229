//! Groups of flips that are tried together, because an opening for each of millions of flips would take hours.
//!
//! Rules
//! 1. The flips of a group are in different blocks, so that each block has the same damage as if it were alone.
//! 2. A group is conclusive if nothing is reported and nothing had to be, or if the report names the page of each flip.
//!    Any other group is split: each of its flips is tried alone.
//! 3. Blocks are tried together only if flips in their middles are conclusive, alone and together. So few groups are
//!    split, although one damaged page that prevents the opening hides the others.

use super::cases::Case;
use super::database::{File, Small};
use super::judge::{Verdict, judge};
use super::places::{BLOCK, ByteRole};
use super::sweep::unnamed;
use std::collections::BTreeMap;

/// One of this many groups is always split, to check that the effect of a flip does not depend on the others.
const ALONE_EVERY: usize = 251;

/// Groups cases, at most this many in a group. Cases of redo that recovery needs stay alone, because their outcomes
/// depend on each other.
pub fn grouped(small: &Small, cases: Vec<Case>, together: usize) -> Vec<Vec<Case>> {
    let mut groups = Vec::new();
    let mut classes: BTreeMap<String, BTreeMap<(File, u64), Vec<Case>>> = BTreeMap::new();
    for case in cases {
        match (&case.damages[..], case.place) {
            ([damage], Some(place)) if together > 1 && can_be_grouped(place) => {
                let block = (damage.file, damage.offset / BLOCK);
                classes.entry(case.what.clone()).or_default().entry(block).or_default().push(case);
            }
            _ => groups.push(vec![case]),
        }
    }
    for blocks in classes.into_values() {
        let mut blocks: Vec<Vec<Case>> = blocks.into_values().collect();
        while !blocks.is_empty() {
            let (tried_together, rest) = gather(small, blocks, together);
            add_groups(&tried_together, &mut groups);
            blocks = rest;
        }
    }
    groups
}

fn can_be_grouped(place: ByteRole) -> bool {
    !matches!(
        place,
        ByteRole::Redo(_) | ByteRole::LogHeader | ByteRole::LogMark | ByteRole::Fixed | ByteRole::NeededCopy(_)
    )
}

/// Splits the blocks by rule 3: the first block with those that can be tried together with it, and the others.
fn gather(small: &Small, blocks: Vec<Vec<Case>>, together: usize) -> (Vec<Vec<Case>>, Vec<Vec<Case>>) {
    let (mut probe, mut gathered, mut rest) = (Vec::new(), Vec::new(), Vec::new());
    for cases in blocks {
        probe.push(cases[cases.len() / 2].clone());
        if probe.len() == 1 || gathered.len() < together && as_one(small, &probe).is_some() {
            gathered.push(cases);
        } else {
            probe.pop();
            rest.push(cases);
        }
    }
    (gathered, rest)
}

/// A group for each byte of the blocks, in their order.
fn add_groups(blocks: &[Vec<Case>], groups: &mut Vec<Vec<Case>>) {
    let longest = blocks.iter().map(Vec::len).max().unwrap_or(0);
    for n in 0..longest {
        let group = blocks.iter().filter_map(|cases| cases.get(n).cloned());
        if n % ALONE_EVERY == 0 { groups.extend(group.map(|case| vec![case])) } else { groups.push(group.collect()) }
    }
}

/// The verdict of each case of a group.
pub(super) fn judge_group(small: &Small, group: &[Case]) -> Vec<Verdict> {
    if group.len() > 1
        && let Some(verdict) = as_one(small, group)
    {
        return vec![verdict; group.len()];
    }
    group.iter().map(|case| judge(small, &case.damages)).collect()
}

/// The verdict of all cases together, if it is conclusive (rule 2).
fn as_one(small: &Small, group: &[Case]) -> Option<Verdict> {
    let damages: Vec<_> = group.iter().flat_map(|case| case.damages.iter().cloned()).collect();
    let verdict = judge(small, &damages);
    let is_explained = |case: &Case| match (&verdict, case.place) {
        (Verdict::Silent, Some(place)) => !place.is_live(),
        (
            Verdict::Reported(said),
            Some(ByteRole::Page(page) | ByteRole::Compressed(page) | ByteRole::Recovered(page)),
        ) => page != 0 && unnamed(ByteRole::Page(page), case, said).is_none(),
        _ => false,
    };
    group.iter().all(is_explained).then_some(verdict)
}
