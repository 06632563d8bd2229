//! The two trees of the catalog. They have the same records, so a damaged page of one loses nothing.
//!
//! Rules
//! 1. A tree whose root is in page 0 has every record. Each change is one mini-transaction of both trees.
//! 2. If a change cannot be applied to a tree because of a damaged page, the tree's root is first removed from page 0:
//!    the tree is *given up*. So is a tree that cannot be read at the opening, or that differs from the other one in
//!    leaves that are older: the device has lost a write. (The leaf that misses a change is older than the one that has
//!    it, unless it was changed again later; leaves without a difference do not count.) If the ages do not decide, or
//!    each tree misses a change, the database is not opened. One tree always remains.
//! 3. A page with an LSN beyond the end of the redo log is different damage: neither tree may have the lost change.
//! 4. A missing tree is recreated at the opening: its old pages are freed, a new tree is filled from the other one, and
//!    then its root is set. That happens after the threads have started, because it may take much redo. If there is no
//!    space for it, the database works with one tree.
//! 5. In a read-only database no tree is given up or recreated.
//! 6. The changes of one call are one mini-transaction, for any lengths of the records before and after. They add at
//!    most the bytes of one record, so splits can free space for them on one leaf.
//!
//! Lock order: latches in the first tree, then in the second.

use crate::btree::{BTree, LeafMut, Restarts, Seek};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::mtr::{MTR_REDO_BYTES, Mtr};
use crate::page::node::TreeLimits;
use crate::space::reserve::{self, SpacePriority};
use crate::space::{ROOT_CATALOG, ROOT_CATALOG_COPY, ROOT_UNDO, SEGMENT_CATALOG, SEGMENT_CATALOG_COPY, Space};
use crate::sync::Mutex;
use crate::types::{IndexId, Lsn, PageNo, SegmentId, TxnId};
use std::collections::BTreeMap;
use std::sync::Arc;

/// The first tree, and the second.
pub(crate) const CATALOG_TREES: [CatalogTree; 2] = [
    CatalogTree { name: "catalog", id: IndexId(1), segment: SEGMENT_CATALOG, root_slot: ROOT_CATALOG },
    CatalogTree { name: "catalog copy", id: IndexId(2), segment: SEGMENT_CATALOG_COPY, root_slot: ROOT_CATALOG_COPY },
];

/// Fill of the pages of a recreated tree: later tables have records at its end.
const FILL_PERCENT: usize = 100;

/// More than a leaf takes for a record in addition to its key and value.
const RECORD_OVERHEAD_BYTES: usize = 16;

/// The constants of one of the trees.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CatalogTree {
    pub name: &'static str,
    pub id: IndexId,
    pub segment: SegmentId,
    /// Slot of page 0.
    pub root_slot: usize,
}

type Records = BTreeMap<Vec<u8>, Vec<u8>>;

/// The trees of an open database; `None`: given up.
pub(crate) struct CatalogTrees {
    ctx: Arc<Context>,
    space: Arc<Space>,
    is_read_only: bool,
    trees: Mutex<[Option<Arc<BTree>>; 2]>,
    /// Since the opening, and why.
    given_up: Mutex<Vec<(CatalogTree, Error)>>,
}

