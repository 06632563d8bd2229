//! The change buffer's tree: the waiting operations of each leaf, and whether the leaf has space for them.
//!
//! Rules
//! 1. Readers may merge leaves during a check. So a number is compared with the tree only if it is the same before and
//!    after, and the space is checked only while the leaf is not in the pool.
//! 2. The tree's pages do not change until the check ends ([`ChangeBuffer::freeze`]).

use super::bitmap::Bitmap;
use super::checker::{CHANGE_BUFFER, Checker, FindingPlace};
use super::walk::TreeWalk;
use crate::btree::check::{Visitor, promised_bytes, reason_of};
use crate::change_buffer::{ChangeBuffer, Operation};
use crate::error::Result;
use crate::page::{Node, PageType, header, node};
use crate::space::SEGMENT_CHANGE_BUFFER;
use crate::types::{IndexId, PageNo, SegmentId};
use highwater_storage::AlignedBuf;
use std::collections::HashMap;

fn place() -> FindingPlace {
    FindingPlace::of_tree(CHANGE_BUFFER)
}

impl Checker<'_> {
    /// Walks the change buffer's tree, if there is one.
    pub(super) fn check_change_buffer(&mut self) -> Result<()> {
        let changes = self.subject.changes;
        let Some(tree) = changes.operation_tree() else { return Ok(()) };
        let (ctx, pages) = (self.subject.ctx, self.subject.space.page_count());
        let segments = self.buffered_indexes();
        let walk = TreeWalk { checker: self, segment: SEGMENT_CHANGE_BUFFER, place: place() };
        let mut visitor = OperationVisitor { walk, segments, seen: Bitmap::new(pages), leaf: None };
        let counts = tree.walk(ctx, &mut visitor)?;
        visitor.end_leaf()?;
        let OperationVisitor { walk, mut seen, .. } = visitor;
        for (page, _) in changes.all_waiting() {
            if seen.insert(page) {
                walk.checker.compare_waiting(page)?;
            }
        }
        self.count_tree(&counts);
        Ok(())
    }

    /// The indexes whose changes may be buffered, and their segments.
    fn buffered_indexes(&self) -> HashMap<IndexId, SegmentId> {
        let mut segments = HashMap::new();
        for table in &self.subject.tables {
            let rows = table.current.read().clone();
            let trees = rows.indexes.iter().map(|index| &index.tree).filter(|tree| tree.has_free_classes());
            segments.extend(trees.map(|tree| (tree.id(), tree.segment())));
        }
        segments
    }

    /// Compares what is known of the operations that wait for a leaf with those in the tree.
    fn compare_waiting(&mut self, page: PageNo) -> Result<()> {
        let changes: &ChangeBuffer = self.subject.changes;
        match changes.waiting_differs(page) {
            Ok(None) => {}
            Ok(Some((known, found))) => {
                let text = format!("{found} operations wait for it in the change buffer's tree, {known} are known");
                self.find(Some(page), &place(), text);
            }
            Err(error) => drop(reason_of(error)?),
        }
        Ok(())
    }

    /// Checks that the leaf in the file has space for its waiting operations in addition to the bytes of its free
    /// class.
    fn check_room(&mut self, leaf: &Waiting) -> Result<()> {
        let (ctx, page) = (self.subject.ctx, leaf.page);
        let mut bytes = AlignedBuf::zeroed(ctx.pool.page_bytes());
        let is_read = ctx.pool.store().read(page, &mut bytes).is_ok() && header::verify(&bytes, page).is_ok();
        let promised = promised_bytes(self.subject.space, ctx, page)?;
        if !is_read || ctx.pool.is_resident(page) || self.subject.changes.waiting_count(page) != leaf.count {
            return Ok(());
        }
        let is_leaf = matches!(header::page_type(&bytes), Ok(PageType::Leaf)) && header::owner(&bytes) == leaf.index.0;
        if !is_leaf {
            let text = format!("operations of index {} wait for it, but it is no leaf of that index", leaf.index);
            self.find(Some(page), &place(), text);
        } else if Node::new(&bytes).free_bytes() < leaf.max_bytes + promised {
            let (free, max) = (Node::new(&bytes).free_bytes(), leaf.max_bytes);
            let text = format!("{free} bytes are free, operations that wait need {max}, {promised} more are promised");
            self.find(Some(page), &place(), text);
        }
        Ok(())
    }
}

/// The operations of one leaf.
struct Waiting {
    page: PageNo,
    index: IndexId,
    count: u32,
    /// Most bytes of the leaf that they take.
    max_bytes: usize,
}

struct OperationVisitor<'w, 'a> {
    walk: TreeWalk<'w, 'a>,
    segments: HashMap<IndexId, SegmentId>,
    seen: Bitmap,
    /// The leaf whose operations are being read.
    leaf: Option<Waiting>,
}

impl Visitor for OperationVisitor<'_, '_> {
    fn enter(&mut self, page: PageNo) -> Result<bool> {
        self.walk.enter(page)
    }

    fn leaf(&mut self, page: PageNo, page_bytes: &[u8]) -> Result<()> {
        let (leaf, mut key) = (Node::new(page_bytes), Vec::new());
        for slot in 0..leaf.count() {
            leaf.key_into(slot, &mut key);
            let operation = Operation::decode(&key, leaf.value(slot));
            let max_bytes = operation.and_then(|operation| max_bytes(operation.change));
            match operation.zip(max_bytes) {
                Some((operation, max_bytes)) => self.operation(&operation, max_bytes)?,
                None => self.walk.problem(page, format!("operation {slot} of it cannot be decoded")),
            }
        }
        Ok(())
    }

    fn problem(&mut self, page: PageNo, reason: String) {
        self.walk.problem(page, reason);
    }
}

/// Most bytes that a list of changes takes; `None` if it cannot be decoded.
fn max_bytes(changes: &[u8]) -> Option<usize> {
    node::changes(changes).map(|change| change.ok().map(|change| change.max_bytes())).sum()
}

impl OperationVisitor<'_, '_> {
    fn operation(&mut self, operation: &Operation<'_>, max_bytes: usize) -> Result<()> {
        if self.leaf.as_ref().is_none_or(|leaf| leaf.page != operation.page || leaf.index != operation.index) {
            self.end_leaf()?;
            let (page, index) = (operation.page, operation.index);
            self.leaf = Some(Waiting { page, index, count: 0, max_bytes: 0 });
        }
        if let Some(leaf) = &mut self.leaf {
            leaf.count += 1;
            leaf.max_bytes += max_bytes;
        }
        Ok(())
    }

    /// All operations of a leaf were read.
    fn end_leaf(&mut self) -> Result<()> {
        let Some(leaf) = self.leaf.take() else { return Ok(()) };
        let (page, index) = (leaf.page, leaf.index);
        let checker = &mut *self.walk.checker;
        if !self.seen.insert(page) {
            checker.find(Some(page), &place(), "operations of more than one index wait for it");
        }
        match (self.segments.get(&index), checker.subject.space.owner(page)) {
            (None, _) => {
                let text = format!("operations of index {index} wait for it, whose changes are not buffered");
                checker.find(Some(page), &place(), text);
            }
            (Some(segment), Some(owner)) if *segment == owner => {
                checker.compare_waiting(page)?;
                checker.check_room(&leaf)?;
            }
            (Some(_), _) => {
                checker.find(
                    Some(page),
                    &place(),
                    format!("operations of index {index} wait for it; it is not its page"),
                );
            }
        }
        Ok(())
    }
}
