//! All access to disk. The engine reads and writes bytes only through [`Device`].
//!
//! Rules
//! 1. A write is volatile until [`Device::sync`] returns `Ok`; before that a power cut may keep, lose or
//!    tear it (at sector boundaries), in any order with other unsynced writes.
//! 2. A failed `sync` is never retried: the caller must stop using the device (fail-stop).
//! 3. Every write has its purpose ([`Placement`]), so that a device can separate lifetimes.
//! 4. `set_len_bytes` growth reads as zeros.
//! 5. A range that was grown or reserved, and not discarded since, can be written even on a full disk, if the device
//!    can promise that ([`Device::reserve`]).

mod aligned;
mod counted;
mod encryption;
mod error;
mod fault;
mod limited;
pub mod mark;
mod memory;
mod names;
mod os;
mod output;
mod overlay;
mod owner;
mod pass_on;
pub mod power_cut;
mod set;
mod test_device;

pub use aligned::{ALIGNMENT_BYTES, AlignedBuf};
pub use counted::{Counted, Counts};
pub use encryption::{
    CopyKey, CopyKeys, CopyReader, DataKeys, EncryptedDevice, EncryptionError, EncryptionKey, KeyTable,
    SEALED_RECORD_BYTES, Sealer, SetFile, is_encrypted, plain_bytes, rotate_key, sealed_bytes, unlock,
};
pub use error::{Holder, OpenError, Result, StorageError, UNUSED_ZEROS_BYTES};
pub use fault::{FaultKind, Faults, Operation};
pub use limited::Limited;
pub use memory::MemoryDevice;
pub use os::{
    FileDevice, FileRole, FlushMethod, FolderLock, SequentialFile, forget_cached, is_lock_file, is_within, lock_alone,
    lock_shared, real_path, sync_folder,
};
pub use output::OutputFile;
pub use overlay::Overlay;
pub use owner::Owner;
pub use set::{SetOptions, StorageSet, forget_data, forget_redo, redo_path};
// For the tests of all crates: no part of what users see.
#[doc(hidden)]
pub use test_device::{Request, TestDevice};

/// The purpose of a write; the storage maps it to a stream, a lifetime hint or nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Placement {
    /// Redo log.
    Redo,
    /// Doublewrite buffer.
    Doublewrite,
    /// Journal of page images.
    Journal,
    /// Undo log pages.
    Undo,
    /// Change buffer pages.
    ChangeBuffer,
    /// Leaf pages of clustered and secondary trees.
    IndexLeaf,
    /// Inner pages of clustered and secondary trees.
    IndexInner,
    /// Everything else (headers, extent maps, overflow pages).
    Other,
    /// Store segments of pages of any type that are rarely written, or whose lifetime is not known.
    Lifetime0,
    /// Segments of pages that live half as long as those of the longest known lifetime, at most.
    Lifetime1,
    /// Half as long as those before.
    Lifetime2,
    /// Half as long as those before.
    Lifetime3,
    /// Half as long as those before.
    Lifetime4,
    /// Segments of the pages that are written most often.
    Lifetime5,
}

crate::names!(Placement {
    Redo => "redo",
    Doublewrite => "doublewrite",
    Journal => "journal",
    Undo => "undo",
    ChangeBuffer => "change_buffer",
    IndexLeaf => "index_leaf",
    IndexInner => "index_inner",
    Other => "other",
    Lifetime0 => "lifetime_0",
    Lifetime1 => "lifetime_1",
    Lifetime2 => "lifetime_2",
    Lifetime3 => "lifetime_3",
    Lifetime4 => "lifetime_4",
    Lifetime5 => "lifetime_5",
});

impl Placement {
    /// Segments of pages, the longest lifetime first.
    pub const LIFETIMES: [Placement; 6] = [
        Placement::Lifetime0,
        Placement::Lifetime1,
        Placement::Lifetime2,
        Placement::Lifetime3,
        Placement::Lifetime4,
        Placement::Lifetime5,
    ];
}

/// One write of a batch.
#[derive(Clone, Copy, Debug)]
pub struct Write<'a> {
    /// First byte, from the start of the device.
    pub offset: u64,
    /// The bytes; offset, length and address are multiples of [`Device::alignment_bytes`].
    pub data: &'a [u8],
    /// The purpose of the write.
    pub placement: Placement,
}

/// One read of a batch.
#[derive(Debug)]
pub struct Read<'a> {
    /// First byte, from the start of the device.
    pub offset: u64,
    /// Filled; offset, length and address are multiples of [`Device::alignment_bytes`].
    pub buf: &'a mut [u8],
}

/// Is called for each read of a batch, by its index: the bytes that were read, or why they were not.
pub type ReadCallback<'f> = dyn FnMut(usize, Result<&[u8]>) + 'f;

/// Counts of a device's system calls; zeros for a device that makes none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IoCounts {
    /// Calls that make writes durable. A [`Device::sync`] may need none.
    pub syncs: u64,
    /// Writes, a system call for each.
    pub writes: u64,
    /// Writes submitted in batches through io_uring.
    pub ring_writes: u64,
}

