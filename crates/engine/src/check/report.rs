//! The report of a check: findings and counts.

use crate::page::PageType;
use crate::types::PageNo;

/// Findings kept; more are only counted.
const KEPT: usize = 10_000;

/// A problem.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// Page of the data file, if it is about one.
    pub page: Option<PageNo>,
    /// Table, if it is about one.
    pub table: Option<String>,
    /// Index ("PRIMARY" = the rows themselves), if it is about one.
    pub index: Option<String>,
    /// The finding as text.
    pub text: String,
}

impl std::fmt::Display for Finding {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if let Some(page) = self.page {
            write!(f, "page {page}: ")?;
        }
        if let Some(table) = &self.table {
            write!(f, "table {table}: ")?;
        }
        if let Some(index) = &self.index {
            write!(f, "index {index}: ")?;
        }
        f.write_str(&self.text)
    }
}

/// Counts of the checked objects.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Pages in the file.
    pub pages: u64,
    /// Pages in use according to the extent maps.
    pub pages_used: u64,
    /// Pages in use that verified.
    pub pages_verified: u64,
    /// File header pages among them.
    pub file_header_pages: u64,
    /// Extent maps among them.
    pub extent_map_pages: u64,
    /// Inner tree pages among them.
    pub inner_pages: u64,
    /// Leaves among them.
    pub leaf_pages: u64,
    /// Undo pages among them.
    pub undo_pages: u64,
    /// Undo directory pages among them.
    pub undo_directory_pages: u64,
    /// Overflow pages among them.
    pub overflow_pages: u64,
    /// Pages reserved and never written (in front of extent maps) among them.
    pub reserved_pages: u64,
    /// Pages of schema changes that a failure left half done, to be freed when the database is opened next.
    pub unfinished_pages: u64,
    /// Tables.
    pub tables: u64,
    /// Trees, the catalog's included.
    pub trees: u64,
    /// Levels of the highest one.
    pub tree_levels_max: u64,
    /// Bytes that records and fences take on leaves.
    pub leaf_bytes_used: u64,
    /// Rows, deleted ones that are not purged yet not included.
    pub rows: u64,
    /// Deleted rows that are not purged yet.
    pub rows_delete_marked: u64,
    /// Rows that have overflow pages.
    pub rows_overflow: u64,
    /// Secondary entries, delete-marked ones not included.
    pub entries: u64,
    /// Delete-marked secondary entries.
    pub entries_delete_marked: u64,
    /// Undo streams.
    pub undo_streams: u64,
    /// Undo records in them.
    pub undo_records: u64,
    /// Prepared transactions that have not ended.
    pub transactions_prepared: u64,
    /// Ended transactions that are not purged yet.
    pub history: u64,
}

impl CheckCounts {
    /// Bytes of pages in use.
    pub fn bytes_used(&self) -> u64 {
        self.pages_used * self.page_bytes
    }

    /// Bytes of pages not in use.
    pub fn bytes_free(&self) -> u64 {
        self.pages.saturating_sub(self.pages_used) * self.page_bytes
    }

    /// The count of verified pages of a type.
    pub(crate) fn pages_of(&mut self, page_type: PageType) -> &mut u64 {
        match page_type {
            // A lost page is a finding, and not counted.
            PageType::Free | PageType::Lost => &mut self.reserved_pages,
            PageType::FileHeader => &mut self.file_header_pages,
            PageType::ExtentMap => &mut self.extent_map_pages,
            PageType::Inner => &mut self.inner_pages,
            PageType::Leaf => &mut self.leaf_pages,
            PageType::Undo => &mut self.undo_pages,
            PageType::UndoDirectory => &mut self.undo_directory_pages,
            PageType::Overflow => &mut self.overflow_pages,
        }
    }

    /// Name and value of every count, bytes used and free included, in order; names carry units.
    pub fn values(&self) -> Vec<(&'static str, u64)> {
        vec![
            ("page_bytes", self.page_bytes),
            ("pages", self.pages),
            ("pages_used", self.pages_used),
            ("pages_verified", self.pages_verified),
            ("file_header_pages", self.file_header_pages),
            ("extent_map_pages", self.extent_map_pages),
            ("inner_pages", self.inner_pages),
            ("leaf_pages", self.leaf_pages),
            ("undo_pages", self.undo_pages),
            ("undo_directory_pages", self.undo_directory_pages),
            ("overflow_pages", self.overflow_pages),
            ("reserved_pages", self.reserved_pages),
            ("unfinished_pages", self.unfinished_pages),
            ("bytes_used", self.bytes_used()),
            ("bytes_free", self.bytes_free()),
            ("leaf_bytes_used", self.leaf_bytes_used),
            ("tables", self.tables),
            ("trees", self.trees),
            ("tree_levels_max", self.tree_levels_max),
            ("rows", self.rows),
            ("rows_delete_marked", self.rows_delete_marked),
            ("rows_overflow", self.rows_overflow),
            ("entries", self.entries),
            ("entries_delete_marked", self.entries_delete_marked),
            ("undo_streams", self.undo_streams),
            ("undo_records", self.undo_records),
            ("transactions_prepared", self.transactions_prepared),
            ("history_transactions", self.history),
        ]
    }
}

/// An index whose entries were not compared with the rows of its table: the program does not know its collation. All
/// else of it was checked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCompared {
    /// The table.
    pub table: String,
    /// The index.
    pub index: String,
    /// The collation that the program does not know.
    pub collation: String,
}

impl std::fmt::Display for NotCompared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let NotCompared { table, index, collation } = self;
        write!(f, "table {table}: index {index}: not compared with the rows: this program has no collation {collation}")
    }
}

/// The report of a check.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckReport {
    /// The first 10,000 findings; empty: the database is sound.
    pub findings: Vec<Finding>,
    /// Findings that were not kept.
    pub findings_omitted: u64,
    /// Indexes that were not compared with their rows.
    pub not_compared: Vec<NotCompared>,
    /// Counts of the checked objects.
    pub counts: CheckCounts,
}

impl CheckReport {
    /// Whether nothing is wrong.
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }

    pub(crate) fn add(&mut self, finding: Finding) {
        if self.findings.len() < KEPT {
            self.findings.push(finding);
        } else {
            self.findings_omitted += 1;
        }
    }
}

/// Receives the progress of a check: (pages done, pages in all); pages that are read twice count twice.
pub type OnProgress<'a> = dyn FnMut(u64, u64) + 'a;

/// Counts pages for [`OnProgress`].
pub(crate) struct Progress<'a> {
    pub(crate) done: u64,
    pub(crate) total: u64,
    tell: &'a mut OnProgress<'a>,
}

/// Pages between two calls.
const STEP_PAGES: u64 = 64;

impl<'a> Progress<'a> {
    pub(crate) fn new(tell: &'a mut OnProgress<'a>) -> Progress<'a> {
        Progress { done: 0, total: 0, tell }
    }

    pub(crate) fn advance(&mut self, pages: u64) {
        let before = self.done;
        self.done += pages;
        if before / STEP_PAGES != self.done / STEP_PAGES {
            (self.tell)(self.done.min(self.total), self.total);
        }
    }
}
