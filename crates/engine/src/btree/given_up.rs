//! A tree whose records are unknown after damage: it is given up, and later emptied.
//!
//! Rules
//! 1. To *give up* a tree changes only its root, which becomes a free page that still names the index. Every descent
//!    begins there and ends with an error, so neither a row operation nor a check uses the pages below. The index is
//!    rebuilt from the rows, like one with a damaged root.
//! 2. Neither giving up nor emptying reads a page of the tree.
//! 3. Emptying frees the pages one by one, the root last: until then the tree is still damaged.

use super::structure::TreeStructure;
use crate::context::Context;
use crate::error::Result;
use crate::mtr::MTR_REDO_BYTES;
use crate::page::{PageOp, PageType};
use crate::types::PageNo;

/// Gives the tree up (rule 1).
///
/// # Errors
/// An I/O error.
pub(super) fn give_up(tree: &TreeStructure, ctx: &Context) -> Result<()> {
    let mut mtr = ctx.mtr_with(MTR_REDO_BYTES, 1)?;
    let root = mtr.new_page(tree.root());
    mtr.apply(root, &PageOp::Format { page_type: PageType::Free, level: 0, owner: tree.id().0 });
    mtr.commit();
    Ok(())
}

/// Makes the tree an empty one (rule 3).
///
/// # Errors
/// An I/O error.
pub(super) fn make_empty(tree: &TreeStructure, ctx: &Context) -> Result<()> {
    let _unchanged = tree.exclude_changes();
    for page in tree.pages().into_iter().filter(|page| *page != tree.root()) {
        let mut mtr = ctx.mtr_with(MTR_REDO_BYTES, 1)?;
        tree.read_and_keep_map(&mut mtr, page)?;
        let latched = mtr.new_page(page);
        tree.free_node(&mut mtr, latched);
        mtr.commit();
    }
    let mut mtr = ctx.mtr_with(MTR_REDO_BYTES, 1)?;
    let root = mtr.new_page(tree.root());
    mtr.apply(root, &PageOp::Format { page_type: PageType::Leaf, level: 0, owner: tree.id().0 });
    mtr.apply(root, &PageOp::NodeFormat { lower: None, upper: None, upper_child: PageNo(0) });
    mtr.commit();
    Ok(())
}
