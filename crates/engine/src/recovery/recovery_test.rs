//! Trees under power cuts: what comes back is the tree as it was after some mini-transaction, no older than the last
//! one acknowledged.

use crate::btree::BTree;
use crate::db::open_parts::OpenParts;
use crate::error::{Error, Result};
use crate::page::{self, PageOp};
use crate::pool::FlushReason;
use crate::space::ROOT_CATALOG;
use crate::testing::{is_tried, open, records, seeded_options};
use crate::types::{IndexId, Lsn, PageNo, SegmentId};
use highwater_storage::{Faults, StorageSet};
use std::collections::BTreeMap;

const SEGMENT: SegmentId = SegmentId(50);
const INDEX: IndexId = IndexId(7);

type Model = BTreeMap<Vec<u8>, Vec<u8>>;

/// A small generator of the test's own, so that a seed always gives the same steps.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % n
    }
}

fn create_tree(parts: &OpenParts) -> Result<BTree> {
    parts.space.prepare(&parts.ctx)?;
    let mut mtr = parts.ctx.mtr_with(4096, 1)?;
    let tree = BTree::create(parts.space.clone(), &mut mtr, INDEX, SEGMENT)?;
    parts.space.set_root(&mut mtr, ROOT_CATALOG, tree.root());
    mtr.commit();
    Ok(tree)
}

fn open_tree(parts: &OpenParts) -> Option<BTree> {
    let root = parts.space.root(ROOT_CATALOG)?;
    Some(BTree::open(parts.space.clone(), INDEX, SEGMENT, root))
}

fn put(parts: &OpenParts, tree: &BTree, key: &[u8], value: &[u8]) -> Result<Lsn> {
    loop {
        parts.space.prepare(&parts.ctx)?;
        let mut mtr = parts.ctx.mtr()?;
        let leaf = tree.leaf_mut(&mut mtr, key)?;
        let fits = match leaf.search(&mtr, key) {
            Ok(slot) => {
                let old = leaf.value(&mtr, slot).len();
                let fits = value.len() <= old || leaf.fits_growth(&mtr, slot, value.len() - old);
                if fits {
                    leaf.splice(&mut mtr, slot, 0, old, value);
                }
                fits
            }
            Err(slot) => {
                let fits = leaf.fits(&mtr, key.len(), value.len());
                if fits {
                    leaf.insert(&mut mtr, slot, key, value);
                }
                fits
            }
        };
        if fits {
            return Ok(mtr.commit());
        }
        mtr.abandon();
        tree.make_room(&parts.ctx, key, key.len() + value.len())?;
    }
}

fn delete(parts: &OpenParts, tree: &BTree, key: &[u8]) -> Result<Lsn> {
    let mut mtr = parts.ctx.mtr()?;
    let leaf = tree.leaf_mut(&mut mtr, key)?;
    let before = leaf.used_bytes(&mtr);
    if let Ok(slot) = leaf.search(&mtr, key) {
        leaf.remove(&mut mtr, slot);
    }
    let underfull = leaf.underfull(&mtr, before);
    let lsn = mtr.commit();
    if underfull {
        tree.shrink(&parts.ctx, key)?;
    }
    Ok(lsn)
}

/// One random change of tree and model. After an error the change may have been made or not.
fn step(parts: &OpenParts, tree: &BTree, random: &mut Random, model: &mut Model) -> Result<Lsn> {
    let key = format!("key{:05}", random.below(700)).repeat(1 + random.below(3) as usize).into_bytes();
    if random.below(3) == 0 {
        model.remove(&key);
        delete(parts, tree, &key)
    } else {
        let value = vec![random.below(256) as u8; random.below(300) as usize];
        let result = put(parts, tree, &key, &value);
        model.insert(key, value);
        result
    }
}

/// What the tree may hold after a crash.
struct History {
    states: Vec<(Lsn, Model)>,
    acknowledged: Lsn,
}

impl History {
    fn assert_contains(&self, found: &Model, seed: u64) {
        let mut possible = self.states.iter().filter(|(lsn, _)| *lsn >= self.acknowledged);
        let at = self.acknowledged;
        assert!(possible.any(|(_, m)| m == found), "seed {seed}: the tree is no state it had since LSN {at}");
    }
}

