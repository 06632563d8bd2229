//! The two trees of the catalog. They hold the same records, so a damaged page of one costs nothing.
//!
//! Rules
//! 1. A tree whose root stands in page 0 holds every record. Each change is one mini-transaction of both trees.
//! 2. What is read is the first tree; the second, if a page of the first cannot be read.
//! 3. Before something is changed that a tree with such a page does not take, its root is taken out of page 0: it is
//!    *given up*.
//! 4. A tree that was given up, or cannot be read, is made again at the next opening: its pages are given back, a new
//!    tree is filled from the other one, and then its root is set. In a database that is only looked at a tree that
//!    cannot be read stays as it is: `check` is to find the page.
//!
//! Lock order: latches in the first tree, then in the second.

use crate::btree::{BTree, LeafMut, Seek};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::{MTR_REDO_BYTES, Mtr};
use crate::space::reserve::{self, Purpose};
use crate::space::{ROOT_CATALOG, ROOT_CATALOG_COPY, SEGMENT_CATALOG, SEGMENT_CATALOG_COPY, Space};
use crate::sync::Mutex;
use crate::types::{IndexId, Lsn, PageNo, SegmentId, TxnId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The first tree, and the second.
pub const CATALOG_TREES: [CatalogTree; 2] = [
    CatalogTree { name: "catalog", id: IndexId(1), segment: SEGMENT_CATALOG, root_slot: ROOT_CATALOG },
    CatalogTree { name: "catalog copy", id: IndexId(2), segment: SEGMENT_CATALOG_COPY, root_slot: ROOT_CATALOG_COPY },
];

/// What never changes of one of the trees.
#[derive(Clone, Copy, Debug)]
pub struct CatalogTree {
    pub name: &'static str,
    pub id: IndexId,
    pub segment: SegmentId,
    /// Slot of page 0.
    pub root_slot: usize,
}

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// The trees of an open database; `None`: given up.
pub struct CatalogTrees {
    ctx: Arc<Context>,
    space: Arc<Space>,
    trees: Mutex<[Option<Arc<BTree>>; 2]>,
    /// Since the opening, and why.
    given_up: Mutex<Vec<(CatalogTree, Error)>>,
}

/// What is done to the record under a key.
#[derive(Clone, Copy)]
enum Change<'v> {
    /// Put a record there, or another one of the same length.
    Put(&'v [u8]),
    /// Put another one of the same length.
    Replace(&'v [u8]),
    Remove,
}

/// What changes take in a tree.
enum Plan {
    Steps(Vec<Step>),
    /// The tree has changed meanwhile.
    OtherLeaves,
    /// There is no room for this record yet.
    NeedsRoom {
        key: Vec<u8>,
        bytes: usize,
    },
}

/// What one takes in a leaf.
enum Step {
    Nothing,
    Splice(LeafMut, usize),
    Insert(LeafMut, usize),
    Remove(LeafMut, usize),
}

impl CatalogTrees {
    /// Opens the trees; makes those that are not there, or cannot be read (rule 4).
    ///
    /// # Errors
    /// An I/O or corruption error; of the first tree, if neither can be read.
    pub fn open(ctx: Arc<Context>, space: Arc<Space>, is_read_only: bool) -> Result<CatalogTrees> {
        let opened = CATALOG_TREES.map(|tree| {
            let root = space.root(tree.root_slot)?;
            Some(Arc::new(BTree::open(space.clone(), tree.id, tree.segment, root)))
        });
        let is_new = opened.iter().all(Option::is_none);
        let trees = CatalogTrees { ctx, space, trees: Mutex::new(opened), given_up: Mutex::default() };
        if is_new {
            trees.make(0, &Records::new())?;
        }
        trees.make_whole(is_read_only)?;
        Ok(trees)
    }

    /// The trees that are there, and which they are.
    pub fn each(&self) -> impl Iterator<Item = (CatalogTree, Arc<BTree>)> {
        let trees = self.trees.lock().clone();
        CATALOG_TREES.into_iter().zip(trees).filter_map(|(which, tree)| Some((which, tree?)))
    }

    /// All records.
    ///
    /// # Errors
    /// An I/O or corruption error of the first tree, if the second cannot be read either.
    pub fn read(&self) -> Result<Records> {
        let mut first_error = None;
        for (_, tree) in self.each() {
            match self.records(&tree) {
                Err(error) if error.is_damage() => drop(first_error.get_or_insert(error)),
                read => return read,
            }
        }
        Err(first_error.unwrap_or_else(|| Error::Corrupt("page 0 names no tree of the catalog".to_string())))
    }

    /// Looks at the trees that were given up since the database was opened, and why.
    pub fn each_given_up(&self, look: impl FnMut(&(CatalogTree, Error))) {
        self.given_up.lock().iter().for_each(look);
    }

    /// The first key under which the trees differ; `None` also if they cannot both be read.
    pub fn difference(&self) -> Option<Vec<u8>> {
        let read: Vec<Records> = self.each().filter_map(|(_, tree)| self.records(&tree).ok()).collect();
        let [first, second] = &read[..] else { return None };
        let other = |from: &Records, to: &Records| {
            from.iter().find(|(key, value)| to.get(*key) != Some(value)).map(|(key, _)| key.clone())
        };
        other(first, second).or_else(|| other(second, first))
    }

    /// Writes a record, new or again (of the same length), atomically.
    pub fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        self.change(&[(key, Change::Put(value))])
    }

    /// Writes records again, of the same length, atomically; their keys ascend.
    pub fn replace(&self, records: &[(&[u8], &[u8])]) -> Result<Lsn> {
        self.change(&records.iter().map(|(key, value)| (*key, Change::Replace(value))).collect::<Vec<_>>())
    }

    /// Removes a record, if it is there.
    pub fn remove(&self, key: &[u8]) -> Result<()> {
        self.change(&[(key, Change::Remove)])?;
        self.each().try_for_each(|(_, tree)| tree.tidy(&self.ctx, key))
    }

    fn change(&self, changes: &[(&[u8], Change<'_>)]) -> Result<Lsn> {
        'again: loop {
            let trees: Vec<(CatalogTree, Arc<BTree>)> = self.each().collect();
            let mut pages = Vec::with_capacity(trees.len() * changes.len());
            for (which, tree) in &trees {
                let of_key = |key| tree.leaf(&self.ctx, Seek::Covers(key)).map(|leaf| leaf.page_no());
                match changes.iter().map(|(key, _)| of_key(key)).collect::<Result<Vec<PageNo>>>() {
                    Ok(leaves) => pages.extend(leaves),
                    Err(error) if error.is_damage() && trees.len() > 1 => {
                        self.give_up(*which, error)?;
                        continue 'again;
                    }
                    Err(error) => return Err(error),
                }
            }
            let mut mtr = self.ctx.mtr()?;
            // Nothing is read while others are latched.
            for page in &pages {
                while !mtr.pin(*page) {
                    mtr.load(*page)?;
                }
            }
            let mut steps = Vec::with_capacity(pages.len());
            for ((_, tree), pages) in trees.iter().zip(pages.chunks(changes.len())) {
                match plan(tree, &mut mtr, pages, changes)? {
                    Plan::Steps(planned) => steps.extend(planned),
                    Plan::OtherLeaves => continue 'again,
                    Plan::NeedsRoom { key, bytes } => {
                        drop(mtr);
                        tree.make_room(&self.ctx, &key, bytes)?;
                        continue 'again;
                    }
                }
            }
            let of_each = changes.iter().cycle();
            of_each.zip(steps).for_each(|((key, change), step)| carry_out(&mut mtr, key, *change, step));
            return Ok(mtr.commit());
        }
    }

    /// Takes the root of a tree out of page 0 (rule 3), because of an error.
    fn give_up(&self, which: CatalogTree, reason: Error) -> Result<()> {
        let mut trees = self.trees.lock();
        let at = usize::from(which.id == CATALOG_TREES[1].id);
        if trees[at].take().is_some() {
            self.given_up.lock().push((which, reason));
            let mut mtr = self.ctx.mtr()?;
            self.space.clear_root(&mut mtr, which.root_slot);
            mtr.commit();
        }
        Ok(())
    }

    /// Rule 4.
    fn make_whole(&self, is_read_only: bool) -> Result<()> {
        let read = self.trees.lock().clone().map(|tree| tree.map(|tree| self.records(&tree)));
        let (at, records) = match read {
            [Some(Ok(records)), Some(Err(error))] if error.is_damage() && !is_read_only => {
                self.give_up(CATALOG_TREES[1], error)?;
                (1, records)
            }
            [Some(Err(error)), Some(Ok(records))] if error.is_damage() && !is_read_only => {
                self.give_up(CATALOG_TREES[0], error)?;
                (0, records)
            }
            [Some(Ok(records)), None] => (1, records),
            [None, Some(Ok(records))] => (0, records),
            // Both are whole, or neither: reading says so.
            _ => return Ok(()),
        };
        self.make(at, &records)
    }

    /// Makes a tree that is not there, with these records.
    fn make(&self, at: usize, records: &Records) -> Result<()> {
        let CatalogTree { id, segment, root_slot, .. } = CATALOG_TREES[at];
        {
            let _entitled = reserve::entitle(Purpose::Cleaning);
            while !self.space.drop_segment_step(&self.ctx, segment, 16)? {}
        }
        let tree = self.space.with_room(&self.ctx, || {
            let mut mtr = self.ctx.mtr_with(MTR_REDO_BYTES, 1)?;
            let tree = BTree::create(self.space.clone(), &mut mtr, id, segment)?;
            mtr.commit();
            Ok(Arc::new(tree))
        })?;
        let only = CatalogTrees {
            ctx: self.ctx.clone(),
            space: self.space.clone(),
            trees: Mutex::new([Some(tree.clone()), None]),
            given_up: Mutex::default(),
        };
        records.iter().try_for_each(|(key, value)| only.put(key, value).map(drop))?;
        let mut mtr = self.ctx.mtr()?;
        self.space.set_root(&mut mtr, root_slot, tree.root());
        mtr.commit();
        self.trees.lock()[at] = Some(tree);
        Ok(())
    }

    fn records(&self, tree: &BTree) -> Result<Records> {
        let (mut records, mut key, mut next) = (Records::new(), Vec::new(), None::<Vec<u8>>);
        loop {
            let leaf = tree.leaf(&self.ctx, next.as_deref().map_or(Seek::First, Seek::Covers))?;
            for slot in 0..leaf.len() {
                leaf.key_into(slot, &mut key);
                records.insert(key.clone(), leaf.value(slot).to_vec());
            }
            match leaf.upper() {
                Some(upper) => next = Some(upper.to_vec()),
                None => return Ok(records),
            }
        }
    }
}

/// What the changes take in a tree, where each key was found on one of these pages.
fn plan(tree: &BTree, mtr: &mut Mtr<'_>, pages: &[PageNo], changes: &[(&[u8], Change<'_>)]) -> Result<Plan> {
    let (mut steps, mut latched) = (Vec::with_capacity(changes.len()), None::<(PageNo, LeafMut)>);
    for ((key, change), page) in changes.iter().zip(pages) {
        let held = latched.filter(|(held, _)| held == page).map(|(_, leaf)| leaf);
        let Some(leaf) = held.or_else(|| tree.leaf_mut_at(mtr, *page, key)) else { return Ok(Plan::OtherLeaves) };
        latched = Some((*page, leaf));
        steps.push(match (*change, leaf.search(mtr, key)) {
            (Change::Remove, Ok(slot)) => Step::Remove(leaf, slot),
            (Change::Remove, Err(_)) => Step::Nothing,
            (Change::Put(value) | Change::Replace(value), Ok(slot)) => {
                if leaf.value(mtr, slot).len() != value.len() {
                    return Err(Error::Corrupt("a catalog record changes its length".to_string()));
                }
                Step::Splice(leaf, slot)
            }
            (Change::Replace(_), Err(_)) => {
                return Err(Error::Corrupt("the catalog has lost the record of an index".to_string()));
            }
            (Change::Put(value), Err(slot)) if leaf.fits(mtr, key.len(), value.len()) => Step::Insert(leaf, slot),
            (Change::Put(value), Err(_)) => {
                return Ok(Plan::NeedsRoom { key: key.to_vec(), bytes: key.len() + value.len() });
            }
        });
    }
    Ok(Plan::Steps(steps))
}

fn carry_out(mtr: &mut Mtr<'_>, key: &[u8], change: Change<'_>, step: Step) {
    match (step, change) {
        (Step::Splice(leaf, slot), Change::Put(value) | Change::Replace(value)) => {
            leaf.splice(mtr, slot, 0, value.len(), value);
            mtr.note_moment(leaf.latched, TxnId(0));
        }
        (Step::Insert(leaf, slot), Change::Put(value)) => {
            leaf.insert(mtr, slot, key, value);
            mtr.note_moment(leaf.latched, TxnId(0));
        }
        (Step::Remove(leaf, slot), _) => leaf.remove(mtr, slot),
        _ => {}
    }
}
