//! A tree whose records are unknown after damage: it is given up, and later emptied.
//!
//! Rules
//! 1. To *give up* a tree changes only its root, which becomes a free page that still names the index. Every descent
//!    begins there and ends with an error, so neither a row operation nor a check uses the pages below. The index is
//!    rebuilt from the rows, like one with a damaged root.
//! 2. Neither giving up nor emptying reads a page of the tree.
//! 3. Emptying frees the pages one by one, the root last: until then the tree is still damaged.

use super::tree::BTree;
use crate::context::Context;
use crate::error::Result;
use crate::mtr::MTR_REDO_BYTES;
use crate::page::{PageOp, PageType};
use crate::types::PageNo;

impl BTree {
    /// Gives the tree up (rule 1). No thread uses it yet; the caller makes that durable.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn give_up(&self, ctx: &Context) -> Result<()> {
        let mut mtr = ctx.mtr_with(MTR_REDO_BYTES, 1)?;
        let root = mtr.new_page(self.root());
        mtr.apply(root, &PageOp::Format { page_type: PageType::Free, level: 0, owner: self.id().0 });
        mtr.commit();
        Ok(())
    }

    /// Makes the tree an empty one, for any contents of its pages. No thread uses it.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn make_empty(&self, ctx: &Context) -> Result<()> {
        let _unchanged = self.changes.write();
        for page in self.space.pages_of(self.segment).into_iter().filter(|page| *page != self.root()) {
            let mut mtr = ctx.mtr_with(MTR_REDO_BYTES, 1)?;
            self.space.keep_map(&mut mtr, page)?;
            let latched = mtr.new_page(page);
            self.free_node(&mut mtr, latched);
            mtr.commit();
        }
        let mut mtr = ctx.mtr_with(MTR_REDO_BYTES, 1)?;
        let root = mtr.new_page(self.root());
        mtr.apply(root, &PageOp::Format { page_type: PageType::Leaf, level: 0, owner: self.id().0 });
        mtr.apply(root, &PageOp::NodeFormat { lower: None, upper: None, upper_child: PageNo(0) });
        mtr.commit();
        Ok(())
    }
}
