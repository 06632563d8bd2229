//! One short life of a new database, again and again, each time with another operation that fails: the creation, the
//! work and the closing.

use super::{Simulation, Tally, verdict};
use highwater_bench::{Error, Result};
use highwater_storage::{FaultKind, Faults, Operation};

/// What is made to fail, and how: once with an I/O error, which may lose what a sync was for, or because the disk is
/// full from then on.
const FAILURES: [(Operation, FaultKind); 9] = [
    (Operation::Read, FaultKind::ErrorOnce),
    (Operation::Write, FaultKind::ErrorOnce),
    (Operation::Sync, FaultKind::ErrorOnce),
    (Operation::Sync, FaultKind::LostSync),
    (Operation::SetLen, FaultKind::ErrorOnce),
    (Operation::Reserve, FaultKind::ErrorOnce),
    (Operation::Discard, FaultKind::ErrorOnce),
    (Operation::SetLen, FaultKind::DiskFull),
    (Operation::Reserve, FaultKind::DiskFull),
];

/// Lets every operation of the first life of a database fail, each in a life of its own. After each the database is
/// opened again and compared with the oracle; `tell` is called then.
///
/// # Errors
/// [`Error::During`] names the operation and what was wrong.
pub fn every_failure(seed: u64, max_steps: u32, mut tell: impl FnMut()) -> Result<Tally> {
    let mut all = Tally::default();
    let sound = Faults::new();
    let mut first = Simulation::new(seed, max_steps);
    first.fail_once(&sound, false)?;
    for (operation, kind) in FAILURES {
        for number in 1..=sound.count(operation) {
            let (mut again, faults) = (Simulation::new(seed, max_steps), Faults::new());
            faults.fail(operation, number, kind);
            again.fail_once(&faults, matches!(operation, Operation::Write | Operation::Sync)).map_err(|error| {
                let what = format!("{operation:?} number {number} ({kind:?})");
                Error::During { what, source: Box::new(error) }
            })?;
            all.add(&again.tally);
            tell();
        }
    }
    Ok(all)
}

impl Simulation {
    /// The first life, in which these faults show; then, often after a power cut, a look at what there is.
    fn fail_once(&mut self, faults: &Faults, stops: bool) -> Result<()> {
        self.tally.lives += 1;
        let lived = self.open(faults).and_then(|db| {
            self.player.oracle.compare(db.database())?;
            self.work(&db, faults, stops)?;
            Ok(db.close()?)
        });
        let failed = faults.failures() > 0;
        verdict::of_life(&lived, faults, stops)?;
        match lived {
            Err(error @ Error::Data(_)) => return Err(error),
            Err(error) if !failed => return Err(error),
            Ok(()) | Err(_) => self.tally.failures += u64::from(failed),
        }
        if self.rng.bool() {
            self.tally.cuts += 1;
            self.cut();
        }
        self.verify()
    }
}
