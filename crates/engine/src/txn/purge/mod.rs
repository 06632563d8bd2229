//! Purge.
mod lag;
mod steps;

pub(crate) use lag::Damage;
pub use lag::{LagLimits, PurgeState, PurgeWatch};