/// Changes the tree until the power is cut or the number of steps that the seed gives is done.
fn run(parts: &OpenParts, tree: &BTree, seed: u64, history: &mut History) -> Result<()> {
    let mut random = Random(seed);
    let mut model = history.states[0].1.clone();
    for _ in 0..random.below(400) {
        let before = model.clone();
        let result = step(parts, tree, &mut random, &mut model);
        let lsn = *result.as_ref().unwrap_or(&Lsn(u64::MAX));
        if result.is_err() {
            history.states.push((lsn, before));
        }
        history.states.push((lsn, model.clone()));
        result?;
        match random.below(40) {
            0..=3 => {
                parts.ctx.log.flush_to(lsn)?;
                history.acknowledged = lsn;
            }
            4 => drop(parts.ctx.pool.flush_oldest(Lsn(u64::MAX), 20, FlushReason::DirtyPct)?),
            5 => checkpoint(parts)?,
            _ => {}
        }
    }
    Ok(())
}

fn checkpoint(parts: &OpenParts) -> Result<()> {
    let target = crate::pool::cleaner::checkpoint_target(&parts.ctx.pool, &parts.ctx.log);
    parts.ctx.log.flush_to(target)?;
    parts.ctx.log.checkpoint(target)
}

/// One life: open what `storage` holds, check it against `model`, work until the power is cut, return what is left.
fn live(storage: StorageSet, power_off_after: u64, seed: u64, model: &mut Model) -> StorageSet {
    let faults = Faults::new();
    let powered = storage.map(|device| faults.wrap(device));
    faults.power_off_after(power_off_after);
    if let Ok(parts) = OpenParts::open(powered, seeded_options(seed))
        && let Ok(tree) = open_tree(&parts).map_or_else(|| create_tree(&parts), Ok)
    {
        let start = parts.ctx.log.end_lsn();
        let mut history = History { states: vec![(start, model.clone())], acknowledged: start };
        if parts.ctx.log.flush_to(start).is_ok() {
            drop(run(&parts, &tree, seed, &mut history));
            drop(parts);
            let image = storage.cut(seed);
            *model = check_image(image.cut(seed), &history, seed);
            return image;
        }
    }
    storage.cut(seed)
}

/// Opens a copy of what the crash left and compares it with the history.
fn check_image(image: StorageSet, history: &History, seed: u64) -> Model {
    let parts = open(image, seeded_options(seed));
    let tree = open_tree(&parts).expect("the tree's creation was acknowledged");
    let found = records(&parts, &tree);
    history.assert_contains(&found, seed);
    let report = tree.check(&parts.ctx).unwrap();
    assert!(report.problems.is_empty(), "seed {seed}: {:?}", report.problems);
    let used = parts.space.pages_of(SEGMENT);
    assert_eq!(used.len(), report.pages.len(), "seed {seed}: pages in use and pages of the tree");
    found
}

/// Power cuts at any write, during work, flushing, checkpoints, creation and recovery, several lives in a row.
#[test]
fn a_tree_comes_back_as_it_was() {
    for seed in (0..80).filter(|seed| is_tried(seed / 2)) {
        let mut random = Random(seed + 1000);
        let (mut storage, mut model) = (StorageSet::memory(), Model::new());
        for life in 0..5 {
            let few = random.below(3) == 0;
            let power_off_after = random.below(if few { 30 } else { 400 });
            storage = live(storage, power_off_after, seed * 10 + life, &mut model);
        }
    }
}

/// A page of the test's segment, formatted.
fn new_page(parts: &OpenParts) -> PageNo {
    let new_page = || {
        let mut mtr = parts.ctx.mtr_with(4096, 1)?;
        let page_no = parts.space.allocate(&mut mtr, SEGMENT, None)?;
        let page = mtr.new_page(page_no);
        mtr.apply(page, &FORMAT);
        mtr.commit();
        Ok(page_no)
    };
    parts.space.with_room(&parts.ctx, new_page).unwrap()
}

const FORMAT: PageOp<'static> = PageOp::Format { page_type: page::PageType::Overflow, level: 0, owner: SEGMENT.0 };

fn change(parts: &OpenParts, page: PageNo, op: &PageOp<'_>) {
    let mut mtr = parts.ctx.mtr().unwrap();
    let latched = mtr.fix_x(page).unwrap();
    mtr.apply(latched, op);
    mtr.commit();
}

/// Adds `value` to the end of what the page holds: a page that misses a change, or gets one twice, is not what it was.
fn push(parts: &OpenParts, page: PageNo, value: u64, round: usize) {
    let bytes = value.to_le_bytes().repeat(12);
    change(parts, page, &PageOp::Write { offset: (64 + round % 40 * 96) as u16, bytes: &bytes });
}

