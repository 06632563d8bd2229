//! A table whose secondary indexes do not fit in the crash test's pool, and writers that change random rows, so most
//! changed leaves of the indexes are not in the pool.

use super::end;
use fastrand::Rng;
use highwater::{Database, Schema, Table, Type, WriteTxn, values};
use highwater_bench::Result;
use highwater_bench::store::Store;
use highwater_bench::store::embedded::Embedded;
use highwater_bench::workload::tpcc::acknowledge::Acknowledger;

/// The table: id, and two wide columns with an index each, which is not unique. One in five ids has no row.
pub(super) const WIDE: &str = "torture_wide";
const IDS: u64 = 30_000;
/// Different values of the second column.
const WIDE_ROWS: u64 = 3000;

/// A column's text: wide, so that an index on it is several times as large as a pool of 8 MiB.
fn text(number: u64) -> String {
    format!("{number:020} {}", "wide ".repeat(44))
}

/// Creates the table unless it exists.
pub(super) fn prepare(store: &Embedded) -> Result<()> {
    if store.table(WIDE)?.is_some() {
        return Ok(());
    }
    let db = store.database();
    let schema = Schema::new().column("id", Type::U64).column("a", Type::Text(250)).column("b", Type::Text(250));
    let table = db.create_table(WIDE, schema.primary_key(&["id"]).index("by_a", &["a"]).index("by_b", &["b"]))?;
    let mut random = Rng::with_seed(1);
    for ids in (0..IDS).collect::<Vec<_>>().chunks(500) {
        let mut txn = db.begin()?;
        for id in ids.iter().filter(|id| *id % 5 > 0) {
            insert(&mut txn, &table, *id, &mut random)?;
        }
        txn.commit()?;
    }
    Ok(())
}

fn insert(txn: &mut WriteTxn, table: &Table, id: u64, random: &mut Rng) -> Result<()> {
    txn.insert(table, &values![id, text(random.u64(..)).as_str(), text(random.u64(..WIDE_ROWS)).as_str()])?;
    Ok(())
}

/// Runs one transaction, which inserts, changes and deletes random rows.
pub(super) fn change(db: &Database, table: &Table, ack: &mut Acknowledger<Table>, random: &mut Rng) -> Result<()> {
    let mut txn = db.begin()?;
    for _ in 0..random.u32(1..20) {
        let id = random.u64(..IDS);
        let changed = match random.u32(..4) {
            0 => txn.delete(table, &values![id])?,
            1 => txn.update(table, &values![id], &[(1, text(random.u64(..)).as_str().into())])?,
            _ => txn.update(table, &values![id], &[(2, text(random.u64(..WIDE_ROWS)).as_str().into())])?,
        };
        if !changed {
            insert(&mut txn, table, id, random)?;
        }
    }
    ack.mark(&mut txn)?;
    end(txn, ack, random)
}
