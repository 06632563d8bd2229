//! Tests of what the engine synchronises with.

mod latch;
mod latch_model;