/// A file, block device, emulated device or memory that keeps bytes.
pub trait Device: Send + Sync + 'static {
    /// Name for messages: the path of a file, or a name in its place.
    fn name(&self) -> String;
    /// Current length in bytes.
    fn len_bytes(&self) -> Result<u64>;
    /// Grows (with zeros) or cuts the device. Durable after the next `sync`.
    fn set_len_bytes(&self, len: u64) -> Result<()>;
    /// Fills `buf` from `offset`. Reading past the end is an error.
    fn read_at(&self, offset: u64, buf: &mut [u8]) -> Result<()>;
    /// Writes all of `data` at `offset`.
    fn write_at(&self, offset: u64, data: &[u8], placement: Placement) -> Result<()>;
    /// Writes many ranges, in any order, possibly at once; returns when all have completed.
    fn write_batch(&self, writes: &[Write<'_>]) -> Result<()> {
        writes.iter().try_for_each(|w| self.write_at(w.offset, w.data, w.placement))
    }
    /// Reads many ranges, in any order, possibly at once. Calls `done` once for each read, as soon as it has completed
    /// or failed. The others are read even if one fails.
    fn read_batch(&self, reads: &mut [Read<'_>], done: &mut ReadCallback<'_>) {
        for (index, read) in reads.iter_mut().enumerate() {
            let result = self.read_at(read.offset, read.buf);
            done(index, result.map(|()| &*read.buf));
        }
    }
    /// Whether the reads of a batch are in flight concurrently. Otherwise they are sequential, and concurrent reads
    /// need several threads.
    fn supports_batch_reads(&self) -> bool {
        false
    }
    /// Begins writeback of the range from this machine's cache to the device, so that a later `sync` waits for less. It
    /// makes nothing durable. A device without such a cache does nothing.
    ///
    /// # Errors
    /// As for a failed `sync`: the caller must stop using the device.
    fn begin_write_back(&self, _offset: u64, _len: u64) -> Result<()> {
        Ok(())
    }
    /// Makes every completed write durable.
    fn sync(&self) -> Result<()>;
    /// Makes sure that the range, whose contents are not needed, can be written even if the disk becomes full; an error
    /// that [is full](StorageError::is_full) if there is no space. Needed for ranges that were discarded, or may have
    /// been. Durable after the next `sync`. A device whose bytes are always allocated does nothing. Nor does one whose
    /// file system cannot reserve, or writes every block to a new place: there a write fails if the disk is full.
    fn reserve(&self, _offset: u64, _len: u64) -> Result<()> {
        Ok(())
    }
    /// Tells the device that the contents of the range are not needed any more; it may read as anything afterwards, and
    /// its blocks may be used by other files until the range is reserved again.
    fn discard(&self, offset: u64, len: u64) -> Result<()>;
    /// Whether a discarded range can be written again even if the disk is full meanwhile. True for a device with blocks
    /// of its own; false for a file, whose blocks a discard releases.
    fn discard_keeps_room(&self) -> bool {
        false
    }
    /// Whether the length is fixed, as a block device's: setting a length up to it succeeds, but neither changes nor
    /// zeroes anything, and blocks that were never written keep their old contents.
    fn has_fixed_len(&self) -> bool {
        false
    }
    /// Size of an aligned piece that no power cut tears: after a power cut each aligned piece of a write has its old or
    /// its new contents. Without a better promise the smallest sector.
    fn atomic_write_bytes(&self) -> usize {
        512
    }
    /// Requests that from now on no power cut tears a write of whole pieces of `bytes` at multiples of `bytes`: after a
    /// power cut each piece has its old or its new contents.
    ///
    /// # Errors
    /// Why the device cannot promise it, as text; nothing is changed then.
    fn write_untorn(&self, bytes: usize) -> std::result::Result<(), String> {
        match self.atomic_write_bytes() {
            promised if promised >= bytes => Ok(()),
            promised => Err(format!("{} promises that of {promised} bytes", self.name())),
        }
    }
    /// Whether discarding unneeded blocks at once makes the device write less, even if they are soon overwritten. If
    /// so, a discard costs no more than a small write, and the space stays reserved for the file.
    fn prefers_discards(&self) -> bool {
        false
    }
    /// The number of lifetimes that the device separates: writes of this many [lifetimes](Placement::LIFETIMES), the
    /// shortest first, go to erase units of their own. 1 = none: erase units are filled in the order of writes.
    fn lifetime_streams(&self) -> usize {
        1
    }
    /// Offsets, lengths and buffer addresses must be multiples of this (1 = no constraint).
    fn alignment_bytes(&self) -> usize;
    /// An identity of the physical device, stable over time and different for another device; `None` for memory, where
    /// there is nothing to measure.
    fn identity(&self) -> Option<String> {
        None
    }
    /// The most writes of a batch that are in flight at once. A device without control over it ignores this.
    fn set_write_depth(&self, _writes: u32) {}
    /// The system calls made so far.
    fn io_counts(&self) -> IoCounts {
        IoCounts::default()
    }
}
