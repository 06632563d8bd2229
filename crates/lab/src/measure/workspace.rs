//! The environment of an experiment's measurements: a watcher that shows the progress, and folders for databases.

use highwater_bench::Result;
use highwater_bench::interrupt;
use highwater_bench::workload::{Progress, Silent};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Shows what an experiment does.
pub trait Watch {
    /// The `number`th (from 1) of several experiments begins.
    fn experiment(&mut self, number: usize, all: usize, name: &str) {
        let _ = (number, all, name);
    }
    /// `cells` are to be measured; `finished` of them were measured by an earlier run.
    fn begin(&mut self, cells: usize, finished: usize) {
        let _ = (cells, finished);
    }
    /// The `number`th cell (from 1) begins; `left` is how long the rest will take, once that can be guessed.
    fn cell(&mut self, number: usize, text: &str, left: Option<Duration>) {
        let _ = (number, text, left);
    }
    /// Shows the present step of the cell.
    fn step(&mut self, text: &str) {
        let _ = text;
    }
    /// A line for the user.
    fn line(&mut self, text: &str) {
        let _ = text;
    }
    /// Shows the state of the subject, once a second.
    fn tick(&mut self, text: &str) {
        let _ = text;
    }
    /// A load of `rows` rows begins.
    fn load(&mut self, rows: u64) -> Box<dyn Progress> {
        let _ = rows;
        Box::new(Silent)
    }
}

/// Shows nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Quiet;

impl Watch for Quiet {}

/// The environment of an experiment's measurements.
pub struct Workspace<'w> {
    watch: &'w mut dyn Watch,
    work_dir: &'w Path,
    templates: BTreeMap<String, PathBuf>,
    folders: u32,
}

impl<'w> Workspace<'w> {
    /// A workspace that keeps databases below `work_dir`.
    pub fn new(work_dir: &'w Path, watch: &'w mut dyn Watch) -> Workspace<'w> {
        Workspace { watch, work_dir, templates: BTreeMap::new(), folders: 0 }
    }

    /// Folder for whatever the measurement needs; the framework removes it at the end.
    pub fn work_dir(&self) -> &'w Path {
        self.work_dir
    }

    /// Shows that the `number`th cell begins.
    pub(crate) fn begin_cell(&mut self, number: usize, text: &str, left: Option<Duration>) {
        self.watch.cell(number, text, left);
    }

    /// Shows what is being done.
    ///
    /// # Errors
    /// [`Error::Interrupted`](highwater_bench::Error::Interrupted) after a request to stop.
    pub fn step(&mut self, text: &str) -> Result<()> {
        interrupt::check()?;
        self.watch.step(text);
        Ok(())
    }

    /// Shows what the subject just did.
    pub fn tick(&mut self, text: &str) {
        self.watch.tick(text);
    }

    /// A path below the work folder that nothing else has.
    pub fn new_folder(&mut self, role: &str) -> PathBuf {
        self.folders += 1;
        self.work_dir.join(format!("{role}-{}", self.folders))
    }

    /// The folder of loaded data kept under this key.
    pub(crate) fn template(&self, key: &str) -> Option<PathBuf> {
        self.templates.get(key).cloned()
    }

    /// Keeps a folder of loaded data.
    pub(crate) fn keep_template(&mut self, key: String, folder: PathBuf) {
        self.templates.insert(key, folder);
    }

    /// Removes the folders of loaded data whose keys do not have this prefix.
    ///
    /// # Errors
    /// A folder cannot be removed.
    pub(crate) fn keep_templates(&mut self, prefix: &str) -> Result<()> {
        let gone: Vec<String> = self.templates.keys().filter(|key| !key.starts_with(prefix)).cloned().collect();
        gone.iter().filter_map(|key| self.templates.remove(key)).try_for_each(|folder| {
            std::fs::remove_dir_all(&folder).map_err(|e| highwater_bench::Error::file(&folder, e))
        })
    }

    /// A line for the user.
    pub fn line(&mut self, text: &str) {
        self.watch.line(text);
    }

    /// Progress of a load of `rows` rows.
    pub fn load(&mut self, rows: u64) -> Box<dyn Progress> {
        self.watch.load(rows)
    }
}
