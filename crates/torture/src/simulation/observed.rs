//! What was asked of the devices of a simulation, in order.

use highwater_storage::{Device, Request, TestDevice};
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
    /// Device `number` of a set, from 1 on, observed. Threads read when a database is opened, so reads are no part of
    /// the history; nor is what is begun to be written back.
    pub fn observe(&self, inner: Arc<dyn Device>, number: u64) -> Arc<dyn Device> {
        let history = self.clone();
        Arc::new(TestDevice::over(inner).before(move |request| {
            let (range, mut sum) = (request.range(), 0);
            let what = match request {
                Request::Read { .. } | Request::WriteBack(_) => return Ok(()),
                Request::Write { data, .. } => {
                    sum = crc32c::crc32c(data);
                    "write"
                }
                Request::SetLen(_) => "length",
                Request::Reserve(_) => "reservation",
                Request::Sync | Request::Discard(_) => request.operation(),
            };
            let (offset, bytes) = (range.start, range.end - range.start);
            history.add(Event::Asked { number, what, offset, bytes, sum });
            Ok(())
        }))
    }

    pub(super) fn add(&self, event: Event) {
        self.0.lock().push(event);
    }

    /// Where this history and another one part, as text; none if they are the same.
    pub fn difference(&self, other: &History) -> Option<String> {
        let (ours, theirs) = (self.0.lock().clone(), other.0.lock().clone());
        let at = (0..ours.len().max(theirs.len())).find(|at| ours.get(*at) != theirs.get(*at))?;
        let words = |events: &[Event]| events.get(at).map_or("the end".to_string(), Event::to_string);
        let steps = ours[..at].iter().filter(|event| matches!(event, Event::Step(_))).count();
        Some(format!("after {steps} steps, event {at}: {}; and {}", words(&ours), words(&theirs)))
    }
}
