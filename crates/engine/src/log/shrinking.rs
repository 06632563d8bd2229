//! Shrinking: a log that is larger than its option, or than a quarter of the data of a closed database, gets a smaller
//! ring and file when a generation begins.
//!
//! Rules
//! 1. Only at the start of a generation: no redo in the ring is needed then, so blocks may change their places. The
//!    ring's base is the block of the generation's first LSN.
//! 2. Crash order: both headers get the new size, one after another; then the file is truncated; then blocks may be
//!    written to their new places. A crash before the first header is durable leaves the old generation in the old
//!    ring; a crash before the second leaves the new generation, which is empty. A crash before the truncation, or a
//!    growth that never finished, leaves a file that is longer than its log: every start and every end of a log
//!    truncates such a file.
//! 3. Groups of older generations in the smaller ring do not verify at any place.
//! 4. A device of fixed length keeps the size of its log.
//! 5. The closed log of a small database releases the space of its ring, except the block of its end
//!    ([`RingSize::release_ring`]); the next start reserves the space before any append ([`RingSize::reserve_ring`]).
//!
//! A reader that needs the redo of earlier generations, such as the archive, copies it before the start.

use super::format::{self, BLOCK_BYTES, LogGeometry, LogHeader, RING_START};
use super::ring::Ring;
use super::ring_size::RingSize;
use super::writer::{Io, RingWriter};
use crate::error::{Error, Result};
use crate::types::Lsn;

impl RingSize {
    /// Writes the header that begins a generation, with the size that the log may have at most.
    pub(super) fn begin_generation(&self, writer: &RingWriter, io: &mut Io, header: LogHeader) -> Result<()> {
        let max_bytes = self.max_bytes();
        if writer.ring().size_bytes() <= max_bytes {
            writer.write_header(io, header)?;
        } else {
            RingSize::begin_smaller(writer, io, header, max_bytes)?;
        }
        RingSize::cut_file(writer.ring())
    }

    /// Rule 2.
    pub(super) fn begin_smaller(writer: &RingWriter, io: &mut Io, header: LogHeader, size_bytes: u64) -> Result<()> {
        let ring = writer.ring();
        let start = Lsn(format::block_floor(header.checkpoint_lsn.0));
        let header = LogHeader { size_bytes, ring_base: start, ..header };
        debug_assert_eq!(header.generation, io.header.generation + 1, "rule 1: a generation begins");
        debug_assert!(size_bytes < ring.size_bytes(), "{size_bytes} bytes are not fewer than {}", ring.size_bytes());
        let geometry = LogGeometry::of(&header);
        ring.set_geometry(geometry);
        // Blocks of the ring belong to an earlier lap until this lap has written them.
        io.discarded = start.0 + geometry.lap();
        io.made_bytes = header.size_bytes;
        for header in [header, header.next()] {
            writer.write_header(io, header)?;
        }
        ring.space().resized(geometry.capacity_bytes(), || header.checkpoint_lsn);
        Ok(())
    }

    /// Releases the space of the ring of a log that has ended at `end`, unless a reader needs its redo (rule 5). A
    /// failure is ignored.
    pub(super) fn release_ring(ring: &Ring, end: Lsn) {
        if ring.device().has_fixed_len() || ring.space().kept() < end {
            return;
        }
        let geometry = ring.geometry();
        let (kept_block, _) = geometry.block_place(format::block_floor(end.0));
        for range in [RING_START..kept_block, kept_block + BLOCK_BYTES..geometry.size_bytes()] {
            let _ = ring.device().discard(range.start, range.end - range.start);
        }
    }

    /// Reserves the space of the ring of a log that has just been started. Zeros are not written to it, as they are to
    /// the new part of a growing ring, because the opening would have to wait for them. So in the first lap a sync may
    /// also write the file system's metadata.
    ///
    /// # Errors
    /// [`Error::DiskFull`] if the disk has no space for it, another I/O error.
    pub(super) fn reserve_ring(ring: &Ring) -> Result<()> {
        ring.device().reserve(0, ring.size_bytes()).map_err(Error::of_room)
    }

    /// Truncates the file to the log's size: a larger log, or an unfinished growth, may have left it longer.
    pub(super) fn cut_file(ring: &Ring) -> Result<()> {
        let (len_bytes, size_bytes) = (ring.device().len_bytes()?, ring.size_bytes());
        if ring.device().has_fixed_len() || len_bytes <= size_bytes {
            return Ok(());
        }
        ring.stop_on_failure(ring.device().set_len_bytes(size_bytes))
    }
}
