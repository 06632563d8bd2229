//! CSV fields: the encoding of values as text.
//!
//! Rules (of import and export, so that import reads exported values back unchanged)
//! 1. NULL is one agreed text, quoted or not (the command line's default is the empty one). A value that is this text
//!    with any number of backslashes before it, or none, is written with one more backslash; reading removes one. So if
//!    NULL is the empty text, an empty text is written `\`; if NULL is `\N`, the text `\N` is written `\\N`.
//! 2. An empty field of a column that is neither text nor binary is NULL too.
//! 3. Numbers, decimals and times as the engine prints them; floats with the fewest digits that read back as the same
//!    value. Binary values as `\x` and two hexadecimal digits a byte.

use highwater::{Date, DateTime, Decimal, Time, Type, Uuid, Value, ValueRef};
use std::borrow::Cow;
use std::fmt::Write;

/// Whether `field` is the NULL text after `backslashes` or more backslashes.
fn is_escaped_null(field: &str, null: &str, at_least: usize) -> bool {
    field.strip_suffix(null).is_some_and(|rest| rest.len() >= at_least && rest.bytes().all(|b| b == b'\\'))
}

/// Writes a value as a field into `out` (replacing it).
pub(crate) fn write_field(value: ValueRef<'_>, null: &str, out: &mut String) {
    out.clear();
    match value {
        ValueRef::Null => return out.push_str(null),
        ValueRef::Text(text) => out.push_str(text),
        ValueRef::Bytes(bytes) => {
            out.push_str("\\x");
            bytes.iter().for_each(|b| _ = write!(out, "{b:02x}"));
        }
        other => _ = write!(out, "{other}"),
    }
    if is_escaped_null(out, null, 0) {
        out.insert(0, '\\');
    }
}

/// Reads a field as a value of a column of type `ty`.
///
/// # Errors
/// Why it is not one.
pub(crate) fn read_field<'f>(field: &'f [u8], ty: Type, null: &str) -> Result<Field<'f>, String> {
    let text = std::str::from_utf8(field).map_err(|_| "the field is not UTF-8 text".to_string())?;
    if text == null || (text.is_empty() && !matches!(ty, Type::Text(_) | Type::Binary(_))) {
        return Ok(Field::Borrowed(ValueRef::Null));
    }
    let text = if is_escaped_null(text, null, 1) { &text[1..] } else { text };
    let wrong = || format!("{:?} is not of type {ty}", shortened(text));
    let value = match ty {
        Type::Text(_) | Type::Json(_) => ValueRef::Text(text),
        Type::Binary(_) | Type::Fixed(_) => {
            return read_binary(text).map(|bytes| Field::Owned(Value::Bytes(bytes))).ok_or_else(wrong);
        }
        Type::F32 => ValueRef::F64(text.parse::<f32>().map_err(|_| wrong())?.into()),
        Type::F64 => ValueRef::F64(text.parse().map_err(|_| wrong())?),
        Type::Decimal(..) => ValueRef::Decimal(text.parse::<Decimal>().map_err(|_| wrong())?),
        Type::DateTime => ValueRef::DateTime(text.parse::<DateTime>().map_err(|_| wrong())?),
        Type::Bool => ValueRef::Bool(read_bool(text).ok_or_else(wrong)?),
        Type::Date => ValueRef::Date(text.parse::<Date>().map_err(|_| wrong())?),
        Type::Time => ValueRef::Time(text.parse::<Time>().map_err(|_| wrong())?),
        Type::Uuid => ValueRef::Uuid(text.parse::<Uuid>().map_err(|_| wrong())?),
        Type::U8 | Type::U16 | Type::U24 | Type::U32 | Type::U64 => ValueRef::UInt(text.parse().map_err(|_| wrong())?),
        Type::I8 | Type::I16 | Type::I24 | Type::I32 | Type::I64 => ValueRef::Int(text.parse().map_err(|_| wrong())?),
    };
    Ok(Field::Borrowed(value))
}

/// A value that borrows from its field where it can.
#[derive(Debug)]
pub(crate) enum Field<'f> {
    Borrowed(ValueRef<'f>),
    /// Had to be decoded.
    Owned(Value),
}

