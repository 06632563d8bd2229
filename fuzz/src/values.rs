//! Values of columns and their order.

pub use highwater::internals::compare;
use highwater::{Value, ValueRef};
use std::cmp::Ordering;

/// How lists of values sort, column by column, as far as both go.
pub fn compare_first(a: &[Value], b: &[Value]) -> Ordering {
    a.iter().zip(b).map(|(a, b)| compare(a, b)).find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// Whether two rows have equal values.
pub fn are_equal(a: &[Value], b: &[Value]) -> bool {
    a.len() == b.len() && compare_first(a, b).is_eq()
}

/// The values, borrowed.
pub fn refs(values: &[Value]) -> Vec<ValueRef<'_>> {
    values.iter().map(Value::as_ref).collect()
}

/// A key, in the order of keys.
#[derive(Clone, Debug)]
pub struct Key(pub Vec<Value>);

impl Ord for Key {
    fn cmp(&self, other: &Key) -> Ordering {
        compare_first(&self.0, &other.0).then(self.0.len().cmp(&other.0.len()))
    }
}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Key) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Key {
    fn eq(&self, other: &Key) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}
