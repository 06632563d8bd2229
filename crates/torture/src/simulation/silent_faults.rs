//! Silent faults of a disk: one read or write has a flipped bit, goes to another place or is lost, without an error.
//!
//! Rules
//! 1. A silent fault happens on a copy of the disks; the database continues without it. The redo log has no silent
//!    faults: the loss of its last write cannot be distinguished from a power cut.
//! 2. Every answer must be right. An error reports the fault; after the first one the database is opened again, without
//!    silent faults, and compared again.
//! 3. A fault that leaves an old version of a block leaves a right checksum. Wrong answers after it that the check of
//!    the database does not find either are a known limit (docs/design/damage.md), and are counted as unseen.

use super::Simulation;
use crate::alphabet::Scene;
use crate::alphabet::choices::Choices;
use highwater::Error as Engine;
use highwater::internals::DeterministicDb;
use highwater_bench::{Error, Result};
use highwater_storage::{Device, Placement, Result as Stored, Write};
use parking_lot::Mutex;
use std::sync::Arc;

/// Misdirected reads and writes go to a multiple of this.
const BLOCK_BYTES: u64 = 4096;
/// One of this many operations has the fault.
pub(super) const OPERATIONS: u64 = 80;
/// Steps of the database while a fault can happen.
const STEPS: u32 = 60;
/// The number of the device without faults (rule 1).
const REDO: u64 = 2;

/// A kind of silent fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SilentFault {
    /// One read returns a flipped bit; the medium is right.
    FlippedRead,
    /// One write has a flipped bit.
    FlippedWrite,
    /// Another position is read.
    MisdirectedRead,
    /// Another position is written, and the right one keeps an old version.
    MisdirectedWrite,
    /// Nothing is written.
    LostWrite,
}

const SILENT_FAULTS: [SilentFault; 5] = [
    SilentFault::FlippedRead,
    SilentFault::FlippedWrite,
    SilentFault::MisdirectedRead,
    SilentFault::MisdirectedWrite,
    SilentFault::LostWrite,
];

impl SilentFault {
    fn is_read(self) -> bool {
        matches!(self, SilentFault::FlippedRead | SilentFault::MisdirectedRead)
    }

    fn leaves_old_versions(self) -> bool {
        matches!(self, SilentFault::MisdirectedWrite | SilentFault::LostWrite)
    }
}

/// The plan of a silent fault, shared by the devices of a set.
struct Plan {
    fault: SilentFault,
    /// Operations of its kind before it.
    left: u64,
    has_happened: bool,
    rng: Choices,
}

/// A device that has the silent fault of its plan when it is due.
struct FaultyDevice {
    inner: Arc<dyn Device>,
    plan: Arc<Mutex<Plan>>,
}

/// The operation that replaces the requested one.
enum Instead {
    Flip { bit: u64 },
    GoTo { offset: u64 },
    Nothing,
}

impl FaultyDevice {
    /// The replacement of an operation with `len` bytes at `offset`; `None`: the operation as requested.
    fn instead(&self, is_read: bool, offset: u64, len: usize) -> Stored<Option<Instead>> {
        let device_bytes = self.inner.len_bytes()?;
        let mut plan = self.plan.lock();
        let Plan { fault, left, has_happened, rng } = &mut *plan;
        if *has_happened || fault.is_read() != is_read {
            return Ok(None);
        }
        if *left > 0 {
            *left -= 1;
            return Ok(None);
        }
        // Not at the end of the device, which a lost write would leave shorter.
        let places = (device_bytes.saturating_sub(len as u64)) / BLOCK_BYTES;
        if len == 0 || offset + len as u64 > device_bytes || places == 0 {
            return Ok(None);
        }
        *has_happened = true;
        Ok(Some(match fault {
            SilentFault::FlippedRead | SilentFault::FlippedWrite => Instead::Flip { bit: rng.u64(..len as u64 * 8) },
            SilentFault::MisdirectedRead | SilentFault::MisdirectedWrite => {
                Instead::GoTo { offset: rng.u64(..places) * BLOCK_BYTES }
            }
            SilentFault::LostWrite => Instead::Nothing,
        }))
    }
}

fn flip(bytes: &mut [u8], bit: u64) {
    bytes[(bit / 8) as usize] ^= 1 << (bit % 8);
}

impl Device for FaultyDevice {
    highwater_storage::pass_on!();

