//! Rows as structs.

use super::Refusal;
use crate::table::{FromValue, Row, RowRef, Type, ValueRef};
use serde::de::value::{BorrowedStrDeserializer, SeqDeserializer};
use serde::de::{Deserialize, DeserializeSeed, Deserializer, IntoDeserializer, MapAccess, Visitor};
use serde::forward_to_deserialize_any;
use serde_json::de::StrRead;

impl<'a> RowRef<'a> {
    /// The row as a struct (or a map) of the program: its fields by the names of the columns. With the feature `serde`.
    ///
    /// A field that is an `Option` takes NULL; of a column that there is not, `None` or what `#[serde(default)]` says.
    /// Columns without a field are passed over. `Decimal`, `DateTime`, `Date`, `Time` and `Uuid` are read as the types
    /// of these names, as text, and as types of other crates that serde reads from text (`chrono::DateTime<Utc>`,
    /// `jiff::Timestamp`, `uuid::Uuid`, `rust_decimal::Decimal`); a point in time is written in UTC, with a `Z`. Binary
    /// columns are also read as sequences of bytes, text as variants of an enum, and JSON as what it describes.
    ///
    /// ```
    /// # use highwater::{Database, Schema, Type, values};
    /// #[derive(serde::Deserialize, Debug, PartialEq)]
    /// struct User {
    ///     id: u32,
    ///     name: String,
    ///     born: Option<u16>,
    /// }
    ///
    /// # let db = Database::in_memory()?;
    /// let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(40)).nullable("born", Type::U16);
    /// let users = db.create_table("users", schema.primary_key(&["id"]))?;
    /// db.transact(|txn| txn.insert(&users, &values![7u64, "Ada", null]).map(drop))?;
    /// let row = db.snapshot()?.get(&users, &values![7u64])?.unwrap();
    /// assert_eq!(row.to::<User>()?, User { id: 7, name: "Ada".to_string(), born: None });
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::BadValue`](crate::Error::BadValue) names the column whose value is no value of its field's type, and
    /// the column's type; [`Error::Conversion`](crate::Error::Conversion) what is wrong with the whole (a field without
    /// a column).
    pub fn to<T: Deserialize<'a>>(self) -> crate::Result<T> {
        T::deserialize(RowDeserializer { row: self }).map_err(|refusal| refusal.into_error::<T>(self.layout))
    }
}

impl Row {
    /// The row as a struct of the program, which may borrow from it: see [`RowRef::to`].
    ///
    /// # Errors
    /// As [`RowRef::to`].
    pub fn to<'a, T: Deserialize<'a>>(&'a self) -> crate::Result<T> {
        self.as_ref().to()
    }
}

struct RowDeserializer<'de> {
    row: RowRef<'de>,
}

impl<'de> Deserializer<'de> for RowDeserializer<'de> {
    type Error = Refusal;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_map(Columns { row: self.row, next: 0 })
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_some(self)
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(self, _: &'static str, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_newtype_struct(self)
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit unit_struct seq tuple
        tuple_struct map struct enum identifier ignored_any
    }
}

/// The columns of a row: names and values.
struct Columns<'de> {
    row: RowRef<'de>,
    next: usize,
}

impl<'de> MapAccess<'de> for Columns<'de> {
    type Error = Refusal;

    fn next_key_seed<K: DeserializeSeed<'de>>(&mut self, seed: K) -> Result<Option<K::Value>, Refusal> {
        let Some(name) = self.row.layout.names.get(self.next) else { return Ok(None) };
        seed.deserialize(BorrowedStrDeserializer::new(name)).map(Some)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, Refusal> {
        let column = self.next;
        self.next += 1;
        seed.deserialize(ColumnDeserializer { row: self.row, column }).map_err(|refusal| refusal.of_column(column))
    }

    fn size_hint(&self) -> Option<usize> {
        Some(self.row.columns() - self.next)
    }
}

/// The value of a column, which is decoded only if the program looks at it.
struct ColumnDeserializer<'de> {
    row: RowRef<'de>,
    column: usize,
}

impl<'de> ColumnDeserializer<'de> {
    fn value(&self) -> ValueRef<'de> {
        self.row.get(self.column)
    }

    /// The text of a JSON column, which is read as what it describes.
    fn json(&self) -> Option<&'de str> {
        match (self.row.layout.slots[self.column].ty, self.value()) {
            (Type::Json(_), ValueRef::Text(text)) => Some(text),
            _ => None,
        }
    }

    /// The value as its kind is.
    fn plain<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.value() {
            ValueRef::Null => visitor.visit_unit(),
            ValueRef::Int(n) => visitor.visit_i64(n),
            ValueRef::UInt(n) => visitor.visit_u64(n),
            ValueRef::F64(x) => visitor.visit_f64(x),
            ValueRef::Text(text) => visitor.visit_borrowed_str(text),
            ValueRef::Bytes(bytes) => visitor.visit_borrowed_bytes(bytes),
            ValueRef::Bool(b) => visitor.visit_bool(b),
            ValueRef::DateTime(time) => visitor.visit_string(format!("{time}Z")),
            ValueRef::Decimal(_) | ValueRef::Date(_) | ValueRef::Time(_) | ValueRef::Uuid(_) => {
                visitor.visit_string(self.value().to_string())
            }
        }
    }

    fn option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        if self.value().is_null() { visitor.visit_none() } else { visitor.visit_some(self) }
    }

    fn newtype_struct<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_newtype_struct(self)
    }

    fn f32<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_f32(f32::from_value(self.value())?)
    }

    fn f64<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_f64(f64::from_value(self.value())?)
    }

    fn bytes<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.value() {
            ValueRef::Uuid(uuid) => visitor.visit_bytes(uuid.as_bytes()),
            _ => self.plain(visitor),
        }
    }

    fn sequence<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        match self.value() {
            ValueRef::Bytes(bytes) => {
                let mut rest = SeqDeserializer::new(bytes.iter().copied());
                let read = visitor.visit_seq(&mut rest)?;
                rest.end().map(|()| read)
            }
            _ => self.plain(visitor),
        }
    }

    fn variant<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        let text: &str = <&str>::from_value(self.value())?;
        visitor.visit_enum(text.into_deserializer())
    }
}

/// Reads all of a JSON text.
fn of_json<'de, T>(
    text: &'de str,
    read: impl FnOnce(&mut serde_json::Deserializer<StrRead<'de>>) -> serde_json::Result<T>,
) -> Result<T, Refusal> {
    let mut json = serde_json::Deserializer::from_str(text);
    let read = read(&mut json)?;
    json.end()?;
    Ok(read)
}

/// Methods of a deserializer, each with what reads a value that is not JSON.
macro_rules! methods {
    ($($read:ident: $($method:ident($($name:ident: $argument:ty),*))*;)*) => {
        $($(
            fn $method<V: Visitor<'de>>(self, $($name: $argument,)* visitor: V) -> Result<V::Value, Refusal> {
                match self.json() {
                    Some(text) => of_json(text, |json| json.$method($($name,)* visitor)),
                    None => self.$read(visitor),
                }
            }
        )*)*
    };
}

#[allow(unused_variables, reason = "names of types are not looked at")]
impl<'de> Deserializer<'de> for ColumnDeserializer<'de> {
    type Error = Refusal;

    methods! {
        plain:
            deserialize_any() deserialize_bool() deserialize_i8() deserialize_i16() deserialize_i32() deserialize_i64()
            deserialize_i128() deserialize_u8() deserialize_u16() deserialize_u32() deserialize_u64() deserialize_u128()
            deserialize_char() deserialize_str() deserialize_string() deserialize_unit()
            deserialize_unit_struct(name: &'static str) deserialize_map() deserialize_identifier()
            deserialize_struct(name: &'static str, fields: &'static [&'static str]);
        option: deserialize_option();
        newtype_struct: deserialize_newtype_struct(name: &'static str);
        f32: deserialize_f32();
        f64: deserialize_f64();
        bytes: deserialize_bytes() deserialize_byte_buf();
        sequence:
            deserialize_seq() deserialize_tuple(len: usize) deserialize_tuple_struct(name: &'static str, len: usize);
        variant: deserialize_enum(name: &'static str, variants: &'static [&'static str]);
    }

    /// Of a column that the struct does not have: it is not decoded.
    fn deserialize_ignored_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Refusal> {
        visitor.visit_unit()
    }
}
