//! Verifying a whole tree.
//!
//! Rules
//! 1. Every page is verified by itself (`node::check`), then against its parent: owner, level, fences; and against its
//!    free class in the extent map.
//! 2. Damage is reported and skipped; no page is visited twice, so damaged links cannot make the walk loop.
//! 3. Structure changes are kept out during the walk. Pages are copied under their latch and looked at without it, so a
//!    visitor may read other pages. Rows may change meanwhile.
//! 4. Memory is bounded by the tree's height, apart from the visitor's own.
//! 5. The next pages of the walk are read ahead ([`Ahead`]).

use super::found::MAX_LEVEL;
use super::found::error_of;
use super::read_ahead::max_leaves_ahead;
use super::structure::TreeStructure;
use crate::context::Context;
use crate::error::{Error, Result};
use crate::page::header::TYPE;
use crate::page::{Node, PageBytes, header, node};
use crate::space::Space;
use crate::types::PageNo;

/// The result of a walk.
#[cfg(test)]
#[derive(Clone, Debug, Default)]
pub(crate) struct TreeReport {
    /// The findings, each with its page.
    pub problems: Vec<(PageNo, String)>,
    /// Every page the tree uses, in the order visited.
    pub pages: Vec<PageNo>,
    /// Leaves among them.
    pub leaves: u64,
    /// Records on the leaves.
    pub records: u64,
    /// Levels, 1 = the root is a leaf.
    pub levels: u64,
    /// Bytes taken by records and fences on the leaves.
    pub leaf_bytes_used: u64,
}

/// Counts of a walk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct TreeCounts {
    /// Levels, 1 = the root is a leaf.
    pub levels: u64,
    /// Sound inner pages.
    pub inner_pages: u64,
    /// Sound leaves.
    pub leaves: u64,
    /// Records on them.
    pub records: u64,
    /// Bytes taken by records and fences on them.
    pub leaf_bytes_used: u64,
}

/// Is called for each page of a walk.
pub(crate) trait Visitor {
    /// The tree refers to this page. False if it was referred to before: the walk does not enter it then.
    ///
    /// # Errors
    /// Ends the walk.
    fn enter(&mut self, page: PageNo) -> Result<bool>;
    /// A sound leaf, in key order; nothing is latched.
    ///
    /// # Errors
    /// Ends the walk.
    fn leaf(&mut self, page: PageNo, page_bytes: &[u8]) -> Result<()>;
    fn problem(&mut self, page: PageNo, reason: String);
}

/// A page to visit and what its parent says about it.
struct Expected {
    page: PageNo,
    /// `None` for the root.
    level: Option<u8>,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

impl TreeStructure {
    /// Walks the whole tree and reports what is wrong with it.
    ///
    /// # Errors
    /// As [`TreeStructure::walk`]. Damage is in the report.
    #[cfg(test)]
    pub(super) fn check(&self, ctx: &Context) -> Result<TreeReport> {
        let mut collector = Collector::default();
        let counts = self.walk(ctx, &mut collector)?;
        let Collector { seen: _, mut report } = collector;
        report.levels = counts.levels;
        report.leaves = counts.leaves;
        report.records = counts.records;
        report.leaf_bytes_used = counts.leaf_bytes_used;
        Ok(report)
    }

    /// Walks the whole tree, left to right, parents first.
    ///
    /// # Errors
    /// The error that ends the walk: no free frame, a stopped database; those of the visitor. Damage is reported
    /// to the visitor.
    pub(super) fn walk(&self, ctx: &Context, visitor: &mut impl Visitor) -> Result<TreeCounts> {
        let _unchanged = self.exclude_changes();
        let mut counts = TreeCounts::default();
        let mut bytes = Vec::with_capacity(ctx.pool.page_bytes());
        let mut to_visit = vec![Expected { page: self.root(), level: None, lower: None, upper: None }];
        let mut ahead = Ahead { max: max_leaves_ahead(ctx.pool.frame_count()), named: 0 };
        while let Some(expected) = to_visit.pop() {
            ahead.go_on(ctx, &to_visit);
            if !visitor.enter(expected.page)? {
                visitor.problem(expected.page, "another page also leads to this page".to_string());
                continue;
            }
            let promised = match self.read_sound(ctx, &expected, &mut bytes) {
                Ok(promised) => promised,
                Err(error) => {
                    visitor.problem(expected.page, reason_of(error)?);
                    continue;
                }
            };
            self.verify_fences(Node::new(&bytes), &expected, visitor);
            if expected.level.is_none() {
                counts.levels = u64::from(header::level(&bytes)) + 1;
            }
            let found = Node::new(&bytes);
            if found.is_leaf() {
                counts.leaves += 1;
                counts.records += found.count() as u64;
                counts.leaf_bytes_used += found.used_bytes() as u64;
                if expected.level.is_some() {
                    verify_room(expected.page, found, promised, visitor);
                }
                visitor.leaf(expected.page, &bytes)?;
            } else {
                counts.inner_pages += 1;
                if header::max_trx_id(&bytes) != 0 {
                    visitor.problem(expected.page, "an inner page with a transaction number".to_string());
                }
                to_visit.extend(children(found).into_iter().rev());
                ahead.named = 0;
            }
        }
        Ok(counts)
    }

