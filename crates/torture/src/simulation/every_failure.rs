//! One short life of a new database (creation, work, close), repeated with each of its operations failing in turn.

use super::{Simulation, Tally, verdict};
use highwater_bench::{Error, Result};
use highwater_storage::{FaultKind, Faults, Operation};

/// The failing operations and their faults: one I/O error, in which a sync may lose the unsynced writes, or a disk that
/// is full from then on.
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

/// Lets every operation of the first life of a database fail, each in a separate life. After each life the database is
/// reopened and compared with the oracle, and `tell` is called.
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
    /// Runs the first life with these faults; then compares the database, often after a power cut.
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
