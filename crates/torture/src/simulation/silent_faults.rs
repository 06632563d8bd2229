//! Disks that lie: once, a read or a write is not what was asked for, and no error says so.
//!
//! Rules
//! 1. A silent fault happens on a copy of the disks; the database continues without it. The redo log has no silent
//!    faults: nothing can tell the loss of its last write from a power cut.
//! 2. Whatever is answered must be right. An error is a report; after the first one the database is opened again,
//!    without silent faults, and compared again.
//! 3. A lie that leaves an old version of a block in its place leaves a right checksum. What neither an answer nor the
//!    check of the database shows of it then is known (docs/design/damage.md), and counted as unseen.

use super::Simulation;
use crate::alphabet::Scene;
use crate::alphabet::choices::Choices;
use highwater::Error as Engine;
use highwater::internals::DeterministicDb;
use highwater_bench::{Error, Result};
use highwater_storage::{Device, Placement, Result as Stored, Write};
use parking_lot::Mutex;
use std::sync::Arc;

/// Unit in which writes and reads go astray.
const BLOCK_BYTES: u64 = 4096;
/// Operations of which one is a lie.
pub(super) const OPERATIONS: u64 = 80;
/// Steps of a life with a lie.
const STEPS: u32 = 60;
/// The number of the device that hears none (rule 1).
const REDO: u64 = 2;

/// What is not as it was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SilentFault {
    /// A bit is wrong in what is read, this time.
    FlippedRead,
    /// A bit is wrong in what is written.
    FlippedWrite,
    /// Another place is read.
    MisdirectedRead,
    /// Another place is written: the right one keeps an old version.
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

/// When the silent fault happens; shared by the devices of a set.
struct Plan {
    fault: SilentFault,
    /// Operations of its kind before it.
    left: u64,
    is_told: bool,
    rng: Choices,
}

/// A device that has the silent fault of its plan when it is due.
struct FaultyDevice {
    inner: Arc<dyn Device>,
    plan: Arc<Mutex<Plan>>,
}

/// What to do instead.
enum Instead {
    Flip { bit: u64 },
    GoTo { offset: u64 },
    Nothing,
}

impl FaultyDevice {
    /// What is to be done instead of an operation with `len` bytes at `offset`; `None`: what was asked for.
    fn instead(&self, is_read: bool, offset: u64, len: usize) -> Stored<Option<Instead>> {
        let device_bytes = self.inner.len_bytes()?;
        let mut plan = self.plan.lock();
        let Plan { fault, left, is_told, rng } = &mut *plan;
        if *is_told || fault.is_read() != is_read {
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
        *is_told = true;
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

/// What one opening of the copy said.
enum Said {
    /// Every answer was right.
    Right,
    /// An error, as it should be.
    Error(Error),
    /// An answer was wrong; whether the check finds something.
    Wrong { text: String, by_check: bool },
}

impl Simulation {
    /// A life with a lie, on a copy of the disks, and a look at what it left.
    ///
    /// # Errors
    /// [`Error::Data`] for a wrong answer that nothing reports; any error if no lie was told.
    pub(super) fn live_with_a_lie(&mut self) -> Result<()> {
        let (fault, left) = (SILENT_FAULTS[self.rng.usize(..SILENT_FAULTS.len())], self.rng.u64(..OPERATIONS));
        self.live_with(fault, left)
    }

    /// The same with this lie, behind `left` operations of its kind.
    pub(super) fn live_with(&mut self, fault: SilentFault, left: u64) -> Result<()> {
        let plan = Plan { fault, left, is_told: false, rng: self.rng.fork() };
        let plan = Arc::new(Mutex::new(plan));
        let mut copy = self.copied();
        let lied = copy.look(STEPS, |number, inner| match number {
            REDO => inner,
            _ => Arc::new(FaultyDevice { inner, plan: plan.clone() }),
        });
        let looked = copy.look(0, |_, inner| inner);
        let is_told = plan.lock().is_told;
        let (mut is_reported, mut is_unseen) = (false, false);
        for said in [lied, looked] {
            match said {
                Said::Right => {}
                Said::Error(error) if !is_told => return Err(error),
                Said::Wrong { text, .. } if !is_told || !fault.leaves_old_versions() => {
                    let fault = if is_told { format!("{fault:?}") } else { "no lie".to_string() };
                    return Err(Error::Data(format!("after {fault}: {text}")));
                }
                Said::Wrong { by_check: false, .. } => is_unseen = true,
                Said::Error(_) | Said::Wrong { .. } => is_reported = true,
            }
        }
        self.tally.silent_faults += u64::from(is_told);
        self.tally.rollbacks_skipped += copy.tally.rollbacks_skipped;
        self.tally.silent_faults_reported += u64::from(is_told && is_reported && !is_unseen);
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

    /// A rollback that was skipped at the opening is a report: dirty reads see its changes from then on, and are
    /// right.
    fn refuse_deferred(&mut self, db: &DeterministicDb) -> Result<()> {
        if db.database().stats().rollbacks_skipped == 0 {
            return Ok(());
        }
        self.tally.rollbacks_skipped += 1;
        Err(Engine::Corrupt("a rollback was skipped".into()).into())
    }
}
