//! Pages as bytes: header, node layout, and the operations that change them (the redo vocabulary). No I/O.

pub mod header;
pub mod op;

pub use header::{HEADER_BYTES, PageType};
pub use op::PageOp;
