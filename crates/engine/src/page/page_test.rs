//! Nodes against a model, the redo codec against the operations, and both against damaged bytes.

use super::header::{self, PageType};
use super::node::{self, Node, TreeLimits, common_prefix, max_key_bytes, max_long_key_bytes, shortest_separator};
use super::op::{PageOp, pack_record};
use crate::types::PageNo;
use fastrand::Rng;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::ops::Bound;

const PAGE: PageNo = PageNo(77);

/// A page and its replica: what is applied to the page is encoded, decoded and applied to the replica.
struct Twin {
    page: Vec<u8>,
    replica: Vec<u8>,
}

impl Twin {
    fn new(page_bytes: usize) -> Twin {
        Twin { page: vec![0xaa; page_bytes], replica: vec![0x55; page_bytes] }
    }

    fn leaf(page_bytes: usize, lower: Option<&[u8]>, upper: Option<&[u8]>) -> Twin {
        let mut twin = Twin::new(page_bytes);
        twin.apply(&PageOp::Format { page_type: PageType::Leaf, level: 0, owner: 5 });
        twin.apply(&PageOp::NodeFormat { lower, upper, upper_child: PageNo(0) });
        twin
    }

    fn apply(&mut self, op: &PageOp<'_>) {
        assert!(self.try_apply(op), "{op:?}");
    }

    /// Applies to both; false (and unchanged) when the operation does not fit.
    fn try_apply(&mut self, op: &PageOp<'_>) -> bool {
        let before = self.page.clone();
        let mut encoded = vec![1, 2, 3];
        op.encode(PAGE, &mut encoded);
        let (page_no, decoded, len) = PageOp::decode(&encoded[3..]).unwrap();
        assert_eq!((page_no, decoded, len), (PAGE, *op, encoded.len() - 3));
        for end in 3..encoded.len() {
            assert!(PageOp::decode(&encoded[3..end]).is_err(), "cut at {end}");
        }
        let fits = op.apply(&mut self.page).is_ok();
        assert_eq!(fits, decoded.apply(&mut self.replica).is_ok());
        if fits {
            assert!(self.page == self.replica, "replay differs after {op:?}");
        } else {
            assert!(self.page == before, "a refused operation changed the page");
        }
        fits
    }

    fn node(&self) -> Node<'_> {
        Node::new(&self.page)
    }

    fn assert_is(&self, model: &BTreeMap<Vec<u8>, Vec<u8>>) {
        let node = self.node();
        node::check(&self.page, PAGE).unwrap();
        assert_eq!(node.count(), model.len());
        for (slot, (key, value)) in model.iter().enumerate() {
            assert_eq!((&node.key(slot), node.value(slot)), (key, &value[..]));
            assert_eq!(node.search(key), Ok(slot));
        }
    }
}

/// Keys that share prefixes, differ in length and contain zeros.
fn random_key(rng: &mut Rng, prefix: &[u8]) -> Vec<u8> {
    let mut key = prefix.to_vec();
    let len = if rng.f64() < 0.05 { rng.usize(0..60) } else { rng.usize(0..9) };
    // Often a common beginning, so that pages skip some of it.
    if rng.f64() < 0.9 {
        key.extend_from_slice(b"shared");
    }
    key.extend((0..len).map(|_| [0u8, 0, 1, 7, 255][rng.usize(0..5)]));
    key
}

fn random_value(rng: &mut Rng) -> Vec<u8> {
    let len = if rng.f64() < 0.1 { rng.usize(0..600) } else { rng.usize(0..20) };
    (0..len).map(|_| rng.u8(..)).collect()
}

