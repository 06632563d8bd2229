//! SIGINT, SIGTERM and SIGHUP request long work to stop; the work undoes or reports its changes. SIGXFSZ is ignored.
//!
//! Rules
//! 1. The first signal is a request to stop; each command chooses what a second one does.
//! 2. A signal within [`SAME_SIGNAL`] of the last one counts as the same signal: timeout(1) sends two.
//! 3. SIGHUP that was ignored when the process began stays so: under nohup(1) work continues when the terminal closes.

use crate::failure::Failure;
use highwater_bench::interrupt;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Signals closer than this are one.
const SAME_SIGNAL: Duration = Duration::from_millis(500);

/// Whether a stop was requested before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Asked {
    /// No: this is the first request.
    First,
    /// Yes: this is a repeated request.
    Again,
}

/// A write beyond the limit of a file's size (`ulimit -f`) is an error of that write, not the end of the process.
pub(crate) fn ignore_file_size_limit() {
    // If that is refused, the system does what it does by default.
    let _ = signal_hook::flag::register(SIGXFSZ, Arc::default());
}

/// Calls `on_signal` for every signal, on a thread of its own.
///
/// # Errors
/// [`Failure::Failed`] if signals cannot be waited for.
pub(crate) fn listen(mut on_signal: impl FnMut(Asked) + Send + 'static) -> Result<(), Failure> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let heard =
        [SIGINT, SIGTERM, SIGHUP].into_iter().filter(|signal| *signal != SIGHUP || !is_ignored(&status, *signal));
    let failed = |e: std::io::Error| Failure::Failed(format!("waiting for signals: {e}"));
    let mut signals = Signals::new(heard).map_err(failed)?;
    let wait = move || {
        let mut last: Option<Instant> = None;
        for _ in signals.forever() {
            let asked = match last {
                Some(last) if last.elapsed() < SAME_SIGNAL => continue,
                Some(_) => Asked::Again,
                None => Asked::First,
            };
            last = Some(Instant::now());
            on_signal(asked);
        }
    };
    std::thread::Builder::new().name("hw-signals".into()).spawn(wait).map_err(failed)?;
    Ok(())
}

/// The first signal asks the work to stop ([`interrupt`]). A second one ends the process with status 1; so does the end
/// of `patience` after the first, if there is such a limit.
///
/// # Errors
/// As [`listen`].
pub(crate) fn stop(patience: Option<Duration>) -> Result<(), Failure> {
    listen(move |asked| {
        if asked == Asked::Again {
            std::process::exit(1);
        }
        interrupt::request();
        tell!("stopping; send the signal again to stop immediately");
        if let Some(patience) = patience {
            std::thread::spawn(move || {
                std::thread::sleep(patience);
                std::process::exit(1);
            });
        }
    })
}

/// Whether the mask `SigIgn` of a `/proc/PID/status` has the signal.
fn is_ignored(status: &str, signal: i32) -> bool {
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    let mask = mask.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or(0);
    mask >> (signal - 1) & 1 == 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ignored_signals_are_read_from_the_kernels_mask() {
        let status = "Name:\tx\nSigBlk:\t0000000000000001\nSigIgn:\t0000000000001001\nSigCgt:\t0000000000000002\n";
        assert!(is_ignored(status, SIGHUP));
        assert!(!is_ignored(status, SIGINT) && !is_ignored(status, SIGTERM));
        for none in ["", "SigIgn:", "SigIgn:\tzz"] {
            assert!(!is_ignored(none, SIGHUP), "{none:?}");
        }
    }
}
