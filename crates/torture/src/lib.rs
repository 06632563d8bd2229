//! The tortures: stress tests of the engine, each with an oracle of the right answers.
//!
//! Rules
//! 1. A torture is repeatable by its seed, or by the position of its damage; a failure names it.
//! 2. Nothing here prints to standard output; callers pass the receiver of the lines.
//! 3. Nothing here starts a process or a server: `highwater torture crash` does, with the load of [`ddl_stress`].
//!
//! | module | what |
//! |---|---|
//! | `alphabet` | every public call and option, and the oracle of their answers |
//! | [`simulation`] | the whole engine on one thread, on simulated disks that fail |
//! | [`power_cuts`] | the engine with its threads, on a disk whose power is cut |
//! | [`corruption`] | damaged bytes, blocks and pages, at rest and under load |
//! | [`ddl_stress`] | schema changes, options, expiry and readers, concurrently with TPC-C, for kills of the process |
//! | [`isolation`] | known anomalies, and random histories with a checker |
//! | [`growth`] | sizes over a long life |

#[cfg(not(all(target_os = "linux", target_pointer_width = "64")))]
compile_error!("the tortures are for Linux of 64 bits; elsewhere use the library, the crate highwater");

mod alphabet;
pub mod corruption;
pub mod ddl_stress;
pub mod growth;
pub mod isolation;
pub mod power_cuts;
pub mod simulation;

pub use alphabet::options as drawn_options;
