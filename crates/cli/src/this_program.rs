//! Child processes of this program.

use crate::failure::Failure;
use std::process::Command;

/// This program, to be started once more.
///
/// # Errors
/// [`Failure::Failed`]: the system does not say where it is.
pub(crate) fn command() -> Result<Command, Failure> {
    let program = std::env::current_exe().map_err(|e| Failure::Failed(format!("this program's own path: {e}")))?;
    Ok(Command::new(program))
}
