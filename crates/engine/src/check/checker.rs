//! The state of a check: owners of segments, claims, findings.

use super::bitmap::Bitmap;
use super::report::{CheckReport, Finding, OnProgress, Progress};
use crate::change_buffer::ChangeBuffer;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::space::{SEGMENT_CHANGE_BUFFER, SEGMENT_SYSTEM, SEGMENT_UNDO, Space};
use crate::table::catalog::Catalog;
use crate::table::catalog_trees::CATALOG_TREES;
use crate::table::definition::PRIMARY;
use crate::table::handle::TableShared;
use crate::txn::TxnSystem;
use crate::types::{CHANGE_BUFFER_INDEX, PageNo, SegmentId};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The name of the tree.
pub(super) const CHANGE_BUFFER: &str = "change buffer";

/// An open database that is quiet (rule 1).
pub(crate) struct Subject<'a> {
    pub ctx: &'a Context,
    pub space: &'a Space,
    pub txns: &'a TxnSystem,
    pub catalog: &'a Catalog,
    pub changes: &'a ChangeBuffer,
    pub tables: Vec<Arc<TableShared>>,
    /// An error once the database closes or has stopped (rule 6).
    pub goes_on: &'a dyn Fn() -> Result<()>,
}

/// Checks everything.
///
/// # Errors
/// The database closes or has stopped; no free frame. Damage is not an error, but in the report.
pub(crate) fn run(subject: &Subject<'_>, tell: &mut OnProgress<'_>) -> Result<CheckReport> {
    let frozen = subject.changes.freeze();
    let report = run_frozen(subject, tell);
    drop(frozen);
    subject.changes.compact()?;
    (subject.goes_on)()?;
    report
}

fn run_frozen(subject: &Subject<'_>, tell: &mut OnProgress<'_>) -> Result<CheckReport> {
    subject.ctx.pool.flush_all()?;
    let mut checker = Checker::new(subject, tell);
    checker.name_segments()?;
    checker.check_file()?;
    checker.check_catalog()?;
    checker.check_change_buffer()?;
    for table in &subject.tables {
        checker.check_table(table)?;
    }
    checker.check_undo()?;
    checker.compare_claims();
    Ok(checker.report)
}

/// The kind of a segment's owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum OwnerKind {
    System,
    Undo,
    /// Of the tree with this number.
    Tree(u32),
    Overflow,
    /// Of a schema change that was not finished; freed at the next opening.
    Unfinished,
}

#[derive(Clone, Debug)]
pub(super) struct Owner {
    pub kind: OwnerKind,
    pub place: FindingPlace,
}

/// The place of a finding.
#[derive(Clone, Debug, Default)]
pub(super) struct FindingPlace {
    pub table: Option<String>,
    pub index: Option<String>,
}

impl FindingPlace {
    pub(super) fn of(table: &str, index: &str) -> FindingPlace {
        FindingPlace { table: Some(table.to_string()), index: Some(index.to_string()) }
    }

    /// A tree that belongs to no table.
    pub(super) fn of_tree(name: &str) -> FindingPlace {
        FindingPlace { table: None, index: Some(name.to_string()) }
    }
}

pub(super) struct Checker<'a> {
    pub subject: &'a Subject<'a>,
    pub report: CheckReport,
    pub owners: HashMap<u32, Owner>,
    pub claimed: Bitmap,
    /// Pages already reported as unreadable.
    pub unreadable: HashSet<PageNo>,
    /// Segments in which damage keeps pages from being reached.
    pub damaged: HashSet<SegmentId>,
    /// Used pages of those segments that were not reached: their number and the first of them.
    pub behind_damage: HashMap<u32, (u32, PageNo)>,
    pub progress: Progress<'a>,
}

