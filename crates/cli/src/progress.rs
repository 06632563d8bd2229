//! Progress of long work: a bar on a terminal, a plain line now and then where the output goes elsewhere. All of it to
//! stderr.

use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::time::{Duration, Instant};

const LINE_EVERY: Duration = Duration::from_secs(5);

/// Shows how far the work is.
pub(crate) struct Progress {
    what: &'static str,
    unit: &'static str,
    total: u64,
    bar: Option<ProgressBar>,
    next_line: Instant,
}

impl Progress {
    /// Starts to show `what` (such as "importing") of `total` (bytes or rows; 0 = unknown).
    pub(crate) fn new(what: &'static str, total: u64) -> Progress {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = if total == 0 { ProgressBar::new_spinner() } else { ProgressBar::new(total) };
            let template = if total == 0 { "{spinner} {msg}" } else { "{msg} {wide_bar} {percent}% {eta}" };
            bar.with_style(ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar()))
        });
        Progress { what, unit: "rows", total, bar, next_line: Instant::now() + LINE_EVERY }
    }

    /// Counts something else than rows.
    pub(crate) fn counting(mut self, unit: &'static str) -> Progress {
        self.unit = unit;
        self
    }

    /// The work is at `position` of the total and has done `count` rows (or what it counts).
    pub(crate) fn at(&mut self, position: u64, count: u64) {
        let unit = self.unit;
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{} {count} {unit}", self.what));
            bar.set_position(position);
        } else if Instant::now() >= self.next_line {
            self.next_line = Instant::now() + LINE_EVERY;
            match (position * 100).checked_div(self.total) {
                Some(percent) => tell!("{} {count} {unit} ({percent}%)", self.what),
                None => tell!("{} {count} {unit}", self.what),
            }
        }
    }

    /// Writes a line without disturbing the bar.
    pub(crate) fn line(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| tell!("{text}")),
            None => tell!("{text}"),
        }
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
