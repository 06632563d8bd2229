//! Commands of other programs, the files that are made for them, and the folder of what cargo builds.
//!
//! Rule: an error names the command or the file, and what was said of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Runs a command to its end; it reads nothing, and what it says is shown.
///
/// # Errors
/// What did not start, or how it failed.
pub(crate) fn finish(command: &mut Command) -> Result<(), String> {
    match command.stdin(Stdio::null()).status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(format!("{command:?}: {status}")),
        Err(error) => Err(format!("{command:?}: {error}")),
    }
}

/// As [`finish`]; the output goes to the caller, or into the error.
///
/// # Errors
/// As [`finish`].
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let output = command.stdin(Stdio::null()).output().map_err(|error| format!("{command:?}: {error}"))?;
    match output.status.success() {
        true => Ok(output.stdout),
        false => Err(format!("{command:?}: {}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim_end())),
    }
}

/// Writes a file, and makes its folder.
///
/// # Errors
/// In words.
pub(crate) fn write(path: &Path, bytes: impl AsRef<[u8]>) -> Result<(), String> {
    let made = path.parent().map_or(Ok(()), std::fs::create_dir_all);
    made.and_then(|()| std::fs::write(path, bytes)).map_err(|error| format!("{}: {error}", path.display()))
}

/// The folder of what cargo builds, as an absolute path.
///
/// # Errors
/// There is no current folder.
pub(crate) fn target(root: &Path) -> Result<PathBuf, String> {
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or_else(|| root.join("target"), PathBuf::from);
    std::path::absolute(target).map_err(|error| error.to_string())
}
