//! Not an API: what the crate's own benches and examples measure or plot, what the simulator drives, and what the
//! fuzzing targets need of the formats. It may change with any commit.
//!
//! | module | what |
//! |---|---|
//! | `checksum_fixer` | checksums of edited files made right again |
//! | `fuzz_properties` | what must hold of any bytes that are decoded |
//! | `raw_calls` | calls of the raw API that any bytes say, and what must hold of them |
//! | `test_part` | which cases of a long list a run of the tests tries |

pub mod checksum_fixer;
pub mod fuzz_properties;
pub mod raw_calls;
pub mod test_part;

pub use crate::db::deterministic::{BackgroundStep, DeterministicDb, OpenOverrides};
pub use crate::db::expiry::clock_us;
pub use crate::log::Log;
pub use crate::pool::pacing::pacing_model::{Load, Sample, run};
pub use crate::pool::pacing::policy::{Limits, speed};
pub use crate::stats::Stats;
pub use crate::store::SyntheticStore;
pub use crate::sync::override_cpu_count;
pub use crate::table::value::compare;
