//! Where results go.
//!
//! Rules
//! 1. A reader that stops reading (`| head`) is not an error: the rest is dropped.
//! 2. Files for results are opened before any work, so that a path that cannot be written is found at once.

use crate::failure::Failure;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Where `--json` goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Json {
    /// `-`: stdout, and nothing else goes there.
    Stdout,
    /// A file.
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
pub struct Lines {
    /// Whether stdout carries something else.
    pub stdout_taken: bool,
}

impl Lines {
    /// Writes one or more lines.
    pub fn write(self, text: &str) {
        // Nobody is left to be told of a failure here.
        let _ = if self.stdout_taken {
            writeln!(std::io::stderr(), "{text}")
        } else {
            writeln!(std::io::stdout(), "{text}")
        };
    }
}

/// Whether `path` can be written; makes the file if there is none.
///
/// # Errors
/// [`Failure::Usage`] names the file and the reason.
pub fn must_be_writable(path: &Path) -> Result<(), Failure> {
    let opened = OpenOptions::new().create(true).append(true).open(path);
    opened.map(drop).map_err(|e| Failure::Usage(format!("{}: {e}", path.display())))
}

/// Refuses one file for two results.
///
/// # Errors
/// [`Failure::Usage`] names the file.
pub fn must_differ(json: Option<&Json>, report: Option<&Path>) -> Result<(), Failure> {
    match (json, report) {
        (Some(Json::File(json)), Some(report)) if json == report => {
            Err(Failure::Usage(format!("{}: --json and --report need a file each", json.display())))
        }
        _ => Ok(()),
    }
}

/// Writes JSON where it was asked for.
///
/// # Errors
/// [`Failure::Failed`] when the file cannot be written.
pub fn write_json(json: &Json, text: &str) -> Result<(), Failure> {
    match json {
        Json::Stdout => {
            Lines { stdout_taken: false }.write(text);
            Ok(())
        }
        Json::File(path) => {
            std::fs::write(path, format!("{text}\n")).map_err(|e| Failure::Failed(format!("{}: {e}", path.display())))
        }
    }
}
