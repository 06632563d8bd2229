//! An emulated multi-stream SSD and a hard disk that any database can run on.
//!
//! Flash wear and write amplification are invisible to a file system. This crate makes them visible: to an engine in
//! process (through `highwater_storage::Device`), to recorded traces, and to any program through a mounted block
//! device.
//!
//! Layers, bottom to top; each uses only those above it in this list:
//!
//! | module | owns |
//! |---|---|
//! | [`error`], [`promises`], [`clock`] | errors, the promises of a device, virtual and real time |
//! | [`model`] | the interface of an emulated device: requests in, completion times and counters out |
//! | [`ssd`], [`hdd`] | the two models |
//! | [`preset`], [`preset_file`] | devices by name; devices that a file describes |
//! | [`labels`], [`age`] | the label of each block; writes before a measurement |
//! | [`store`], [`image`] | bytes, bytes at a moment |
//! | [`crash`], [`disk`] | power cuts; all of it together: a disk with data |
//! | [`trace`], [`histogram`] | recorded requests, named ranges, stream rules; latencies |
//! | [`replay`], [`report`] | a trace on a device; its result as text and as a page |
//! | [`usage`] | the work of a device between two moments |
//! | [`guard`] | clean-up if this process dies |
//! | [`adapter`] | an engine on a device, in process |
//! | [`mount`] | a device under a real file system |
//!
//! **Invariant:** nothing here uses the engine.

pub mod adapter;
pub mod age;
pub mod clock;
pub mod crash;
pub mod disk;
pub mod error;
pub mod guard;
pub mod hdd;
pub mod histogram;
pub mod image;
pub mod labels;
pub mod model;
#[cfg(target_os = "linux")]
pub mod mount;
pub mod preset;
pub mod preset_file;
pub mod promises;
pub mod replay;
pub mod report;
pub mod ssd;
pub mod store;
pub mod trace;
pub mod usage;

pub use error::{DeviceError, Result};
