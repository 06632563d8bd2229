//! Rows as Arrow's record batches.
//!
//! Rule: a column's Arrow type follows from its type alone, so that the schema is known before a row is read. UUIDs and
//! JSON are marked with Arrow's canonical extensions.

use crate::failure::{Failure, Result};
use crate::reading::Reading;
use arrow_array::builder::*;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{ArrayRef, RecordBatch, RecordBatchReader};
use arrow_schema::{ArrowError, DataType, Field, Schema, SchemaRef, TimeUnit};
use highwater::{Column, Type, ValueRef};
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use std::collections::HashMap;
use std::sync::Arc;

/// Rows, and bytes of text, of a batch.
const BATCH_ROWS: usize = 8192;
const BATCH_BYTES: usize = 16 << 20;

/// Key of a field's metadata.
const EXTENSION: &str = "ARROW:extension:name";

/// The type of a column.
fn data_type(ty: Type) -> DataType {
    match ty {
        Type::I8 => DataType::Int8,
        Type::I16 => DataType::Int16,
        Type::I24 | Type::I32 => DataType::Int32,
        Type::I64 => DataType::Int64,
        Type::U8 => DataType::UInt8,
        Type::U16 => DataType::UInt16,
        Type::U24 | Type::U32 => DataType::UInt32,
        Type::U64 => DataType::UInt64,
        Type::F32 => DataType::Float32,
        Type::F64 => DataType::Float64,
        Type::Decimal(precision, scale) => DataType::Decimal128(precision, scale as i8),
        Type::Text(_) | Type::Json(_) => DataType::Utf8,
        Type::Binary(_) => DataType::Binary,
        Type::Fixed(bytes) => DataType::FixedSizeBinary(bytes.into()),
        Type::Uuid => DataType::FixedSizeBinary(16),
        Type::Bool => DataType::Boolean,
        Type::Date => DataType::Date32,
        Type::Time => DataType::Time64(TimeUnit::Microsecond),
        Type::DateTime => DataType::Timestamp(TimeUnit::Microsecond, Some("UTC".into())),
    }
}

fn field(column: &Column) -> Field {
    let extension = match column.ty {
        Type::Uuid => "arrow.uuid",
        Type::Json(_) => "arrow.json",
        _ => "",
    };
    let metadata = (!extension.is_empty()).then(|| (EXTENSION.to_string(), extension.to_string()));
    let field = Field::new(&column.name, data_type(column.ty), column.nullable);
    field.with_metadata(HashMap::from_iter(metadata))
}

/// Declares the builders of columns: each variant, its builder, and how a value becomes its.
macro_rules! builders {
    ($($variant:ident($builder:ty): $pattern:pat => $value:expr;)*) => {
        enum Builder {
            $($variant($builder),)*
        }

        impl Builder {
            /// Appends a value; false if it is of another kind.
            fn append(&mut self, value: ValueRef<'_>) -> bool {
                match (self, value) {
                    $(
                        (Builder::$variant(builder), ValueRef::Null) => builder.append_null(),
                        (Builder::$variant(builder), $pattern) => builder.append_value($value),
                    )*
                    _ => return false,
                }
                true
            }

            fn finish(&mut self) -> ArrayRef {
                match self {
                    $(Builder::$variant(builder) => Arc::new(builder.finish()),)*
                }
            }
        }
    };
}

builders! {
    I8(Int8Builder): ValueRef::Int(n) => n as i8;
    I16(Int16Builder): ValueRef::Int(n) => n as i16;
    I32(Int32Builder): ValueRef::Int(n) => n as i32;
    I64(Int64Builder): ValueRef::Int(n) => n;
    U8(UInt8Builder): ValueRef::UInt(n) => n as u8;
    U16(UInt16Builder): ValueRef::UInt(n) => n as u16;
    U32(UInt32Builder): ValueRef::UInt(n) => n as u32;
    U64(UInt64Builder): ValueRef::UInt(n) => n;
    F32(Float32Builder): ValueRef::F64(x) => x as f32;
    F64(Float64Builder): ValueRef::F64(x) => x;
    Decimal(Decimal128Builder): ValueRef::Decimal(number) => number.unscaled();
    Text(StringBuilder): ValueRef::Text(text) => text;
    Binary(BinaryBuilder): ValueRef::Bytes(bytes) => bytes;
    Bool(BooleanBuilder): ValueRef::Bool(truth) => truth;
    Date(Date32Builder): ValueRef::Date(day) => day.unix_days();
    Time(Time64MicrosecondBuilder): ValueRef::Time(time) => time.us_since_midnight() as i64;
    DateTime(TimestampMicrosecondBuilder): ValueRef::DateTime(time) => time.unix_us();
}

/// The builder of a column: bytes of a fixed length are no builder's like the others'.
enum ColumnBuilder {
    Plain(Builder),
    Fixed(FixedSizeBinaryBuilder),
}