impl Field<'_> {
    pub(crate) fn value(&self) -> ValueRef<'_> {
        match self {
            Field::Borrowed(value) => *value,
            Field::Owned(value) => value.as_ref(),
        }
    }
}

/// As other programs write them too.
fn read_bool(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "t" | "1" => Some(true),
        "false" | "f" | "0" => Some(false),
        _ => None,
    }
}

fn read_binary(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("\\x")?.as_bytes();
    let nibble = |digit: u8| char::from(digit).to_digit(16).map(|n| n as u8);
    let (pairs, []) = digits.as_chunks::<2>() else { return None };
    pairs.iter().map(|[high, low]| Some(nibble(*high)? << 4 | nibble(*low)?)).collect()
}

/// The beginning of a text, for messages.
pub(crate) fn shortened(text: &str) -> Cow<'_, str> {
    match text.char_indices().nth(40) {
        Some((end, _)) => Cow::Owned(format!("{}...", &text[..end])),
        None => Cow::Borrowed(text),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_reads_back() {
        let cases: [(Type, Value); 22] = [
            (Type::Bool, true.into()),
            (Type::Bool, false.into()),
            (Type::Date, Date::from_unix_days(-1).into()),
            (Type::Time, Time::MAX.into()),
            (Type::Uuid, Uuid::from_bytes([0xf0; 16]).into()),
            (Type::I64, i64::MIN.into()),
            (Type::U64, u64::MAX.into()),
            (Type::F64, 0.1.into()),
            (Type::F64, f64::INFINITY.into()),
            (Type::F64, 1e300.into()),
            (Type::F32, 0.1f32.into()),
            (Type::Decimal(12, 2), Decimal::new(-5, 2).into()),
            (Type::DateTime, DateTime::from_unix_us(-1).into()),
            (Type::Binary(9), Value::Bytes(vec![0, 255])),
            (Type::Fixed(2), Value::Bytes(vec![0, 255])),
            (Type::Binary(9), Value::Bytes(Vec::new())),
            (Type::Text(99), Value::Text(String::new())),
            (Type::Text(99), Value::Text("\\".to_string())),
            (Type::Text(99), Value::Text("\\N".to_string())),
            (Type::Text(99), Value::Text("\\\\N".to_string())),
            (Type::Text(99), Value::Text("NULL".to_string())),
            (Type::Text(99), Value::Null),
        ];
        for null in ["\\N", "", "NULL", "\\"] {
            for (ty, value) in &cases {
                let mut field = String::new();
                write_field(value.as_ref(), null, &mut field);
                let back = read_field(field.as_bytes(), *ty, null).unwrap();
                assert_eq!(back.value(), value.as_ref(), "{field:?} with NULL {null:?}");
            }
        }
    }

    #[test]
    fn empty_numbers_are_null_and_empty_text_is_text() {
        assert_eq!(read_field(b"", Type::U8, "\\N").unwrap().value(), ValueRef::Null);
        assert_eq!(read_field(b"", Type::Text(5), "\\N").unwrap().value(), ValueRef::Text(""));
    }

    #[test]
    fn wrong_fields_say_what_they_are_not() {
        let wrong = |field: &[u8], ty| read_field(field, ty, "\\N").unwrap_err();
        assert_eq!(wrong(b"x1", Type::U32), "\"x1\" is not of type u32");
        assert_eq!(wrong(b"maybe", Type::Bool), "\"maybe\" is not of type bool");
        assert_eq!(wrong(b"2026-02-30", Type::Date), "\"2026-02-30\" is not of type date");
        assert_eq!(wrong(b"1.5.0", Type::Decimal(9, 2)), "\"1.5.0\" is not of type decimal(9,2)");
        assert_eq!(wrong(b"\\x0", Type::Binary(4)), "\"\\\\x0\" is not of type binary(4)");
        assert_eq!(wrong(b"\xff", Type::Text(4)), "the field is not UTF-8 text");
        assert!(wrong(&[b'a'; 100], Type::I8).len() < 80);
    }
}
