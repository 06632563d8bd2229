//! Calls of the raw API, with any bytes for columns and keys, against a model: see `raw_calls.rs`.

#![no_main]

use highwater::internals::raw_calls;

libfuzzer_sys::fuzz_target!(init: highwater_fuzz::start(), |data: &[u8]| raw_calls::run(data));
