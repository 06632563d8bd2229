//! The measured rows: CSV files with a heading for each column.
//!
//! Rules
//! 1. The `rows.csv` of the laboratory has this form, so the file of a newer run replaces the older one.
//! 2. A filter names a column of the file and a value that the column has somewhere: a mistyped one is an error. A
//!    combination that was not measured is not an error.

use std::collections::{BTreeMap, HashMap};
use std::path::{Path, PathBuf};

/// The files of one folder, each read once.
pub(super) struct Source {
    folder: PathBuf,
    files: HashMap<String, DataFile>,
}

pub(super) struct DataFile {
    name: String,
    columns: Vec<String>,
    rows: Vec<Vec<String>>,
}

/// One row of a file: its fields by column.
pub(super) struct Row(HashMap<String, String>);

impl Source {
    /// The files below `folder`.
    pub(super) fn new(folder: &Path) -> Source {
        Source { folder: folder.to_path_buf(), files: HashMap::new() }
    }

    /// The file with this path below the folder.
    pub(super) fn file(&mut self, name: &str) -> Result<&DataFile, String> {
        if !self.files.contains_key(name) {
            let file = DataFile::read(&self.folder, name).map_err(|error| format!("{name}: {error}"))?;
            self.files.insert(name.to_string(), file);
        }
        Ok(&self.files[name])
    }
}

impl DataFile {
    fn read(folder: &Path, name: &str) -> csv::Result<DataFile> {
        let mut reader = csv::Reader::from_path(folder.join(name))?;
        let texts = |record: &csv::StringRecord| record.iter().map(str::to_string).collect::<Vec<_>>();
        let columns = texts(reader.headers()?);
        let rows = reader.records().map(|record| record.map(|record| texts(&record)));
        Ok(DataFile { name: name.to_string(), columns, rows: rows.collect::<csv::Result<_>>()? })
    }

    fn column(&self, name: &str) -> Result<usize, String> {
        let found = self.columns.iter().position(|column| column == name);
        found.ok_or_else(|| format!("{} has no column {name}", self.name))
    }

    /// The rows that have the values of `filters`.
    fn select(&self, filters: &BTreeMap<String, String>) -> Result<Vec<&Vec<String>>, String> {
        let mut selected: Vec<&Vec<String>> = self.rows.iter().collect();
        for (name, value) in filters {
            let column = self.column(name)?;
            if !self.rows.iter().any(|row| row[column] == *value) {
                return Err(format!("{}: no row has {name} {value:?}", self.name));
            }
            selected.retain(|row| row[column] == *value);
        }
        Ok(selected)
    }

    /// The row that `filters` select, if one was measured.
    pub(super) fn find(&self, filters: &BTreeMap<String, String>) -> Result<Option<Row>, String> {
        match self.select(filters)?[..] {
            [] => Ok(None),
            [fields] => Ok(Some(Row(self.columns.iter().cloned().zip(fields.iter().cloned()).collect()))),
            [..] => Err(format!("{}: more than one row has {filters:?}", self.name)),
        }
    }

    /// The different values of `columns` in the rows that `filters` select, in the file's order.
    pub(super) fn combinations(
        &self,
        columns: &[String],
        filters: &BTreeMap<String, String>,
    ) -> Result<Vec<Vec<String>>, String> {
        let at: Vec<usize> = columns.iter().map(|name| self.column(name)).collect::<Result<_, _>>()?;
        let mut found: Vec<Vec<String>> = Vec::new();
        for row in self.select(filters)? {
            let values: Vec<String> = at.iter().map(|column| row[*column].clone()).collect();
            if !found.contains(&values) {
                found.push(values);
            }
        }
        Ok(found)
    }
}

impl Row {
    /// The text of a column.
    pub(super) fn get(&self, name: &str) -> Result<&str, String> {
        self.0.get(name).map(String::as_str).ok_or_else(|| format!("the data has no column {name}"))
    }
}

#[cfg(test)]
impl<const N: usize> From<[(&str, &str); N]> for Row {
    fn from(fields: [(&str, &str); N]) -> Row {
        Row(fields.map(|(name, field)| (name.to_string(), field.to_string())).into())
    }
}
