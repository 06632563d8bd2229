//! Pages as bytes: header, node layout, and the operations that change them (the operations of the redo log). No I/O.
//!
//! Rules
//! 1. A page changes only through [`PageOp::apply`]; forward work and recovery run the same code, so that replaying the
//!    encoded operations gives the identical page, byte for byte.
//! 2. `apply` checks before it changes: an operation that does not fit returns an error and leaves the page unchanged.
//! 3. Nothing here panics on any bytes, neither of a page nor of an encoded operation.

mod bytes;
pub(crate) mod header;
pub(crate) mod lost;
pub(crate) mod node;
pub(crate) mod op;
pub(crate) mod varint;

#[cfg(test)]
mod page_test;

pub(crate) use bytes::PageBytes;
pub(crate) use header::HEADER_BYTES;
pub use header::PageType;
pub(crate) use node::Node;
pub(crate) use op::PageOp;

use crate::error::Result;
use crate::types::PageNo;

/// Verifies all that later code relies on in a page of its type; of a tree page, every byte.
///
/// # Errors
/// [`Error::CorruptPage`](crate::Error::CorruptPage) for invalid contents, an unknown type, a lost page ([`lost`]).
pub(crate) fn check_contents(page: &[u8], page_no: PageNo) -> Result<()> {
    match header::page_type(page)? {
        PageType::Inner | PageType::Leaf => node::check(page, page_no),
        _ => check_not_lost(page, page_no),
    }
}

/// Refuses a lost page.
///
/// # Errors
/// [`Error::CorruptPage`](crate::Error::CorruptPage) says why it was lost; an unknown type.
pub(crate) fn check_not_lost(page: &[u8], page_no: PageNo) -> Result<()> {
    if header::page_type(page)? == PageType::Lost { Err(lost::error(page, page_no)) } else { Ok(()) }
}
