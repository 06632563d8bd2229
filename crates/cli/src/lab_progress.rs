//! An experiment's progress: a bar with the time left on a terminal, plain lines where the output goes elsewhere. All
//! of it to stderr.

use highwater_bench::workload::Progress;
use highwater_lab::measure::Watch;
use indicatif::{ProgressBar, ProgressStyle};
use std::io::IsTerminal;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Shows an experiment.
pub(crate) struct Terminal {
    bar: Option<ProgressBar>,
    cells: usize,
    cell: String,
}

impl Terminal {
    /// Nothing shown yet.
    pub(crate) fn new() -> Terminal {
        Terminal { bar: None, cells: 0, cell: String::new() }
    }

    fn show(&self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(text.to_string()),
            None => tell!("{text}"),
        }
    }
}

impl Watch for Terminal {
    fn experiment(&mut self, number: usize, all: usize, name: &str) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
        tell!("Experiment {number} of {all}: {name}");
    }

    fn begin(&mut self, cells: usize, finished: usize) {
        self.cells = cells;
        self.bar = std::io::stderr().is_terminal().then(|| {
            let style = ProgressStyle::with_template("[{pos}/{len}] {bar:24} {elapsed} {msg}");
            let bar = ProgressBar::new(cells as u64).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
            bar.set_position(finished as u64);
            bar.enable_steady_tick(Duration::from_secs(1));
            bar
        });
        let before = if finished > 0 { format!(", {finished} of them by an earlier run") } else { String::new() };
        self.line(&format!("{cells} measurements{before}"));
    }

    fn cell(&mut self, number: usize, text: &str, left: Option<Duration>) {
        let left = left.map_or_else(String::new, |left| format!(" (about {} left)", time(left)));
        self.cell = text.to_string();
        if let Some(bar) = &self.bar {
            bar.set_position(number as u64 - 1);
            self.cell += &left;
            bar.set_message(self.cell.clone());
        } else {
            tell!("[{number}/{}] {text}{left}", self.cells);
        }
    }

    fn step(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.set_message(format!("{}: {text}", self.cell)),
            None => self.show(&format!("    {text}")),
        }
    }

    fn line(&mut self, text: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| tell!("{text}")),
            None => tell!("{text}"),
        }
    }

    fn tick(&mut self, text: &str) {
        if let Some(bar) = &self.bar {
            bar.set_message(format!("{}: {text}", self.cell));
        }
    }

    fn load(&mut self, rows: u64) -> Box<dyn Progress> {
        Box::new(Load { bar: self.bar.clone(), cell: self.cell.clone(), rows, done: AtomicU64::new(0) })
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}

/// A load under way.
struct Load {
    bar: Option<ProgressBar>,
    cell: String,
    rows: u64,
    done: AtomicU64,
}

impl Progress for Load {
    fn advance(&self, units: u64) {
        let done = self.done.fetch_add(units, Relaxed) + units;
        let (percent, before) = (done * 100 / self.rows.max(1), (done - units) * 100 / self.rows.max(1));
        if percent == before {
            return;
        }
        match &self.bar {
            Some(bar) => bar.set_message(format!("{}: loading, {percent} %", self.cell)),
            None if percent / 25 > before / 25 => tell!("    loading, {percent} %"),
            None => {}
        }
    }
}

/// A time for people.
fn time(duration: Duration) -> String {
    match duration.as_secs() {
        s if s >= 3600 => format!("{} h {} min", s / 3600, s % 3600 / 60),
        s if s >= 60 => format!("{} min", s.div_ceil(60)),
        s => format!("{} s", s + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_read_well() {
        let shown = [3, 75, 7300].map(|s| time(Duration::from_secs(s)));
        assert_eq!(shown, ["4 s", "2 min", "2 h 1 min"]);
    }
}
