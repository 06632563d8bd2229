//! What the programs that play something through SQL have in common: arguments, and how they end.

use highwater_bench::{Error, Result};
use std::process::ExitCode;

/// Runs `work` with the arguments of the program, which `usage` names; an error is printed and is a failure.
pub(crate) fn run<const N: usize>(usage: &str, work: impl FnOnce([String; N]) -> Result<()>) -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wrong = |_| Error::Usage(format!("the arguments are {usage}"));
    match arguments.try_into().map_err(wrong).and_then(work) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
