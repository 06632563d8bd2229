//! Replays of a trace on an emulated device: the wear and the time of the recorded requests.
//!
//! Steps
//! 1. Build the device; resolve names and stream rules against the trace's file map ([`plan`]).
//! 2. Age it ([`crate::age`]): the recorder's device was not new.
//! 3. Run the trace once or more. Figures are of the last pass; samples cover every pass.
//!
//! Rules
//! 1. One request is split where its blocks belong to different streams; the pieces arrive together.
//! 2. No time passes unless the device is timed. Timed: requests arrive as recorded ([`Pace::AsRecorded`]), or a given
//!    number is always outstanding ([`Pace::QueueDepth`]).

pub mod options;
pub mod plan;
pub mod result;
mod run;
mod sampler;

pub use options::{Pace, ReplayOptions};
pub use result::ReplayResult;

use crate::age;
use crate::error::Result;
use crate::trace::Trace;
use std::time::Instant;

/// The progress of a replay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress {
    /// The pass, from 1; 0 while the device is aged.
    pub pass: u32,
    /// Completed share of this pass, or of the ageing: 0 to 1.
    pub share: f64,
    /// Host blocks of 4 KiB written by the trace so far, all passes.
    pub host_blocks: u64,
}

/// Replays a trace. `progress` is called repeatedly.
pub fn run(options: &ReplayOptions, progress: &mut dyn FnMut(Progress)) -> Result<ReplayResult> {
    let trace = Trace::open(&options.trace)?;
    let config = options.device_config()?;
    let plan = plan::Plan::new(options, &trace, &config)?;
    let mut model = config.build(options.pace.is_timed())?;
    let started = Instant::now();
    let streams = plan.labels.map(|label| label.stream);
    age::apply(&options.age, model.as_mut(), &streams, &mut |share| {
        progress(Progress { pass: 0, share, host_blocks: 0 });
        Ok(())
    })?;
    let aged = model.counters();
    let mut replay = run::Run::new(model, &plan, options, &config)?;
    let passes_started = Instant::now();
    for pass in 1..=options.passes.max(1) {
        replay.pass(&trace, pass, progress)?;
    }
    Ok(replay.finish(&trace, aged, started.elapsed(), passes_started.elapsed()))
}

#[cfg(test)]
#[path = "replay_test.rs"]
mod tests;
