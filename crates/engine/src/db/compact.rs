//! Compaction: pages of trees are moved from the end of the data file to free pages at its front, while transactions
//! run; then the file is truncated.
//!
//! Rules
//! 1. Each page is moved separately (`btree/relocate.rs`): after an interruption or a crash the moved pages stay moved.
//! 2. During a move, schema changes of its table wait.
//! 3. These pages do not move, and the file cannot end before them: roots of trees, undo, pages of long columns, the
//!    catalog, the tree of the change buffer, damaged pages, trees that are being built.
//! 4. Pages that transactions allocate meanwhile come from extents below the shortest possible end where one is free
//!    ([`Space::prefer_below`](crate::space::Space::prefer_below)), so purge frees the undo pages of a busy stream at
//!    the end of the file, and no new ones follow. A page that was allocated after the others may need another round,
//!    and so may a page whose space another tree has just freed. The number of rounds is small, so a compaction ends
//!    under concurrent writes.
//! 5. Pages of a tree move to free pages in lower extents of the tree first: extents that deletes left nearly empty
//!    become few full ones.

use super::database::Database;
use crate::btree::{NodePlace, Relocation};
use crate::error::{Error, Result};
use crate::page::{Node, PageBytes, PageType, header};
use crate::pool::cleaner::{checkpoint, checkpoint_target};
use crate::space::Cut;
use crate::space::reserve::{self, SpacePriority};
use crate::table::handle::TableShared;
use crate::types::{IndexId, PageNo};
use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::sync::Arc;

/// Rounds over the end of the file (rule 4).
const MAX_ROUNDS: u32 = 6;
/// Most steps in which the store releases space: other threads may fill it meanwhile.
const MAX_CUTS: u32 = 1 << 16;

/// The progress of a [compaction](Database::compact).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionProgress {
    /// Pages that were moved.
    pub moved_pages: u64,
    /// Pages at the end of the file that are still to be looked at, about.
    pub left_pages: u64,
}

/// Gets the progress of a compaction; [`ControlFlow::Break`] ends it. Pages that were moved until then stay moved.
pub type OnCompactionProgress<'f> = dyn FnMut(CompactionProgress) -> ControlFlow<()> + 'f;

/// The result of a [compaction](Database::compact).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CompactionReport {
    /// Pages that were moved.
    pub moved_pages: u64,
    /// Pages beyond the shortest possible end of the file that cannot be moved.
    pub fixed_pages: u64,
    /// Length of the data file before, in bytes.
    pub bytes_before: u64,
    /// And after it.
    pub bytes_after: u64,
}

/// The table that each index, by its number, belongs to.
type Owners = HashMap<IndexId, Arc<TableShared>>;

/// A node as it was found.
struct Found {
    level: u8,
    owner: IndexId,
    lower: Vec<u8>,
}

impl Database {
    /// Makes the data file as short as it can be: moves pages from its end to free pages before them, and cuts the end
    /// off. Transactions run meanwhile. Costs a read, a write and the redo of a whole page for each page that is moved.
    /// Roots of trees, undo and pages of long columns stay where they are, and the file cannot end before the last of
    /// them. Without this call the file is truncated only up to its last used extent.
    ///
    /// ```
    /// # use highwater::{Database, Options, Schema, Type};
    /// # use std::ops::ControlFlow;
    /// # let dir = tempfile::tempdir().unwrap();
    /// let db = Database::open(dir.path(), Options::default())?;
    /// let report = db.compact(&mut |progress| {
    ///     println!("{} pages moved, {} to go", progress.moved_pages, progress.left_pages);
    ///     ControlFlow::Continue(())
    /// })?;
    /// assert!(report.bytes_after <= report.bytes_before);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::Usage`] if the database was opened to be read only; an I/O error. Pages that were moved before the
    /// error stay moved.
    pub fn compact(&self, tell: &mut OnCompactionProgress<'_>) -> Result<CompactionReport> {
        self.finish_drops()?;
        let data = &self.inner.storage.data;
        let mut report = CompactionReport { bytes_before: data.len_bytes()?, ..CompactionReport::default() };
        for _ in 0..MAX_ROUNDS {
            let before = report.moved_pages;
            self.inner.txns.free_idle_streams()?;
            let _front_first = self.inner.space.prefer_below(self.inner.space.packed_extents());
            let flow = self.move_down(&mut report, tell)?;
            self.release_end()?;
            if flow.is_break() || report.moved_pages == before {
                break;
            }
        }
        report.bytes_after = data.len_bytes()?;
        Ok(report)
    }

