//! Reads of the model, and how they are asked of the engine.

use super::shape::{Index, Shape};
use super::{Own, Rows};
use crate::input::Input;
use crate::values::{Key, are_equal, compare_first, refs};
use highwater::{Error, Scan, Value, ValueRef};
use std::ops::ControlFlow;

/// Rows with changes over them.
pub fn over(rows: &Rows, own: &Own) -> Rows {
    let mut rows = rows.clone();
    for (key, row) in own {
        match row {
            Some(row) => drop(rows.insert(key.clone(), row.clone())),
            None => drop(rows.remove(key)),
        }
    }
    rows
}

/// Every row of a scan, one after another or looked at in place.
pub fn all(scan: Scan<'_, '_>, in_place: bool) -> Result<Vec<Vec<Value>>, Error> {
    if !in_place {
        return scan.iter()?.map(|row| Ok(row?.to_values())).collect();
    }
    let mut rows = Vec::new();
    scan.visit(|row| {
        rows.push(row.values().map(ValueRef::to_value).collect());
        ControlFlow::Continue(())
    })?;
    Ok(rows)
}

/// What was found is right.
pub fn same(found: &[Vec<Value>], right: &[Vec<Value>], what: &str) {
    let first = found.iter().zip(right).position(|(found, right)| !are_equal(found, right));
    let at = first.unwrap_or(found.len().min(right.len()));
    let is_same = first.is_none() && found.len() == right.len();
    assert!(is_same, "{what}: at {at} is {:?}, {:?} is right", found.get(at), right.get(at));
}

fn columns_of(row: &[Value], columns: &[usize]) -> Vec<Value> {
    columns.iter().map(|column| row[*column].clone()).collect()
}

/// All rows in the order of an index.
pub fn sorted(rows: &Rows, shape: &Shape, index: &Index<'_>) -> Vec<Vec<Value>> {
    let mut all: Vec<&Vec<Value>> = rows.values().collect();
    all.sort_by_key(|row| (Key(columns_of(row, index.columns)), shape.key(row)));
    all.into_iter().cloned().collect()
}

/// Which rows a scan wants.
#[derive(Clone)]
pub struct Range {
    pub index: &'static str,
    from: Option<Edge>,
    to: Option<Edge>,
    starts_with: Option<Vec<Value>>,
    reverse: bool,
    limit: usize,
}

/// Values of an index's first columns, and whether rows that begin with them are left out.
#[derive(Clone)]
struct Edge {
    values: Vec<Value>,
    is_exclusive: bool,
}

/// The values of a range, borrowed as a scan wants them.
pub struct Bounds<'r> {
    from: Vec<ValueRef<'r>>,
    to: Vec<ValueRef<'r>>,
    starts_with: Vec<ValueRef<'r>>,
}

impl Range {
    pub fn choose(input: &mut Input<'_>, shape: &Shape) -> Range {
        let indexes = shape.indexes();
        let index = *input.one_of(&indexes);
        let how = input.byte();
        let mut edge = |bit: u8, is_exclusive| {
            let values = |input: &mut Input<'_>| {
                let count = input.below(index.columns.len() + 1);
                index.columns[..count].iter().map(|column| shape.value(*column, input)).collect()
            };
            (how & bit != 0).then(|| Edge { values: values(input), is_exclusive })
        };
        let (from, to) = (edge(1, how & 2 != 0), edge(4, how & 8 != 0));
        let mut begin: Vec<Value> = Vec::new();
        if how & 0x30 == 0x30 {
            begin = index.columns.iter().map(|column| shape.value(*column, input)).collect();
            begin.truncate(1 + input.below(index.columns.len()));
        }
        let is_text = |values: &Vec<Value>| shape.is_text(index.columns[values.len() - 1]);
        let is_whole = |values: &Vec<Value>| !matches!(values.last(), Some(Value::Null) | None);
        let starts_with = Some(begin).filter(|values| is_whole(values) && is_text(values));
        let limit = if how & 0x40 != 0 { usize::from(input.byte() % 8) } else { usize::MAX };
        Range { index: index.name, from, to, starts_with, reverse: how & 0x80 != 0, limit }
    }

    /// Whether the engine may see from the bounds alone that there is no row: such a scan reads nothing, and begins no
    /// view.
    pub fn may_read_nothing(&self) -> bool {
        let is_bounded = self.from.as_ref().is_some_and(|edge| edge.is_exclusive) || self.to.is_some();
        self.limit == 0 || is_bounded
    }

    pub fn bounds(&self) -> Bounds<'_> {
        fn edge(edge: &Option<Edge>) -> Vec<ValueRef<'_>> {
            edge.as_ref().map_or(Vec::new(), |edge| refs(&edge.values))
        }
        let starts_with = self.starts_with.as_ref().map_or(Vec::new(), |values| refs(values));
        Bounds { from: edge(&self.from), to: edge(&self.to), starts_with }
    }

    /// Asks it of a scan.
    pub fn apply<'s, 'v>(&self, bounds: &'v Bounds<'v>, mut scan: Scan<'s, 'v>) -> Scan<'s, 'v> {
        scan = scan.index(self.index);
        scan = match &self.from {
            Some(edge) if edge.is_exclusive => scan.from_exclusive(&bounds.from),
            Some(_) => scan.from(&bounds.from),
            None => scan,
        };
        scan = match &self.to {
            Some(edge) if edge.is_exclusive => scan.to_exclusive(&bounds.to),
            Some(_) => scan.to(&bounds.to),
            None => scan,
        };
        scan = if self.starts_with.is_some() { scan.starts_with(&bounds.starts_with) } else { scan };
        scan = if self.reverse { scan.rev() } else { scan };
        if self.limit < usize::MAX { scan.limit(self.limit) } else { scan }
    }

    /// This range without a limit.
    pub fn without_limit(&self) -> Range {
        Range { limit: usize::MAX, ..self.clone() }
    }

    /// The right rows.
    pub fn of(&self, rows: &Rows, shape: &Shape) -> Vec<Vec<Value>> {
        let indexes = shape.indexes();
        let index = indexes.iter().find(|index| index.name == self.index).expect("it is one of them");
        let mut all = sorted(rows, shape, index);
        all.retain(|row| self.wants(&columns_of(row, index.columns)));
        if self.reverse {
            all.reverse();
        }
        all.truncate(self.limit);
        all
    }

    fn wants(&self, key: &[Value]) -> bool {
        if let Some(values) = &self.starts_with {
            let (last, before) = values.split_last().expect("it has a value");
            return compare_first(key, before).is_eq() && begins_with(&key[before.len()], last);
        }
        let from = self.from.as_ref().is_none_or(|edge| {
            let order = compare_first(key, &edge.values);
            order.is_gt() || (order.is_eq() && !edge.is_exclusive)
        });
        let to = self.to.as_ref().is_none_or(|edge| {
            let order = compare_first(key, &edge.values);
            order.is_lt() || (order.is_eq() && !edge.is_exclusive)
        });
        from && to
    }
}

fn begins_with(value: &Value, begin: &Value) -> bool {
    match (value, begin) {
        (Value::Text(value), Value::Text(begin)) => value.as_bytes().starts_with(begin.as_bytes()),
        (Value::Bytes(value), Value::Bytes(begin)) => value.starts_with(begin),
        _ => false,
    }
}
