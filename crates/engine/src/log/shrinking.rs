//! Shrinking: a log that is larger than it may be, or than the data of a closed database are worth, becomes smaller
//! when a generation begins, and its file as short.
//!
//! Rules
//! 1. Only at the start of a generation: nothing that the ring holds is needed then, so blocks may change their places.
//!    The ring's base is the block of the generation's first LSN.
//! 2. Crash order: both headers say the new size, one after the other; then the file is cut; then blocks may lie in
//!    their new places. A crash before the first header is durable leaves the old generation in the old ring; one
//!    before the second leaves the new generation, which is empty. A crash before the cut leaves a file that is longer
//!    than its log: every start cuts such a file.
//! 3. What the smaller ring holds of older generations does not verify, wherever it lies.
//! 4. A device of fixed length keeps the size of its log.
//!
//! A reader that needs the redo of earlier generations, such as the archive, copies it before the start.

use super::format::{self, LogGeometry, LogHeader};
use super::{Io, Log};
use crate::error::Result;
use crate::types::Lsn;

impl Log {
    /// Writes the header that begins a generation, with the size that the log may have at most.
    pub(super) fn begin_generation(&self, io: &mut Io, header: LogHeader) -> Result<()> {
        let max_bytes = self.max_bytes();
        if self.size_bytes() <= max_bytes {
            self.write_header(io, header)?;
        } else {
            self.begin_smaller(io, header, max_bytes)?;
        }
        self.cut_file()
    }

    /// Rule 2.
    pub(super) fn begin_smaller(&self, io: &mut Io, header: LogHeader, size_bytes: u64) -> Result<()> {
        let start = Lsn(format::block_floor(header.checkpoint_lsn.0));
        let header = LogHeader { size_bytes, ring_base: start, ..header };
        let geometry = LogGeometry::of(&header);
        self.set_geometry(io, geometry);
        // What the ring holds is another lap's, until that lap is written.
        io.discarded = start.0 + geometry.lap();
        io.made_bytes = header.size_bytes;
        for header in [header, header.next()] {
            self.write_header(io, header)?;
        }
        self.space.resized(geometry.capacity_bytes(), || header.checkpoint_lsn);
        Ok(())
    }

    /// Releases what the file has beyond the log: of a larger log, or of a growth that never finished.
    pub(super) fn cut_file(&self) -> Result<()> {
        let (len_bytes, size_bytes) = (self.device.len_bytes()?, self.size_bytes());
        if self.device.has_fixed_len() || len_bytes <= size_bytes {
            return Ok(());
        }
        self.stop_on_failure(self.device.set_len_bytes(size_bytes))
    }
}
