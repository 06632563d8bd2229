//! `bench --fresh`: a benchmark's database is removed, to be created again.
//!
//! Rules
//! 1. A database is removed only if all its tables are the loaded benchmark's; it is opened to check that.
//! 2. The new database may have other options than the removed one.

use crate::failure::Failure;
use highwater::{Database, Options};
use highwater_bench::store::embedded::Embedded;
use highwater_bench::workload;
use std::path::Path;

/// Removes the database in `dir`, whose redo log is in `log_dir` if not there too, if it is a benchmark's.
///
/// # Errors
/// [`Failure::Usage`] if it has a table that no benchmark makes.
pub(crate) fn remove_benchmark(dir: &Path, log_dir: Option<&Path>) -> Result<(), Failure> {
    if !dir.join("data").exists() {
        return Ok(());
    }
    let log_folder = log_dir.map(Path::to_path_buf);
    let options = Options { log_dir: log_folder, create_if_missing: false, ..Options::default() };
    let store = Embedded::new(Database::open(dir, options)?);
    let tables: Vec<String> = store.database().tables().iter().map(|table| table.name().to_string()).collect();
    let foreign = workload::foreign_table(&store, &tables)?;
    store.database().clone().close()?;
    drop(store);
    if let Some(table) = foreign {
        return Err(Failure::Usage(format!(
            "{} holds table {table}, which no benchmark made; the database is not removed",
            dir.display()
        )));
    }
    remove(dir, log_dir)
}

/// Removes the files of a database.
///
/// # Errors
/// [`Failure::Failed`] names the file that cannot be removed.
pub(crate) fn remove(dir: &Path, log_dir: Option<&Path>) -> Result<(), Failure> {
    let redo = log_dir.unwrap_or(dir);
    highwater_storage::forget_redo(redo).map_err(|e| Failure::Failed(e.to_string()))?;
    highwater_storage::forget_data(dir).map_err(|e| Failure::Failed(e.to_string()))?;
    let file = dir.join("doublewrite");
    match std::fs::remove_file(&file) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Failure::Failed(format!("{}: {e}", file.display()))),
        _ => Ok(()),
    }
}