    /// Copies a page into `bytes` and verifies it by itself, its owner and its level. Returns how many bytes the extent
    /// map promises to be free on it, if it is a leaf.
    fn read_sound(&self, ctx: &Context, expected: &Expected, bytes: &mut Vec<u8>) -> Result<usize> {
        let promised = ask_map(ctx, || {
            let page = ctx.pool.fix_s(expected.page)?;
            bytes.clear();
            bytes.extend_from_slice(&page);
            if let Some(error) = error_of(self.root(), bytes.u64_at(TYPE), self.id()) {
                return Err(error);
            }
            // Read under the latch: one mini-transaction changes the leaf's free space and its class.
            Ok(self.free_classes().min_free_bytes(ctx, expected.page))
        })?;
        node::check(bytes, expected.page)?;
        let level = expected.level.unwrap_or_else(|| header::level(bytes).min(MAX_LEVEL));
        self.verify_node(bytes, expected.page, level)?;
        Ok(promised)
    }

    fn verify_fences(&self, found: Node<'_>, expected: &Expected, visitor: &mut impl Visitor) {
        if found.lower() != expected.lower.as_deref() {
            visitor.problem(expected.page, "its lower fence is not its parent's separator".to_string());
        }
        if found.upper() != expected.upper.as_deref() {
            visitor.problem(expected.page, "its upper fence is not its parent's separator".to_string());
        }
    }
}

/// The walk requests the next pages from the pool, which reads the missing ones ahead.
struct Ahead {
    /// Most that are named at once.
    max: usize,
    /// Pages named that the walk has not reached.
    named: usize,
}

impl Ahead {
    /// The walk continues to a page; then come the last ones of `to_visit`.
    fn go_on(&mut self, ctx: &Context, to_visit: &[Expected]) {
        self.named = self.named.saturating_sub(1);
        if self.named * 2 < self.max {
            let pages: Vec<PageNo> = to_visit.iter().rev().take(self.max).map(|expected| expected.page).collect();
            ctx.pool.request(&pages);
            self.named = pages.len();
        }
    }
}

/// A leaf takes the changes that may become pending for it.
fn verify_room(page: PageNo, found: Node<'_>, promised: usize, visitor: &mut impl Visitor) {
    let free = found.free_bytes();
    if promised > free {
        let reason = format!("{free} bytes of it are free, but its extent map says that at least {promised} are");
        visitor.problem(page, reason);
    }
}

/// Bytes that the extent map says a leaf has free at least.
///
/// # Errors
/// Those of [`ask_map`].
pub(crate) fn promised_bytes(space: &Space, ctx: &Context, page: PageNo) -> Result<usize> {
    ask_map(ctx, || Ok(space.min_free_bytes(ctx, page)))
}

/// The result of `ask`; if it needs a map that is not in the pool, the map is read and `ask` called again. A damaged
/// map promises nothing: it is reported with the other pages.
///
/// # Errors
/// Those of `ask`; what keeps a map from being read but is no damage.
fn ask_map(ctx: &Context, mut ask: impl FnMut() -> Result<std::result::Result<usize, PageNo>>) -> Result<usize> {
    loop {
        match ask()? {
            Ok(bytes) => return Ok(bytes),
            Err(map) => match ctx.pool.load(map) {
                Ok(()) => {}
                Err(error) => return reason_of(error).map(|_| 0),
            },
        }
    }
}

#[cfg(test)]
/// Collects everything.
#[derive(Default)]
struct Collector {
    seen: std::collections::HashSet<PageNo>,
    report: TreeReport,
}

#[cfg(test)]
impl Visitor for Collector {
    fn enter(&mut self, page: PageNo) -> Result<bool> {
        let new = self.seen.insert(page);
        if new {
            self.report.pages.push(page);
        }
        Ok(new)
    }

    fn leaf(&mut self, _page: PageNo, _page_bytes: &[u8]) -> Result<()> {
        Ok(())
    }

    fn problem(&mut self, page: PageNo, reason: String) {
        self.report.problems.push((page, reason));
    }
}

/// The children of an inner page, with the fences they must have.
fn children(parent: Node<'_>) -> Vec<Expected> {
    let level = Some(parent.level().saturating_sub(1));
    let mut lower = parent.lower().map(<[u8]>::to_vec);
    let mut children = Vec::with_capacity(parent.count() + 1);
    for slot in 0..=parent.count() {
        let upper = if slot < parent.count() { Some(parent.key(slot)) } else { parent.upper().map(<[u8]>::to_vec) };
        let page = parent.child(slot);
        children.push(Expected { page, level, lower: lower.take(), upper: upper.clone() });
        lower = upper;
    }
    children
}

/// The text of an error that is damage; other errors end the walk.
pub(crate) fn reason_of(error: Error) -> Result<String> {
    match error {
        Error::CorruptPage { reason, .. } => Ok(reason),
        Error::Incompatible(reason) | Error::Corrupt(reason) => Ok(reason),
        Error::Storage(error) => Ok(error.to_string()),
        error => Err(error),
    }
}
