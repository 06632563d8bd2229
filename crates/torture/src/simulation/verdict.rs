//! The verdict on the end of a life.
//!
//! Rules
//! 1. An error of the engine is right only after a fault: the power is off, or an operation has failed. The fault is
//!    queried before the database is dropped, because writes during the drop may trigger it.
//! 2. After a failed write or sync nothing is acknowledged: the database has stopped, and its close returns an error.

use crate::alphabet::content::schema;
use crate::alphabet::played::Played;
use highwater::{Database, Error as Engine};
use highwater_bench::{Error, Result};
use highwater_storage::Faults;
use std::collections::BTreeSet;

/// Judges the result of the work on an open database. `stops`: the failure is one of a write or sync, which stops the
/// database.
pub(super) fn of_work(worked: Result<()>, db: &Database, faults: &Faults, stops: bool) -> Result<()> {
    let (has_failed, is_off) = (faults.failures() > 0, faults.is_power_off());
    match &worked {
        Err(Error::Engine(error)) if !has_failed && !is_off => {
            return Err(Error::Data(format!("an error though nothing had failed: {error}")));
        }
        Err(Error::Data(_)) => {}
        _ if stops && has_failed => expect_stopped(db)?,
        _ => {}
    }
    worked
}

/// Judges the result of a life.
pub(super) fn of_life(lived: &Result<()>, faults: &Faults, stops: bool) -> Result<()> {
    match lived {
        Ok(()) if stops && faults.failures() > 0 => {
            Err(Error::Data("the database was closed without an error though a write or sync had failed".into()))
        }
        _ => Ok(()),
    }
}

/// Checks rule 2.
fn expect_stopped(db: &Database) -> Result<()> {
    match db.create_table("after_a_failure", schema(&Played::default(), &BTreeSet::new())) {
        Ok(_) => Err(Error::Data("a table was created though a write or sync had failed".into())),
        Err(Engine::Poisoned(_)) => Ok(()),
        Err(error) => {
            Err(Error::Data(format!("a write or sync had failed, and a new table was refused only as: {error}")))
        }
    }
}
