//! The contents of the tables: rows, index entries, and a digest that is the same on every engine.
//!
//! Rules
//! 1. The digest is the sum of the digests of the rows, so that it does not depend on their order. Points in time are
//!    left out: a load draws some of them from the clock. So are auto-increment columns, whose numbers threads of a
//!    load draw in turn.
//! 2. An index is correct if it leads to exactly the rows of the table, in the order of the index: a stale entry leads
//!    to its row out of order.

use super::{Contents, Verify};
use crate::error::{Error, Result};
use crate::result::Condition;
use crate::store::{IndexSpec, Read, RowView, Scan, Session, Store, TableSpec};
use highwater::Type;
use std::ops::ControlFlow;

/// The number of rows, the sum of their digests, and the number of rows that the index leads to out of order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Sum {
    rows: u64,
    digest: u64,
    misplaced: u64,
}

/// A column of an index, in its order.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Part {
    Null,
    Number(i128),
    Text(String),
}

/// The columns of an index before the first one that cannot be compared here.
fn compared_columns(spec: &TableSpec, index: &IndexSpec) -> Vec<usize> {
    let position = |name: &&str| spec.columns.iter().position(|column| column.name == *name);
    let columns = index.columns.iter().map_while(position);
    let is_other = |ty| matches!(ty, Type::DateTime | Type::F32 | Type::F64 | Type::Binary(_) | Type::Json(_));
    columns.take_while(|n| !is_other(spec.columns[*n].ty)).collect()
}

fn parts(spec: &TableSpec, columns: &[usize], row: &impl RowView) -> Vec<Part> {
    let part = |n: &usize| match spec.columns[*n].ty {
        _ if spec.columns[*n].nullable && row.is_null(*n) => Part::Null,
        Type::Text(_) => Part::Text(row.str(*n).into()),
        Type::Decimal(..) => Part::Number(row.unscaled(*n).into()),
        Type::U8 | Type::U16 | Type::U32 | Type::U64 => Part::Number(row.u64(*n).into()),
        _ => Part::Number(row.i64(*n).into()),
    };
    columns.iter().map(part).collect()
}

/// FNV-1a, 64 bits.
fn add(digest: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(digest, |digest, byte| (digest ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

fn digest_of(spec: &TableSpec, row: &impl RowView) -> u64 {
    spec.columns.iter().enumerate().fold(0xcbf2_9ce4_8422_2325, |digest, (n, column)| {
        if spec.auto_increment == Some(column.name) && spec.indexes.is_empty() {
            return digest;
        }
        if column.nullable && row.is_null(n) {
            return add(digest, &[0]);
        }
        match column.ty {
            Type::DateTime => digest,
            Type::Text(_) | Type::Json(_) => add(add(digest, row.str(n).as_bytes()), &[1]),
            Type::Decimal(..) => add(digest, &row.unscaled(n).to_le_bytes()),
            Type::U8 | Type::U16 | Type::U32 | Type::U64 => add(digest, &row.u64(n).to_le_bytes()),
            _ => add(digest, &row.i64(n).to_le_bytes()),
        }
    })
}

fn sum_of<S: Store>(store: &S, spec: &TableSpec, index: Option<&IndexSpec>) -> Result<Sum> {
    let missing = || Error::Data(format!("table {} is missing", spec.name));
    let table = store.table(&spec.name)?.ok_or_else(missing)?;
    let mut session = store.session()?;
    let mut read = session.snapshot()?;
    let (mut sum, mut last) = (Sum::default(), Vec::new());
    let columns = index.map(|index| compared_columns(spec, index)).unwrap_or_default();
    read.scan(&table, &Scan { index: index.map(|index| index.name), ..Scan::all() }, |row| {
        let own = parts(spec, &columns, row);
        sum.misplaced += u64::from(own < last);
        last = own;
        sum.rows += 1;
        sum.digest = sum.digest.wrapping_add(digest_of(spec, row));
        ControlFlow::Continue(())
    })?;
    read.finish()?;
    Ok(sum)
}

/// The contents of the tables, and the results of their verification.
pub fn contents<S: Store>(store: &S, specs: &[TableSpec], verify: Verify) -> Result<(Contents, Vec<Condition>)> {
    let (mut contents, mut conditions, mut digest) = (Contents::default(), Vec::new(), 0u64);
    let mut entries = 0;
    for spec in specs {
        let rows = sum_of(store, spec, None)?;
        contents.rows += rows.rows;
        digest = digest.wrapping_add(add(rows.digest, spec.name.as_bytes()));
        for index in spec.indexes.iter().filter(|_| verify == Verify::Indexes) {
            let found = sum_of(store, spec, Some(index))?;
            entries += found.rows;
            let holds = found == rows;
            conditions.push(Condition {
                condition: format!("{}.{}", spec.name, index.name),
                text: "the index leads to every row once, in order".into(),
                holds,
                detail: if holds { String::new() } else { format!("{found:?} by the index, {rows:?} by the key") },
            });
        }
    }
    contents.entries = (verify == Verify::Indexes).then_some(entries);
    contents.digest = format!("{digest:016x}");
    Ok((contents, conditions))
}
