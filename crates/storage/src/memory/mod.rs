//! A device in memory whose power can be cut.
//!
//! Rules
//! 1. `current` has the bytes that reads see; `durable` those that certainly survive; `unsynced` every change between
//!    the two, oldest first. A sync makes `durable` equal to `current` and empties `unsynced`.
//! 2. A power cut keeps `durable` and any of the unsynced changes: each write survives, is lost, or survives in some of
//!    its pieces (sectors of 512 bytes, or the device's atomic unit, which are never torn), and the survivors are
//!    applied in any order. Changes of the length survive as a prefix of their order; bytes beyond the surviving length
//!    are gone.
//! 3. The same seed gives the same outcome for the same history.
//! 4. A discarded range reads as [`DISCARD_FILL`], so that no code depends on its contents.
//! 5. A limited device fills like a file system: whole discarded blocks are free space for other files, and writing or
//!    reserving them again takes space. Space of other files counts against the limit.

mod bytes;
mod device;
mod image;

pub use device::MemoryDevice;

#[cfg(test)]
mod memory_test;
