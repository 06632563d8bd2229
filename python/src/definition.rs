//! Definitions of tables and indexes, as Python writes them.
//!
//! Rules
//! 1. A column is `name: type`, the type as the engine names it; with ` null` after it the column may be None.
//! 2. A column of a key is its name, with ` desc` after it in descending order, with `(BYTES)` after the name only its
//!    beginning counts. A name that is a column's as it stands means that column.

use crate::failure::{Failure, Result};
use crate::values::to_value;
use highwater::{Schema, Type};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString};
use std::collections::HashMap;

/// A secondary index that is more than a list of columns.
#[pyclass(frozen, module = "highwater")]
pub struct Index {
    columns: Vec<String>,
    unique: bool,
    covering: Vec<String>,
}

#[pymethods]
impl Index {
    /// The columns, in order; whether a second row with the same values is refused; columns that its entries hold in
    /// addition to its own.
    #[new]
    #[pyo3(signature = (columns, *, unique = false, covering = None))]
    fn new(columns: Vec<String>, unique: bool, covering: Option<Vec<String>>) -> Index {
        Index { columns, unique, covering: covering.unwrap_or_default() }
    }

    /// Its columns, in order.
    #[getter]
    fn columns(&self) -> Vec<String> {
        self.columns.clone()
    }

    /// Whether it refuses a second row with the same values.
    #[getter]
    fn unique(&self) -> bool {
        self.unique
    }

    /// Columns that its entries hold in addition to its own.
    #[getter]
    fn covering(&self) -> Vec<String> {
        self.covering.clone()
    }

    fn __repr__(&self) -> String {
        format!("Index({:?}, unique={}, covering={:?})", self.columns, self.unique, self.covering)
    }
}

impl Index {
    /// Columns, uniqueness, covered columns.
    pub fn parts(&self) -> (&[String], bool, &[String]) {
        (&self.columns, self.unique, &self.covering)
    }
}

/// The name, whether it is descending, and how many bytes count.
fn key_column<'t>(text: &'t str, columns: &[String]) -> (&'t str, bool, Option<u16>) {
    if columns.iter().any(|column| column == text) {
        return (text, false, None);
    }
    let (rest, descending) = text.strip_suffix(" desc").map_or((text, false), |rest| (rest, true));
    let prefix = rest.strip_suffix(')').and_then(|rest| rest.rsplit_once('('));
    match prefix.and_then(|(name, bytes)| Some((name, bytes.parse().ok()?))) {
        Some((name, bytes)) if !columns.iter().any(|column| column == rest) => (name, descending, Some(bytes)),
        _ => (rest, descending, None),
    }
}

/// An index of these columns.
pub fn index_of(columns: &[String], of_table: &[String]) -> highwater::Index {
    let parts: Vec<_> = columns.iter().map(|column| key_column(column, of_table)).collect();
    let names: Vec<&str> = parts.iter().map(|part| part.0).collect();
    parts.iter().fold(highwater::Index::new(&names), |index, (name, descending, prefix)| {
        let index = if *descending { index.descending(name) } else { index };
        prefix.map_or(index.clone(), |bytes| index.prefix(name, bytes))
    })
}

/// As [`index_of`], with the other properties of an index.
pub fn secondary_index(columns: &[String], unique: bool, covering: &[String], of_table: &[String]) -> highwater::Index {
    let covered: Vec<&str> = covering.iter().map(String::as_str).collect();
    let index = index_of(columns, of_table).covering(&covered);
    if unique { index.unique() } else { index }
}

/// What describes a table, as keyword arguments of several calls.
pub struct Described<'py> {
    columns: Bound<'py, PyDict>,
    primary_key: Bound<'py, PyAny>,
    indexes: Option<Bound<'py, PyDict>>,
    auto_increment: Option<String>,
    expires: Option<String>,
    collations: Option<HashMap<String, String>>,
    defaults: Option<Bound<'py, PyDict>>,
    long_keys: bool,
    log_changes: bool,
}

/// A name, or a list of them.
fn names(object: &Bound<'_, PyAny>) -> PyResult<Vec<String>> {
    match object.cast::<PyString>() {
        Ok(name) => Ok(vec![name.extract()?]),
        Err(_) => object.extract(),
    }
}

impl<'py> Described<'py> {
    /// The parts of a call.
    #[allow(clippy::too_many_arguments, reason = "each is a keyword argument in Python")]
    pub fn new(
        columns: Bound<'py, PyDict>,
        primary_key: Bound<'py, PyAny>,
        indexes: Option<Bound<'py, PyDict>>,
        auto_increment: Option<String>,
        expires: Option<String>,
        collations: Option<HashMap<String, String>>,
        defaults: Option<Bound<'py, PyDict>>,
        long_keys: bool,
        log_changes: bool,
    ) -> Described<'py> {
        Described {
            columns,
            primary_key,
            indexes,
            auto_increment,
            expires,
            collations,
            defaults,
            long_keys,
            log_changes,
        }
    }

    /// The schema.
    ///
    /// # Errors
    /// An unknown type; a default that its column cannot have.
    pub fn schema(&self) -> Result<Schema> {
        let (mut schema, mut types) = (Schema::new(), HashMap::new());
        let mut all = Vec::new();
        for (name, ty) in self.columns.iter() {
            let (name, text): (String, String) = (name.extract()?, ty.extract()?);
            let (plain, nullable) = text.trim().strip_suffix(" null").map_or((&*text, false), |rest| (rest, true));
            let parsed: std::result::Result<Type, String> = plain.trim().parse();
            let ty = parsed.map_err(|reason| {
                Failure::Engine(highwater::Error::Schema(format!("column {name}: {reason}; ` null` may follow")))
            })?;
            schema = if nullable { schema.nullable(&name, ty) } else { schema.column(&name, ty) };
            types.insert(name.clone(), ty);
            all.push(name);
        }
        schema = schema.primary_key_with(index_of(&names(&self.primary_key)?, &all));
        for (name, index) in self.indexes.iter().flatten() {
            let index = match index.cast::<Index>() {
                Ok(index) => secondary_index(&index.get().columns, index.get().unique, &index.get().covering, &all),
                Err(_) => index_of(&names(&index)?, &all),
            };
            schema = schema.index_with(&name.extract::<String>()?, index);
        }
        for (column, collation) in self.collations.iter().flatten() {
            schema = schema.collation(column, collation);
        }
        for (column, value) in self.defaults.iter().flatten() {
            let column: String = column.extract()?;
            schema = schema.default_value(&column, &to_value(&value, &column, types.get(&column).copied())?);
        }
        Ok(self.finish(schema))
    }

    fn finish(&self, schema: Schema) -> Schema {
        let schema = self.auto_increment.iter().fold(schema, |schema, column| schema.auto_increment(column));
        let schema = self.expires.iter().fold(schema, |schema, column| schema.expires(column));
        let schema = if self.long_keys { schema.long_keys() } else { schema };
        if self.log_changes { schema.log_changes() } else { schema }
    }
}
