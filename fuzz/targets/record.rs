//! Records of any bytes: the catalog, undo, rows and keys; values that are encoded and decoded again.

#![no_main]

use highwater::internals::fuzz_properties;
use highwater::{Column, Date, DateTime, Decimal, IndexColumn, TableDefinition, Time, Type, Value};
use highwater_fuzz::input::Input;
use highwater_fuzz::values::{are_equal, compare};

libfuzzer_sys::fuzz_target!(init: highwater_fuzz::start(), |data: &[u8]| {
    let mut input = Input::new(data);
    match input.byte() % 6 {
        0 => fuzz_properties::catalog(input.take(9), input.rest()),
        1 => {
            let definition = input.take(usize::from(input.clone().u16()));
            if let Some(definition) = fuzz_properties::definition(definition) {
                bytes(&definition, input.rest());
            }
        }
        2 => {
            let payload = input.some(200);
            fuzz_properties::undo(input.rest(), payload);
        }
        3 => {
            let key_bytes = usize::from(input.u16());
            fuzz_properties::stored(input.rest(), key_bytes);
        }
        4 => {
            let definition = definition(&mut input);
            bytes(&definition, input.rest());
        }
        _ => {
            let definition = definition(&mut input);
            let rows = [0, 1].map(|_| row(&definition, &mut input));
            for row in &rows {
                if let Some(stored) = fuzz_properties::stored_row(&definition, row) {
                    let back = fuzz_properties::row(&definition, &stored).expect("a row that was encoded is one");
                    assert!(are_equal(&back, row), "{back:?} {row:?}");
                }
            }
            fuzz_properties::order(&definition, [&rows[0], &rows[1]], compare);
        }
    }
});

/// Reads bytes as a row and as a key.
fn bytes(definition: &TableDefinition, bytes: &[u8]) {
    fuzz_properties::row(definition, bytes);
    fuzz_properties::key(definition, &definition.primary_key, bytes);
}

/// A table of up to six columns; the first ones are its key.
fn definition(input: &mut Input<'_>) -> TableDefinition {
    let column = |n| {
        let ty = match input.byte() % 18 {
            0 => Type::I8,
            1 => Type::I16,
            2 => Type::I32,
            3 => Type::I64,
            4 => Type::U8,
            5 => Type::U16,
            6 => Type::U32,
            7 => Type::U64,
            8 => Type::F32,
            9 => Type::F64,
            10 => {
                let precision = 1 + input.byte() % 38;
                Type::Decimal(precision, input.byte() % (precision + 1))
            }
            11 => Type::Text([40, 70_000][input.below(2)]),
            12 => Type::Binary([40, 70_000][input.below(2)]),
            13 => Type::Fixed(1 + input.byte() % 40),
            14 => Type::I24,
            15 => Type::U24,
            16 => Type::Json([40, 70_000][input.below(2)]),
            _ => Type::DateTime,
        };
        Column { name: format!("c{n}"), ty, nullable: input.byte() & 1 != 0, default: None, collation: None }
    };
    let columns: Vec<Column> = (0..6).map(column).collect();
    let mut columns = columns[..1 + input.below(6)].to_vec();
    let keys = 1 + input.below(columns.len());
    for column in &mut columns[..keys] {
        // No key has JSON.
        column.ty = if let Type::Json(max) = column.ty { Type::Text(max) } else { column.ty };
    }
    let part = |column: usize| IndexColumn { descending: input.byte() & 1 != 0, ..column.into() };
    let primary_key = (0..keys).map(part).collect();
    let expires = columns.iter().position(|column: &Column| column.ty == Type::DateTime);
    TableDefinition {
        name: "t".into(),
        columns,
        primary_key,
        auto_increment: None,
        expires,
        long_keys: false,
        log_changes: false,
        indexes: Vec::new(),
        attachment: Vec::new(),
    }
}

/// A row of values of any kind that its columns may take.
fn row(definition: &TableDefinition, input: &mut Input<'_>) -> Vec<Value> {
    let value = |column: &Column| {
        if column.nullable && input.byte() & 3 == 0 {
            return Value::Null;
        }
        match column.ty {
            Type::I8 | Type::I16 | Type::I24 | Type::I32 | Type::I64 => {
                let bits = 8 * column.ty.max_bytes() as u32;
                Value::Int((input.u64() << (64 - bits)) as i64 >> (64 - bits))
            }
            Type::U8 | Type::U16 | Type::U24 | Type::U32 | Type::U64 => {
                Value::UInt(input.u64() >> (64 - 8 * column.ty.max_bytes() as u32))
            }
            Type::F32 => Value::F64(f32::from_bits(input.u32()).into()),
            Type::F64 => Value::F64(f64::from_bits(input.u64())),
            Type::Decimal(precision, scale) => {
                let unscaled = i128::from(input.u64() as i64) * i128::from(input.u64());
                Value::Decimal(Decimal::new(unscaled % 10i128.pow(precision.into()), scale))
            }
            Type::Text(_) => Value::Text(String::from_utf8_lossy(input.some(12)).into_owned()),
            Type::Json(_) => Value::Text(format!("[{}, \"{}\"]", input.byte(), "x".repeat(input.below(12)))),
            Type::Binary(_) => Value::Bytes(input.some(40).to_vec()),
            Type::Fixed(len) => {
                let mut bytes = input.take(len.into()).to_vec();
                bytes.resize(len.into(), 0);
                Value::Bytes(bytes)
            }
            Type::DateTime => Value::DateTime(DateTime::from_unix_us(input.u64() as i64)),
            Type::Bool => Value::Bool(input.byte() & 1 != 0),
            Type::Date => Value::Date(Date::from_unix_days(input.u64() as i32)),
            Type::Time => Value::Time(Time::from_us(input.u64() % 86_400_000_000).unwrap_or_default()),
            Type::Uuid => Value::Uuid((u128::from(input.u64()) << 64 | u128::from(input.u64())).to_be_bytes().into()),
        }
    };
    definition.columns.iter().map(value).collect()
}
