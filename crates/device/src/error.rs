//! Errors of emulated devices. Each message says what to change.

use std::path::PathBuf;

/// Result of a device operation.
pub type Result<T> = std::result::Result<T, DeviceError>;

/// An error of the emulated device, its traces or its mount.
#[derive(Debug, thiserror::Error)]
pub enum DeviceError {
    /// A configuration value with which no device can be made.
    #[error("bad device configuration: {0}")]
    Config(String),
    /// No preset of that name.
    #[error("no device preset named \"{name}\"; there are: {known}; or name a file that describes a device")]
    UnknownPreset {
        /// The requested name.
        name: String,
        /// The names of the presets, separated by commas.
        known: String,
    },
    /// A request outside the device.
    #[error("request of {blocks} blocks at LBA {lba} goes beyond the device's {capacity_blocks} blocks of 4 KiB")]
    OutOfRange {
        /// First 4 KiB block of the request.
        lba: u64,
        /// Its length in 4 KiB blocks.
        blocks: u64,
        /// Size of the device in 4 KiB blocks.
        capacity_blocks: u64,
    },
    /// A stream number the device does not have.
    #[error("stream {stream} asked for, but the device has {streams} (0 to {last})", last = streams - 1)]
    NoSuchStream {
        /// The requested stream.
        stream: u32,
        /// Number of streams of the device.
        streams: u32,
    },
    /// The device failed at a power cut or because of wear: every request fails from then on.
    #[error("the device is dead: {0}")]
    Dead(&'static str),
    /// The medium could not return the data.
    #[error("unreadable block at LBA {lba}")]
    Unreadable {
        /// The 4 KiB block.
        lba: u64,
    },
    /// A file that is not a trace at all.
    #[error(
        "{path} is not a trace: neither CSV (time_us,op,lba,blocks a line), nor blktrace's output, fio's iolog or MSR \
         Cambridge's CSV",
        path = path.display()
    )]
    NotATrace {
        /// The file.
        path: PathBuf,
    },
    /// A malformed trace.
    #[error("{path}: line or record {at}: {what}", path = path.display())]
    Trace {
        /// The file.
        path: PathBuf,
        /// Line (text) or record (binary), from 1.
        at: u64,
        /// The text found, and the expected one.
        what: String,
    },
    /// A request of a trace that the device refuses.
    #[error("{path}: request {number}: {source}", path = path.display())]
    Request {
        /// The trace.
        path: PathBuf,
        /// Number of the request, from 1.
        number: u64,
        /// The device's error.
        #[source]
        source: Box<DeviceError>,
    },
    /// A stream rule or a named range that cannot be understood or resolved.
    #[error("\"{rule}\": {what}")]
    Rule {
        /// The rule as written.
        rule: String,
        /// The problem.
        what: String,
    },
    /// A file that another process uses.
    #[error("{path} is in use by another mount; unmount that one, or name another file", path = path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The caller asked to stop.
    #[error("stopped before the end")]
    Stopped,
    /// The host lacks something (root, FUSE, a program).
    #[error("{0}")]
    Host(String),
    /// A file or the operating system failed.
    #[error("{what}: {source}")]
    Io {
        /// The operation, with the path.
        what: String,
        /// The operating system's error.
        #[source]
        source: std::io::Error,
    },
}

impl DeviceError {
    /// Wraps an I/O error with the name of the operation.
    pub fn io(what: impl Into<String>, source: std::io::Error) -> DeviceError {
        DeviceError::Io { what: what.into(), source }
    }
}