fn bytes_of(parts: &OpenParts, page: PageNo) -> Vec<u8> {
    parts.ctx.pool.fix_s(page).unwrap()[page::header::HEADER_BYTES..].to_vec()
}

/// Pages changed in 2 MiB of redo since the checkpoint, more than the pool holds; some recreated on the way.
fn changed_pages(parts: &OpenParts) -> Vec<PageNo> {
    let pages: Vec<PageNo> = (0..500).map(|_| new_page(parts)).collect();
    parts.ctx.pool.flush_all().unwrap();
    parts.ctx.log.checkpoint(parts.ctx.log.end_lsn()).unwrap();
    for round in 0..32 {
        for (n, page) in pages.iter().enumerate() {
            if (n + round) % 97 == 0 {
                change(parts, *page, &FORMAT);
            }
            push(parts, *page, (round * 1000 + n) as u64, round);
        }
    }
    parts.ctx.log.flush_to(parts.ctx.log.end_lsn()).unwrap();
    pages
}

/// After each window recovery can start again from the data file, and the result is the same.
#[test]
fn recovery_in_windows_may_be_cut_short_anywhere() {
    let parts = open(StorageSet::memory(), seeded_options(1));
    let pages = changed_pages(&parts);
    let want: Vec<Vec<u8>> = pages.iter().map(|page| bytes_of(&parts, *page)).collect();
    let image = parts.storage().cut(7);
    drop(parts);
    for (seed, writes) in (0..14).map(|n| (n, 3 + n * 61)) {
        let mut storage = image.cut(seed);
        for life in 0..2 {
            let faults = Faults::new();
            faults.power_off_after(writes / (life + 1));
            drop(OpenParts::open(storage.map(|device| faults.wrap(device)), seeded_options(seed + life)));
            storage = storage.cut(seed + life);
        }
        let parts = open(storage, seeded_options(seed));
        assert!(pages.iter().map(|page| bytes_of(&parts, *page)).eq(want.iter().cloned()), "seed {seed}");
    }
    let parts = open(image, seeded_options(0));
    assert!(parts.replayed.windows > 4, "{:?}", parts.replayed);
}

/// Whether the database opens whose page was changed by `damage`, after a change of it that another window holds than
/// its `Format`.
fn opens_with_an_unreadable_page(recreated_by_redo: bool, damage: impl Fn(&mut [u8], PageNo)) -> Result<Vec<u8>> {
    let parts = open(StorageSet::memory(), seeded_options(0));
    let (page, other) = (new_page(&parts), new_page(&parts));
    parts.ctx.pool.flush_all()?;
    parts.ctx.log.checkpoint(parts.ctx.log.end_lsn())?;
    push(&parts, page, 1, 0);
    (0..8000).for_each(|round| push(&parts, other, 2, round));
    push(&parts, page, 3, 1);
    (0..8000).for_each(|round| push(&parts, other, 2, round));
    if recreated_by_redo {
        change(&parts, page, &FORMAT);
        push(&parts, page, 4, 2);
    }
    parts.ctx.log.flush_to(parts.ctx.log.end_lsn())?;
    let image = parts.storage().cut(3);
    let place = page.0 as usize * 4096;
    image.memory_devices().unwrap()[0].damage(|bytes| damage(&mut bytes[place..place + 4096], page));
    let parts = OpenParts::open(image, seeded_options(0))?;
    assert!(parts.replayed.windows > 4, "{:?}", parts.replayed);
    Ok(bytes_of(&parts, page))
}

#[test]
fn an_unreadable_page_that_a_later_window_makes_anew_is_no_error() {
    let flip = |page: &mut [u8], _: PageNo| page[100] ^= 1;
    let bytes = opens_with_an_unreadable_page(true, flip).unwrap();
    let at = |round: usize| bytes[64 + round * 96 - page::header::HEADER_BYTES];
    assert_eq!((at(0), at(1), at(2)), (0, 0, 4), "nothing of its earlier life");
    let error = opens_with_an_unreadable_page(false, flip).unwrap_err();
    assert!(matches!(&error, Error::CorruptPage { reason, .. } if reason.contains("checksum")), "{error}");
}

/// A page was flushed with a change that the log lacks: the log has lost its end, with whatever was committed there.
#[test]
fn a_page_beyond_the_log_is_an_error_though_it_is_recreated_by_redo() {
    let later = |page: &mut [u8], page_no: PageNo| {
        page::header::set_lsn(page, Lsn(1 << 40));
        page::header::stamp(page, page_no);
    };
    for recreated_by_redo in [false, true] {
        let error = opens_with_an_unreadable_page(recreated_by_redo, later).unwrap_err();
        assert!(error.is_beyond_log(), "{error}");
    }
}

