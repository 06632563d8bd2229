//! Synchronisation of the engine's own: the page latch, the fail-stop switch, the bell of a background thread.

pub mod latch;
pub mod poison;
pub mod wake;