fn random_step(twin: &mut Twin, model: &mut BTreeMap<Vec<u8>, Vec<u8>>, rng: &mut Rng, prefix: &[u8]) {
    let key = random_key(rng, prefix);
    let found = twin.node().search(&key);
    assert_eq!(found.is_ok(), model.contains_key(&key));
    match found {
        Err(slot) => {
            assert_eq!(slot, model.range::<[u8], _>((Bound::Unbounded, Bound::Excluded(&key[..]))).count());
            let value = random_value(rng);
            let fits = twin.node().fits(key.len(), value.len());
            let done = twin.try_apply(&PageOp::NodeInsert { slot: slot as u16, key: &key, value: &value });
            assert!(done || !fits);
            if done {
                model.insert(key, value);
            }
        }
        Ok(slot) if rng.f64() < 0.4 => {
            twin.apply(&PageOp::NodeRemove { slot: slot as u16 });
            model.remove(&key);
        }
        Ok(slot) => {
            let value = model.get_mut(&key).unwrap();
            let at = rng.usize(0..=value.len());
            let remove = rng.usize(0..=value.len() - at);
            let bytes = random_value(rng);
            let growth = bytes.len().saturating_sub(remove);
            let op = PageOp::NodeSplice { slot: slot as u16, at: at as u16, remove: remove as u16, bytes: &bytes };
            let fits = growth == 0 || twin.node().fits_growth(growth);
            assert_eq!(twin.try_apply(&op), fits);
            if fits {
                value.splice(at..at + remove, bytes);
            }
        }
    }
}

#[test]
fn random_changes_agree_with_a_map() {
    for seed in 0..60 {
        let mut rng = Rng::with_seed(seed);
        let prefix: &[u8] = [&b""[..], b"x", b"abcdef"][seed as usize % 3];
        let upper = [prefix, &[255; 70]].concat();
        let (lower, upper) = if prefix.is_empty() { (None, None) } else { (Some(prefix), Some(&upper[..])) };
        let mut twin = Twin::leaf(4096, lower, upper);
        let mut model = BTreeMap::new();
        for step in 0..600 {
            random_step(&mut twin, &mut model, &mut rng, prefix);
            if step % 50 == 0 {
                twin.assert_is(&model);
            }
        }
        twin.assert_is(&model);
    }
}

/// Packs records `from..` of a node for a page whose prefix has `prefix_len` bytes.
fn pack_tail(node: Node<'_>, from: usize, prefix_len: usize) -> Vec<u8> {
    let mut packed = Vec::new();
    (from..node.count()).for_each(|slot| pack_record(&mut packed, &node.key(slot)[prefix_len..], node.value(slot)));
    packed
}

#[test]
fn split_and_merge_keep_every_record() {
    for seed in 0..40 {
        let mut rng = Rng::with_seed(1000 + seed);
        let mut twin = Twin::leaf(8192, Some(b"k"), Some(b"l"));
        let mut model = BTreeMap::new();
        (0..300).for_each(|_| random_step(&mut twin, &mut model, &mut rng, b"k"));
        if model.len() < 2 {
            continue;
        }
        let at = rng.usize(1..model.len());
        let separator = shortest_separator(&twin.node().key(at - 1), &twin.node().key(at)).to_vec();
        let mut right = Twin::leaf(8192, Some(&separator), Some(b"l"));
        let packed = pack_tail(twin.node(), at, right.node().prefix_len());
        right.apply(&PageOp::NodeAppend { packed: &packed });
        let upper = Some(&separator[..]);
        let narrow = PageOp::NodeRefence { from: 0, to: at as u16, lower: Some(b"k"), upper, upper_child: PageNo(0) };
        twin.apply(&narrow);
        let right_model = model.split_off(&separator);
        twin.assert_is(&model);
        right.assert_is(&right_model);

        let wide = PageOp::NodeRefence {
            from: 0,
            to: at as u16,
            lower: Some(b"k"),
            upper: Some(b"l"),
            upper_child: PageNo(0),
        };
        twin.apply(&wide);
        let packed = pack_tail(right.node(), 0, twin.node().prefix_len());
        twin.apply(&PageOp::NodeAppend { packed: &packed });
        model.extend(right_model);
        twin.assert_is(&model);
    }
}