impl ColumnBuilder {
    fn new(ty: Type) -> ColumnBuilder {
        ColumnBuilder::Plain(match ty {
            Type::I8 => Builder::I8(Int8Builder::new()),
            Type::I16 => Builder::I16(Int16Builder::new()),
            Type::I24 | Type::I32 => Builder::I32(Int32Builder::new()),
            Type::I64 => Builder::I64(Int64Builder::new()),
            Type::U8 => Builder::U8(UInt8Builder::new()),
            Type::U16 => Builder::U16(UInt16Builder::new()),
            Type::U24 | Type::U32 => Builder::U32(UInt32Builder::new()),
            Type::U64 => Builder::U64(UInt64Builder::new()),
            Type::F32 => Builder::F32(Float32Builder::new()),
            Type::F64 => Builder::F64(Float64Builder::new()),
            Type::Decimal(..) => Builder::Decimal(Decimal128Builder::new().with_data_type(data_type(ty))),
            Type::Text(_) | Type::Json(_) => Builder::Text(StringBuilder::new()),
            Type::Binary(_) => Builder::Binary(BinaryBuilder::new()),
            Type::Bool => Builder::Bool(BooleanBuilder::new()),
            Type::Date => Builder::Date(Date32Builder::new()),
            Type::Time => Builder::Time(Time64MicrosecondBuilder::new()),
            Type::DateTime => {
                Builder::DateTime(TimestampMicrosecondBuilder::new().with_data_type(data_type(Type::DateTime)))
            }
            Type::Fixed(bytes) => return ColumnBuilder::Fixed(FixedSizeBinaryBuilder::new(bytes.into())),
            Type::Uuid => return ColumnBuilder::Fixed(FixedSizeBinaryBuilder::new(16)),
        })
    }

    fn append(&mut self, value: ValueRef<'_>) -> bool {
        match (self, value) {
            (ColumnBuilder::Plain(builder), value) => builder.append(value),
            (ColumnBuilder::Fixed(builder), ValueRef::Null) => {
                builder.append_null();
                true
            }
            (ColumnBuilder::Fixed(builder), ValueRef::Bytes(bytes)) => builder.append_value(bytes).is_ok(),
            (ColumnBuilder::Fixed(builder), ValueRef::Uuid(uuid)) => builder.append_value(uuid.as_bytes()).is_ok(),
            _ => false,
        }
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            ColumnBuilder::Plain(builder) => builder.finish(),
            ColumnBuilder::Fixed(builder) => Arc::new(builder.finish()),
        }
    }
}

/// Reads a scan a batch at a time.
struct Batches {
    schema: SchemaRef,
    builders: Vec<ColumnBuilder>,
    /// None at the end.
    reading: Option<Reading>,
}

fn value_bytes(value: ValueRef<'_>) -> usize {
    match value {
        ValueRef::Text(text) => text.len(),
        ValueRef::Bytes(bytes) => bytes.len(),
        _ => 0,
    }
}

impl Batches {
    fn read(&mut self) -> Result<Option<RecordBatch>> {
        let Some(reading) = &mut self.reading else { return Ok(None) };
        let (builders, mut rows, mut bytes) = (&mut self.builders, 0, 0);
        let more = reading.each(|row| {
            for (builder, value) in builders.iter_mut().zip(row.values()) {
                bytes += value_bytes(value);
                if !builder.append(value) {
                    return Err(Failure::Value(format!("{value} is not of its column's type")));
                }
            }
            rows += 1;
            Ok(rows < BATCH_ROWS && bytes < BATCH_BYTES)
        });
        if !matches!(more, Ok(true)) {
            self.reading = None;
        }
        more?;
        if rows == 0 {
            return Ok(None);
        }
        let columns = self.builders.iter_mut().map(ColumnBuilder::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(&self.schema), columns);
        batch.map(Some).map_err(|error| Failure::Value(error.to_string()))
    }
}

impl Iterator for Batches {
    type Item = std::result::Result<RecordBatch, ArrowError>;

    fn next(&mut self) -> Option<Self::Item> {
        // The interface has texts only. After an error there is no more.
        let told = |failure| ArrowError::ExternalError(PyErr::from(failure).to_string().into());
        self.read().map_err(told).transpose()
    }
}

impl RecordBatchReader for Batches {
    fn schema(&self) -> SchemaRef {
        Arc::clone(&self.schema)
    }
}

/// The rows as a capsule with a stream.
///
/// # Errors
/// Python has no memory.
pub fn stream<'py>(py: Python<'py>, columns: &[&Column], reading: Reading) -> PyResult<Bound<'py, PyCapsule>> {
    let schema = Arc::new(Schema::new(columns.iter().map(|column| field(column)).collect::<Vec<_>>()));
    let builders = columns.iter().map(|column| ColumnBuilder::new(column.ty)).collect();
    let batches = Batches { schema, builders, reading: Some(reading) };
    PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
}
