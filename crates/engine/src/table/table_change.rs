//! Changes of a table: their effect on its definition.
//!
//! Rules
//! 1. No row is changed: after each change the existing rows can still be read (`row_layouts.rs`), and the keys of
//!    every index stay valid.
//! 2. Changes that are applied together are checked in sequence, each on the result of the previous ones.

use super::definition::{Column, TableDefinition};
use super::definition_record::{ColumnIds, check_resolvable};
use super::row_layout::present_columns;
use super::types::Type;
use super::value::ValueRef;

/// A change of a table; see [`Database::alter_table`](crate::Database::alter_table).
#[derive(Clone, Debug, PartialEq)]
pub enum TableChange {
    /// A column is added after the others. Rows that are there have its default, or NULL if it has none.
    AddColumn(Column),
    /// A column is dropped. Its bytes go as rows are changed.
    DropColumn {
        /// Its name.
        column: String,
    },
    /// A column gets another name.
    RenameColumn {
        /// Its name.
        column: String,
        /// Its new name.
        to: String,
    },
    /// A column gets a type that its own [widens to](Type::widens_to). The trees that have it keep the limit of their
    /// keys: an index takes longer ones when it is dropped and created again, a primary key does not.
    WidenColumn {
        /// Its name.
        column: String,
        /// Its new type.
        to: Type,
    },
    /// A column may be NULL from now on.
    MakeNullable {
        /// Its name.
        column: String,
    },
    /// An index gets another name.
    RenameIndex {
        /// Its name.
        index: String,
        /// Its new name.
        to: String,
    },
    /// Rows expire by another column, or by none; see [`Schema::expires`](crate::Schema::expires).
    SetExpiry {
        /// Its name.
        column: Option<String>,
    },
    /// Other bytes of the application are kept with the definition.
    SetAttachment(Vec<u8>),
    /// Changes of the rows are logged from now on, or no longer; see [`Schema::log_changes`](crate::Schema).
    LogChanges(bool),
}

impl TableChange {
    /// Adds a column that is never NULL; rows that are there have `default`.
    pub fn add_column<'v>(name: &str, ty: Type, default: impl Into<ValueRef<'v>>) -> TableChange {
        let default = Some(default.into().to_value());
        TableChange::AddColumn(Column { name: name.to_string(), ty, nullable: false, default, collation: None })
    }

    /// Adds a column that may be NULL, and is in rows that are there.
    pub fn add_nullable(name: &str, ty: Type) -> TableChange {
        let (name, default, collation) = (name.to_string(), None, None);
        TableChange::AddColumn(Column { name, ty, nullable: true, default, collation })
    }

    /// Drops a column.
    pub fn drop_column(name: &str) -> TableChange {
        TableChange::DropColumn { column: name.to_string() }
    }

    /// Gives a column another name.
    pub fn rename_column(name: &str, to: &str) -> TableChange {
        TableChange::RenameColumn { column: name.to_string(), to: to.to_string() }
    }

    /// Gives a column a wider type.
    pub fn widen_column(name: &str, to: Type) -> TableChange {
        TableChange::WidenColumn { column: name.to_string(), to }
    }

    /// Lets a column be NULL.
    pub fn make_nullable(name: &str) -> TableChange {
        TableChange::MakeNullable { column: name.to_string() }
    }

    /// Lets rows expire by a column.
    pub fn expires(column: &str) -> TableChange {
        TableChange::SetExpiry { column: Some(column.to_string()) }
    }

    /// Lets rows not expire any more. Those that have expired and are not removed yet are rows again.
    pub fn never_expires() -> TableChange {
        TableChange::SetExpiry { column: None }
    }

    /// Gives an index another name.
    pub fn rename_index(name: &str, to: &str) -> TableChange {
        TableChange::RenameIndex { index: name.to_string(), to: to.to_string() }
    }
}

/// A definition that changes.
#[derive(Clone, Debug)]
pub(crate) struct Altered {
    pub(crate) definition: TableDefinition,
    pub(crate) columns: ColumnIds,
}

