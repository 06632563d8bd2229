//! Appending: one mini-transaction becomes one group.
//!
//! Rules
//! 1. The checksum of the payload is computed before the buffer mutex is taken; under the mutex only the LSN,
//!    generation and length are mixed in.
//! 2. After the database has stopped, the log still assigns LSNs, so that a mini-transaction in its last step can end.
//!    Its bytes are dropped, and no page with such an LSN can be written (`flush_to` fails).

use super::buffer::Active;
use super::format::{self, FRAME_BYTES};
use super::{Log, Reservation};
use crate::sync::MutexGuard;
use crate::types::Lsn;

impl Log {
    /// Appends one mini-transaction atomically and returns its end LSN. Runs `in_order(start, end)` before the next
    /// append may get its LSN (the flush list is kept in LSN order there). No I/O unless the log buffer is full.
    ///
    /// The payload is not empty and no longer than what was reserved: anything else is a bug of the caller and stops
    /// the log.
    pub fn append(&self, reservation: Reservation<'_>, payload: &[u8], in_order: impl FnOnce(Lsn, Lsn)) -> Lsn {
        let bytes = FRAME_BYTES + payload.len();
        if payload.is_empty() || bytes as u64 > reservation.bytes() {
            let (has, may) = (payload.len(), reservation.bytes() - FRAME_BYTES as u64);
            self.poison.set(&format!("a mini-transaction of {has} bytes reserved {may} bytes of redo"));
        }
        let crc = crc32c::crc32c(payload);
        let mut active = self.lock_with_room(bytes);
        let start = active.end();
        if self.poison.is_set() {
            active.skip(bytes);
        } else {
            let frame = format::frame(crc, payload.len() as u32, start, active.generation);
            active.push(&frame);
            active.push(payload);
        }
        let end = active.end();
        debug_assert_eq!(start.0 + bytes as u64, end.0, "a group ends where the next one starts");
        in_order(start, end);
        self.buffer.publish(&active, end);
        drop(active);
        let used = reservation.bytes().min(bytes as u64);
        reservation.consume(used);
        self.space.check_reserved(end, || self.poison.is_set());
        end
    }

    /// The buffer mutex, with room for `bytes` behind it (or the database has stopped).
    #[inline]
    fn lock_with_room(&self, bytes: usize) -> MutexGuard<'_, Active> {
        loop {
            let active = self.buffer.lock();
            if active.fits(bytes) || self.poison.is_set() {
                return active;
            }
            drop(active);
            self.write_out_if_full(bytes);
        }
    }

    #[cold]
    fn write_out_if_full(&self, bytes: usize) {
        let mut io = self.io.lock();
        if !self.buffer.lock().fits(bytes) {
            // A failure stops the database, which ends the caller's loop.
            let _ = self.write_out(&mut io);
        }
    }
}
