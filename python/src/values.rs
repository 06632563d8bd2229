//! Values between Python and the engine.
//!
//! Rules
//! 1. Nothing is rounded, cut off or guessed: a value that a column cannot hold exactly is `BadValue`. An integer is a
//!    value of a float or decimal column too.
//! 2. A `datetime` is one with a time zone; it comes back in UTC. JSON goes in as text, `dict` or `list`, and comes
//!    back as text.

use crate::failure::{Failure, Result};
use highwater::{Date, DateTime, Decimal, Time, Type, Uuid, Value, ValueRef};
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyByteArray, PyBytes, PyDate, PyDateAccess, PyDateTime, PyDelta, PyDeltaAccess, PyDict, PyFloat, PyInt,
    PyList, PyString, PyTime, PyTimeAccess, PyTuple, PyTzInfo, PyTzInfoAccess,
};

const US_PER_SECOND: i64 = 1_000_000;
const US_PER_DAY: i64 = 86_400 * US_PER_SECOND;
/// The years of Python's dates.
const YEARS: std::ops::RangeInclusive<i32> = 1..=9999;

/// A class of a module of the standard library.
fn class_of<'py>(
    py: Python<'py>,
    cell: &'static PyOnceLock<Py<PyAny>>,
    module: &str,
    name: &str,
) -> PyResult<Bound<'py, PyAny>> {
    let made = cell.get_or_try_init(py, || Ok::<_, PyErr>(py.import(module)?.getattr(name)?.unbind()))?;
    Ok(made.bind(py).clone())
}

fn decimal_class(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    class_of(py, &CLASS, "decimal", "Decimal")
}

