//! The simulated engine of `highwater torture simulate`, with the input as its random numbers: transactions, schema
//! changes, power cuts and failures against the oracle.

#![no_main]

use highwater_torture::simulation::Simulation;

/// Openings that end with a cut, a failure or a close.
const LIVES: u32 = 4;

libfuzzer_sys::fuzz_target!(init: highwater_fuzz::start(), |data: &[u8]| {
    if let Err(error) = Simulation::of_bytes(data).run(LIVES) {
        panic!("{error}");
    }
});
