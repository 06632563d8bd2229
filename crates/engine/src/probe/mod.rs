//! The measurement of the data device at opening, and its consequences: the meaning of `flush_neighbors = auto`; and
//! for a new database, page size, page store and compression ([`choose_new`]).
//!
//! Terms: the *evidence* is a few times of contiguous and of scattered writes of the same pages; the *choice* (neighbor
//! flushing, writes in flight) is a pure function of it ([`choose`]).
//!
//! Rules
//! 1. No measurement overwrites live pages: the store lends space that is unused at that moment. Afterwards it contains
//!    zeros.
//! 2. A probe ends early: after about 150 ms on flash, 2 s on a disk; and after three to five rounds on slower devices.
//! 3. The result is stored in page 0 with its time and device ([`ProbeRecord`]), so only the first opening on a device
//!    measures. Another device, page size or flush method requires a new measurement, and so does `probe_again`.
//! 4. If the rounds of a measurement contradict each other ([`agree`]), other programs used the disk. The result is
//!    used for this opening; the next one measures again, and keeps the shorter time of each, because a busy disk only
//!    makes times longer. This ends when a measurement is steady or repeats the previous times, and after
//!    [`MAX_MEASUREMENTS`] in any case.
//! 5. A device without an identity ([`Device::identity`](highwater_storage::Device::identity)) is memory: it is not
//!    measured, and neighbors gain nothing.

mod choice;
mod measure;
mod new_database;
mod record;

#[cfg(test)]
mod probe_test;

pub use choice::Choice;
pub(crate) use choice::choose;
pub(crate) use measure::{Region, measure};
pub use new_database::Chosen;
pub(crate) use new_database::{KnownDevice, NEW_DATABASE_AT, NewDatabase, choose_new, needs_evidence, rows_page};
pub use record::ProbeRecord;
pub(crate) use record::{RECORD_AT, RECORD_BYTES};

/// Depths at which scattered writes are timed.
pub const DEPTHS: [u32; 3] = [1, 8, 32];
/// Pages written for each time.
pub(crate) const PROBE_PAGES: u32 = 32;

/// Measurements that are taken until one is kept for good.
pub(crate) const MAX_MEASUREMENTS: u32 = 3;

/// Times that differ by less decide nothing: a seek costs half a millisecond for each of the pages.
const DIFFERENCE_US: u32 = 1000;

/// Whether two times may be of the same device at rest: the longer one is at most twice the other, or they are short.
fn agree(one: u32, other: u32) -> bool {
    one.abs_diff(other) <= one.min(other).max(DIFFERENCE_US)
}

/// The measured times; each is the shortest of its rounds, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Evidence {
    /// Pages of each measurement.
    pub pages: u32,
    /// Bytes of a page.
    pub page_bytes: u32,
    /// One page and a sync.
    pub sync_us: u32,
    /// All pages side by side, as one write, and a sync.
    pub contiguous_us: u32,
    /// The same pages far apart, in one batch, and a sync.
    pub scattered_us: u32,
    /// The same pages far apart, at most [`DEPTHS`] of them in flight; 0 = not measured (a disk: the answer is known).
    pub at_depth_us: [u32; DEPTHS.len()],
    /// Whether the two shortest rounds of side by side, and of far apart, agree.
    pub is_steady: bool,
}

impl Evidence {
    /// Additional cost of a page at a separate position, in microseconds.
    pub fn place_us(&self) -> f64 {
        f64::from(self.scattered_us.saturating_sub(self.contiguous_us)) / f64::from(self.pages.max(1))
    }

    /// The shorter times of two measurements.
    fn best_of(self, other: Evidence) -> Evidence {
        let measured = |one: u32, other: u32| if one == 0 || other == 0 { one.max(other) } else { one.min(other) };
        let depth = |n: usize| measured(self.at_depth_us[n], other.at_depth_us[n]);
        let is_same = agree(self.contiguous_us, other.contiguous_us) && agree(self.scattered_us, other.scattered_us);
        Evidence {
            sync_us: self.sync_us.min(other.sync_us),
            contiguous_us: self.contiguous_us.min(other.contiguous_us),
            scattered_us: self.scattered_us.min(other.scattered_us),
            at_depth_us: std::array::from_fn(depth),
            is_steady: self.is_steady || other.is_steady || is_same,
            ..self
        }
    }

    /// Ratio of the times of writing pages separately and of writing adjacent pages.
    pub fn gain(&self) -> f64 {
        f64::from(self.scattered_us) / f64::from(self.contiguous_us.max(1))
    }
}

impl std::fmt::Display for Evidence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "{} pages of {} bytes: {} us side by side, {} us apart ({:.0} us more for each), one page and a sync {} us",
            self.pages,
            self.page_bytes,
            self.contiguous_us,
            self.scattered_us,
            self.place_us(),
            self.sync_us
        )?;
        let timed = DEPTHS.iter().zip(self.at_depth_us).filter(|(_, us)| *us > 0);
        timed.into_iter().try_for_each(|(depth, us)| write!(f, ", {us} us with {depth} in flight"))
    }
}
