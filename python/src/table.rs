//! Tables, and rows as Python has them.
//!
//! Rule: a row that is written is a `dict` by column names, of which those that it lacks are None, or a `tuple` or
//! `list` with a value for each column.

use crate::failure::{Failure, Result};
use crate::values::{to_python, to_value};
use highwater::{Column, Database, TableDefinition, Type, Value, ValueRef};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyString, PyTuple};
use std::collections::HashMap;
use std::sync::Arc;

/// A table of an open database: valid in every transaction until the table is dropped or changed.
#[pyclass(frozen, module = "highwater")]
#[derive(Clone)]
pub struct Table(pub Arc<Opened>);

/// What a table's object holds.
pub struct Opened {
    /// The engine's.
    pub table: highwater::Table,
    positions: HashMap<String, usize>,
}

/// A table, or its name.
#[derive(FromPyObject)]
pub enum TableOrName<'py> {
    /// The object.
    Table(Bound<'py, Table>),
    /// The name.
    Name(String),
}

impl TableOrName<'_> {
    /// The table that is meant.
    ///
    /// # Errors
    /// There is no such table.
    pub fn open(&self, db: impl FnOnce() -> Result<Database>) -> Result<Arc<Opened>> {
        match self {
            TableOrName::Table(table) => Ok(Arc::clone(&table.get().0)),
            TableOrName::Name(name) => Ok(Opened::new(db()?.table(name)?)),
        }
    }

    /// Its name.
    pub fn name(&self) -> String {
        match self {
            TableOrName::Table(table) => table.get().0.table.name().to_string(),
            TableOrName::Name(name) => name.clone(),
        }
    }
}

/// Names and types of the columns of a key: of an index, or of the rows.
///
/// # Errors
/// There is no such index.
pub fn key_columns<'c>(
    definition: &TableDefinition,
    columns: &'c [Column],
    index: Option<&str>,
) -> Result<Vec<(&'c str, Type)>> {
    let parts = match index {
        None | Some("PRIMARY") => &definition.primary_key,
        Some(name) => {
            let table = definition.name.clone();
            let missing = || highwater::Error::NoSuchIndex { table, index: name.to_string() };
            &definition.indexes[definition.index_position(name).ok_or_else(missing)?].columns
        }
    };
    let column = |at: usize| columns.get(at).map(|column| (column.name.as_str(), column.ty));
    Ok(parts.iter().filter_map(|part| column(part.column)).collect())
}

impl Opened {
    /// Of the engine's.
    pub fn new(table: highwater::Table) -> Arc<Opened> {
        let positions = table.columns().iter().enumerate().map(|(at, column)| (column.name.clone(), at)).collect();
        Arc::new(Opened { table, positions })
    }

    /// Position of a column.
    ///
    /// # Errors
    /// There is no such column.
    pub fn position(&self, name: &str) -> Result<usize> {
        match self.positions.get(name) {
            Some(at) => Ok(*at),
            None => Ok(self.table.column(name)?),
        }
    }

    /// Names and types of the columns of a key: of an index, or of the rows.
    ///
    /// # Errors
    /// There is no such index.
    pub fn key_columns(&self, index: Option<&str>) -> Result<Vec<(&str, Type)>> {
        key_columns(&self.table.definition(), self.table.columns(), index)
    }

