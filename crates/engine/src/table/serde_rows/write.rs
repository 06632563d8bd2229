//! Structs as the values of a row.

use super::Refusal;
use super::field::FieldSerializer;
use crate::Error;
use crate::table::definition::MAX_NAME_BYTES;
use crate::table::{Column, Table, Type, Value};
use serde::ser::{Impossible, Serialize, SerializeMap, SerializeStruct, Serializer};
use std::fmt;

impl Table {
    /// The values of a row from a struct (or a map with text as keys): its fields by the names of the columns, for
    /// [`insert`](crate::WriteTxn::insert) and the other calls that take a value for each column. With the feature
    /// `serde`; [`insert_from`](crate::WriteTxn::insert_from) does both.
    ///
    /// `None` is NULL. A column without a field gets its default
    /// ([`Schema::default_value`](crate::Schema::default_value)), or NULL: a number if it is the auto-increment column.
    /// A `Decimal`, `DateTime`, `Date`, `Time` or `Uuid` column takes the type of that name, and what serde writes as
    /// its text; a point in time may have an offset, and what is finer than a microsecond is cut off. A binary column
    /// takes sequences of bytes, text variants of an enum without fields, and a JSON column the JSON that describes the
    /// field.
    ///
    /// ```
    /// # use highwater::{Database, Schema, Type, Value};
    /// #[derive(serde::Serialize)]
    /// struct User<'a> {
    ///     name: &'a str,
    ///     born: Option<u16>,
    /// }
    ///
    /// # let db = Database::in_memory()?;
    /// let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(40)).nullable("born", Type::U16);
    /// let users = db.create_table("users", schema.auto_increment("id").primary_key(&["id"]))?;
    /// let values = users.values_of(&User { name: "Ada", born: Some(1815) })?;
    /// assert_eq!(values, [Value::Null, Value::Text("Ada".to_string()), Value::UInt(1815)]);
    /// # Ok::<(), highwater::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::NoSuchColumn`]: a field of which there is no column. [`Error::BadValue`]: a field that its column
    /// cannot take, with the column's name and type; a column without field, default and NULL. [`Error::Conversion`]:
    /// this is no struct.
    pub fn values_of<T: Serialize + ?Sized>(&self, row: &T) -> crate::Result<Vec<Value>> {
        StructValues::of(self, row).map(|made| made.values)
    }
}

pub(crate) struct StructValues {
    /// For each column.
    pub(crate) values: Vec<Value>,
    /// Columns of which the struct has a field.
    pub(crate) named: Vec<bool>,
}

impl StructValues {
    /// See [`Table::values_of`].
    pub(crate) fn of<T: Serialize + ?Sized>(table: &Table, row: &T) -> crate::Result<StructValues> {
        let columns = table.columns();
        let fields = row.serialize(RowSerializer { columns }).map_err(|refusal| refused(table, refusal))?;
        let named: Vec<bool> = fields.iter().map(Option::is_some).collect();
        let counted = table.definition().auto_increment;
        let fill = |(at, field): (usize, Option<Value>)| match (field, &columns[at].default) {
            (Some(value), _) => Ok(value),
            (None, Some(default)) => Ok(default.clone()),
            (None, None) if columns[at].nullable || counted == Some(at) => Ok(Value::Null),
            (None, None) => Err(bad_value(&columns[at], "there is no field of this name, and no default")),
        };
        let values = fields.into_iter().enumerate().map(fill).collect::<crate::Result<Vec<Value>>>()?;
        Ok(StructValues { values, named })
    }
}

fn bad_value(column: &Column, reason: impl fmt::Display) -> Error {
    Error::BadValue { column: column.name.clone(), reason: format!("{reason} (its type is {})", column.ty) }
}

#[cold]
fn refused(table: &Table, refusal: Refusal) -> Error {
    match (refusal.column, refusal.unknown) {
        (Some(column), _) => bad_value(&table.columns()[column], refusal.reason),
        (None, Some(column)) => Error::NoSuchColumn { table: table.name().to_string(), column },
        (None, None) => Error::Conversion(refusal.reason),
    }
}

#[derive(Clone, Copy)]
struct RowSerializer<'t> {
    columns: &'t [Column],
}

impl<'t> RowSerializer<'t> {
    fn begin(self) -> Fields<'t> {
        Fields { columns: self.columns, values: vec![None; self.columns.len()], next: 0, key: None }
    }
}

/// Fields that are put in the places of their columns.
struct Fields<'t> {
    columns: &'t [Column],
    values: Vec<Option<Value>>,
    /// Position of the next field's column, if fields are in the order of columns.
    next: usize,
    /// Of a map.
    key: Option<usize>,
}