/// Changes a page (`None`: the root of a tree) by an operation that no code of ours makes; opens the database after a
/// crash.
fn after_a_crash_behind(page: Option<PageNo>, op: &PageOp<'_>) -> Result<(OpenParts, BTree)> {
    let storage = StorageSet::memory();
    let parts = open(storage.clone(), seeded_options(0));
    let tree = create_tree(&parts)?;
    put(&parts, &tree, b"m", b"value")?;
    let mut mtr = parts.ctx.mtr()?;
    let page = mtr.fix_x(page.unwrap_or(tree.root()))?;
    mtr.apply(page, op);
    let end = mtr.commit();
    parts.ctx.log.flush_to(end)?;
    let parts = OpenParts::open(storage.cut(1), seeded_options(0))?;
    let tree = open_tree(&parts).expect("the tree is there");
    Ok((parts, tree))
}

#[test]
fn a_page_that_redo_spoils_is_an_error() {
    // The number of its records.
    let spoilt =
        after_a_crash_behind(None, &PageOp::Write { offset: page::header::HEADER_BYTES as u16, bytes: &[0xFF; 2] });
    let error = spoilt.map(drop).unwrap_err().to_string();
    assert!(error.contains("redo ending at LSN") && error.contains("spoils it"), "{error}");
}

#[test]
fn redo_that_changes_what_page_0_says_of_the_file_is_an_error() {
    let (header, magic) = (PageNo(0), page::header::HEADER_BYTES as u16);
    let format = PageOp::Format { page_type: page::PageType::FileHeader, level: 0, owner: 0 };
    for op in [PageOp::ClearBits { offset: magic, mask: 0x4b }, format] {
        let error = after_a_crash_behind(Some(header), &op).map(drop).unwrap_err().to_string();
        assert!(error.contains("changes what page 0 says of the file"), "{error}");
    }
    let same = PageOp::SetBits { offset: magic, mask: 0 };
    assert!(after_a_crash_behind(Some(header), &same).is_ok());
}

#[test]
fn a_root_with_fences_is_an_error() {
    let format = PageOp::NodeFormat { lower: Some(b"k"), upper: None, upper_child: PageNo(0) };
    let (parts, tree) = after_a_crash_behind(None, &format).unwrap();
    for key in [&b"a"[..], b"z"] {
        let sought = tree.leaf(&parts.ctx, crate::btree::Seek::Covers(key)).map(drop);
        assert_eq!(sought.is_ok(), key == b"z");
        let put = put(&parts, &tree, key, b"value").map(drop);
        let error = put.err().map_or(String::new(), |error| error.to_string());
        assert_eq!(error.contains("has fences"), key == b"a", "{error}");
    }
}

/// A page of whatever kind that cannot be read, and has redo: the database is not opened to be written, since the page
/// may be readable the next time; to be read it is, and everything but the page is there.
#[test]
fn an_unreadable_page_is_lost_only_where_nothing_is_written() {
    let parts = open(StorageSet::memory(), seeded_options(0));
    let (page, other) = (new_page(&parts), new_page(&parts));
    parts.ctx.pool.flush_all().unwrap();
    parts.ctx.log.checkpoint(parts.ctx.log.end_lsn()).unwrap();
    push(&parts, page, 1, 0);
    push(&parts, other, 2, 0);
    let changed = bytes_of(&parts, other);
    parts.ctx.log.flush_to(parts.ctx.log.end_lsn()).unwrap();
    let image = parts.storage().cut(3);
    let at = page.0 as usize * 4096 + 100;
    image.memory_devices().unwrap()[0].damage(|bytes| bytes[at] ^= 1);
    for _ in 0..2 {
        let opened = open(image.overlaid().unwrap(), seeded_options(0));
        assert_eq!(bytes_of(&opened, other), changed);
        assert!(opened.ctx.pool.load(page).unwrap_err().is_lost());
        assert_eq!(opened.replayed.lost_pages, 1);
        let error = OpenParts::open(image.clone(), seeded_options(0)).map(drop).unwrap_err();
        assert!(error.page() == Some(page) && !error.is_lost(), "{error}");
    }
    image.memory_devices().unwrap()[0].damage(|bytes| bytes[at] ^= 1);
    let opened = open(image, seeded_options(0));
    assert_eq!((bytes_of(&opened, other), opened.replayed.lost_pages), (changed, 0));
}
