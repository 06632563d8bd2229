//! A device in memory whose power can be cut.
//!
//! Rules
//! 1. `current` is what reads see; `durable` is what is certain to survive; `unsynced` is every change between the two,
//!    oldest first. A sync makes `durable` equal to `current` and empties `unsynced`.
//! 2. A power cut keeps `durable` and, of the unsynced changes, any: each write survives, vanishes, or survives in some
//!    of its pieces (sectors of 512 bytes, or what the device promises; themselves never torn), and the survivors land
//!    in any order. Changes of the length survive as a prefix of their order; bytes beyond the surviving length are
//!    gone.
//! 3. The same seed gives the same outcome for the same history.
//! 4. A discarded range reads as [`DISCARD_FILL`], so that nothing comes to depend on its contents.
//! 5. A limited device is full as a file system is: whole blocks that were discarded are room for others, and writing
//!    or reserving them again takes room. What others use counts against the limit.

mod bytes;
mod device;
mod image;

pub use device::MemoryDevice;

#[cfg(test)]
mod memory_test;
