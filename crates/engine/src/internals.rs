//! Not an API: what the crate's own benches and examples measure or plot. It may change with any commit.

pub use crate::db::stepped::{Manner, Step, Stepped};
pub use crate::log::Log;
pub use crate::pool::cleaner::pacing_model::{Load, Sample, run};
pub use crate::pool::cleaner::policy::{Limits, speed};
pub use crate::stats::Stats;
pub use crate::store::Layout;