fn uuid_class(py: Python<'_>) -> PyResult<Bound<'_, PyAny>> {
    static CLASS: PyOnceLock<Py<PyAny>> = PyOnceLock::new();
    class_of(py, &CLASS, "uuid", "UUID")
}

fn date_of(days: i32) -> Result<(i32, u8, u8)> {
    let (year, month, day) = Date::from_unix_days(days).to_civil();
    match YEARS.contains(&year) {
        true => Ok((year, month, day)),
        false => Err(Failure::Value(format!("Python's dates end with the year 9999; this one is in {year}"))),
    }
}

/// Hour, minute, second, microsecond.
fn time_of(us: i64) -> (u8, u8, u8, u32) {
    let seconds = us / US_PER_SECOND;
    ((seconds / 3600) as u8, (seconds / 60 % 60) as u8, (seconds % 60) as u8, (us % US_PER_SECOND) as u32)
}

/// A value for Python.
///
/// # Errors
/// A date that Python's cannot hold.
pub fn to_python<'py>(py: Python<'py>, value: ValueRef<'_>) -> Result<Bound<'py, PyAny>> {
    Ok(match value {
        ValueRef::Null => py.None().into_bound(py),
        ValueRef::Int(n) => PyInt::new(py, n).into_any(),
        ValueRef::UInt(n) => PyInt::new(py, n).into_any(),
        ValueRef::F64(x) => PyFloat::new(py, x).into_any(),
        ValueRef::Decimal(number) => decimal_class(py)?.call1((number.to_string(),))?,
        ValueRef::Text(text) => PyString::new(py, text).into_any(),
        ValueRef::Bytes(bytes) => PyBytes::new(py, bytes).into_any(),
        ValueRef::Bool(truth) => PyBool::new(py, truth).to_owned().into_any(),
        ValueRef::Date(day) => {
            let (year, month, day) = date_of(day.unix_days())?;
            PyDate::new(py, year, month, day)?.into_any()
        }
        ValueRef::Time(time) => {
            let (hour, minute, second, us) = time_of(time.us_since_midnight() as i64);
            PyTime::new(py, hour, minute, second, us, None)?.into_any()
        }
        ValueRef::DateTime(time) => {
            let days = time.unix_us().div_euclid(US_PER_DAY);
            let (year, month, day) = date_of(days.try_into().unwrap_or(i32::MAX))?;
            let (hour, minute, second, us) = time_of(time.unix_us().rem_euclid(US_PER_DAY));
            let utc = PyTzInfo::utc(py)?;
            PyDateTime::new(py, year, month, day, hour, minute, second, us, Some(&utc))?.into_any()
        }
        ValueRef::Uuid(uuid) => {
            let bytes = PyDict::new(py);
            bytes.set_item("bytes", PyBytes::new(py, uuid.as_bytes()))?;
            uuid_class(py)?.call((), Some(&bytes))?
        }
    })
}

fn integer(object: &Bound<'_, PyAny>) -> Result<Value> {
    if let Ok(n) = object.extract::<i64>() {
        return Ok(Value::Int(n));
    }
    match object.extract::<u64>() {
        Ok(n) => Ok(Value::UInt(n)),
        Err(_) => Err(Failure::Value(format!("{object} has more than 64 bits"))),
    }
}

fn decimal(text: &str) -> Result<Value> {
    text.parse::<Decimal>().map(Value::Decimal).map_err(Failure::Value)
}

fn day(object: &Bound<'_, PyDate>) -> Result<Date> {
    let found = Date::new(object.get_year(), object.get_month(), object.get_day());
    found.ok_or_else(|| Failure::Value(format!("{object} is no day")))
}

fn us_of_day(object: &impl PyTimeAccess) -> i64 {
    let seconds = i64::from(object.get_hour()) * 3600 + i64::from(object.get_minute()) * 60;
    (seconds + i64::from(object.get_second())) * US_PER_SECOND + i64::from(object.get_microsecond())
}

fn datetime(object: &Bound<'_, PyDateTime>) -> Result<Value> {
    let offset = object.call_method0("utcoffset")?;
    let Ok(offset) = offset.cast::<PyDelta>() else {
        let hint = "give it one, such as datetime.timezone.utc";
        return Err(Failure::Value(format!("the datetime {object} has no time zone; {hint}")));
    };
    let offset_us = (i64::from(offset.get_days()) * 86_400 + i64::from(offset.get_seconds())) * US_PER_SECOND
        + i64::from(offset.get_microseconds());
    let date = Date::new(object.get_year(), object.get_month(), object.get_day());
    let days = date.ok_or_else(|| Failure::Value(format!("{object} is no day")))?.unix_days();
    Ok(Value::DateTime(DateTime::from_unix_us(i64::from(days) * US_PER_DAY + us_of_day(object) - offset_us)))
}

fn time(object: &Bound<'_, PyTime>) -> Result<Value> {
    if object.get_tzinfo().is_some() {
        return Err(Failure::Value(format!(
            "the time {object} has a time zone, which a column of times does not keep"
        )));
    }
    let time = Time::from_us(us_of_day(object) as u64);
    time.map(Value::Time).ok_or_else(|| Failure::Value(format!("{object} is no time of day")))
}

fn json(object: &Bound<'_, PyAny>) -> Result<Value> {
    let text: String = object.py().import("json")?.call_method1("dumps", (object,))?.extract()?;
    Ok(Value::Text(text))
}

/// The value of an object, for a column of this type, if it is known.
fn plain(object: &Bound<'_, PyAny>, ty: Option<Type>) -> Result<Value> {
    let py = object.py();
    if object.is_none() {
        return Ok(Value::Null);
    }
    if let Ok(text) = object.cast::<PyString>() {
        return Ok(Value::Text(text.to_cow()?.into_owned()));
    }
    if let Ok(truth) = object.cast::<PyBool>() {
        return Ok(Value::Bool(truth.is_true()));
    }
    if object.is_instance_of::<PyInt>() {
        return match ty {
            Some(Type::F32 | Type::F64) => Ok(Value::F64(object.extract()?)),
            Some(Type::Decimal(..)) => decimal(object.str()?.to_cow()?.as_ref()),
            _ => integer(object),
        };
    }
    if let Ok(number) = object.cast::<PyFloat>() {
        return Ok(Value::F64(number.value()));
    }
    if let Ok(bytes) = object.cast::<PyBytes>() {
        return Ok(Value::Bytes(bytes.as_bytes().to_vec()));
    }
    if let Ok(bytes) = object.cast::<PyByteArray>() {
        return Ok(Value::Bytes(bytes.to_vec()));
    }
    if let Ok(found) = object.cast::<PyDateTime>() {
        return datetime(found);
    }
    if let Ok(found) = object.cast::<PyDate>() {
        return day(found).map(Value::Date);
    }
    if let Ok(found) = object.cast::<PyTime>() {
        return time(found);
    }
    if object.is_instance(&decimal_class(py)?)? {
        return decimal(object.call_method1("__format__", ("f",))?.extract::<String>()?.as_str());
    }
    if object.is_instance(&uuid_class(py)?)? {
        return Ok(Value::Uuid(Uuid::from_bytes(object.getattr("bytes")?.extract::<[u8; 16]>()?)));
    }
    if matches!(ty, Some(Type::Json(_))) && (object.is_instance_of::<PyDict>() || object.is_instance_of::<PyList>()) {
        return json(object);
    }
    // Numbers of other packages.
    if let Ok(index) = object.call_method0("__index__") {
        return plain(&index, ty);
    }
    Err(Failure::Value(format!("a {} is no value of a column", object.get_type().name()?)))
}

/// The value of an object; messages name the column.
///
/// # Errors
/// It is no value, or none of this type.
pub fn to_value(object: &Bound<'_, PyAny>, column: &str, ty: Option<Type>) -> Result<Value> {
    plain(object, ty).map_err(|failure| match failure {
        Failure::Value(reason) => Failure::Value(format!("column {column}: {reason}")),
        other => other,
    })
}

/// The values of a key: those of a tuple or a list, or a single one. Of each column the name and the type.
///
/// # Errors
/// As [`to_value`].
pub fn to_key(object: &Bound<'_, PyAny>, columns: &[(&str, Type)]) -> Result<Vec<Value>> {
    let of = |(at, object): (usize, Bound<'_, PyAny>)| {
        let column = columns.get(at).copied();
        to_value(&object, column.map_or("of a key", |column| column.0), column.map(|column| column.1))
    };
    if let Ok(tuple) = object.cast::<PyTuple>() {
        return tuple.iter().enumerate().map(of).collect();
    }
    if let Ok(list) = object.cast::<PyList>() {
        return list.iter().enumerate().map(of).collect();
    }
    of((0, object.clone())).map(|value| vec![value])
}

/// The values, borrowed.
pub fn refs(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}
