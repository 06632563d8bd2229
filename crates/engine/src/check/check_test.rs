//! A healthy database passes; each kind of damage is found and located.

use super::{CheckReport, Finding};
use crate::db::Database;
use crate::error::Result;
use crate::testing::small_options;
use crate::types::PageNo;
use crate::{Options, Schema, Table, Type, values};
use highwater_storage::StorageSet;

const PAGE_BYTES: usize = 4096;

fn schema() -> Schema {
    Schema::new()
        .column("id", Type::U64)
        .auto_increment("id")
        .column("name", Type::Text(64))
        .nullable("code", Type::I32)
        .nullable("note", Type::Text(1 << 20))
        .primary_key(&["id"])
        .index("by_name", &["name"])
        .unique_index("by_code", &["code"])
}

fn name(n: u64) -> String {
    format!("name {:05}", n.wrapping_mul(7919) % 10_007)
}

/// Rows with and without overflow pages, updates that move entries, deletions, rollbacks.
fn fill(db: &Database, table: &Table, rows: u64) -> Result<()> {
    let long = "x".repeat(9000);
    let mut txn = db.begin()?;
    for n in 0..rows {
        let code = (n % 5 != 0).then_some(n as i32);
        let note = if n % 50 == 7 { long.as_str() } else { "short" };
        txn.insert(table, &values![null, name(n).as_str(), code, note])?;
    }
    txn.commit()?;
    let mut txn = db.begin()?;
    for n in (1..=rows).step_by(7) {
        txn.update(table, &values![n], &[(1, name(n + 1000).as_str().into()), (3, long[..n as usize % 6000].into())])?;
    }
    for n in (1..=rows).step_by(11) {
        txn.delete(table, &values![n])?;
    }
    txn.commit()?;
    let mut txn = db.begin()?;
    for n in (2..=rows).step_by(13) {
        txn.update(table, &values![n], &[(1, "nobody".into()), (3, long.as_str().into())])?;
        txn.insert(table, &values![rows + n, "nobody", null, null])?;
    }
    txn.rollback()
}

/// A closed database in memory.
fn closed(rows: u64) -> StorageSet {
    let storage = StorageSet::memory();
    let db = Database::open_storage(storage.clone(), small_options()).unwrap();
    let table = db.create_table("person", schema()).unwrap();
    db.create_table("empty", schema()).unwrap();
    fill(&db, &table, rows).unwrap();
    db.close().unwrap();
    storage
}

fn check(storage: &StorageSet) -> Result<CheckReport> {
    Database::open_storage_idle(storage.clone(), small_options())?.check()
}

#[test]
fn a_healthy_database_passes() {
    let storage = closed(3000);
    let report = check(&storage).unwrap();
    assert_eq!(report.findings, [], "{:?}", report.counts);
    assert_eq!(report.counts.tables, 2);
    assert_eq!(report.counts.trees, 7);
    assert_eq!(report.counts.rows, 3000 - 3000u64.div_ceil(11));
    assert_eq!(report.counts.entries, 2 * report.counts.rows);
    assert_eq!(report.counts.pages_verified, report.counts.pages_used);
}
