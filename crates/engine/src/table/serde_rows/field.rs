//! A field of a struct as the value of a column.

use super::{Refusal, text};
use crate::table::{Type, Value};
use serde::ser::{Impossible, Serialize, SerializeSeq, SerializeTuple, SerializeTupleStruct, Serializer};

/// Makes the value that a column of a type takes.
#[derive(Clone, Copy)]
pub(super) struct FieldSerializer {
    pub(super) ty: Type,
}

impl FieldSerializer {
    fn refuse<T>(self, what: &str) -> Result<T, Refusal> {
        Err(Refusal::new(format!("{what} does not go into a column of type {}", self.ty)))
    }

    fn bytes(self, len: Option<usize>) -> Result<Bytes, Refusal> {
        match self.ty {
            Type::Binary(max) => Ok(Bytes(Vec::with_capacity(len.unwrap_or(0).min(max as usize)))),
            Type::Fixed(_) | Type::Uuid => Ok(Bytes(Vec::new())),
            _ => self.refuse("a sequence"),
        }
    }
}

/// Bytes that come one by one.
pub(super) struct Bytes(Vec<u8>);

impl Bytes {
    fn push(&mut self, byte: &(impl Serialize + ?Sized)) -> Result<(), Refusal> {
        match byte.serialize(FieldSerializer { ty: Type::U8 })? {
            Value::UInt(n) => self.0.push(u8::try_from(n).map_err(|_| Refusal::new(format!("{n} is not a byte")))?),
            other => return Err(Refusal::new(format!("{other} is not a byte"))),
        }
        Ok(())
    }
}

macro_rules! bytes_of {
    ($($sequence:ident, $put:ident;)*) => {
        $(
            impl $sequence for Bytes {
                type Ok = Value;
                type Error = Refusal;

                fn $put<T: Serialize + ?Sized>(&mut self, byte: &T) -> Result<(), Refusal> {
                    self.push(byte)
                }

                fn end(self) -> Result<Value, Refusal> {
                    Ok(Value::Bytes(self.0))
                }
            }
        )*
    };
}

bytes_of! {
    SerializeSeq, serialize_element;
    SerializeTuple, serialize_element;
    SerializeTupleStruct, serialize_field;
}

macro_rules! plain {
    ($($method:ident: $from:ty;)*) => {
        $(
            fn $method(self, value: $from) -> Result<Value, Refusal> {
                Ok(value.into())
            }
        )*
    };
}

impl Serializer for FieldSerializer {
    type Ok = Value;
    type Error = Refusal;
    type SerializeSeq = Bytes;
    type SerializeTuple = Bytes;
    type SerializeTupleStruct = Bytes;
    type SerializeTupleVariant = Impossible<Value, Refusal>;
    type SerializeMap = Impossible<Value, Refusal>;
    type SerializeStruct = Impossible<Value, Refusal>;
    type SerializeStructVariant = Impossible<Value, Refusal>;

    plain! {
        serialize_bool: bool;
        serialize_i8: i8;
        serialize_i16: i16;
        serialize_i32: i32;
        serialize_i64: i64;
        serialize_u8: u8;
        serialize_u16: u16;
        serialize_u32: u32;
        serialize_u64: u64;
        serialize_f32: f32;
        serialize_f64: f64;
    }

    fn serialize_i128(self, n: i128) -> Result<Value, Refusal> {
        let refused = || Refusal::new(format!("{n} does not fit type {}", self.ty));
        i64::try_from(n).map(Value::Int).or_else(|_| u64::try_from(n).map(Value::UInt)).map_err(|_| refused())
    }

    fn serialize_u128(self, n: u128) -> Result<Value, Refusal> {
        u64::try_from(n).map(Value::UInt).map_err(|_| Refusal::new(format!("{n} does not fit type {}", self.ty)))
    }

    fn serialize_char(self, c: char) -> Result<Value, Refusal> {
        self.serialize_str(c.encode_utf8(&mut [0; 4]))
    }

    fn serialize_str(self, text: &str) -> Result<Value, Refusal> {
        let value = match self.ty {
            Type::DateTime => text::point_in_time(text).map(Value::DateTime),
            Type::Date => text::day(text).map(Value::Date),
            Type::Time => text::time_of_day(text).map(Value::Time),
            Type::Uuid => text.parse().map(Value::Uuid),
            Type::Decimal(..) => text.parse().map(Value::Decimal),
            _ => Ok(Value::Text(text.to_string())),
        };
        value.map_err(Refusal::new)
    }

    fn serialize_bytes(self, bytes: &[u8]) -> Result<Value, Refusal> {
        Ok(Value::Bytes(bytes.to_vec()))
    }

    fn serialize_none(self) -> Result<Value, Refusal> {
        Ok(Value::Null)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<Value, Refusal> {
        value.serialize(self)
    }

    fn serialize_unit(self) -> Result<Value, Refusal> {
        Ok(Value::Null)
    }

    fn serialize_unit_struct(self, name: &'static str) -> Result<Value, Refusal> {
        self.refuse(name)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, variant: &'static str) -> Result<Value, Refusal> {
        self.serialize_str(variant)
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<Value, Refusal> {
        value.serialize(self)
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: &T,
    ) -> Result<Value, Refusal> {
        self.refuse(&format!("{name}::{variant}"))
    }

    fn serialize_seq(self, len: Option<usize>) -> Result<Bytes, Refusal> {
        self.bytes(len)
    }

    fn serialize_tuple(self, len: usize) -> Result<Bytes, Refusal> {
        self.bytes(Some(len))
    }

    fn serialize_tuple_struct(self, _: &'static str, len: usize) -> Result<Bytes, Refusal> {
        self.bytes(Some(len))
    }

    fn serialize_tuple_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeTupleVariant, Refusal> {
        self.refuse(&format!("{name}::{variant}"))
    }

    fn serialize_map(self, _: Option<usize>) -> Result<Self::SerializeMap, Refusal> {
        self.refuse("a map")
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Self::SerializeStruct, Refusal> {
        self.refuse(name)
    }

    fn serialize_struct_variant(
        self,
        name: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Self::SerializeStructVariant, Refusal> {
        self.refuse(&format!("{name}::{variant}"))
    }
}