#[test]
fn inner_pages_find_their_children() {
    let mut twin = Twin::new(4096);
    twin.apply(&PageOp::Format { page_type: PageType::Inner, level: 1, owner: 5 });
    twin.apply(&PageOp::NodeFormat { lower: Some(b"aa"), upper: Some(b"az"), upper_child: PageNo(100) });
    for (slot, key) in [b"ab", b"ad", b"af"].iter().enumerate() {
        let child = (slot as u32 + 1).to_le_bytes();
        twin.apply(&PageOp::NodeInsert { slot: slot as u16, key: &key[..], value: &child });
    }
    let page = &twin.page[..];
    node::check(&twin.page, PAGE).unwrap();
    let covering = |key: &[u8]| node::child_at(page, node::child_slot_covering(page, key)).0;
    let before = |key: &[u8]| node::child_at(page, node::child_slot_before(page, key)).0;
    assert_eq!([b"aa", b"ab", b"ac", b"ad", b"af", b"ay"].map(|key| covering(key)), [1, 2, 2, 3, 100, 100]);
    assert_eq!([b"ab", b"ac", b"ad", b"af", b"ag", b"az"].map(|key| before(key)), [1, 2, 2, 3, 100, 100]);
    twin.apply(&PageOp::NodeSetChild { slot: 1, child: PageNo(9) });
    twin.apply(&PageOp::NodeSetChild { slot: 3, child: PageNo(8) });
    assert_eq!((twin.node().child(1), twin.node().child(3)), (PageNo(9), PageNo(8)));
    assert!(!twin.try_apply(&PageOp::NodeSetChild { slot: 4, child: PageNo(8) }));
    assert!(!twin.try_apply(&PageOp::NodeInsert { slot: 0, key: b"aaa", value: b"long value" }));
    assert!(!twin.try_apply(&PageOp::NodeInsert { slot: 0, key: b"b", value: b"1234" }));
}

/// Every limit that keys may have, in steps, and the page sizes.
fn limits() -> impl Iterator<Item = (usize, TreeLimits)> {
    [4096, 8192, 16384].into_iter().flat_map(|page_bytes| {
        let step = page_bytes / 256;
        let keys = [1, 4, 5, 8, 12, max_key_bytes(page_bytes)].into_iter();
        let keys = keys.chain((step..=max_long_key_bytes(page_bytes)).step_by(step));
        keys.map(move |max_key_bytes| (page_bytes, TreeLimits::of(page_bytes, max_key_bytes)))
    })
}

#[test]
fn the_longest_records_fit_as_promised() {
    for (page_bytes, limits) in limits() {
        let long = |last: u8| vec![last; limits.max_key_bytes];
        let value = vec![7; limits.max_value_bytes(limits.max_key_bytes)];
        let mut twin = Twin::leaf(page_bytes, Some(&long(1)), Some(&long(9)));
        for slot in 0..2 {
            let key = long(slot + 2);
            assert!(twin.node().fits(key.len(), value.len()), "{page_bytes} {limits:?}");
            twin.apply(&PageOp::NodeInsert { slot: slot.into(), key: &key, value: &value });
        }
        let mut short = Twin::leaf(page_bytes, Some(&long(1)), Some(&long(9)));
        let key_bytes = limits.max_key_bytes.min(12);
        let value = vec![7; limits.max_value_bytes(key_bytes)];
        for slot in 0..2 {
            let key = vec![slot + 2; key_bytes];
            assert!(short.node().fits(key.len(), value.len()), "{page_bytes} {limits:?}");
            short.apply(&PageOp::NodeInsert { slot: slot.into(), key: &key, value: &value });
        }
        let mut inner = Twin::new(page_bytes);
        inner.apply(&PageOp::Format { page_type: PageType::Inner, level: 1, owner: 5 });
        let (lower, upper) = (long(1), long(9));
        inner.apply(&PageOp::NodeFormat { lower: Some(&lower), upper: Some(&upper), upper_child: PageNo(3) });
        for slot in 0..2 {
            inner.apply(&PageOp::NodeInsert { slot: slot.into(), key: &long(slot + 2), value: &[1; 4] });
        }
        node::check(&inner.page, PAGE).unwrap();
    }
}

#[test]
fn the_limits_are_those_of_the_documents() {
    let of = |page_bytes| (max_key_bytes(page_bytes), max_long_key_bytes(page_bytes));
    assert_eq!([4096, 8192, 16384].map(of), [(512, 896), (1024, 1792), (2048, 3584)]);
    let records = [8, 512, 896].map(|max_key_bytes| TreeLimits::of(4096, max_key_bytes).max_record_bytes);
    assert_eq!(records, [1992, 1488, 1104]);
    // A limit that the catalog cannot have written is that of the page.
    assert_eq!([0, 897, 65535].map(|bytes| TreeLimits::of(4096, bytes)), [TreeLimits::of(4096, 896); 3]);
}

