//! `highwater device`: the emulated SSD and hard disk on their own.
//!
//! Rules
//! 1. Wrong use (exit status 2): invalid options, rules and files, a file that is not a trace, a trace that does not
//!    fit the device, a host that cannot mount. A damaged record in a trace, a failing disk: exit status 1.
//! 2. All options are checked before a result file is written or anything is mounted.

mod list;
#[cfg(target_os = "linux")]
mod mount;
mod replay;
pub(crate) mod target;

use crate::failure::Failure;
use clap::{Args, Subcommand};
use highwater_device::DeviceError;
use std::io::ErrorKind;

/// Use the emulated SSD or hard disk without the engine
#[derive(Args, Debug)]
pub(crate) struct DeviceArgs {
    #[command(subcommand)]
    command: DeviceCommand,
}

#[derive(Debug, Subcommand)]
enum DeviceCommand {
    /// List the presets and the source of each figure
    List(list::ListOptions),
    /// Replay a recorded trace on a device: write amplification, copies per stream, wear, time
    Replay(Box<replay::ReplayArgs>),
    /// Mount a device with a real file system that any program can use
    #[cfg(target_os = "linux")]
    Mount(Box<mount::MountArgs>),
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] says why and with which exit status.
pub(crate) fn run(args: &DeviceArgs) -> Result<(), Failure> {
    match &args.command {
        DeviceCommand::List(options) => list::run(options),
        DeviceCommand::Replay(options) => replay::run(options),
        #[cfg(target_os = "linux")]
        DeviceCommand::Mount(options) => mount::run(options),
    }
}

impl From<DeviceError> for Failure {
    fn from(error: DeviceError) -> Failure {
        if wrong_use(&error) { Failure::Usage(error.to_string()) } else { Failure::Failed(error.to_string()) }
    }
}

fn wrong_use(error: &DeviceError) -> bool {
    use DeviceError::{Config, InUse, Io, NoSuchStream, NotATrace, OutOfRange, Request, Rule, UnknownPreset};
    match error {
        Config(_) | InUse { .. } | NoSuchStream { .. } | NotATrace { .. } | OutOfRange { .. } => true,
        Request { source, .. } => wrong_use(source),
        Rule { .. } | UnknownPreset { .. } => true,
        Io { source, .. } => {
            use ErrorKind::{InvalidData, IsADirectory, NotFound, PermissionDenied};
            matches!(source.kind(), NotFound | PermissionDenied | IsADirectory | InvalidData)
        }
        _ => false,
    }
}

/// A value of the device crate, from its text.
fn parsed<T: std::str::FromStr<Err = DeviceError>>(text: &str) -> Result<T, String> {
    text.parse().map_err(|e: DeviceError| e.to_string())
}
