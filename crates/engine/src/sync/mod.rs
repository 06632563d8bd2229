//! Synchronisation pieces of the engine's own: the page latch and the fail-stop switch.

pub mod latch;
pub mod poison;