impl<'a> Checker<'a> {
    fn new(subject: &'a Subject<'a>, tell: &'a mut OnProgress<'_>) -> Checker<'a> {
        let mut report = CheckReport::default();
        report.counts.page_bytes = subject.ctx.pool.page_bytes() as u64;
        report.counts.pages = u64::from(subject.space.page_count());
        report.counts.history = subject.txns.history_list_length();
        Checker {
            subject,
            report,
            owners: HashMap::new(),
            claimed: Bitmap::new(subject.space.page_count()),
            unreadable: HashSet::new(),
            damaged: HashSet::new(),
            behind_damage: HashMap::new(),
            progress: Progress::new(tell),
        }
    }

    pub(super) fn find(&mut self, page: Option<PageNo>, place: &FindingPlace, text: impl Into<String>) {
        let FindingPlace { table, index } = place.clone();
        self.report.add(Finding { page, table, index, text: text.into() });
    }

    /// Notes what is wrong with a page of a segment, unless the page was reported as unreadable before.
    pub(super) fn find_on_page(
        &mut self,
        page: PageNo,
        segment: SegmentId,
        place: &FindingPlace,
        text: impl Into<String>,
    ) {
        self.damaged.insert(segment);
        if !self.unreadable.contains(&page) {
            self.find(Some(page), place, text);
        }
    }

    /// Records that a structure of `segment` refers to a page. False if the page must not be entered: another structure
    /// refers to it, or it is beyond the file.
    pub(super) fn claim(&mut self, page: PageNo, segment: SegmentId, place: &FindingPlace) -> bool {
        self.progress.advance(1);
        if page.0 >= self.subject.space.page_count() {
            self.find_on_page(page, segment, place, "it is beyond the end of the data file");
            return false;
        }
        let new = self.claimed.insert(page);
        match self.subject.space.owner(page) {
            _ if !new => {}
            Some(owner) if owner == segment => {}
            Some(owner) => {
                let text = format!("it is used by segment {segment}, the extent map gives it to segment {owner}");
                self.find(Some(page), place, text);
            }
            None => self.find(Some(page), place, format!("it is used by segment {segment}, but marked as free")),
        }
        new
    }

    /// Finds the owner of each segment.
    fn name_segments(&mut self) -> Result<()> {
        let mut name = |segment: SegmentId, kind, place| drop(self.owners.insert(segment.0, Owner { kind, place }));
        name(SEGMENT_SYSTEM, OwnerKind::System, FindingPlace::default());
        name(SEGMENT_UNDO, OwnerKind::Undo, FindingPlace::default());
        for tree in CATALOG_TREES {
            // One that is not there may be half made.
            let is_there = self.subject.space.root(tree.root_slot).is_some();
            let kind = if is_there { OwnerKind::Tree(tree.id.0) } else { OwnerKind::Unfinished };
            name(tree.segment, kind, FindingPlace::of_tree(tree.name));
        }
        name(SEGMENT_CHANGE_BUFFER, OwnerKind::Tree(CHANGE_BUFFER_INDEX.0), FindingPlace::of_tree(CHANGE_BUFFER));
        for table in &self.subject.tables {
            let rows = table.current.read().clone();
            let tree = &rows.clustered;
            name(tree.segment(), OwnerKind::Tree(tree.id().0), FindingPlace::of(&table.name, PRIMARY));
            name(rows.overflow, OwnerKind::Overflow, FindingPlace { table: Some(table.name.clone()), index: None });
            for (index, definition) in rows.indexes.iter().zip(&rows.definition.indexes) {
                let place = FindingPlace::of(&table.name, &definition.name);
                name(index.tree.segment(), OwnerKind::Tree(index.tree.id().0), place);
            }
        }
        match self.subject.catalog.segments() {
            Ok(segments) => {
                for segment in segments {
                    let unfinished = || Owner { kind: OwnerKind::Unfinished, place: FindingPlace::default() };
                    self.owners.entry(segment.0).or_insert_with(unfinished);
                }
                Ok(())
            }
            // The walk of the catalog's tree reports which page it is.
            Err(Error::CorruptPage { .. }) => Ok(()),
            Err(error) => {
                let reason = crate::btree::check::reason_of(error)?;
                self.find(None, &FindingPlace::of_tree("catalog"), reason);
                Ok(())
            }
        }
    }
}
