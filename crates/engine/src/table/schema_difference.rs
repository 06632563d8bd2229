//! The differences between a table and a schema.

use super::definition::{Column, IndexColumn, IndexDefinition, TableDefinition};

impl TableDefinition {
    /// The differences of this definition from `wanted`, with both forms; more indexes, other defaults and another
    /// attachment are no difference.
    pub(crate) fn lacks(&self, wanted: &TableDefinition) -> Option<String> {
        let columns = self.columns.iter().map(Some).chain(std::iter::repeat(None));
        let wanted_columns = wanted.columns.iter().map(Some).chain(std::iter::repeat(None));
        let count = self.columns.len().max(wanted.columns.len());
        let form = |column: Option<&Column>| column.map_or("no column".to_string(), Column::form);
        let differs = |(is, other): &(Option<&Column>, Option<&Column>)| form(*is) != form(*other);
        if let Some((is, other)) = columns.zip(wanted_columns).take(count).find(differs) {
            return Some(format!("{}, and {} was asked for", form(is), form(other)));
        }
        let keys = [self, wanted].map(|table| table.columns_in_words(&table.primary_key));
        if keys[0] != keys[1] {
            return Some(format!("the primary key ({}), and ({}) was asked for", keys[0], keys[1]));
        }
        let counted = [self, wanted].map(|table| table.auto_increment);
        for (role, columns) in [("auto-increment", counted), ("expiry", [self, wanted].map(|table| table.expires))] {
            if columns[0] != columns[1] {
                let name = |at: Option<usize>| at.map_or("none".into(), |at| self.columns_in_words(&[at.into()]));
                let [is, other] = columns.map(name);
                return Some(format!("the {role} column {is}, and {other} was asked for"));
            }
        }
        if self.long_keys != wanted.long_keys {
            return Some("another limit of its keys".into());
        }
        if self.log_changes != wanted.log_changes {
            let is = if self.log_changes { "a log of its changes" } else { "no log of its changes" };
            return Some(is.into());
        }
        let is_missing = |index: &&IndexDefinition| !self.indexes.contains(index);
        let missing = wanted.indexes.iter().find(is_missing)?;
        let form = |table: &TableDefinition, index: &IndexDefinition| {
            let unique = if index.unique { "unique " } else { "" };
            let covered: Vec<IndexColumn> = index.covered.iter().map(|column| (*column).into()).collect();
            let covers = if covered.is_empty() {
                String::new()
            } else {
                format!(", covering ({})", table.columns_in_words(&covered))
            };
            format!("the {unique}index {} ({}){covers}", index.name, table.columns_in_words(&index.columns))
        };
        let is = self.index_position(&missing.name).map(|at| form(self, &self.indexes[at]));
        let is = is.unwrap_or_else(|| format!("no index {}", missing.name));
        Some(format!("{is}, and {} was asked for", form(wanted, missing)))
    }
}
