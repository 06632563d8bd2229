//! Rows as bytes: what a stored row has in front of its columns, and by what two of its versions differ.
//!
//! | file | concept |
//! |---|---|
//! | `format.rs` | the header of a stored row, references to chains of overflow pages |
//! | `diff.rs` | by which bytes two versions differ |

pub(crate) mod diff;
pub(crate) mod format;
