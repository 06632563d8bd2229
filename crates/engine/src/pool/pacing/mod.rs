//! How much is flushed and how fast users may write redo meanwhile.
//!
//! | file | what |
//! |---|---|
//! | `policy` | how much to flush, how fast users may write: pure functions |
//! | `throttle` | slowing users above the async watermark |
//! | `control` | [`CleanerControl`]: shared state of the pool and its page cleaner |
//! | `pacing_model` | a model of users and a device around the policy |

mod control;
pub(crate) mod pacing_model;
pub(crate) mod policy;
mod throttle;

pub(crate) use control::CleanerControl;
