//! Highwater as a Python module: `highwater._engine`, which the package `highwater` in `lib` re-exports.
//!
//! Rules
//! 1. Whatever may wait or read runs without the GIL ([`Python::detach`]); Python's objects are made and read with it.
//! 2. A transaction that another thread uses at the moment is an error, and is not waited for: a thread that waited
//!    with the GIL would keep that one from coming back.
//! 3. An error of the engine is raised as the class of `highwater._errors` that `failure.rs` names.

mod arrow_in;
mod arrow_out;
mod database;
mod definition;
mod failure;
mod reader;
mod reading;
mod scan;
mod table;
mod transaction;
mod values;

use pyo3::prelude::*;

/// The native half of the package `highwater`.
#[pymodule]
fn _engine(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("__version__", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<database::Database>()?;
    module.add_class::<definition::Index>()?;
    module.add_class::<reader::Reader>()?;
    module.add_class::<reader::ReaderRows>()?;
    module.add_class::<reader::ReaderSnapshot>()?;
    module.add_class::<scan::Rows>()?;
    module.add_class::<scan::Scan>()?;
    module.add_class::<table::Table>()?;
    module.add_class::<transaction::Savepoint>()?;
    module.add_class::<transaction::Snapshot>()?;
    module.add_class::<transaction::Transaction>()
}
