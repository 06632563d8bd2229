//! Reservations of redo space, as mini-transactions make them; the search for space: `space`.
//!
//! Rules
//! 1. A thread that waits for space holds no latch, and one that waits for a page holds no redo space
//!    ([`expect_nothing_reserved`]).
//! 2. A reservation is used by one append, which keeps what it needs; the rest is released.

use super::format::FRAME_BYTES;
use super::ring::Ring;
use super::space::{LogSpace, ReservationState};
use crate::error::{Error, Result};
use std::time::Instant;

/// Redo space reserved before a mini-transaction starts; used by `append`, released on drop.
pub struct Reservation<'l> {
    space: &'l LogSpace,
    bytes: u64,
}

#[cfg(debug_assertions)]
crate::sync::thread_local! {
    /// Reservations that this thread has.
    static RESERVATIONS: std::cell::Cell<i32> = const { std::cell::Cell::new(0) };
}

/// Counts the reservations of this thread, where that is checked.
#[inline]
fn count_reservation(_more: i32) {
    #[cfg(debug_assertions)]
    let _ = RESERVATIONS.try_with(|count| count.set(count.get() + _more));
}

impl<'l> Reservation<'l> {
    #[inline]
    fn new(space: &'l LogSpace, bytes: u64) -> Reservation<'l> {
        count_reservation(1);
        Reservation { space, bytes }
    }

    /// Bytes reserved, the frame included.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Keeps `used` bytes as part of the log and releases the rest.
    #[inline]
    pub(super) fn consume(mut self, used: u64) {
        debug_assert!(used <= self.bytes);
        self.bytes -= used;
    }
}

/// Redo space for the end of a prepared transaction. It counts as reserved until it is used, or the database is closed.
#[derive(Debug)]
pub struct EndRedo(u64);

impl Drop for Reservation<'_> {
    #[inline]
    fn drop(&mut self) {
        count_reservation(-1);
        if self.bytes > 0 {
            self.space.release(self.bytes);
        }
    }
}

impl Ring {
    /// Waits until `bytes` of redo fit without overwriting what the last checkpoint needs. The caller holds no latch.
    ///
    /// # Errors
    /// [`Error::LogTooSmall`] if it can never fit, [`Error::Poisoned`], or [`Error::Usage`] before `start`.
    #[inline]
    pub(super) fn reserve(&self, bytes: u64) -> Result<Reservation<'_>> {
        match self.reserve_at_once(bytes) {
            Some(reservation) => Ok(reservation),
            None => self.reserve_slowly(bytes.saturating_add(FRAME_BYTES as u64)),
        }
    }

    /// Reserves `bytes` for the end of a prepared transaction; `None` if enough is kept for others. May wait as
    /// [`reserve`](Ring::reserve).
    ///
    /// # Errors
    /// As [`reserve`](Ring::reserve).
    pub(super) fn keep_for_end(&self, bytes: u64) -> Result<Option<EndRedo>> {
        let bytes_framed = bytes.saturating_add(FRAME_BYTES as u64);
        if !self.space().count_end(bytes_framed) {
            return Ok(None);
        }
        match self.reserve(bytes) {
            Ok(mut reservation) => Ok(Some(EndRedo(std::mem::take(&mut reservation.bytes)))),
            Err(error) => {
                self.space().uncount_end(bytes_framed);
                Err(error)
            }
        }
    }

    /// Uses the space that was kept for a transaction's end.
    pub(super) fn use_kept(&self, kept: EndRedo) -> Reservation<'_> {
        self.space().uncount_end(kept.0);
        Reservation::new(self.space(), kept.0)
    }

    /// Keeps the space of an end that has not used it for its next try.
    pub(super) fn keep_again(&self, mut unused: Reservation<'_>) -> EndRedo {
        self.space().count_end_again(unused.bytes);
        EndRedo(std::mem::take(&mut unused.bytes))
    }

    /// As [`Ring::reserve`], without waiting: `None` if there is no space now.
    #[inline]
    pub(super) fn reserve_at_once(&self, bytes: u64) -> Option<Reservation<'_>> {
        let bytes = bytes.saturating_add(FRAME_BYTES as u64);
        let taken = bytes <= self.space().longest_group() && self.space().take_at_once(bytes);
        taken.then(|| Reservation::new(self.space(), bytes))
    }

    /// Waits until `bytes`, the frame included, fit.
    #[cold]
    fn reserve_slowly(&self, bytes: u64) -> Result<Reservation<'_>> {
        if bytes > self.space().longest_group().min(self.space().capacity()) {
            return Err(Error::LogTooSmall { bytes });
        }
        let since = Instant::now();
        let state = self.space().wait_for(bytes);
        self.stats().log_waits.inc();
        self.stats().log_wait_us.add(since.elapsed().as_micros() as u64);
        match state {
            ReservationState::Open => Ok(Reservation::new(self.space(), bytes)),
            ReservationState::NotStarted => Err(Error::Usage("the redo log has not been started yet".into())),
            ReservationState::Closed => Err(self.poison().error()),
        }
    }
}

/// A thread that waits for a page holds no redo space.
#[inline]
pub(super) fn expect_nothing_reserved() {
    #[cfg(debug_assertions)]
    RESERVATIONS.with(|count| debug_assert!(count.get() <= 0, "redo space is held while a page is loaded"));
}
