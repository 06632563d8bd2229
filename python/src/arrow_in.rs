//! Rows out of Arrow's record batches.
//!
//! Rules
//! 1. Columns go by their names. One that the table does not have is an error, one that it lacks is NULL.
//! 2. A value is taken if the column can hold it exactly. A timestamp without a time zone is refused, as Python's
//!    `datetime` is.

use crate::failure::{Failure, Result};
use crate::table::Opened;
use arrow_array::cast::AsArray;
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::types::*;
use arrow_array::{Array, RecordBatch};
use arrow_schema::{DataType, TimeUnit};
use highwater::{Date, DateTime, Decimal, Time, Type, Uuid, ValueRef, WriteTxn};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;

/// The stream of an object.
///
/// # Errors
/// It has no `__arrow_c_stream__`, or that gives something else.
pub fn stream(data: &Bound<'_, PyAny>) -> Result<RecordBatchStreamReader> {
    let Ok(method) = data.getattr("__arrow_c_stream__") else {
        let kind = data.get_type();
        return Err(Failure::Usage(format!(
            "a {} has no __arrow_c_stream__: give a table of pyarrow or polars, or a DataFrame of pandas 2.2",
            kind.name()?
        )));
    };
    let capsule = method.call0()?;
    let capsule = capsule.cast::<PyCapsule>().map_err(PyErr::from)?;
    let pointer = capsule.pointer_checked(Some(c"arrow_array_stream"))?.cast::<FFI_ArrowArrayStream>();
    // SAFETY: a capsule of this name points to a stream, which the consumer moves out of it.
    let reader = unsafe { RecordBatchStreamReader::from_raw(pointer.as_ptr()) };
    reader.map_err(|error| Failure::Value(error.to_string()))
}

/// Inserts the rows of a stream, all or none; how many there were.
///
/// # Errors
/// What the stream says; a column that the table does not have; those of an insertion.
pub fn insert(txn: &mut WriteTxn, table: &Opened, stream: RecordBatchStreamReader) -> Result<u64> {
    txn.insert_many_with(&table.table, |into| {
        for batch in stream {
            let batch = batch.map_err(|error| Failure::Value(error.to_string()))?;
            let columns = columns_of(&batch, table)?;
            let mut row = vec![ValueRef::Null; table.table.columns().len()];
            for at in 0..batch.num_rows() {
                for (column, source) in &columns {
                    row[*column] = source.value(at).map_err(|reason| {
                        let name = &table.table.columns()[*column].name;
                        Failure::Value(format!("column {name}, row {at} of its batch: {reason}"))
                    })?;
                }
                into.push(&row)?;
            }
        }
        Ok::<(), Failure>(())
    })
}

fn columns_of<'b>(batch: &'b RecordBatch, table: &Opened) -> Result<Vec<(usize, Source<'b>)>> {
    let schema = batch.schema_ref();
    let of = |(field, array): (&std::sync::Arc<arrow_schema::Field>, &'b arrow_array::ArrayRef)| {
        let at = table.position(field.name())?;
        Ok((at, Source { array: &**array, ty: table.table.columns()[at].ty }))
    };
    schema.fields().iter().zip(batch.columns()).map(of).collect()
}

/// A column of a batch, for a column of the table.
struct Source<'b> {
    array: &'b dyn Array,
    ty: Type,
}

/// Microseconds of a count of units.
fn us(count: i64, unit: &TimeUnit) -> std::result::Result<i64, String> {
    let exact = match unit {
        TimeUnit::Second => count.checked_mul(1_000_000),
        TimeUnit::Millisecond => count.checked_mul(1_000),
        TimeUnit::Microsecond => Some(count),
        TimeUnit::Nanosecond => (count % 1_000 == 0).then_some(count / 1_000),
    };
    exact.ok_or_else(|| format!("{count} in units of a {unit:?} is no number of microseconds"))
}

