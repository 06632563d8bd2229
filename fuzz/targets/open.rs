//! Opening and using a database whose files were edited: any bytes anywhere, with checksums that are right.

#![no_main]

use highwater_fuzz::bases::bases;
use highwater_fuzz::input::Input;
use highwater_fuzz::judge;

libfuzzer_sys::fuzz_target!(init: highwater_fuzz::start(), |data: &[u8]| {
    let mut input = Input::new(data);
    let (base, how) = (input.one_of(bases()), input.byte());
    let files = base.edited(&mut input);
    if how & 1 != 0 {
        judge::look(&files);
    }
    if how & 2 != 0 {
        judge::save(&files, &base.options);
    }
    judge::open_and_use(&files, &base.options);
});