    /// The values of a row.
    ///
    /// # Errors
    /// It is no row; a column that there is not.
    pub fn row(&self, row: &Bound<'_, PyAny>) -> Result<Vec<Value>> {
        let columns = self.table.columns();
        if let Ok(dict) = row.cast::<PyDict>() {
            let mut values = vec![Value::Null; columns.len()];
            for (name, value) in dict.iter() {
                let at = self.position(name.cast::<PyString>().map_err(PyErr::from)?.to_cow()?.as_ref())?;
                values[at] = to_value(&value, &columns[at].name, Some(columns[at].ty))?;
            }
            return Ok(values);
        }
        let items: Vec<Bound<'_, PyAny>> = match (row.cast::<PyTuple>(), row.cast::<PyList>()) {
            (Ok(tuple), _) => tuple.iter().collect(),
            (_, Ok(list)) => list.iter().collect(),
            _ => {
                let kind = row.get_type();
                return Err(Failure::Value(format!("a row is a dict, a tuple or a list, not a {}", kind.name()?)));
            }
        };
        if items.len() != columns.len() {
            let (name, found) = (self.table.name(), items.len());
            return Err(Failure::Value(format!("a row of table {name} has {} values, not {found}", columns.len())));
        }
        let value = |(item, column): (&Bound<'_, PyAny>, &Column)| to_value(item, &column.name, Some(column.ty));
        items.iter().zip(columns).map(value).collect()
    }

    /// Columns that a dict names, with their new values.
    ///
    /// # Errors
    /// As [`row`](Self::row).
    pub fn changes(&self, changes: &Bound<'_, PyDict>) -> Result<Vec<(usize, Value)>> {
        let columns = self.table.columns();
        let change = |(name, value): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let at = self.position(name.cast::<PyString>().map_err(PyErr::from)?.to_cow()?.as_ref())?;
            Ok((at, to_value(&value, &columns[at].name, Some(columns[at].ty))?))
        };
        changes.iter().map(change).collect()
    }
}

/// How rows that were read become Python's.
pub struct RowForm {
    /// The columns, for dicts; none for tuples.
    names: Option<Vec<Py<PyString>>>,
}

impl RowForm {
    /// Dicts by these columns, or tuples.
    pub fn new<'n>(py: Python<'_>, names: impl Iterator<Item = &'n str>, as_tuples: bool) -> RowForm {
        let interned = |name: &str| PyString::intern(py, name).unbind();
        RowForm { names: (!as_tuples).then(|| names.map(interned).collect()) }
    }

    /// A row.
    ///
    /// # Errors
    /// A value that Python cannot hold.
    pub fn row<'py, 'v>(
        &self,
        py: Python<'py>,
        values: impl Iterator<Item = ValueRef<'v>>,
    ) -> Result<Bound<'py, PyAny>> {
        let Some(names) = &self.names else {
            let values = values.map(|value| to_python(py, value)).collect::<Result<Vec<_>>>()?;
            return Ok(PyTuple::new(py, values)?.into_any());
        };
        let dict = PyDict::new(py);
        for (name, value) in names.iter().zip(values) {
            dict.set_item(name.bind(py), to_python(py, value)?)?;
        }
        Ok(dict.into_any())
    }
}

#[pymethods]
impl Table {
    /// The table's name.
    #[getter]
    fn name(&self) -> &str {
        self.0.table.name()
    }

    /// Its columns with their types, as `Database.create_table` takes them.
    #[getter]
    fn columns<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let columns = PyDict::new(py);
        for column in self.0.table.columns() {
            let null = if column.nullable { " null" } else { "" };
            columns.set_item(&column.name, format!("{}{null}", column.ty))?;
        }
        Ok(columns)
    }

    /// The columns of its primary key.
    #[getter]
    fn primary_key(&self) -> Vec<String> {
        let definition = self.0.table.definition();
        definition.primary_key.iter().map(|part| definition.columns_in_words(std::slice::from_ref(part))).collect()
    }

    /// The columns of each index, by its name.
    #[getter]
    fn indexes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let (definition, indexes) = (self.0.table.definition(), PyDict::new(py));
        for index in &definition.indexes {
            let word = |part| definition.columns_in_words(std::slice::from_ref(part));
            indexes.set_item(&index.name, index.columns.iter().map(word).collect::<Vec<_>>())?;
        }
        Ok(indexes)
    }

    fn __repr__(&self) -> String {
        format!("<highwater.Table {}>", self.0.table.name())
    }
}
