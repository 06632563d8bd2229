//! From leaf to leaf through the parent.

use super::*;
use crate::btree::LeafPosition;
use crate::config::Options;

/// A tree of three levels, all of it in the pool and compared with its parents. Keys of four bytes, even numbers only.
fn tall() -> Fixture {
    let fixture = Fixture::over(open(StorageSet::memory(), Options { buffer_pool_size: 4 << 20, ..small_options() }));
    for number in 0..6000u32 {
        fixture.put(&(number * 2).to_be_bytes(), &[7; 200]).unwrap();
    }
    assert_eq!(forward(fixture.ctx(), &fixture.tree, Seek::First).len(), 6000);
    fixture
}

fn sought<'c>(fixture: &'c Fixture, seek: Seek<'_>) -> (Leaf<'c>, LeafPosition) {
    let (leaf, position) = fixture.tree.sought_leaf(fixture.ctx(), seek).unwrap();
    (leaf, position.expect("the root is not a leaf"))
}

/// Goes from the first leaf to the last, or back. Returns the keys and how often the parent had no further child.
fn walk(fixture: &Fixture, reverse: bool) -> (Vec<Vec<u8>>, usize) {
    let (mut leaf, mut position) = sought(fixture, if reverse { Seek::Last } else { Seek::First });
    let (mut keys, mut descents) = (Vec::new(), 0);
    loop {
        let here = pairs_of(&leaf).into_iter().map(|(key, _)| key);
        if reverse {
            keys.extend(here.rev());
        } else {
            keys.extend(here);
        }
        let Some(fence) = (if reverse { leaf.lower() } else { leaf.upper() }).map(<[u8]>::to_vec) else {
            return (keys, descents);
        };
        drop(leaf);
        (leaf, position) = fixture.tree.sibling_leaf(fixture.ctx(), position, reverse).unwrap_or_else(|| {
            descents += 1;
            sought(fixture, if reverse { Seek::Before(&fence) } else { Seek::Covers(&fence) })
        });
        let near = if reverse { leaf.upper() } else { leaf.lower() };
        assert_eq!(near, Some(&fence[..]));
    }
}

#[test]
fn every_leaf_is_the_sibling_of_the_one_before() {
    let fixture = tall();
    let report = fixture.tree.check(fixture.ctx()).unwrap();
    let parents = report.pages.len() - report.leaves as usize - 1;
    assert!(report.levels == 3 && parents > 1);
    let all: Vec<_> = forward(fixture.ctx(), &fixture.tree, Seek::First).into_iter().map(|(key, _)| key).collect();
    let (mut keys, descents) = walk(&fixture, true);
    keys.reverse();
    assert!(keys == all && descents == parents - 1, "{descents} descents, {parents} parents");
    let (keys, descents) = walk(&fixture, false);
    assert!(keys == all && descents == parents - 1, "{descents} descents, {parents} parents");
}

/// A parent that has changed since says nothing: the next leaf may have been split, or merged away.
#[test]
fn a_changed_parent_leads_nowhere() {
    let fixture = tall();
    let (leaf, position) = sought(&fixture, Seek::Covers(&1000u32.to_be_bytes()));
    let upper = leaf.upper().unwrap().to_vec();
    drop(leaf);
    let (next, _) = fixture.tree.sibling_leaf(fixture.ctx(), position, false).unwrap();
    let least = u32::from_be_bytes(pairs_of(&next)[0].0[..].try_into().unwrap());
    drop(next);
    let pages = || fixture.tree.check(fixture.ctx()).unwrap().pages.len();
    let before = pages();
    (0..20).for_each(|step| fixture.put(&(least + 2 * step + 1).to_be_bytes(), &[8; 200]).unwrap());
    assert!(pages() > before, "nothing was split");
    for reverse in [false, true] {
        assert!(fixture.tree.sibling_leaf(fixture.ctx(), position, reverse).is_none());
    }
    let (leaf, position) = sought(&fixture, Seek::Before(&upper));
    drop(leaf);
    let before = pages();
    for number in least..least + 400 {
        fixture.delete(&number.to_be_bytes()).unwrap();
    }
    assert!(pages() < before, "nothing was merged");
    for reverse in [false, true] {
        assert!(fixture.tree.sibling_leaf(fixture.ctx(), position, reverse).is_none());
    }
}