    /// Moves the pages beyond the shortest possible end of the file, beginning at its end.
    fn move_down(&self, report: &mut CompactionReport, tell: &mut OnCompactionProgress<'_>) -> Result<ControlFlow<()>> {
        let _entitled = reserve::entitle(SpacePriority::Cleaning);
        let (space, mut owners) = (&self.inner.space, Owners::new());
        let (goal, mut end) = (space.packed_extents(), u32::MAX);
        // Later pages are further down and have less free space below them: a segment that found none is skipped.
        let mut without_room = HashSet::new();
        report.fixed_pages = 0;
        while let Some((extent, pages)) = space.last_used_below(end).filter(|(extent, _)| *extent >= goal) {
            for page in pages {
                let Some(segment) = space.owner(page).filter(|segment| !without_room.contains(segment)) else {
                    continue;
                };
                match self.move_page(page, extent, &mut owners)? {
                    Some(Relocation::Done) => report.moved_pages += 1,
                    Some(Relocation::NotHere) => {}
                    Some(Relocation::NoRoom) => {
                        without_room.insert(segment);
                    }
                    None => report.fixed_pages += 1,
                }
            }
            end = extent;
            let left_pages = u64::from(extent - goal) * u64::from(crate::types::EXTENT_PAGES);
            let progress = CompactionProgress { moved_pages: report.moved_pages, left_pages };
            if tell(progress).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Moves a page to one below `extent`; `None` if it cannot be moved (rule 3).
    fn move_page(&self, page: PageNo, extent: u32, owners: &mut Owners) -> Result<Option<Relocation>> {
        self.check_open()?;
        let Some(found) = self.node_in(page)? else { return Ok(None) };
        if !owners.contains_key(&found.owner) {
            *owners = self.owners();
        }
        let Some(table) = owners.get(&found.owner) else { return Ok(None) };
        let _in_use = match self.in_use(table) {
            Err(Error::TableDropped { .. } | Error::TableChanged { .. } | Error::LockWaitTimeout) => return Ok(None),
            in_use => in_use?,
        };
        let version = table.current.read().clone();
        let secondary = version.indexes.iter().map(|index| &*index.tree).find(|tree| tree.id() == found.owner);
        let is_clustered = version.clustered.id() == found.owner;
        let Some(tree) = secondary.or(is_clustered.then_some(&*version.clustered)) else { return Ok(None) };
        let (ctx, place) = (&self.inner.ctx, NodePlace { page, level: found.level, key: &found.lower });
        if tree.root() == page {
            return Ok(None);
        }
        loop {
            match tree.relocate(ctx, place, extent) {
                Ok(Relocation::NoRoom) if self.inner.space.reserve_below(ctx, extent)? => {}
                Err(error) if error.is_damage() => return Ok(None),
                moved => return moved.map(Some),
            }
        }
    }

    /// The node of a page; `None` if it is not a node, or cannot be read.
    fn node_in(&self, page: PageNo) -> Result<Option<Found>> {
        let bytes = match self.inner.ctx.pool.fix_s(page) {
            Err(error) if error.is_damage() => return Ok(None),
            fixed => fixed?,
        };
        let is_node = matches!(header::page_type(&bytes), Ok(PageType::Inner | PageType::Leaf));
        let found = || Found {
            level: bytes.u8_at(header::LEVEL),
            owner: IndexId(header::owner(&bytes)),
            lower: Node::new(&bytes).lower().map(<[u8]>::to_vec).unwrap_or_default(),
        };
        Ok(is_node.then(found))
    }

    fn owners(&self) -> Owners {
        let mut owners = Owners::new();
        for table in self.inner.registry.all() {
            let version = table.current.read().clone();
            owners.insert(version.clustered.id(), table.clone());
            owners.extend(version.indexes.iter().map(|index| (index.tree.id(), table.clone())));
        }
        owners
    }

    /// Truncates the file, once a checkpoint has passed the redo of the extents at its end. Buffered changes hold the
    /// checkpoint back as dirty pages do, so they are merged first.
    fn release_end(&self) -> Result<()> {
        let ctx = &self.inner.ctx;
        self.inner.txns.changes.merge_all_sound()?;
        ctx.pool.flush_before(ctx.log.end_lsn())?;
        checkpoint(&ctx.pool, &ctx.log, checkpoint_target(&ctx.pool, &ctx.log))?;
        for _ in 0..MAX_CUTS {
            if !self.inner.dropping.cut_step(Cut::Thorough)? {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "compact_test.rs"]
mod tests;
