//! Tests of what the engine synchronises with.

mod latch;
#[cfg(target_pointer_width = "64")]
mod latch_model;