impl Fields<'_> {
    fn column(&self, name: &str) -> Result<usize, Refusal> {
        if self.columns.get(self.next).is_some_and(|column| column.name == name) {
            return Ok(self.next);
        }
        self.columns.iter().position(|column| column.name == name).ok_or_else(|| Refusal::unknown(name))
    }

    fn put<T: Serialize + ?Sized>(&mut self, column: usize, value: &T) -> Result<(), Refusal> {
        let Column { ty, nullable, .. } = self.columns[column];
        let made = match ty {
            Type::Json(_) => json_of(value, nullable),
            ty => value.serialize(FieldSerializer { ty }),
        };
        let made = made.map_err(|refusal| refusal.of_column(column))?;
        if self.values[column].replace(made).is_some() {
            return Err(Refusal::new("there are two fields of this name").of_column(column));
        }
        self.next = column + 1;
        Ok(())
    }
}

/// The JSON that describes a field. That of nothing is NULL, where the column takes it.
fn json_of<T: Serialize + ?Sized>(value: &T, nullable: bool) -> Result<Value, Refusal> {
    let text = serde_json::to_string(value)?;
    Ok(if nullable && text == "null" { Value::Null } else { Value::Text(text) })
}

impl SerializeStruct for Fields<'_> {
    type Ok = Vec<Option<Value>>;
    type Error = Refusal;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, name: &'static str, value: &T) -> Result<(), Refusal> {
        let column = self.column(name)?;
        self.put(column, value)
    }

    fn end(self) -> Result<Vec<Option<Value>>, Refusal> {
        Ok(self.values)
    }
}

impl SerializeMap for Fields<'_> {
    type Ok = Vec<Option<Value>>;
    type Error = Refusal;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), Refusal> {
        let name = match key.serialize(FieldSerializer { ty: NAME })? {
            Value::Text(name) => name,
            other => return Err(Refusal::new(format!("the key {other} of a map is no name of a column"))),
        };
        self.key = Some(self.column(&name)?);
        Ok(())
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), Refusal> {
        let column = self.key.take().ok_or_else(|| Refusal::new("a value of a map came before its key"))?;
        self.put(column, value)
    }

    fn end(self) -> Result<Vec<Option<Value>>, Refusal> {
        Ok(self.values)
    }
}

/// The type as which the key of a map is written.
const NAME: Type = Type::Text(MAX_NAME_BYTES as u32);

fn no_struct<T>(what: &str) -> Result<T, Refusal> {
    Err(Refusal::new(format!("a row is made of a struct or a map, not of {what}")))
}

macro_rules! no_structs {
    ($($method:ident($($argument:ty),*), $what:literal;)*) => {
        $(
            fn $method(self, $(_: $argument),*) -> Result<Self::Ok, Refusal> {
                no_struct($what)
            }
        )*
    };
}

type Sequence = Impossible<Vec<Option<Value>>, Refusal>;

impl<'t> Serializer for RowSerializer<'t> {
    type Ok = Vec<Option<Value>>;
    type Error = Refusal;
    type SerializeSeq = Sequence;
    type SerializeTuple = Sequence;
    type SerializeTupleStruct = Sequence;
    type SerializeTupleVariant = Sequence;
    type SerializeMap = Fields<'t>;
    type SerializeStruct = Fields<'t>;
    type SerializeStructVariant = Sequence;

    no_structs! {
        serialize_bool(bool), "true or false";
        serialize_i8(i8), "an integer";
        serialize_i16(i16), "an integer";
        serialize_i32(i32), "an integer";
        serialize_i64(i64), "an integer";
        serialize_u8(u8), "an integer";
        serialize_u16(u16), "an integer";
        serialize_u32(u32), "an integer";
        serialize_u64(u64), "an integer";
        serialize_f32(f32), "a floating point number";
        serialize_f64(f64), "a floating point number";
        serialize_char(char), "a character";
        serialize_str(&str), "text";
        serialize_bytes(&[u8]), "bytes";
        serialize_none(), "nothing";
        serialize_unit(), "nothing";
        serialize_unit_struct(&'static str), "a struct without fields";
        serialize_unit_variant(&'static str, u32, &'static str), "an enum";
    }

    fn serialize_some<T: Serialize + ?Sized>(self, row: &T) -> Result<Self::Ok, Refusal> {
        row.serialize(self)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, row: &T) -> Result<Self::Ok, Refusal> {
        row.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        _: &'static str,
        _: &T,
    ) -> Result<Self::Ok, Refusal> {
        no_struct("an enum")
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Sequence, Refusal> {
        no_struct("a sequence")
    }

    fn serialize_tuple(self, _: usize) -> Result<Sequence, Refusal> {
        no_struct("a tuple")
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Sequence, Refusal> {
        no_struct("a tuple")
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Sequence, Refusal> {
        no_struct("an enum")
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Fields<'t>, Refusal> {
        Ok(self.begin())
    }

    fn serialize_struct(self, _: &'static str, _: usize) -> Result<Fields<'t>, Refusal> {
        Ok(self.begin())
    }

    fn serialize_struct_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Sequence, Refusal> {
        no_struct("an enum")
    }
}
