//! A table's definition by names, as a key-value engine's catalog keeps it.

use highwater_bench::store::TableSpec;
use serde::{Deserialize, Serialize};

/// A table by names only, as the catalog keeps it.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Definition {
    pub(crate) name: String,
    /// Name, type as text, nullable.
    pub(crate) columns: Vec<(String, String, bool)>,
    pub(crate) auto_increment: Option<String>,
    pub(crate) primary_key: Vec<String>,
    pub(crate) indexes: Vec<(String, Vec<String>)>,
}

fn owned(names: &[&str]) -> Vec<String> {
    names.iter().map(ToString::to_string).collect()
}

impl From<&TableSpec> for Definition {
    fn from(spec: &TableSpec) -> Definition {
        Definition {
            name: spec.name.clone(),
            columns: spec.columns.iter().map(|c| (c.name.into(), c.ty.to_string(), c.nullable)).collect(),
            auto_increment: spec.auto_increment.map(Into::into),
            primary_key: owned(spec.primary_key),
            indexes: spec.indexes.iter().map(|index| (index.name.into(), owned(index.columns))).collect(),
        }
    }
}

impl Definition {
    pub(crate) fn add_index(&mut self, name: &str, columns: &[&str]) {
        self.indexes.push((name.into(), owned(columns)));
    }
}
