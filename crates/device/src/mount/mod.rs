//! An emulated disk mounted as a real block device under a real file system: FUSE file -> loop device -> ext4.
//!
//! | module | owns |
//! |---|---|
//! | [`options`] | options of a mount |
//! | `mounted` | the [`Mount`]: a disk and what is put up on it |
//! | `stack` | FUSE, loop device, file system: put up and taken down |
//! | `blocks` | the label of each block: journal or not, its stream |
//! | [`file_system`] | the disk as a file |
//! | [`pages`], [`traffic`], [`access`] | the pages in its requests, and the writes of each block |
//! | [`ext4`], [`host`] | the ranges of ext4's journal; the programs of this machine |
//! | [`sample`], [`mod@run`] | counters of an interval; a mount until it is to end |
//!
//! Rules
//! 1. Set up in this order: FUSE, loop device, file system made, journal found and tagged, file system mounted. Undone
//!    in the reverse order, also when a step fails, and by [`guard`](crate::guard) if this process dies.
//! 2. Only loop devices and mount points that are created here are changed.
//! 3. Counters begin when the file system has been mounted: its creation is not counted.
//! 4. A power cut makes every request fail; programs that use the file system see errors. [`Mount::power_cycle`] then
//!    unmounts, brings power back and mounts again, as a reboot does.

pub mod access;
mod blocks;
pub mod ext4;
pub mod file_system;
pub mod host;
mod mounted;
pub mod options;
pub mod pages;
pub mod run;
pub mod sample;
mod stack;
pub mod traffic;

pub use access::AccessReport;
pub use mounted::Mount;
pub use options::{FileSystemKind, JournalMode, MountOptions};
pub use run::{Event, run};
pub use sample::MountSample;

#[cfg(test)]
mod mount_test;
