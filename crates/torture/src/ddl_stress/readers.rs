//! Reads of snapshots in the crash test: the parent process reads the database of the child process before it kills it.
//!
//! Rules
//! 1. Each snapshot is one moment: the sums of condition 1 agree, and all rows of the table that is changed as a whole
//!    have one generation. A snapshot has no expired row, and every row that has not expired.
//! 2. These errors of a read are expected: the child was killed; a table is being changed; on a disk that loses its
//!    power the child's database has stopped, or the folder is gone. Every other error is a finding.
//! 3. No call waits for a killed process.

use super::LARGE;
use super::expiring;
use highwater::{Database, Error as Engine, ReaderSnapshot};
use highwater_bench::{Error, Result};
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// Pause before the next attempt to connect to a child that does not serve readers.
const PAUSE: Duration = Duration::from_millis(5);

/// Reads snapshots of the database in a folder, which another process has open, until `ends`; returns the number of
/// snapshots that were read completely. `loses_power`: the folder's disk loses its power.
///
/// # Errors
/// A snapshot is not one moment, or its reading fails otherwise than by rule 2.
pub fn read_snapshots(folder: &Path, has_stress: bool, loses_power: bool, ends: &AtomicBool) -> Result<u64> {
    let mut snapshots = 0;
    while !ends.load(Ordering::Acquire) {
        let snapshot = Database::open_reader(folder).and_then(|reader| reader.snapshot());
        match snapshot.map_err(Error::from).and_then(|mut snapshot| read_one(&mut snapshot, has_stress)) {
            Ok(()) => snapshots += 1,
            Err(Error::Engine(error)) if is_passing(&error, loses_power) => std::thread::sleep(PAUSE),
            Err(error) => return Err(error),
        }
    }
    Ok(snapshots)
}

/// Whether an error of a reader is one of the expected errors of rule 2. `loses_power`: the folder's disk loses its
/// power.
pub(super) fn is_passing(error: &Engine, loses_power: bool) -> bool {
    match error {
        Engine::NotServed { .. } | Engine::ReaderDisconnected { .. } | Engine::Open(_) => true,
        Engine::TableChanged { .. } | Engine::TableDropped { .. } | Engine::LockWaitTimeout => true,
        Engine::Served(_) => loses_power,
        _ => false,
    }
}

fn read_one(snapshot: &mut ReaderSnapshot, has_stress: bool) -> Result<()> {
    let mut district_cents = std::collections::BTreeMap::<u64, i128>::new();
    for row in snapshot.scan("district").select(&["d_w_id", "d_ytd"])? {
        let row = row?;
        *district_cents.entry(row.u64(0)).or_default() += row.decimal(1).unscaled();
    }
    for row in snapshot.scan("warehouse").iter()? {
        let row = row?;
        let (id, cents) = (row.u64("w_id"), row.decimal("w_ytd").unscaled());
        let sum = district_cents.get(&id).copied().unwrap_or_default();
        if cents != sum {
            let what = format!("warehouse {id}: w_ytd is {cents} cents, the sum of d_ytd {sum}");
            return Err(Error::Data(format!("a reader's snapshot is not one moment: {what}")));
        }
    }
    if has_stress {
        let mut generations = snapshot.scan(LARGE).select(&["generation"])?.map(|row| Ok::<_, Error>(row?.u64(0)));
        let first = generations.next().transpose()?;
        for generation in generations {
            let generation = generation?;
            if Some(generation) != first {
                let what = format!("table {LARGE} has the generations {first:?} and {generation}");
                return Err(Error::Data(format!("a reader's snapshot is not one moment: {what}")));
            }
        }
        if let Some(problem) = expiring::verify_snapshot(snapshot)?.first() {
            return Err(Error::Data(format!("a reader's snapshot: {problem}")));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater::{Options, Schema, Type, values};
    use highwater_bench::store::embedded::Embedded;

    #[test]
    fn a_snapshot_that_is_not_one_moment_is_found() -> Result<()> {
        let folder = tempfile::tempdir().expect("a folder");
        let db = Database::open(folder.path(), Options { buffer_pool_size: 2 << 20, ..Options::default() })?;
        let money = Type::Decimal(12, 2);
        let schema = |id: &str, ytd: &str| Schema::new().column(id, Type::U32).column(ytd, money);
        let warehouse = db.create_table("warehouse", schema("w_id", "w_ytd").primary_key(&["w_id"]))?;
        let district = schema("d_w_id", "d_ytd").column("d_id", Type::U8).primary_key(&["d_w_id", "d_id"]);
        let district = db.create_table("district", district)?;
        let large = Schema::new().column("id", Type::U64).column("generation", Type::U64).primary_key(&["id"]);
        let large = db.create_table(LARGE, large)?;
        let ytd = |cents| highwater::Decimal::new(cents, 2);
        expiring::prepare(&Embedded::new(db.clone()))?;
        db.transact(|txn| {
            txn.insert(&warehouse, &values![1, ytd(500)])?;
            txn.insert(&district, &values![1, ytd(200), 1])?;
            txn.insert(&district, &values![1, ytd(300), 2])?;
            (0..3).try_for_each(|id| txn.insert(&large, &values![id, 7]).map(drop))
        })?;
        let read = || read_one(&mut Database::open_reader(folder.path())?.snapshot()?, true);
        read()?;
        db.transact(|txn| txn.update(&large, &values![2], &[(1, 8.into())]).map(drop))?;
        assert!(read().unwrap_err().to_string().contains("generations Some(7) and 8"));
        db.transact(|txn| txn.update(&warehouse, &values![1], &[(1, ytd(501).into())]).map(drop))?;
        assert!(read().unwrap_err().to_string().contains("w_ytd is 501 cents, the sum of d_ytd 500"));
        Ok(())
    }
}
