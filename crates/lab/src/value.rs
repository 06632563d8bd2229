//! Stand-in for the engine's value types while they are being written; same names, same shapes.

/// Exact decimal.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Decimal {
    unscaled: i128,
    scale: u8,
}

impl Decimal {
    /// New.
    pub const fn new(unscaled: i128, scale: u8) -> Decimal {
        Decimal { unscaled, scale }
    }
    /// Digits.
    pub const fn unscaled(self) -> i128 {
        self.unscaled
    }
    /// Scale.
    pub const fn scale(self) -> u8 {
        self.scale
    }
}

/// Time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct DateTime(i64);

impl DateTime {
    /// New.
    pub const fn from_unix_us(us: i64) -> DateTime {
        DateTime(us)
    }
    /// Microseconds.
    pub const fn unix_us(self) -> i64 {
        self.0
    }
}

/// Borrowed value.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(missing_docs)]
pub enum ValueRef<'a> {
    Null,
    Int(i64),
    UInt(u64),
    F64(f64),
    Decimal(Decimal),
    Text(&'a str),
    Bytes(&'a [u8]),
    DateTime(DateTime),
}

/// Column type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)]
pub enum Type {
    I32,
    U8,
    U16,
    U32,
    U64,
    Decimal(u8, u8),
    Text(u32),
    Binary(u32),
    DateTime,
}

macro_rules! from {
    ($($from:ty => $variant:ident, $v:ident => $value:expr;)*) => {$(
        impl From<$from> for ValueRef<'_> {
            #[inline]
            fn from($v: $from) -> Self { ValueRef::$variant($value) }
        }
    )*};
}
from! {
    i32 => Int, n => n.into();
    i64 => Int, n => n;
    u8 => UInt, n => n.into();
    u16 => UInt, n => n.into();
    u32 => UInt, n => n.into();
    u64 => UInt, n => n;
    usize => UInt, n => n as u64;
    Decimal => Decimal, d => d;
    DateTime => DateTime, t => t;
}
impl<'a> From<&'a str> for ValueRef<'a> {
    fn from(text: &'a str) -> Self {
        ValueRef::Text(text)
    }
}

impl<'a, T> From<Option<T>> for ValueRef<'a>
where
    ValueRef<'a>: From<T>,
{
    fn from(value: Option<T>) -> Self {
        value.map_or(ValueRef::Null, ValueRef::from)
    }
}

/// Array of values.
#[macro_export]
macro_rules! values {
    (@ [$($done:expr,)*]) => { [$($done,)*] };
    (@ [$($done:expr,)*] null $(, $($rest:tt)*)?) => {
        $crate::values!(@ [$($done,)* $crate::value::ValueRef::Null,] $($($rest)*)?)
    };
    (@ [$($done:expr,)*] $value:expr $(, $($rest:tt)*)?) => {
        $crate::values!(@ [$($done,)* $crate::value::ValueRef::from($value),] $($($rest)*)?)
    };
    ($($rest:tt)*) => { $crate::values!(@ [] $($rest)*) };
}