impl Altered {
    /// The definition of a table after the changes.
    ///
    /// # Errors
    /// Why one of them cannot be.
    pub(crate) fn by(
        definition: &TableDefinition,
        columns: &ColumnIds,
        changes: &[TableChange],
    ) -> Result<Altered, String> {
        let mut altered = Altered { definition: definition.clone(), columns: columns.clone() };
        changes.iter().try_for_each(|change| altered.apply(change).and_then(|()| altered.definition.validate()))?;
        let (after, ids) = (&altered.definition, &altered.columns);
        debug_assert_eq!(after.columns.len(), ids.ids.len(), "a column of {} has no id", after.name);
        let reads = check_resolvable(&present_columns(definition, columns), after, ids);
        debug_assert_eq!(reads, Ok(()), "rule 1: rows of {} cannot be read any more", after.name);
        debug_assert_eq!(after.primary_key.len(), definition.primary_key.len(), "rule 1: other keys");
        Ok(altered)
    }

    fn apply(&mut self, change: &TableChange) -> Result<(), String> {
        match change {
            TableChange::AddColumn(column) => self.add(column),
            TableChange::DropColumn { column } => self.drop_column(column),
            TableChange::RenameColumn { column, to } => {
                let position = self.definition.position(column)?;
                self.definition.columns[position].name.clone_from(to);
                Ok(())
            }
            TableChange::WidenColumn { column, to } => self.widen(column, *to),
            TableChange::MakeNullable { column } => {
                let position = self.definition.position(column)?;
                self.check_in_no_key(position, "be made nullable")?;
                self.definition.columns[position].nullable = true;
                Ok(())
            }
            TableChange::RenameIndex { index, to } => {
                let position = self.definition.index_position(index).ok_or(format!("there is no index {index}"))?;
                self.definition.indexes[position].name.clone_from(to);
                Ok(())
            }
            TableChange::SetExpiry { column } => {
                let position = column.as_ref().map(|column| self.definition.position(column)).transpose()?;
                self.definition.expires = position;
                Ok(())
            }
            TableChange::SetAttachment(bytes) => {
                self.definition.attachment.clone_from(bytes);
                Ok(())
            }
            TableChange::LogChanges(logs) => {
                self.definition.log_changes = *logs;
                Ok(())
            }
        }
    }

    fn add(&mut self, column: &Column) -> Result<(), String> {
        if !column.nullable && column.default.is_none() {
            return Err(format!("column {}: the rows that are there need a default, or NULL", column.name));
        }
        let next = self.columns.next.checked_add(1).ok_or("the table had 65535 columns; none can be added")?;
        self.columns.ids.push(self.columns.next);
        self.columns.next = next;
        self.definition.columns.push(column.clone());
        self.definition.columns.last_mut().into_iter().for_each(Column::take_canonical_default);
        Ok(())
    }

    fn drop_column(&mut self, name: &str) -> Result<(), String> {
        let position = self.definition.position(name)?;
        self.check_in_no_key(position, "be dropped")?;
        if self.definition.auto_increment == Some(position) {
            return Err(format!("column {name} has the auto-increment numbers and cannot be dropped"));
        }
        if self.definition.expires == Some(position) {
            return Err(format!("rows expire by column {name}, which cannot be dropped"));
        }
        let indexes: Vec<_> = self.definition.indexes.iter().map(|index| self.columns.with_ids(index)).collect();
        self.definition.columns.remove(position);
        self.columns.ids.remove(position);
        let behind = |at: usize| at - usize::from(at > position);
        self.definition.primary_key.iter_mut().for_each(|part| part.column = behind(part.column));
        self.definition.auto_increment = self.definition.auto_increment.map(behind);
        self.definition.expires = self.definition.expires.map(behind);
        let positioned = indexes.iter().map(|index| self.columns.with_positions(index)).collect::<Option<_>>();
        self.definition.indexes = positioned.ok_or_else(|| format!("column {name} is in an index"))?;
        Ok(())
    }

    fn widen(&mut self, name: &str, to: Type) -> Result<(), String> {
        let position = self.definition.position(name)?;
        let from = self.definition.columns[position].ty;
        if !from.widens_to(to) {
            return Err(format!("column {name}: {from} does not widen to {to}"));
        }
        if !from.keeps_bytes_of(to) {
            self.check_in_no_key(position, &format!("become {to}"))?;
        }
        let column = &mut self.definition.columns[position];
        column.ty = to;
        column.take_canonical_default();
        Ok(())
    }

