//! What was asked of the devices of a simulation, in order.

use highwater_storage::{Device, Placement, Result, Write};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A step ended, with this outcome.
    Step(u64),
    /// Device `number` was asked for this.
    Asked { number: u64, what: &'static str, offset: u64, bytes: u64, sum: u32 },
}

impl fmt::Display for Event {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Event::Step(outcome) => write!(f, "a step ended with outcome {outcome}"),
            Event::Asked { number, what, offset, bytes, sum } => {
                let device = ["data", "redo", "doublewrite"].get(*number as usize - 1).unwrap_or(&"another");
                write!(f, "{what} of {bytes} bytes at {offset} of device {device}, checksum {sum:08x}")
            }
        }
    }
}

/// Everything that happened, in order; clones add to the same.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<Vec<Event>>>);

impl History {
    pub(super) fn add(&self, event: Event) {
        self.0.lock().push(event);
    }

    /// Where this history and another one part, in words; none if they are the same.
    pub fn difference(&self, other: &History) -> Option<String> {
        let (ours, theirs) = (self.0.lock().clone(), other.0.lock().clone());
        let at = (0..ours.len().max(theirs.len())).find(|at| ours.get(*at) != theirs.get(*at))?;
        let words = |events: &[Event]| events.get(at).map_or("the end".to_string(), Event::to_string);
        let steps = ours[..at].iter().filter(|event| matches!(event, Event::Step(_))).count();
        Some(format!("after {steps} steps, event {at}: {}; and {}", words(&ours), words(&theirs)))
    }
}

/// The device below, observed.
pub(super) struct Observed {
    inner: Arc<dyn Device>,
    number: u64,
    history: History,
}

impl Observed {
    /// Device `number` of a set, from 1 on.
    pub(super) fn wrap(inner: Arc<dyn Device>, number: u64, history: &History) -> Arc<dyn Device> {
        Arc::new(Observed { inner, number, history: history.clone() })
    }

    fn note(&self, what: &'static str, offset: u64, bytes: u64) {
        self.history.add(Event::Asked { number: self.number, what, offset, bytes, sum: 0 });
    }

    fn note_write(&self, offset: u64, data: &[u8]) {
        let (number, bytes, sum) = (self.number, data.len() as u64, crc32c::crc32c(data));
        self.history.add(Event::Asked { number, what: "write", offset, bytes, sum });
    }
}

impl Device for Observed {
    highwater_storage::pass_on!();

    fn set_len_bytes(&self, len: u64) -> Result<()> {
        self.note("length", 0, len);
        self.inner.set_len_bytes(len)
    }

    /// Threads read when a database is opened, so reads are no part of the history.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        self.inner.read_at(offset, buf)
    }

    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> Result<()> {
        self.note_write(offset, data);
        self.inner.write_at(offset, data, placement)
    }

    fn write_batch(&self, writes: &[Write<'_>]) -> Result<()> {
        writes.iter().for_each(|write| self.note_write(write.offset, write.data));
        self.inner.write_batch(writes)
    }

    fn sync(&self) -> Result<()> {
        self.note("sync", 0, 0);
        self.inner.sync()
    }

    fn reserve(&self, offset: u64, len: u64) -> Result<()> {
        self.note("reservation", offset, len);
        self.inner.reserve(offset, len)
    }

    fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.note("discard", offset, len);
        self.inner.discard(offset, len)
    }
}
