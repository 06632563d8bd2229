//! The two trees of the catalog. They hold the same records, so a damaged page of one costs nothing.
//!
//! Rules
//! 1. A tree whose root stands in page 0 holds every record. Each change is one mini-transaction of both trees.
//! 2. Before something is changed that a tree with a damaged page does not take, its root is taken out of page 0: it is
//!    *given up*. So is a tree that cannot be read at the opening, or differs from the other one where its leaves are
//!    older: the device has lost a write. The leaf that misses a change is older than the one that has it, unless it
//!    was changed again since; other leaves say nothing. Where that does not tell, or each tree misses something, the
//!    database is not opened. One tree always stays.
//! 3. A page beyond the end of the redo log is no such damage: a change was lost that may stand in neither tree.
//! 4. A tree that is not there is made at the opening: its old pages are freed, a new tree is filled from the
//!    other one, and then its root is set. That happens when the threads run, since it may take much redo. Where it
//!    cannot be done, for lack of room, one tree has to do.
//! 5. Nothing is given up or made in a database that is only looked at.
//!
//! Lock order: latches in the first tree, then in the second.

use crate::btree::{BTree, LeafMut, Restarts, Seek};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::{MTR_REDO_BYTES, Mtr};
use crate::space::reserve::{self, SpacePriority};
use crate::space::{ROOT_CATALOG, ROOT_CATALOG_COPY, ROOT_UNDO, SEGMENT_CATALOG, SEGMENT_CATALOG_COPY, Space};
use crate::sync::Mutex;
use crate::types::{IndexId, Lsn, PageNo, SegmentId, TxnId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The first tree, and the second.
pub const CATALOG_TREES: [CatalogTree; 2] = [
    CatalogTree { name: "catalog", id: IndexId(1), segment: SEGMENT_CATALOG, root_slot: ROOT_CATALOG },
    CatalogTree { name: "catalog copy", id: IndexId(2), segment: SEGMENT_CATALOG_COPY, root_slot: ROOT_CATALOG_COPY },
];

/// How full the pages of a tree that is made again are: the records of later tables go to its end.
const FILL_PERCENT: usize = 100;

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
    is_read_only: bool,
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
    /// Opens the trees; makes the first one in a new database.
    ///
    /// # Errors
    /// An I/O or corruption error; of the first tree, if neither can be read.
    pub fn open(ctx: Arc<Context>, space: Arc<Space>, is_read_only: bool) -> Result<CatalogTrees> {
        let has_tree = CATALOG_TREES.iter().any(|tree| space.root(tree.root_slot).is_some());
        // The undo directory is made after them.
        let is_new = !has_tree && space.root(ROOT_UNDO).is_none();
        let trees = CatalogTrees::open_unread(ctx, space, is_read_only);
        match (has_tree, is_new) {
            (true, _) => trees.choose()?,
            (false, true) => trees.make(0, &Records::new())?,
            (false, false) => return Err(no_tree()),
        }
        Ok(trees)
    }

    /// Opens the trees that are there, without a look at them.
    pub(super) fn open_unread(ctx: Arc<Context>, space: Arc<Space>, is_read_only: bool) -> CatalogTrees {
        let trees = Mutex::new(CATALOG_TREES.map(|tree| {
            let root = space.root(tree.root_slot)?;
            Some(Arc::new(BTree::open(space.clone(), tree.id, tree.segment, root)))
        }));
        CatalogTrees { ctx, space, is_read_only, trees, given_up: Mutex::default() }
    }

    /// Gives up a tree that cannot be read, or misses a change (rule 2).
    fn choose(&self) -> Result<()> {
        let read = self.trees.lock().clone().map(|tree| tree.map(|tree| self.records(&tree)));
        match read {
            [Some(Err(error)), Some(Ok(_))] if is_lost(&error) => self.give_up(CATALOG_TREES[0], error),
            [Some(Ok(_)), Some(Err(error))] if is_lost(&error) => self.give_up(CATALOG_TREES[1], error),
            [Some(Err(error)), _] | [_, Some(Err(error))] => Err(error),
            [Some(Ok(first)), Some(Ok(second))] if first != second => {
                let older = self.older(&different_keys(&first, &second))?;
                let text =
                    format!("the tree {:?} is older than the other one: the device has lost a write", older.name);
                self.give_up(older, Error::Corrupt(text))
            }
            _ => Ok(()),
        }
    }

    /// The tree whose leaves of these keys, under which the trees differ, are the older ones.
    fn older(&self, different: &[Vec<u8>]) -> Result<CatalogTree> {
        let mut are_older = [false; 2];
        for key in different {
            let lsns = self.each().map(|(_, tree)| Ok(tree.leaf(&self.ctx, Seek::Covers(key))?.lsn()));
            let lsns = lsns.collect::<Result<Vec<Lsn>>>()?;
            are_older[0] |= lsns[0] <= lsns[1];
            are_older[1] |= lsns[1] <= lsns[0];
        }
        match are_older {
            [true, false] => Ok(CATALOG_TREES[0]),
            [false, true] => Ok(CATALOG_TREES[1]),
            _ => Err(Error::Corrupt(
                "the two trees of the catalog differ, and their pages do not tell which one is right: the device has \
                 lost writes; put back a backup, or save the rows with `highwater check --salvage`"
                    .to_string(),
            )),
        }
    }

    /// Makes a tree that is not there (rule 4).
    ///
    /// # Errors
    /// What stops the database.
    pub fn make_missing(&self) -> Result<()> {
        let trees = self.trees.lock().clone();
        let Some(at) = trees.iter().position(Option::is_none).filter(|_| !self.is_read_only) else { return Ok(()) };
        let _entitled = reserve::entitle(SpacePriority::Cleaning);
        match self.read().and_then(|records| self.make(at, &records)) {
            Err(Error::DiskFull { .. } | Error::PoolExhausted { .. }) => Ok(()),
            Err(error) if error.is_damage() => Ok(()),
            made => made,
        }
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
                Err(error) if is_lost(&error) => drop(first_error.get_or_insert(error)),
                read => return read,
            }
        }
        Err(first_error.unwrap_or_else(no_tree))
    }

    /// Looks at the trees that were given up since the database was opened, and why.
    pub fn each_given_up(&self, look: impl FnMut(&(CatalogTree, Error))) {
        self.given_up.lock().iter().for_each(look);
    }

    /// The first key under which the trees differ; `None` also if they cannot both be read.
    pub fn difference(&self) -> Option<Vec<u8>> {
        let read: Vec<Records> = self.each().filter_map(|(_, tree)| self.records(&tree).ok()).collect();
        let [first, second] = &read[..] else { return None };
        different_keys(first, second).into_iter().next()
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
        for (_, tree) in self.each() {
            let mut mtr = self.ctx.mtr()?;
            // The record is gone already: tried after every removal.
            let is_underfull = tree.leaf_mut(&mut mtr, key).is_ok_and(|leaf| leaf.underfull(&mtr, usize::MAX));
            drop(mtr);
            if is_underfull {
                tree.tidy(&self.ctx, key)?;
            }
        }
        Ok(())
    }

    fn change(&self, changes: &[(&[u8], Change<'_>)]) -> Result<Lsn> {
        let mut restarts = Restarts::new(&self.ctx);
        loop {
            if let Some(end) = self.try_change(changes)? {
                return Ok(end);
            }
            restarts.again()?;
        }
    }

    /// `None`: to be tried again, since a tree was given up or has other leaves now.
    fn try_change(&self, changes: &[(&[u8], Change<'_>)]) -> Result<Option<Lsn>> {
        let trees: Vec<(CatalogTree, Arc<BTree>)> = self.each().collect();
        if trees.is_empty() {
            return Err(no_tree());
        }
        let mut pages = Vec::with_capacity(trees.len() * changes.len());
        for (which, tree) in &trees {
            let of_key = |key| tree.leaf(&self.ctx, Seek::Covers(key)).map(|leaf| leaf.page_no());
            match changes.iter().map(|(key, _)| of_key(key)).collect::<Result<Vec<PageNo>>>() {
                Ok(leaves) => pages.extend(leaves),
                Err(error) => return self.give_up_or_fail(*which, error),
            }
        }
        let mut mtr = self.ctx.mtr()?;
        // Nothing is read while others are latched.
        for page in &pages {
            while !mtr.pin(*page) {
                match mtr.load(*page) {
                    // Which tree it is of is found out by the next look.
                    Err(error) if error.is_damage() => return Ok(None),
                    loaded => loaded?,
                }
            }
        }
        let mut steps = Vec::with_capacity(pages.len());
        for ((which, tree), pages) in trees.iter().zip(pages.chunks(changes.len())) {
            match plan(tree, &mut mtr, pages, changes)? {
                Plan::Steps(planned) => steps.extend(planned),
                Plan::OtherLeaves => return Ok(None),
                Plan::NeedsRoom { key, bytes } => {
                    drop(mtr);
                    return match tree.make_room(&self.ctx, &key, bytes) {
                        Ok(()) => Ok(None),
                        Err(error) => self.give_up_or_fail(*which, error),
                    };
                }
            }
        }
        let of_each = changes.iter().cycle();
        of_each.zip(steps).for_each(|((key, change), step)| carry_out(&mut mtr, key, *change, step));
        Ok(Some(mtr.commit()))
    }

    /// Gives the tree up if that can be, because of an error; else fails with it.
    fn give_up_or_fail<R>(&self, which: CatalogTree, error: Error) -> Result<Option<R>> {
        if !is_lost(&error) {
            return Err(error);
        }
        self.give_up(which, error).map(|()| None)
    }

    /// Takes the root of a tree out of page 0, because of an error (rules 2 and 5).
    ///
    /// # Errors
    /// That error, if the other tree is not there.
    pub(super) fn give_up(&self, which: CatalogTree, reason: Error) -> Result<()> {
        let mut trees = self.trees.lock();
        let at = usize::from(which.id == CATALOG_TREES[1].id);
        match (&trees[at], &trees[1 - at]) {
            (None, _) => return Ok(()),
            (_, None) => return Err(reason),
            _ => {}
        }
        if !self.is_read_only {
            let mut mtr = self.ctx.mtr()?;
            self.space.clear_root(&mut mtr, which.root_slot);
            mtr.commit();
        }
        trees[at] = None;
        self.given_up.lock().push((which, reason));
        Ok(())
    }

    /// Makes a tree that is not there, with these records.
    fn make(&self, at: usize, records: &Records) -> Result<()> {
        let CatalogTree { id, segment, root_slot, .. } = CATALOG_TREES[at];
        while !self.space.drop_segment_step(&self.ctx, segment, 16)? {}
        let tree = self.space.with_room(&self.ctx, || {
            let mut mtr = self.ctx.mtr_with(MTR_REDO_BYTES, 1)?;
            let tree = BTree::create(self.space.clone(), &mut mtr, id, segment)?;
            mtr.commit();
            Ok(Arc::new(tree))
        })?;
        let mut builder = tree.builder(&self.ctx, FILL_PERCENT, 0);
        records.iter().try_for_each(|(key, value)| builder.push(key, value))?;
        builder.finish()?;
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

/// The keys under which the trees differ, ascending.
fn different_keys(first: &Records, second: &Records) -> Vec<Vec<u8>> {
    let differs = |key: &&Vec<u8>| first.get(*key) != second.get(*key);
    let only_in_second = second.keys().filter(|key| !first.contains_key(*key));
    let mut keys: Vec<Vec<u8>> = first.keys().filter(differs).chain(only_in_second).cloned().collect();
    keys.sort();
    keys
}

fn no_tree() -> Error {
    Error::Corrupt("page 0 names no tree of the catalog".to_string())
}

/// Whether an error says that a tree is to be given up (rule 3).
fn is_lost(error: &Error) -> bool {
    error.is_damage() && !error.is_beyond_log()
}

/// What the changes take in a tree, where each key was found on one of these pages.
fn plan(tree: &BTree, mtr: &mut Mtr<'_>, pages: &[PageNo], changes: &[(&[u8], Change<'_>)]) -> Result<Plan> {
    let (mut steps, mut latched) = (Vec::with_capacity(changes.len()), None::<(PageNo, LeafMut)>);
    for ((key, change), page) in changes.iter().zip(pages) {
        let held = latched.filter(|(held, leaf)| held == page && leaf.upper(mtr).is_none_or(|upper| *key < upper));
        let held = held.map(|(_, leaf)| leaf);
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
            mtr.log_commit_time(leaf.latched, TxnId(0));
        }
        (Step::Insert(leaf, slot), Change::Put(value)) => {
            leaf.insert(mtr, slot, key, value);
            mtr.log_commit_time(leaf.latched, TxnId(0));
        }
        (Step::Remove(leaf, slot), _) => leaf.remove(mtr, slot),
        _ => {}
    }
}
