//! Writers that change both tables while a page is damaged. Each writer has its own rows, so it knows their contents.

use crate::corruption::whole::{Model, ROWS, TABLES, put};
use highwater::{Database, Error, WriteTxn, values};
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

pub(super) const WRITERS: u64 = 2;
/// First version that writers assign.
const FIRST_VERSION: u64 = 1000;

/// The known contents of both tables.
#[derive(Clone, Default)]
pub(super) struct Known {
    pub(super) models: [Model; 2],
    /// Rows whose rollback is uncertain, because a call failed with an error of damage.
    pub(super) doubtful: [BTreeSet<u64>; 2],
    pub(super) commits: u64,
    /// Calls that failed with an error of damage.
    pub(super) refused: u64,
}

impl Known {
    /// The known contents of a writer's own rows.
    pub(super) fn part(&self, writer: u64) -> Known {
        let own =
            |model: &Model| model.iter().filter(|(id, _)| **id % WRITERS == writer).map(|(a, b)| (*a, *b)).collect();
        Known { models: self.models.each_ref().map(own), ..Known::default() }
    }

    /// Adds the known contents of a writer at its end.
    pub(super) fn extend(&mut self, part: Known) {
        for (model, own) in self.models.iter_mut().zip(part.models) {
            model.extend(own);
        }
        for (doubtful, own) in self.doubtful.iter_mut().zip(part.doubtful) {
            doubtful.extend(own);
        }
        self.commits += part.commits;
        self.refused += part.refused;
    }
}

/// Writes until `stop` is set.
///
/// # Errors
/// An error that is neither damage nor a conflict with the other writers. If the device loses writes, a deleted row may
/// exist again.
pub(super) fn write(
    db: &Database,
    writer: u64,
    (seed, loses_writes): (u64, bool),
    stop: &AtomicBool,
    mut known: Known,
) -> Result<Known, String> {
    let mut random = fastrand::Rng::with_seed(seed ^ writer << 32);
    let mut version = FIRST_VERSION;
    while !stop.load(Relaxed) {
        version += 1;
        let at = random.usize(..TABLES.len());
        let ids: BTreeSet<u64> =
            (0..random.usize(1..8)).map(|_| random.u64(..ROWS) / WRITERS * WRITERS + writer).collect();
        let rolls_back = random.u8(..8) == 0;
        match transact(db, TABLES[at], &known.models[at], &ids, version, rolls_back) {
            Ok(changed) => {
                known.commits += 1;
                for (id, version) in changed {
                    match version {
                        Some(version) => known.models[at].insert(id, version),
                        None => known.models[at].remove(&id),
                    };
                }
            }
            Err(Refused { error, is_rolled_back }) => {
                let is_gone = matches!(error, Error::NoSuchTable { .. } | Error::TableDropped { .. });
                let is_back = loses_writes && matches!(error, Error::DuplicateKey { .. });
                if !is_gone && !is_back && !error.is_retryable() && !error.is_damage() {
                    return Err(format!("a writer: {error}"));
                }
                known.refused += u64::from(error.is_damage());
                if !is_rolled_back {
                    known.doubtful[at].extend(ids);
                }
            }
        }
    }
    Ok(known)
}

struct Refused {
    error: Error,
    is_rolled_back: bool,
}

type Changed = Vec<(u64, Option<u64>)>;

/// Runs one transaction: it puts the rows and removes some of them; nothing changes if it is rolled back.
fn transact(
    db: &Database,
    table: &str,
    model: &Model,
    ids: &BTreeSet<u64>,
    version: u64,
    rolls_back: bool,
) -> Result<Changed, Refused> {
    let failed = |error| Refused { error, is_rolled_back: true };
    let table = db.table(table).map_err(failed)?;
    let mut txn = db.begin().map_err(failed)?;
    let change = |txn: &mut WriteTxn, id: u64| {
        let is_there = model.contains_key(&id);
        if is_there && (id + version).is_multiple_of(9) {
            return txn.delete(&table, &values![id]).map(|_| (id, None));
        }
        put(txn, &table, is_there, id, version).map(|()| (id, Some(version)))
    };
    let changed: Result<Changed, Error> = ids.iter().map(|id| change(&mut txn, *id)).collect();
    match changed {
        Ok(changed) if !rolls_back => match txn.commit() {
            Ok(()) => Ok(changed),
            Err(error) => Err(Refused { error, is_rolled_back: false }),
        },
        Ok(_) => match txn.rollback() {
            Ok(()) => Ok(Vec::new()),
            Err(error) => Err(Refused { error, is_rolled_back: false }),
        },
        Err(error) => {
            let is_rolled_back = txn.rollback().is_ok();
            Err(Refused { error, is_rolled_back })
        }
    }
}
