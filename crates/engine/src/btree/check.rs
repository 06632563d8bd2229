//! Verifying a whole tree.
//!
//! Rules
//! 1. Every page is verified by itself (`node::check`), then against what its parent says: owner, level, fences.
//! 2. Damage is reported and walked around; no page is visited twice, so damaged links cannot make the walk loop.
//! 3. The structure mutex is held during the walk and one page is latched at a time: rows may change meanwhile.

use super::BTree;
use super::search::MAX_LEVEL;
use crate::error::{Error, Result};
use crate::mtr::Context;
use crate::page::{Node, header, node};
use crate::types::PageNo;
use std::collections::HashSet;

/// What a walk found.
#[derive(Clone, Debug, Default)]
pub struct TreeReport {
    /// What is wrong, page by page.
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

/// A page to visit and what its parent says about it.
struct Expected {
    page: PageNo,
    /// `None` for the root.
    level: Option<u8>,
    lower: Option<Vec<u8>>,
    upper: Option<Vec<u8>>,
}

impl BTree {
    /// Walks the whole tree and reports what is wrong with it.
    ///
    /// # Errors
    /// Only what keeps the walk from going on: no free frame, a stopped database. Damage is in the report.
    pub fn check(&self, ctx: &Context) -> Result<TreeReport> {
        self.walk(ctx, |_| {})
    }

    /// As [`BTree::check`], showing every sound leaf to `visit`, in key order.
    ///
    /// # Errors
    /// As [`BTree::check`].
    pub fn walk(&self, ctx: &Context, mut visit: impl FnMut(Node<'_>)) -> Result<TreeReport> {
        let _structure = self.structure.lock();
        let mut report = TreeReport::default();
        let mut seen = HashSet::new();
        let mut to_visit = vec![Expected { page: self.root, level: None, lower: None, upper: None }];
        while let Some(expected) = to_visit.pop() {
            if !seen.insert(expected.page) {
                report.problems.push((expected.page, "a second parent leads to this page".to_string()));
                continue;
            }
            match self.visit(ctx, &expected, &mut report, &mut visit) {
                Ok(children) => to_visit.extend(children.into_iter().rev()),
                Err(error) => report.problems.push((expected.page, reason_of(error)?)),
            }
        }
        Ok(report)
    }

    /// Verifies one page; returns its children, left to right.
    fn visit(
        &self,
        ctx: &Context,
        expected: &Expected,
        report: &mut TreeReport,
        visit: &mut impl FnMut(Node<'_>),
    ) -> Result<Vec<Expected>> {
        let page = ctx.pool.fix_s(expected.page)?;
        report.pages.push(expected.page);
        node::check(&page, expected.page)?;
        let found = Node::new(&page);
        let level = expected.level.unwrap_or_else(|| found.level().min(MAX_LEVEL));
        if expected.level.is_none() {
            report.levels = u64::from(level) + 1;
        }
        self.verify_node(&page, expected.page, level)?;
        self.verify_fences(found, expected, report);
        if found.is_leaf() {
            report.leaves += 1;
            report.records += found.count() as u64;
            report.leaf_bytes_used += found.used_bytes() as u64;
            visit(found);
            return Ok(Vec::new());
        }
        if header::max_trx_id(&page) != 0 {
            report.problems.push((expected.page, "an inner page with a transaction number".to_string()));
        }
        Ok(children(found, level))
    }

    fn verify_fences(&self, found: Node<'_>, expected: &Expected, report: &mut TreeReport) {
        if found.lower() != expected.lower.as_deref() {
            report.problems.push((expected.page, "its lower fence is not its parent's separator".to_string()));
        }
        if found.upper() != expected.upper.as_deref() {
            report.problems.push((expected.page, "its upper fence is not its parent's separator".to_string()));
        }
    }
}

/// The children of an inner page, with the fences they must have.
fn children(parent: Node<'_>, level: u8) -> Vec<Expected> {
    let mut lower = parent.lower().map(<[u8]>::to_vec);
    let mut children = Vec::with_capacity(parent.count() + 1);
    for slot in 0..=parent.count() {
        let upper = if slot < parent.count() { Some(parent.key(slot)) } else { parent.upper().map(<[u8]>::to_vec) };
        let page = parent.child(slot);
        children.push(Expected { page, level: Some(level - 1), lower: lower.take(), upper: upper.clone() });
        lower = upper;
    }
    children
}

/// The text of an error that is damage; other errors end the walk.
fn reason_of(error: Error) -> Result<String> {
    match error {
        Error::CorruptPage { reason, .. } => Ok(reason),
        Error::Incompatible(reason) => Ok(reason),
        Error::Storage(error) => Ok(error.to_string()),
        error => Err(error),
    }
}