    /// A column whose bytes in keys would change is in none.
    fn check_in_no_key(&self, position: usize, what: &str) -> Result<(), String> {
        let name = &self.definition.columns[position].name;
        if self.definition.is_key(position) {
            return Err(format!("column {name} is in the primary key and cannot {what}"));
        }
        let has = |index: &&super::definition::IndexDefinition| index.has(position);
        match self.definition.indexes.iter().find(has) {
            Some(index) => {
                Err(format!("column {name} is in index {} and cannot {what}; drop the index first", index.name))
            }
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::schema::Schema;
    use super::*;

    fn people() -> (TableDefinition, ColumnIds) {
        let schema = Schema::new().column("id", Type::U32).column("name", Type::Text(20)).column("age", Type::U8);
        let schema = schema.nullable("note", Type::Text(9)).primary_key(&["id"]).auto_increment("id");
        let schema = schema.column("price", Type::Decimal(4, 3));
        let definition = schema.index("by_note", &["note", "name"]).check("people").unwrap();
        let columns = ColumnIds::first(definition.columns.len());
        (definition, columns)
    }

    fn altered(changes: &[TableChange]) -> Result<Altered, String> {
        let (definition, columns) = people();
        Altered::by(&definition, &columns, changes)
    }

    #[test]
    fn changes_are_applied_one_after_the_other() {
        let after = altered(&[
            TableChange::drop_column("age"),
            TableChange::add_column("age", Type::U16, 7u8),
            TableChange::rename_column("age", "years"),
            TableChange::widen_column("years", Type::U32),
            TableChange::widen_column("name", Type::Text(100)),
            TableChange::rename_index("by_note", "notes"),
            TableChange::make_nullable("years"),
        ])
        .unwrap();
        let names: Vec<_> = after.definition.columns.iter().map(|column| column.name.as_str()).collect();
        assert_eq!(names, ["id", "name", "note", "price", "years"]);
        assert_eq!((&after.columns.ids[..], after.columns.next), (&[0, 1, 3, 4, 5][..], 6));
        let index = &after.definition.indexes[0];
        assert_eq!((index.name.as_str(), &index.columns[..]), ("notes", &[2.into(), 1.into()][..]));
        let years = &after.definition.columns[4];
        assert_eq!((years.ty, years.nullable), (Type::U32, true));
        assert_eq!(years.default, Some(7u8.into()));
    }

    #[test]
    fn what_cannot_be_says_why() {
        let cases = [
            (TableChange::drop_column("id"), "column id is in the primary key and cannot be dropped"),
            (TableChange::drop_column("note"), "column note is in index by_note and cannot be dropped; drop the index"),
            (TableChange::drop_column("x"), "there is no column x"),
            (TableChange::make_nullable("name"), "is in index by_note and cannot be made nullable"),
            (TableChange::widen_column("id", Type::U64), "is in the primary key and cannot become u64"),
            (TableChange::widen_column("age", Type::I16), "u8 does not widen to i16"),
            (TableChange::widen_column("name", Type::Text(5)), "text(20) does not widen to text(5)"),
            (TableChange::widen_column("price", Type::Decimal(2, 5)), "does not widen to decimal(2,5)"),
            (TableChange::rename_column("age", "name"), "two columns name"),
            (TableChange::rename_index("nope", "x"), "there is no index nope"),
            (TableChange::rename_index("by_note", "PRIMARY"), "cannot be named PRIMARY"),
            (TableChange::add_column("age", Type::U8, 1u8), "two columns age"),
            (TableChange::add_column("b", Type::U8, 300u16), "column b: the default: 300 does not fit"),
            (
                TableChange::AddColumn(Column {
                    name: "b".into(),
                    ty: Type::U8,
                    nullable: false,
                    default: None,
                    collation: None,
                }),
                "need a default",
            ),
        ];
        for (change, expected) in cases {
            let found = altered(std::slice::from_ref(&change)).unwrap_err();
            assert!(found.contains(expected), "{found} / {expected}");
        }
    }
}
