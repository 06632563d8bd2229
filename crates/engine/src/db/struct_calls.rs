//! Rows of structs of the program, by serde.

use super::upsert::Upserted;
use super::write_txn::{Inserted, WriteTxn};
use crate::error::Result;
use crate::table::serde_rows::StructValues;
use crate::table::{Table, Value, ValueRef};
use serde::Serialize;

impl WriteTxn {
    /// Inserts a row from a struct of the program: see [`Table::values_of`]. With the feature `serde`.
    ///
    /// ```
    /// # use highwater::{Database, DateTime, Schema, Type, values};
    /// #[derive(serde::Serialize, serde::Deserialize, Debug, PartialEq)]
    /// struct User {
    ///     id: Option<u64>,
    ///     name: String,
    ///     seen: Option<DateTime>,
    /// }
    ///
    /// # let db = Database::in_memory()?;
    /// let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(40)).auto_increment("id");
    /// let schema = schema.nullable("seen", Type::DateTime).primary_key(&["id"]);
    /// let users = db.create_table("users", schema)?;
    /// let mut txn = db.begin()?;
    /// let ada = User { id: None, name: "Ada".to_string(), seen: None };
    /// let id = txn.insert_from(&users, &ada)?.auto_increment;
    /// let found: User = txn.get(&users, &values![id])?.unwrap().to()?;
    /// assert_eq!(found, User { id, ..ada });
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::values_of`] and [`insert`](Self::insert).
    pub fn insert_from<T: Serialize + ?Sized>(&mut self, table: &Table, row: &T) -> Result<Inserted> {
        let made = StructValues::of(table, row)?;
        self.insert(table, &refs(&made.values))
    }

    /// As [`insert_from`](Self::insert_from); but if another row has its primary key or its key of a unique index, that
    /// row is updated: each column for which the struct has a field is set, except those of the primary key and the
    /// auto-increment column. The other columns are unchanged. [`upsert`](Self::upsert) says which row is changed if
    /// several have its keys.
    ///
    /// ```
    /// # use highwater::{Database, Schema, Type, Upserted, values};
    /// #[derive(serde::Serialize)]
    /// struct Price {
    ///     article: u64,
    ///     cents: u32,
    /// }
    ///
    /// # let db = Database::in_memory()?;
    /// let schema = Schema::new().column("article", Type::U64).column("cents", Type::U32).primary_key(&["article"]);
    /// let prices = db.create_table("prices", schema.nullable("note", Type::Text(80)))?;
    /// let mut txn = db.begin()?;
    /// txn.insert(&prices, &values![7u64, 100, "as agreed"])?;
    /// assert_eq!(txn.upsert_from(&prices, &Price { article: 7, cents: 90 })?, Upserted::Changed);
    /// let row = txn.get(&prices, &values![7u64])?.unwrap();
    /// assert_eq!((row.u64("cents"), row.str("note")), (90, "as agreed"));
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Table::values_of`] and [`upsert`](Self::upsert).
    pub fn upsert_from<T: Serialize + ?Sized>(&mut self, table: &Table, row: &T) -> Result<Upserted> {
        let StructValues { values, named } = StructValues::of(table, row)?;
        let definition = table.definition();
        let is_set = |at: usize| named[at] && !definition.is_key(at) && definition.auto_increment != Some(at);
        let set: Vec<usize> = (0..values.len()).filter(|at| is_set(*at)).collect();
        self.upsert(table, &refs(&values), |_, changes| set.iter().for_each(|&at| changes.put(at, &values[at])))
    }
}

fn refs(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}
