//! Growth of the ring: a log begins small and grows with its redo, up to the size in the option.
//!
//! Rules
//! 1. It grows by [`FACTOR`] when the needed redo, with reservations and spare space, takes more than a part of the
//!    ring ([`FULL_PART`]).
//! 2. Blocks keep their places: the ring grows only while all needed redo is in one lap, and its base is then the start
//!    of that lap. Otherwise the next step tries again.
//! 3. Crash order: the file gets the new part, which reads as zeros, and is synced; then both headers get the new size,
//!    one after another; then blocks may be written there. A crash before the headers leaves the old ring in a longer
//!    file.
//! 4. A full disk is not an error: the ring keeps its size, and growth is tried again later ([`REFUSED_FOR`]).
//! 5. If commits wait for syncs, zeros are written to the new part, so that no sync waits for the file system's
//!    metadata. Otherwise no thread waits for it, and the zeros would cost as much as the redo. Each step writes one
//!    piece ([`PIECE_BYTES`]), because the thread also flushes dirty pages and advances the checkpoint.

use super::format::{self, LogGeometry, LogHeader};
use super::headers::write_zeros;
use super::ring::Ring;
use super::ring_size::RingSize;
use super::writer::RingWriter;
use crate::error::Result;
use std::time::{Duration, Instant};

/// Pause after the device refused space, before the next attempt.
const REFUSED_FOR: Duration = Duration::from_secs(10);
/// Factor by which the ring grows. Not more, because unneeded zeros cost as much as redo.
const FACTOR: u64 = 2;
/// Zeros written in a step.
const PIECE_BYTES: u64 = 4 << 20;
/// The part of the ring that may be in use before it grows: the rest must take the redo until it has grown.
const FULL_PART: u64 = 2;

impl RingSize {
    /// Grows the ring, or prepares a piece of the file for it, if growth is due and possible; returns whether the call
    /// must be repeated at once. One thread calls it; `syncs_commits` says whether commits wait for syncs (rule 5).
    ///
    /// # Errors
    /// [`Error::Poisoned`](crate::Error::Poisoned), or the I/O error that stops the database.
    pub(super) fn growth_step(&self, writer: &RingWriter, syncs_commits: bool) -> Result<bool> {
        let ring = writer.ring();
        // Once: the option may change meanwhile, and the ring must not become smaller here.
        let (size_bytes, max_bytes) = (ring.geometry().size_bytes(), self.max_bytes());
        if size_bytes >= max_bytes || self.is_growth_refused() || !is_growth_due(ring) {
            return Ok(false);
        }
        let wanted = size_bytes.saturating_mul(FACTOR).min(max_bytes);
        debug_assert!(wanted > size_bytes, "a ring in use only grows");
        ring.poison().check()?;
        let have = self.make_room_for(wanted, writer, syncs_commits)?;
        if have < wanted {
            return Ok(!self.is_growth_refused());
        }
        let mut io = writer.lock();
        let start = ring.geometry().start_of_lap(ring.written_lsn());
        if format::block_floor(ring.oldest_needed().0) < start.0 {
            return Ok(false);
        }
        writer.sync(&mut io)?;
        let durable_lsn = ring.durable_lsn();
        io.header = LogHeader { size_bytes: wanted, ring_base: start, durable_lsn, ..io.header };
        let (before, geometry) = (ring.geometry(), LogGeometry::of(&io.header));
        for lsn in [start, ring.oldest_needed(), ring.written_lsn()] {
            let (was, is) = (before.offset_of(lsn), geometry.offset_of(lsn));
            debug_assert_eq!(was, is, "rule 2: the block of LSN {lsn} moves");
        }
        ring.set_geometry(geometry);
        io.discarded = 0;
        for _ in 0..2 {
            let header = io.header.next();
            writer.write_header(&mut io, header)?;
        }
        drop(io);
        ring.space().resized(geometry.capacity_bytes(), || ring.checkpoint_lsn());
        Ok(false)
    }

    /// Rule 4.
    fn is_growth_refused(&self) -> bool {
        self.growth_refused.lock().is_some_and(|at| at.elapsed() < REFUSED_FOR)
    }

    /// Grows the file to this length and prepares it for redo, a piece at a time (rule 5); returns the end of the
    /// prepared part. A full disk is noted.
    fn make_room_for(&self, bytes: u64, writer: &RingWriter, syncs_commits: bool) -> Result<u64> {
        let ring = writer.ring();
        let have = writer.lock().made_bytes;
        if bytes <= have {
            return Ok(have);
        }
        let (ready, zeros) = match syncs_commits {
            true => (bytes.min(have + PIECE_BYTES), have..bytes.min(have + PIECE_BYTES)),
            false => (bytes, 0..0),
        };
        let made = ring.device().set_len_bytes(bytes).and_then(|()| write_zeros(ring.device(), zeros));
        match made {
            Err(error) if error.is_full() => {
                *self.growth_refused.lock() = Some(Instant::now());
                Ok(have)
            }
            made => {
                ring.stop_on_failure(made)?;
                writer.lock().made_bytes = ready;
                Ok(ready)
            }
        }
    }
}

/// Rule 1.
fn is_growth_due(ring: &Ring) -> bool {
    let used = ring.space().reserved_end().0.saturating_sub(ring.oldest_needed().0);
    used > ring.space().capacity() / FULL_PART
}