impl<'b> Source<'b> {
    fn value(&self, at: usize) -> std::result::Result<ValueRef<'b>, String> {
        if self.array.is_null(at) {
            return Ok(ValueRef::Null);
        }
        let array = self.array;
        Ok(match array.data_type() {
            DataType::Null => ValueRef::Null,
            DataType::Int8 => self.integer(array.as_primitive::<Int8Type>().value(at).into()),
            DataType::Int16 => self.integer(array.as_primitive::<Int16Type>().value(at).into()),
            DataType::Int32 => self.integer(array.as_primitive::<Int32Type>().value(at).into()),
            DataType::Int64 => self.integer(array.as_primitive::<Int64Type>().value(at).into()),
            DataType::UInt8 => self.integer(array.as_primitive::<UInt8Type>().value(at).into()),
            DataType::UInt16 => self.integer(array.as_primitive::<UInt16Type>().value(at).into()),
            DataType::UInt32 => self.integer(array.as_primitive::<UInt32Type>().value(at).into()),
            DataType::UInt64 => self.integer(array.as_primitive::<UInt64Type>().value(at).into()),
            DataType::Float32 => ValueRef::F64(array.as_primitive::<Float32Type>().value(at).into()),
            DataType::Float64 => ValueRef::F64(array.as_primitive::<Float64Type>().value(at)),
            DataType::Decimal128(_, scale) => {
                let scale = u8::try_from(*scale).map_err(|_| format!("a decimal with the scale {scale}"))?;
                ValueRef::Decimal(Decimal::new(array.as_primitive::<Decimal128Type>().value(at), scale))
            }
            DataType::Boolean => ValueRef::Bool(array.as_boolean().value(at)),
            DataType::Date32 => ValueRef::Date(Date::from_unix_days(array.as_primitive::<Date32Type>().value(at))),
            DataType::Dictionary(..) => return self.of_dictionary(at),
            DataType::Timestamp(..) | DataType::Time32(_) | DataType::Time64(_) => return self.time(at),
            _ => return self.bytes(at),
        })
    }

    /// A number, which a column of floats or decimals takes too.
    fn integer(&self, number: i128) -> ValueRef<'b> {
        match self.ty {
            // Exact up to 2^53; beyond, the engine is given the integer and refuses it.
            Type::F32 | Type::F64 if number.unsigned_abs() <= 1 << 53 => ValueRef::F64(number as f64),
            Type::Decimal(..) => ValueRef::Decimal(Decimal::new(number, 0)),
            _ => match i64::try_from(number) {
                Ok(number) => ValueRef::Int(number),
                Err(_) => ValueRef::UInt(number as u64),
            },
        }
    }

    fn time(&self, at: usize) -> std::result::Result<ValueRef<'b>, String> {
        let array = self.array;
        let of_day = |us: i64| {
            let time = u64::try_from(us).ok().and_then(Time::from_us);
            time.map(ValueRef::Time).ok_or_else(|| format!("{us} microseconds are no time of day"))
        };
        match array.data_type() {
            DataType::Timestamp(_, None) => {
                Err("a timestamp without a time zone; give it one, such as UTC".to_string())
            }
            DataType::Timestamp(unit, Some(_)) => {
                let count = match unit {
                    TimeUnit::Second => array.as_primitive::<TimestampSecondType>().value(at),
                    TimeUnit::Millisecond => array.as_primitive::<TimestampMillisecondType>().value(at),
                    TimeUnit::Microsecond => array.as_primitive::<TimestampMicrosecondType>().value(at),
                    TimeUnit::Nanosecond => array.as_primitive::<TimestampNanosecondType>().value(at),
                };
                us(count, unit).map(|us| ValueRef::DateTime(DateTime::from_unix_us(us)))
            }
            DataType::Time32(unit @ TimeUnit::Second) => {
                us(array.as_primitive::<Time32SecondType>().value(at).into(), unit).and_then(of_day)
            }
            DataType::Time32(unit) => {
                us(array.as_primitive::<Time32MillisecondType>().value(at).into(), unit).and_then(of_day)
            }
            DataType::Time64(unit @ TimeUnit::Nanosecond) => {
                us(array.as_primitive::<Time64NanosecondType>().value(at), unit).and_then(of_day)
            }
            _ => of_day(array.as_primitive::<Time64MicrosecondType>().value(at)),
        }
    }

    fn bytes(&self, at: usize) -> std::result::Result<ValueRef<'b>, String> {
        let array = self.array;
        let bytes = match array.data_type() {
            DataType::Utf8 => return Ok(ValueRef::Text(array.as_string::<i32>().value(at))),
            DataType::LargeUtf8 => return Ok(ValueRef::Text(array.as_string::<i64>().value(at))),
            DataType::Utf8View => return Ok(ValueRef::Text(array.as_string_view().value(at))),
            DataType::Binary => array.as_binary::<i32>().value(at),
            DataType::LargeBinary => array.as_binary::<i64>().value(at),
            DataType::BinaryView => array.as_binary_view().value(at),
            DataType::FixedSizeBinary(_) => array.as_fixed_size_binary().value(at),
            other => return Err(format!("Arrow's type {other} is no type of a column")),
        };
        match (self.ty, bytes.try_into()) {
            (Type::Uuid, Ok(uuid)) => Ok(ValueRef::Uuid(Uuid::from_bytes(uuid))),
            _ => Ok(ValueRef::Bytes(bytes)),
        }
    }

    /// Of a column of numbers that stand for values, such as a categorical one of pandas.
    fn of_dictionary(&self, at: usize) -> std::result::Result<ValueRef<'b>, String> {
        let dictionary = self.array.as_any_dictionary();
        let keys = Source { array: dictionary.keys(), ty: Type::U64 };
        let key = match keys.value(at)? {
            ValueRef::Int(key) => usize::try_from(key).ok(),
            ValueRef::UInt(key) => usize::try_from(key).ok(),
            _ => None,
        };
        let values = dictionary.values();
        let key = key.filter(|key| *key < values.len()).ok_or("a key that its dictionary does not have")?;
        Source { array: &**values, ty: self.ty }.value(key)
    }
}
