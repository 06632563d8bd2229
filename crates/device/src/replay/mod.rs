//! Replays a trace on an emulated device: how much wear and how much time the recorded requests would have cost.
//!
//! Steps
//! 1. Build the device; resolve names and stream rules against the trace's file map ([`plan`]).
//! 2. Age it ([`crate::age`]): the recorder's device was not new.
//! 3. Run the trace once or more. Figures are those of the last pass; samples cover every pass.
//!
//! Rules
//! 1. One request is split where its blocks belong to different streams; the pieces arrive together.
//! 2. Time stands still unless the device is timed. Timed: requests arrive as recorded ([`Pace::AsRecorded`]), or so many at a time are
//!    always outstanding ([`Pace::QueueDepth`]).

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

/// Replays a trace. `progress` hears of the pass (from 1) and of the host blocks written so far, now and then.
pub fn run(options: &ReplayOptions, progress: &mut dyn FnMut(u32, u64)) -> Result<ReplayResult> {
    let trace = Trace::open(&options.trace)?;
    let config = options.device_config()?;
    let plan = plan::Plan::new(options, &trace, &config)?;
    let mut model = config.build(options.pace.is_timed())?;
    let started = Instant::now();
    age::apply(&options.age, model.as_mut(), &plan.labels.map(|label| label.stream))?;
    let aged = model.counters();
    let mut replay = run::Run::new(model, &plan, options, &config);
    for pass in 1..=options.passes.max(1) {
        replay.pass(&trace, pass, progress)?;
    }
    Ok(replay.finish(&trace, aged, started.elapsed()))
}

#[cfg(test)]
#[path = "replay_test.rs"]
mod tests;
