//! Rows as bytes: the header of a stored row, and the differences between two of its versions.
//!
//! | file | concept |
//! |---|---|
//! | `format.rs` | the header of a stored row, references to chains of overflow pages |
//! | `diff.rs` | by which bytes two versions differ |

pub(crate) mod diff;
pub(crate) mod format;
