//! Not an API: items for the crate's own benches and examples, the simulator and the fuzzing targets. It may change
//! with any commit.
//!
//! | module | what |
//! |---|---|
//! | `checksum_fixer` | recomputes the checksums of edited files |
//! | `fuzz_properties` | properties of the decoders, for any bytes |
//! | `raw_calls` | calls of the raw API, chosen by bytes of a fuzzer, and their properties |
//! | `test_part` | the choice of cases of a long list in one run of the tests |

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
