//! Not an API: what the crate's own benches and examples measure or plot, what the simulator drives, and what the
//! fuzzing targets need of the formats. It may change with any commit.
//!
//! | module | what |
//! |---|---|
//! | `seals` | checksums of edited files made right again |
//! | `laws` | what must hold of any bytes that are decoded |

pub mod laws;
pub mod seals;

pub use crate::db::stepped::{Manner, Step, Stepped};
pub use crate::log::Log;
pub use crate::pool::cleaner::pacing_model::{Load, Sample, run};
pub use crate::pool::cleaner::policy::{Limits, speed};
pub use crate::stats::Stats;
pub use crate::store::Layout;
pub use crate::sync::pretend_processors;
pub use crate::table::value::compare;
