//! Adaptive flushing: the number of pages to flush, and the throttling of redo by users.
//!
//! | file | what |
//! |---|---|
//! | `policy` | pages to flush, limit of users' redo: pure functions |
//! | `throttle` | slowing users above the async watermark |
//! | `control` | [`CleanerControl`]: shared state of the pool and its page cleaner |
//! | `pacing_model` | a model of users and a device around the policy |

mod control;
pub(crate) mod pacing_model;
pub(crate) mod policy;
mod throttle;

pub(crate) use control::CleanerControl;
