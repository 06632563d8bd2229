//! The declared loss of one damaged page, by the kind of page: the table of docs/design/damage.md.
//!
//! Rules
//! 1. It holds for a database at rest, and for pages that recovery does not have to change.
//! 2. The table is a promise: the tests damage pages of every kind and compare, also while a load runs
//!    ([`super::under_load`]).

use highwater::PageNo;
use highwater::inspect::{PageContents, PageType, RawFile, UndoStreamInfo};
use highwater_bench::Result;

/// The kind of a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PageKind {
    /// Page 0.
    FileHeader,
    /// The used pages and their owners.
    ExtentMap,
    /// Any page of the catalog's two trees.
    Catalog,
    /// The directory of the undo streams.
    UndoDirectory,
    /// The last page of an undo stream of which the directory says that all its transactions have ended.
    EndedUndoEnd,
    /// The last page of another undo stream.
    UndoEnd,
    /// Another page of an undo stream.
    Undo,
    /// A page of the tree of operations that the change buffer keeps with `disk`.
    ChangeBuffer,
    /// A page of a clustered tree that is not a leaf.
    ClusteredInner,
    /// A leaf of a clustered tree.
    ClusteredLeaf,
    /// A part of a large row.
    Overflow,
    /// A page of a secondary index.
    Index,
}

/// The loss with a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// Nothing.
    Nothing,
    /// Reads by secondary indexes are errors.
    Indexes,
    /// Reads of some rows of one table are errors.
    Rows,
    /// Rows that a transaction was changing, and versions for old snapshots; the space is not reused.
    Undo,
    /// The database is not opened.
    Opening,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Declared {
    /// The kind of page.
    pub kind: PageKind,
    /// Owner and type of the page, as text.
    pub page: &'static str,
    /// The loss.
    pub loss: Loss,
    /// The damage as text.
    pub lost: &'static str,
    /// The repair as text.
    pub repair: &'static str,
}

impl Declared {
    /// Whether a database with such a page damaged opens.
    pub fn opens(&self) -> bool {
        self.loss != Loss::Opening
    }
}

const REPAIR: &str = "`check --repair`";
const RESTORE: &str = "a backup, or `check --salvage`";

/// The table.
pub const DECLARED: [Declared; 12] = [
    Declared {
        kind: PageKind::FileHeader,
        page: "page 0",
        loss: Loss::Opening,
        lost: "nothing in a salvage, in place",
        repair: RESTORE,
    },
    Declared {
        kind: PageKind::ExtentMap,
        page: "extent map",
        loss: Loss::Opening,
        lost: "nothing in a salvage; the free pages are unknown",
        repair: RESTORE,
    },
    Declared {
        kind: PageKind::Catalog,
        page: "catalog: root, inner page, leaf of either tree",
        loss: Loss::Nothing,
        lost: "nothing",
        repair: "the opening itself",
    },
    Declared {
        kind: PageKind::UndoDirectory,
        page: "undo: directory",
        loss: Loss::Opening,
        lost: "nothing in a salvage but the changes of a transaction",
        repair: RESTORE,
    },
    Declared {
        kind: PageKind::EndedUndoEnd,
        page: "undo: last page of a stream whose transactions have ended, as its directory says",
        loss: Loss::Undo,
        lost: "the same as for any other undo page",
        repair: "no repair needed",
    },
    Declared {
        kind: PageKind::UndoEnd,
        page: "undo: last page of another stream",
        loss: Loss::Opening,
        lost: "nothing in a salvage but the changes of a transaction: whether it must be rolled back is unknown",
        repair: RESTORE,
    },
    Declared {
        kind: PageKind::Undo,
        page: "undo: any other page",
        loss: Loss::Undo,
        lost: "older versions of rows; purge and rollback skip the page and report it",
        repair: "no repair needed",
    },
    Declared {
        kind: PageKind::ChangeBuffer,
        page: "change buffer (`disk`): root, inner page, leaf",
        loss: Loss::Indexes,
        lost: "indexes that may have pending changes there: reads and changes through them are errors",
        repair: REPAIR,
    },
    Declared {
        kind: PageKind::ClusteredInner,
        page: "rows: root or inner page",
        loss: Loss::Rows,
        lost: "the rows below it; none in a salvage",
        repair: RESTORE,
    },
    Declared { kind: PageKind::ClusteredLeaf, page: "rows: leaf", loss: Loss::Rows, lost: "its rows", repair: RESTORE },
    Declared {
        kind: PageKind::Overflow,
        page: "rows: overflow page",
        loss: Loss::Rows,
        lost: "one row",
        repair: RESTORE,
    },
    Declared {
        kind: PageKind::Index,
        page: "secondary index: root, inner page, leaf",
        loss: Loss::Indexes,
        lost: "reads and changes through that part of the index are errors",
        repair: REPAIR,
    },
];

