//! The requests to the devices of a simulation, in order.

use highwater_storage::{Device, Request, TestDevice};
use parking_lot::Mutex;
use std::fmt;
use std::sync::Arc;

/// An event of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Event {
    /// A step ended, with this outcome.
    Step(u64),
    /// Device `number` got this request.
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

/// All events in order; clones share them.
#[derive(Clone, Debug, Default)]
pub struct History(Arc<Mutex<Vec<Event>>>);

impl History {
    /// Wraps device `number` of a set, from 1 on, to record its requests. Reads are not recorded, because several
    /// threads read at an opening; neither are requests to begin writeback.
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

    /// The first difference between two histories, as text; `None` if they are equal.
    pub fn difference(&self, other: &History) -> Option<String> {
        let (ours, theirs) = (self.0.lock().clone(), other.0.lock().clone());
        let at = (0..ours.len().max(theirs.len())).find(|at| ours.get(*at) != theirs.get(*at))?;
        let words = |events: &[Event]| events.get(at).map_or("the end".to_string(), Event::to_string);
        let steps = ours[..at].iter().filter(|event| matches!(event, Event::Step(_))).count();
        Some(format!("after {steps} steps, event {at}: {}; and {}", words(&ours), words(&theirs)))
    }
}