#[test]
fn ascending_insertions_are_noticed() {
    let mut twin = Twin::leaf(4096, None, None);
    for slot in 0..30u16 {
        assert_eq!(twin.node().ascent_at(slot as usize).is_some(), slot > 0);
        twin.apply(&PageOp::NodeInsert { slot, key: &slot.to_be_bytes(), value: b"v" });
    }
    twin.apply(&PageOp::NodeRemove { slot: 3 });
    assert!(twin.node().ascent_at(29).is_some() && twin.node().ascent_at(10).is_none());
    let free = twin.node().free_bytes();
    assert!(!twin.node().fits(2, free - 10 - 200) && twin.node().fits(2, free - 10 - 256));
    twin.apply(&PageOp::NodeInsert { slot: 3, key: &3u16.to_be_bytes(), value: b"v" });
    assert!(twin.node().ascent_at(4).is_none() && twin.node().ascent_at(30).is_none());
}

#[test]
fn heads_lie_behind_what_all_keys_share() {
    // No fence prefix, so that the eight shared bytes are left to `skip`.
    let mut twin = Twin::leaf(4096, None, None);
    let mut model = BTreeMap::new();
    let mut rng = Rng::with_seed(12);
    let mut insert = |twin: &mut Twin, key: Vec<u8>| {
        if let Err(slot) = twin.node().search(&key) {
            twin.apply(&PageOp::NodeInsert { slot: slot as u16, key: &key, value: b"value" });
            model.insert(key, b"value".to_vec());
            twin.assert_is(&model);
        }
    };
    (0..40).for_each(|_| insert(&mut twin, [&b"samesame"[..], &rng.u32(..).to_be_bytes(), b"x"].concat()));
    assert!(twin.node().skip() >= 8);
    let node = twin.node();
    assert_eq!(
        (node.search(b"a"), node.search(b"samesamf"), node.search(b"sames")),
        (Err(0), Err(node.count()), Err(0))
    );
    insert(&mut twin, b"samesamesame".to_vec());
    insert(&mut twin, b"samex".to_vec());
    assert_eq!(twin.node().skip(), 4);
    insert(&mut twin, b"sam".to_vec());
    assert_eq!(twin.node().skip(), 3);
    insert(&mut twin, b"".to_vec());
    assert_eq!(twin.node().skip(), 0);
}

#[test]
fn header_bytes_are_out_of_reach() {
    let mut twin = Twin::leaf(4096, None, None);
    assert!(!twin.try_apply(&PageOp::Write { offset: 16, bytes: &[1] }));
    assert!(!twin.try_apply(&PageOp::Write { offset: 4095, bytes: &[1, 2] }));
    assert!(!twin.try_apply(&PageOp::SetBits { offset: 4090, mask: 1 }));
    let offset = header::MAX_TRX_ID_OFFSET as u16;
    twin.apply(&PageOp::Write { offset, bytes: &42u64.to_le_bytes() });
    assert_eq!(header::max_trx_id(&twin.page), 42);
    twin.apply(&PageOp::SetBits { offset: 2000, mask: 1 << 63 | 1 });
    twin.apply(&PageOp::ClearBits { offset: 2000, mask: 1 });
    assert_eq!(&twin.page[2000..2008], &(1u64 << 63).to_le_bytes());
}

/// A filled leaf, damaged in a few places.
fn damaged_page(rng: &mut Rng) -> Vec<u8> {
    let mut twin = Twin::leaf(4096, Some(b"m"), Some(b"n"));
    let mut model = BTreeMap::new();
    (0..120).for_each(|_| random_step(&mut twin, &mut model, rng, b"m"));
    let mut page = twin.page;
    for _ in 0..rng.usize(1..6) {
        let area = if rng.f64() < 0.7 { 16..300 } else { 0..page.len() };
        let at = rng.usize(area);
        page[at] = if rng.f64() < 0.5 { rng.u8(..) } else { 0xff };
    }
    page
}

