//! Tests of the engine's synchronisation primitives.

mod latch;
#[cfg(target_pointer_width = "64")]
mod latch_model;
