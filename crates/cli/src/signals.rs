//! SIGINT, SIGTERM and SIGHUP: long work is asked to stop and undoes or reports what it has done.
//!
//! Rules
//! 1. The first signal is a request ([`interrupt`]); a second one ends the process at once, with status 1.
//! 2. A signal that follows within [`SAME_SIGNAL`] is the first one again: timeout(1) sends two.

use crate::failure::Failure;
use highwater_lab::interrupt;
use std::time::{Duration, Instant};

/// Signals closer than this are one.
const SAME_SIGNAL: Duration = Duration::from_millis(500);

/// Makes signals requests to stop. What has not stopped within `patience` of one, if there is such a limit, ends with the process.
///
/// # Errors
/// [`Failure::Failed`] if signals cannot be waited for.
pub fn stop(patience: Option<Duration>) -> Result<(), Failure> {
    let mut asked: Option<Instant> = None;
    let set = ctrlc::set_handler(move || {
        match asked {
            Some(asked) if asked.elapsed() < SAME_SIGNAL => return,
            Some(_) => std::process::exit(1),
            None => asked = Some(Instant::now()),
        }
        interrupt::request();
        tell!("stopping (once more to stop at once)");
        if let Some(patience) = patience {
            std::thread::spawn(move || {
                std::thread::sleep(patience);
                std::process::exit(1);
            });
        }
    });
    set.map_err(|e| Failure::Failed(format!("waiting for signals: {e}")))
}
