//! The registry of experiments.

use super::Experiment;
use super::buffer_pool_size::BufferPoolSize;
use super::flush_method::FlushMethods;
use super::flush_neighbors::FlushNeighbors;
use super::insert_buffer::InsertBuffer;
use super::journal_power_cut::JournalPowerCut;
use super::page_store::PageStores;
use super::peers::Peers;
use super::stall::Stall;
use super::stream_journal::StreamJournal;
use super::victim_policy::VictimPolicy;
use highwater_bench::{Error, Result};

/// All of them, in the order of the source documents.
pub fn all() -> &'static [&'static dyn Experiment] {
    &[
        &FlushNeighbors,
        &BufferPoolSize,
        &FlushMethods,
        &InsertBuffer,
        &StreamJournal,
        &JournalPowerCut,
        &VictimPolicy,
        &PageStores,
        &Stall,
        &Peers,
    ]
}

/// The experiment of that name.
///
/// # Errors
/// [`Error::Usage`] lists those there are.
pub fn find(name: &str) -> Result<&'static dyn Experiment> {
    all().iter().copied().find(|experiment| experiment.about().name == name).ok_or_else(|| {
        let names = all().iter().map(|experiment| experiment.about().name).collect::<Vec<_>>().join(", ");
        Error::Usage(format!("there is no experiment {name:?}; there are: {names}; all runs every one"))
    })
}