#[test]
fn damaged_pages_never_panic() {
    let mut rng = Rng::with_seed(4);
    for _ in 0..1500 {
        let page = damaged_page(&mut rng);
        let node = Node::new(&page);
        let accepted = node::check(&page, PAGE).is_ok();
        for _ in 0..5 {
            let key = random_key(&mut rng, b"m");
            let value = random_value(&mut rng);
            let slot = node.search(&key).unwrap_or_else(|slot| slot);
            let _ = (node.key(slot), node.value(slot), node.child(slot), node.lower(), node.upper());
            let _ = (node.fits(9, 9), node.used_bytes(), node.covers(&key), node.is_before(&key));
            let slot = slot as u16;
            let upper = Some(&b"n"[..]);
            let mut packed = Vec::new();
            pack_record(&mut packed, &[0xff; 9], &value);
            for op in [
                PageOp::NodeInsert { slot, key: &key, value: &value },
                PageOp::NodeRemove { slot },
                PageOp::NodeSplice { slot, at: 0, remove: 0, bytes: &value },
                PageOp::NodeSplice { slot, at: 1, remove: 1, bytes: b"" },
                PageOp::NodeAppend { packed: &packed },
                PageOp::NodeRefence { from: 0, to: slot, lower: Some(b"m"), upper, upper_child: PageNo(0) },
                PageOp::NodeSetChild { slot, child: PageNo(1) },
            ] {
                let mut changed = page.clone();
                let outcome = op.apply(&mut changed);
                assert!(outcome.is_ok() || changed == page, "{op:?} failed and changed the page");
            }
        }
        if accepted {
            let mut copy = page.clone();
            let upper = node.upper();
            let op = PageOp::NodeRefence {
                from: 0,
                to: node.count() as u16,
                lower: node.lower(),
                upper,
                upper_child: PageNo(0),
            };
            op.apply(&mut copy).unwrap();
            node::check(&copy, PAGE).unwrap();
        }
    }
}

#[test]
fn separators_are_short_and_separate() {
    assert_eq!(shortest_separator(b"abc", b"abxyz"), b"abx");
    assert_eq!(shortest_separator(b"ab", b"abc"), b"abc");
    assert_eq!(common_prefix(b"abc", b"abd"), 2);
    let mut rng = Rng::with_seed(9);
    for _ in 0..2000 {
        let (a, b) = (random_key(&mut rng, b""), random_key(&mut rng, b""));
        if a < b {
            let separator = shortest_separator(&a, &b);
            assert!(&a[..] < separator && separator <= &b[..]);
        }
    }
}

proptest! {
    #[test]
    fn any_bytes_decode_or_are_refused(input in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok((page_no, op, len)) = PageOp::decode(&input) {
            prop_assert!(len <= input.len());
            let mut again = Vec::new();
            op.encode(page_no, &mut again);
            prop_assert_eq!(PageOp::decode(&again).unwrap(), (page_no, op, again.len()));
            let mut page = vec![0u8; 4096];
            let _ = op.apply(&mut page);
        }
    }

    #[test]
    fn any_page_can_be_looked_at(
        page in proptest::collection::vec(any::<u8>(), 4096),
        key in proptest::collection::vec(any::<u8>(), 0..20),
    ) {
        let node = Node::new(&page);
        prop_assert!(node::check(&page, PAGE).is_err());
        let slot = node.search(&key).unwrap_or_else(|slot| slot);
        let _ = (node.key(slot), node.value(slot), node.child(slot));
        let _ = (node::child_slot_covering(&page[..], &key), node::child_slot_before(&page[..], &key));
    }
}

/// Two records over the same bytes: a change of one would change the other.
#[test]
fn records_that_overlap_are_damage() {
    let mut twin = Twin::leaf(4096, None, None);
    for (slot, key) in [b"key1", b"key2"].into_iter().enumerate() {
        twin.apply(&PageOp::NodeInsert { slot: slot as u16, key, value: &[7; 10] });
    }
    node::check(&twin.page, PAGE).unwrap();
    let slot = |slot: usize| node::SLOTS + slot * 10;
    let first: [u8; 2] = twin.page[slot(0)..][..2].try_into().unwrap();
    for off in 0..10 {
        let mut page = twin.page.clone();
        page[slot(1)..][..2].copy_from_slice(&(u16::from_le_bytes(first) - off).to_le_bytes());
        let error = node::check(&page, PAGE).unwrap_err().to_string();
        assert!(error.contains("record 1 overlaps"), "{off}: {error}");
    }
}
