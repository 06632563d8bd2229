//! The JSON of a dump in addition to the [definitions](crate::table::definition_form): its origin and the numbers of
//! rows. An unknown member is an error.

use serde::{Deserialize, Serialize};

/// The first block.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Head {
    /// The program that wrote it.
    pub(super) program: String,
    /// Bytes of the pages that the tables were on: keys fit pages of this size.
    pub(super) page_bytes: u32,
    /// Number of tables.
    pub(super) tables: u32,
}

/// The last block.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct End {
    /// Rows of each table, in the order of the definitions.
    pub(super) rows: Vec<u64>,
}