    fn set_len_bytes(&self, len: u64) -> Stored<()> {
        self.inner.set_len_bytes(len)
    }

    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Stored<()> {
        match self.instead(true, offset, buf.len())? {
            Some(Instead::GoTo { offset }) => self.inner.read_at(offset, buf),
            Some(Instead::Flip { bit }) => {
                self.inner.read_at(offset, buf)?;
                flip(buf, bit);
                Ok(())
            }
            Some(Instead::Nothing) | None => self.inner.read_at(offset, buf),
        }
    }

    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> Stored<()> {
        match self.instead(false, offset, data.len())? {
            Some(Instead::GoTo { offset }) => self.inner.write_at(offset, data, placement),
            Some(Instead::Flip { bit }) => {
                let mut data = data.to_vec();
                flip(&mut data, bit);
                self.inner.write_at(offset, &data, placement)
            }
            Some(Instead::Nothing) => Ok(()),
            None => self.inner.write_at(offset, data, placement),
        }
    }

    fn write_batch(&self, writes: &[Write<'_>]) -> Stored<()> {
        writes.iter().try_for_each(|write| self.write_at(write.offset, write.data, write.placement))
    }

    fn sync(&self) -> Stored<()> {
        self.inner.sync()
    }

    fn reserve(&self, offset: u64, len: u64) -> Stored<()> {
        self.inner.reserve(offset, len)
    }

    fn discard(&self, offset: u64, len: u64) -> Stored<()> {
        self.inner.discard(offset, len)
    }
}

/// The result of one opening of the copy.
enum Said {
    /// Every answer was right.
    Right,
    /// An error, as it should be.
    Error(Error),
    /// An answer was wrong; whether the check finds something.
    Wrong { text: String, by_check: bool },
}

impl Simulation {
    /// Runs a copy of the database with a random silent fault, and then compares its contents.
    ///
    /// # Errors
    /// [`Error::Data`] for a wrong answer that nothing reports; any error if no fault happened.
    pub(super) fn live_with_silent_fault(&mut self) -> Result<()> {
        let (fault, left) = (SILENT_FAULTS[self.rng.usize(..SILENT_FAULTS.len())], self.rng.u64(..OPERATIONS));
        self.live_with_fault(fault, left)
    }

    /// The same with this fault, after `left` operations of the kind that it affects.
    pub(super) fn live_with_fault(&mut self, fault: SilentFault, left: u64) -> Result<()> {
        let plan = Plan { fault, left, has_happened: false, rng: self.rng.fork() };
        let plan = Arc::new(Mutex::new(plan));
        let mut copy = self.copied();
        let during = copy.look(STEPS, |number, inner| match number {
            REDO => inner,
            _ => Arc::new(FaultyDevice { inner, plan: plan.clone() }),
        });
        let looked = copy.look(0, |_, inner| inner);
        let has_happened = plan.lock().has_happened;
        let (mut is_reported, mut is_unseen) = (false, false);
        for said in [during, looked] {
            match said {
                Said::Right => {}
                Said::Error(error) if !has_happened => return Err(error),
                Said::Wrong { text, .. } if !has_happened || !fault.leaves_old_versions() => {
                    let fault = if has_happened { format!("{fault:?}") } else { "no fault".to_string() };
                    return Err(Error::Data(format!("after {fault}: {text}")));
                }
                Said::Wrong { by_check: false, .. } => is_unseen = true,
                Said::Error(_) | Said::Wrong { .. } => is_reported = true,
            }
        }
        self.tally.silent_faults += u64::from(has_happened);
        self.tally.rollbacks_skipped += copy.tally.rollbacks_skipped;
        self.tally.silent_faults_reported += u64::from(has_happened && is_reported && !is_unseen);
        self.tally.silent_faults_unseen += u64::from(is_unseen);
        Ok(())
    }

    fn look(&mut self, steps: u32, wrap: impl Fn(u64, Arc<dyn Device>) -> Arc<dyn Device>) -> Said {
        let db = match self.open_through(wrap) {
            Ok(db) => db,
            Err(error) => return Said::Error(error),
        };
        let looked = self.player.oracle.compare(db.database()).and_then(|()| {
            self.refuse_deferred(&db)?;
            self.steps(&db, steps, &mut Scene::default(), None)
        });
        match looked {
            Ok(()) => db.close().map_or_else(|error| Said::Error(error.into()), |()| Said::Right),
            Err(Error::Data(text)) => {
                let by_check = db.database().check().map_or(true, |report| !report.findings.is_empty());
                Said::Wrong { text, by_check }
            }
            Err(error) => Said::Error(error),
        }
    }

    /// Counts a rollback that the opening skipped as a report: from then on dirty reads rightly see its changes.
    fn refuse_deferred(&mut self, db: &DeterministicDb) -> Result<()> {
        if db.database().stats().rollbacks_skipped == 0 {
            return Ok(());
        }
        self.tally.rollbacks_skipped += 1;
        Err(Engine::Corrupt("a rollback was skipped".into()).into())
    }
}
