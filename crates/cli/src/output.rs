//! Output of results.
//!
//! Rules
//! 1. A reader of stdout that ends early (`| head`) is not an error: the rest of the output is dropped. Any other
//!    failure of stdout (a full disk) is reported at the end, with exit status 1 ([`stdout_failure`]); until then the
//!    work continues.
//! 2. Whether a result file can be written is checked before the work begins; it is written when the result exists
//!    ([`OutputFile`]).

use crate::failure::Failure;
use highwater_storage::OutputFile;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The first failure of stdout.
static FAILED: OnceLock<String> = OnceLock::new();

/// The output of `--json`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Json {
    /// `-`: stdout, which then carries nothing else.
    Stdout,
    File(PathBuf),
}

impl std::str::FromStr for Json {
    type Err = String;

    fn from_str(text: &str) -> Result<Json, String> {
        match text {
            "" => Err("a file name, or - for stdout".into()),
            "-" => Ok(Json::Stdout),
            path => Ok(Json::File(path.into())),
        }
    }
}

/// Writes a line to stdout, or to stderr when stdout is taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Lines {
    /// Whether stdout has other output.
    pub stdout_taken: bool,
}

impl Lines {
    /// Writes one or more lines.
    pub(crate) fn write(self, text: &str) {
        if self.stdout_taken {
            tell!("{text}");
        } else {
            write_stdout(text);
        }
    }
}

fn write_stdout(text: &str) {
    let mut out = std::io::stdout().lock();
    if let Err(error) = while_read(writeln!(out, "{text}").and_then(|()| out.flush())) {
        // Only the first is reported.
        let _ = FAILED.set(error.to_string());
    }
}

/// The result of a write to an output; `None` if its reader has ended (rule 1).
///
/// # Errors
/// Every other error of the write.
pub(crate) fn while_read<T>(written: std::io::Result<T>) -> std::io::Result<Option<T>> {
    match written {
        Ok(written) => Ok(Some(written)),
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(None),
        Err(error) => Err(error),
    }
}

/// The error that kept a line from stdout, if there was one.
///
/// # Errors
/// [`Failure::Failed`].
pub(crate) fn stdout_failure() -> Result<(), Failure> {
    FAILED.get().map_or(Ok(()), |error| Err(Failure::Failed(format!("stdout: {error}"))))
}

/// Checks that `path` can be written, without changing anything.
///
/// # Errors
/// [`Failure::Usage`] names the file and the reason.
pub(crate) fn must_be_writable(path: &Path) -> Result<(), Failure> {
    OutputFile::check(path).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))
}

/// Refuses a folder for output that has something in it.
///
/// # Errors
/// [`Failure::Usage`] names the folder and the reason.
pub(crate) fn must_be_empty(folder: &Path) -> Result<(), Failure> {
    let refuse = |what: String| Err(Failure::Usage(what));
    match std::fs::read_dir(folder).map(Iterator::count) {
        Ok(1..) => refuse(format!("{} is not empty; name a folder that is empty or missing", folder.display())),
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => refuse(format!("{}: {error}", folder.display())),
        _ => Ok(()),
    }
}

/// As [`must_be_writable`], for where `--json` goes, if it is a file.
///
/// # Errors
/// As [`must_be_writable`].
pub(crate) fn json_must_be_writable(json: Option<&Json>) -> Result<(), Failure> {
    match json {
        Some(Json::File(path)) => must_be_writable(path),
        _ => Ok(()),
    }
}

/// Writes a result's file.
///
/// # Errors
/// [`Failure::Failed`] when it cannot be written.
pub(crate) fn write_file(path: &Path, text: &str) -> Result<(), Failure> {
    OutputFile::write(path, text.as_bytes()).map_err(|e| Failure::Failed(format!("{}: {e}", path.display())))
}

/// Refuses one file for two results.
///
/// # Errors
/// [`Failure::Usage`] names the file.
pub(crate) fn must_differ(json: Option<&Json>, report: Option<&Path>) -> Result<(), Failure> {
    match (json, report) {
        (Some(Json::File(json)), Some(report)) if json == report => {
            Err(Failure::Usage(format!("{}: --json and --report must name different files", json.display())))
        }
        _ => Ok(()),
    }
}

/// Writes JSON where it was asked for.
///
/// # Errors
/// [`Failure::Failed`] when the file cannot be written.
pub(crate) fn write_json(json: &Json, text: &str) -> Result<(), Failure> {
    match json {
        Json::Stdout => {
            Lines { stdout_taken: false }.write(text);
            Ok(())
        }
        Json::File(path) => write_file(path, &format!("{text}\n")),
    }
}