/// The table as it is in docs/design/damage.md.
pub fn table() -> String {
    let row = |row: &Declared| {
        let opens = if row.opens() { "opens" } else { "does not open" };
        format!("| {} | {opens} | {} | {} |\n", row.page, row.lost, row.repair)
    };
    let head = "| page | the database | lost | what repairs it |\n|---|---|---|---|\n";
    head.to_string() + &DECLARED.iter().map(row).collect::<String>()
}

/// The row for pages of a kind.
pub fn declared(kind: PageKind) -> &'static Declared {
    DECLARED.iter().find(|row| row.kind == kind).expect("each kind has a row")
}

/// The change buffer's index, and the catalog's.
const CHANGE_BUFFER: u32 = u32::MAX;
const CATALOGS: [u32; 2] = [1, 2];

/// The kind of a page of a file; `None` if it is free, or reserved and never written.
///
/// # Errors
/// The page cannot be read.
pub fn kind_of(file: &RawFile<'_>, page: PageNo) -> Result<Option<PageKind>> {
    if file.owner(page).is_none() {
        return Ok(None);
    }
    let look = file.look_at(page)?;
    let is_root = |tree: u32| CATALOGS.contains(&tree) || tree == CHANGE_BUFFER;
    Ok(match (look.page_type, &look.contents) {
        (Some(PageType::FileHeader), _) => Some(PageKind::FileHeader),
        (Some(PageType::ExtentMap), _) => Some(PageKind::ExtentMap),
        (Some(PageType::Inner | PageType::Leaf), _) if is_root(look.owner) => match look.owner {
            CHANGE_BUFFER => Some(PageKind::ChangeBuffer),
            _ => Some(PageKind::Catalog),
        },
        (Some(page_type @ (PageType::Inner | PageType::Leaf)), _) => {
            file.tree(look.owner).map(|(table, tree)| match page_type {
                _ if table.trees.first().is_some_and(|first| first.id != tree.id) => PageKind::Index,
                PageType::Leaf => PageKind::ClusteredLeaf,
                _ => PageKind::ClusteredInner,
            })
        }
        (_, PageContents::Undo(undo)) if undo.next == PageNo(0) => match stream_has_ended(file, page)? {
            true => Some(PageKind::EndedUndoEnd),
            false => Some(PageKind::UndoEnd),
        },
        (_, PageContents::Undo(_)) => Some(PageKind::Undo),
        (_, PageContents::UndoDirectory { .. }) => Some(PageKind::UndoDirectory),
        (Some(PageType::Overflow), _) => Some(PageKind::Overflow),
        _ => None,
    })
}

/// The root slot of the undo directory.
const UNDO_ROOT: usize = 1;

/// Whether the undo directory records that all transactions of the stream with this last page have ended.
///
/// # Errors
/// A page of the directory cannot be read.
pub(super) fn stream_has_ended(file: &RawFile<'_>, last: PageNo) -> Result<bool> {
    let PageContents::FileHeader(roots) = file.look_at(PageNo(0))?.contents else { return Ok(false) };
    let mut page = roots.get(UNDO_ROOT).copied().unwrap_or(PageNo(0));
    while page != PageNo(0) {
        let PageContents::UndoDirectory { next, streams, .. } = file.look_at(page)?.contents else { break };
        if streams.iter().any(|UndoStreamInfo { last: found, ended_at, .. }| *found == last && ended_at.is_some()) {
            return Ok(true);
        }
        page = next;
    }
    Ok(false)
}