/// The change of the record under a key.
#[derive(Clone, Copy, Debug)]
pub(crate) enum RecordChange<'v> {
    /// Insert a record, or replace the existing one.
    Put(&'v [u8]),
    /// Replace the existing record.
    Replace(&'v [u8]),
    /// Remove it, if it is there.
    Remove,
}

/// The plan of changes in a tree.
enum Plan {
    /// Carry each change out in its leaf.
    Leaves(Vec<LeafMut>),
    /// The tree has changed meanwhile.
    OtherLeaves,
    /// A leaf must be split for this record.
    NeedsRoom { key: Vec<u8>, bytes: usize },
}

impl CatalogTrees {
    /// Opens the trees; makes the first one in a new database.
    ///
    /// # Errors
    /// An I/O or corruption error; of the first tree, if neither can be read.
    pub(crate) fn open(ctx: Arc<Context>, space: Arc<Space>, is_read_only: bool) -> Result<CatalogTrees> {
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

    /// The tree whose leaves of the keys `different` are older than the other tree's.
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
    pub(crate) fn make_missing(&self) -> Result<()> {
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
    pub(crate) fn each(&self) -> impl Iterator<Item = (CatalogTree, Arc<BTree>)> {
        let trees = self.trees.lock().clone();
        CATALOG_TREES.into_iter().zip(trees).filter_map(|(which, tree)| Some((which, tree?)))
    }

    /// All records.
    ///
    /// # Errors
    /// An I/O or corruption error of the first tree, if the second cannot be read either.
    pub(crate) fn read(&self) -> Result<Records> {
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
    pub(crate) fn each_given_up(&self, look: impl FnMut(&(CatalogTree, Error))) {
        self.given_up.lock().iter().for_each(look);
    }

    /// The first key under which the trees differ; `None` also if they cannot both be read.
    pub(crate) fn difference(&self) -> Option<Vec<u8>> {
        let read: Vec<Records> = self.each().filter_map(|(_, tree)| self.records(&tree).ok()).collect();
        let [first, second] = &read[..] else { return None };
        different_keys(first, second).into_iter().next()
    }

    /// Writes a record, new or again, atomically.
    pub(crate) fn put(&self, key: &[u8], value: &[u8]) -> Result<Lsn> {
        self.change(&[(key, RecordChange::Put(value))])
    }

    /// Removes a record, if it is there.
    pub(crate) fn remove(&self, key: &[u8]) -> Result<()> {
        self.change(&[(key, RecordChange::Remove)])?;
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

    /// Changes records atomically; their keys ascend.
    ///
    /// # Errors
    /// `Schema` if they add more bytes than one record may have (rule 6); `Corrupt` if a record to be replaced does not
    /// exist; an I/O or corruption error. Nothing is changed then.
    pub(crate) fn change(&self, changes: &[(&[u8], RecordChange<'_>)]) -> Result<Lsn> {
        debug_assert!(changes.is_sorted_by(|a, b| a.0 < b.0), "keys ascend");
        let mut restarts = Restarts::new(&self.ctx);
        loop {
            if let Some(end) = self.try_change(changes)? {
                return Ok(end);
            }
            restarts.again()?;
        }
    }

    /// `None`: to be tried again, since a tree was given up or has other leaves now.
    fn try_change(&self, changes: &[(&[u8], RecordChange<'_>)]) -> Result<Option<Lsn>> {
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
        let mut leaves = Vec::with_capacity(pages.len());
        for ((which, tree), pages) in trees.iter().zip(pages.chunks(changes.len())) {
            match plan(tree, &mut mtr, pages, changes)? {
                Plan::Leaves(planned) => leaves.extend(planned),
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
        debug_assert_eq!(leaves.len(), trees.len() * changes.len(), "rule 1: a change leaves a tree out");
        let of_each = changes.iter().cycle();
        of_each.zip(leaves).for_each(|((key, change), leaf)| carry_out(&mut mtr, leaf, key, *change));
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
        debug_assert!(trees.iter().any(Option::is_some), "rule 2: no tree of the catalog is left");
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
        let before = self.trees.lock()[at].replace(tree);
        debug_assert!(before.is_none(), "rule 4: a tree of the catalog is recreated that is there");
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

/// Plans the changes in a tree; each key was found on one of these pages.
fn plan(tree: &BTree, mtr: &mut Mtr<'_>, pages: &[PageNo], changes: &[(&[u8], RecordChange<'_>)]) -> Result<Plan> {
    let (mut leaves, mut latched) = (Vec::with_capacity(changes.len()), None::<(PageNo, LeafMut)>);
    // Bytes that the changes so far add to the leaf that is latched, and to all.
    let (mut added, mut added_in_all) = (0, 0);
    let limit = TreeLimits::usual(mtr.context().pool.page_bytes()).max_record_bytes;
    for ((key, change), page) in changes.iter().zip(pages) {
        let held = latched.filter(|(held, leaf)| held == page && leaf.upper(mtr).is_none_or(|upper| *key < upper));
        let held = held.map(|(_, leaf)| leaf);
        added = if held.is_some() { added } else { 0 };
        let Some(leaf) = held.or_else(|| tree.leaf_mut_at(mtr, *page, key)) else { return Ok(Plan::OtherLeaves) };
        latched = Some((*page, leaf));
        leaves.push(leaf);
        let (more, fits) = match (*change, leaf.search(mtr, key)) {
            (RecordChange::Remove, _) => (0, true),
            (RecordChange::Put(value) | RecordChange::Replace(value), Ok(slot)) => {
                let more = value.len().saturating_sub(leaf.value(mtr, slot).len());
                (more, leaf.fits_growth(mtr, slot, added + more))
            }
            (RecordChange::Replace(_), Err(_)) => {
                return Err(Error::Corrupt("the catalog has lost a record that is to be changed".to_string()));
            }
            (RecordChange::Put(value), Err(_)) => {
                (RECORD_OVERHEAD_BYTES + key.len() + value.len(), leaf.fits(mtr, key.len(), added + value.len()))
            }
        };
        (added, added_in_all) = (added + more, added_in_all + more);
        if added_in_all > limit && changes.len() > 1 {
            let reason =
                format!("the names that change are {added_in_all} bytes longer together; {limit} are possible");
            return Err(Error::Schema(reason));
        }
        if !fits {
            return Ok(Plan::NeedsRoom { key: key.to_vec(), bytes: added });
        }
    }
    Ok(Plan::Leaves(leaves))
}

fn carry_out(mtr: &mut Mtr<'_>, leaf: LeafMut, key: &[u8], change: RecordChange<'_>) {
    // Earlier changes have moved the slots of the leaf.
    match (change, leaf.search(mtr, key)) {
        (RecordChange::Put(value) | RecordChange::Replace(value), Ok(slot)) => {
            let old_bytes = leaf.value(mtr, slot).len();
            leaf.splice(mtr, slot, 0, old_bytes, value);
            mtr.log_commit_time(leaf.latched, TxnId(0));
        }
        (RecordChange::Put(value), Err(slot)) => {
            leaf.insert(mtr, slot, key, value);
            mtr.log_commit_time(leaf.latched, TxnId(0));
        }
        (RecordChange::Remove, Ok(slot)) => leaf.remove(mtr, slot),
        (RecordChange::Remove, Err(_)) => {}
        (RecordChange::Replace(_), Err(_)) => debug_assert!(false, "the plan has a record that is not there"),
    }
    let expected = match change {
        RecordChange::Put(value) | RecordChange::Replace(value) => Some(value),
        RecordChange::Remove => None,
    };
    let stored = leaf.search(mtr, key).ok().map(|slot| leaf.value(mtr, slot));
    debug_assert_eq!(stored, expected, "rule 6: a tree has another record than the change says");
}
