//! Common code of all walks of trees: claiming pages, noting problems, showing keys.
//!
//! Rule: a page that cannot be claimed is not entered.

use super::checker::{Checker, FindingPlace};
use crate::error::Result;
use crate::table::key::KeyLayout;
use crate::table::value::Value;
use crate::types::{PageNo, SegmentId};

/// A walk of the tree of one segment.
pub(super) struct TreeWalk<'w, 'a> {
    pub checker: &'w mut Checker<'a>,
    pub segment: SegmentId,
    pub place: FindingPlace,
}

impl TreeWalk<'_, '_> {
    pub(super) fn enter(&mut self, page: PageNo) -> Result<bool> {
        (self.checker.subject.goes_on)()?;
        Ok(self.checker.claim(page, self.segment, &self.place))
    }

    pub(super) fn problem(&mut self, page: PageNo, reason: String) {
        if page.0 < self.checker.subject.space.page_count() {
            self.checker.find_on_page(page, self.segment, &self.place, reason);
        }
    }
}

/// A key as text: its values, or its bytes if they cannot be decoded.
pub(crate) fn show_key(layout: &KeyLayout, key: &[u8]) -> String {
    match layout.decode(key) {
        Ok((values, _)) => {
            let values: Vec<String> = values.iter().map(Value::to_string).collect();
            format!("({})", values.join(", "))
        }
        Err(_) => format!("{key:02x?}"),
    }
}
