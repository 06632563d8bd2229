//! Damaged trees: errors, no panic, no loop.

use super::*;
use crate::testing::is_tried;

/// Long keys that differ at the end make long separators.
fn tall_key(n: u32) -> Vec<u8> {
    [&[7; 100][..], &n.to_be_bytes()].concat()
}

/// A tree of at least three levels, with its pages by level.
fn tall_tree() -> (Fixture, Vec<PageNo>) {
    let fixture = Fixture::new();
    (0..3000).for_each(|n| fixture.put(&tall_key(n), &[1; 100]).unwrap());
    let report = fixture.tree.check(fixture.ctx()).unwrap();
    assert!(report.levels >= 3);
    (fixture, report.pages)
}

/// Every way into the tree at `key`; each must return, with the damage found or with a result.
fn use_everything(fixture: &Fixture, key: &[u8]) -> Vec<Error> {
    let (ctx, tree) = (fixture.ctx(), &fixture.tree);
    let mut errors = Vec::new();
    for seek in [Seek::Covers(key), Seek::Before(key), Seek::First, Seek::Last] {
        errors.extend(tree.leaf(ctx, seek).err());
    }
    errors.extend(tree.leaf_mut(&mut ctx.mtr().unwrap(), key).err());
    errors.extend(tree.make_room(ctx, key, 1300).err());
    errors.extend(tree.shrink(ctx, key).err());
    errors.iter().for_each(|error| assert!(matches!(error, Error::CorruptPage { .. }), "{error}"));
    errors
}

/// Changes a page on its device while the pool does not hold it: pages are checked when they are read.
fn damage(fixture: &Fixture, page: PageNo, op: &PageOp<'_>) {
    let (pool, data) = (&fixture.ctx().pool, &fixture.parts.storage().data);
    pool.flush_all().unwrap();
    pool.evict_all_clean();
    let mut bytes = vec![0; pool.page_bytes()];
    let offset = u64::from(page.0) * bytes.len() as u64;
    data.read_at(offset, &mut bytes).unwrap();
    op.apply(&mut bytes).unwrap();
    crate::page::header::stamp(&mut bytes, page);
    data.write_at(offset, &bytes, highwater_storage::Placement::Other).unwrap();
}

#[test]
fn damaged_links_are_found_and_end_no_one_up_in_a_loop() {
    let (fixture, pages) = tall_tree();
    let other = new_tree(&fixture.parts, 101);
    let key = [0, 0, 0, 1];
    for child in [fixture.tree.root(), pages[1], other.root(), PageNo(1), PageNo(3_000_000), pages[pages.len() - 1]] {
        let root = fixture.ctx().pool.fix_s(fixture.tree.root()).unwrap();
        let right = Node::new(&root).child(0);
        drop(root);
        // The root's first child, or its first child's first child, leads elsewhere.
        for page in [fixture.tree.root(), right] {
            let guard = fixture.ctx().pool.fix_s(page).unwrap();
            let before = Node::new(&guard).child(0);
            drop(guard);
            if before == child {
                continue;
            }
            damage(&fixture, page, &PageOp::NodeSetChild { slot: 0, child });
            let errors = use_everything(&fixture, &key);
            // Another leaf of the same tree is found by the check only.
            let is_leaf_for_leaf = page != fixture.tree.root() && child == pages[pages.len() - 1];
            assert!(!errors.is_empty() || is_leaf_for_leaf, "page {page} leads to {child} unnoticed");
            assert!(!fixture.tree.check(fixture.ctx()).unwrap().problems.is_empty());
            damage(&fixture, page, &PageOp::NodeSetChild { slot: 0, child: before });
        }
    }
    assert_eq!(fixture.tree.check(fixture.ctx()).unwrap().problems, vec![]);
}

#[test]
fn pages_of_the_wrong_kind_are_found() {
    let (fixture, pages) = tall_tree();
    // The walk goes down first: these lead to the lowest keys.
    for page in [pages[1], pages[2]] {
        for (page_type, level, owner) in
            [(PageType::Leaf, 0, 55), (PageType::Undo, 0, 100), (PageType::Free, 0, 0), (PageType::Inner, 9, 100)]
        {
            let before = fixture.ctx().pool.fix_s(page).unwrap().to_vec();
            damage(&fixture, page, &PageOp::Format { page_type, level, owner });
            assert!(!use_everything(&fixture, &[0, 0, 0, 0]).is_empty(), "{page_type:?} {level} {owner}");
            assert!(!fixture.tree.check(fixture.ctx()).unwrap().problems.is_empty());
            let (page_type, level) = (PageType::from_u8(before[16]).unwrap(), before[17]);
            damage(&fixture, page, &PageOp::Format { page_type, level, owner: 100 });
            damage(&fixture, page, &PageOp::Write { offset: 24, bytes: &before[24..] });
        }
    }
    assert_eq!(fixture.tree.check(fixture.ctx()).unwrap().problems, vec![]);
}

#[test]
fn scrambled_pages_never_panic() {
    let (fixture, pages) = tall_tree();
    let mut rng = Rng::with_seed(21);
    for case in 0..400 {
        let page = pages[rng.usize(0..pages.len().min(40))];
        let before = fixture.ctx().pool.fix_s(page).unwrap().to_vec();
        let offset = if rng.f64() < 0.8 { rng.u16(24..200) } else { rng.u16(24..4000) };
        let bytes: [u8; 6] = std::array::from_fn(|_| rng.u8(..));
        let key = tall_key(rng.u32(0..3000));
        if !is_tried(case) {
            continue;
        }
        damage(&fixture, page, &PageOp::Write { offset, bytes: &bytes });
        let _ = fixture.tree.leaf(fixture.ctx(), Seek::Covers(&key)).map(|leaf| pairs_of(&leaf));
        let _ = fixture.tree.leaf(fixture.ctx(), Seek::Before(&key)).map(|leaf| pairs_of(&leaf));
        let _ = fixture.tree.make_room(fixture.ctx(), &key, 10);
        let _ = fixture.tree.check(fixture.ctx()).unwrap();
        damage(&fixture, page, &PageOp::Write { offset: 24, bytes: &before[24..] });
    }
}
