//! Calls of the public API against a model: several transactions of every isolation level, savepoints, snapshots, every
//! kind of read and write, background steps, closing and opening.

#![no_main]

use highwater_fuzz::calls;
use highwater_fuzz::input::Input;

libfuzzer_sys::fuzz_target!(init: highwater_fuzz::start(), |data: &[u8]| {
    calls::run(&mut Input::new(data));
});
