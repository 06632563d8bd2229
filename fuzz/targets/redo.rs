//! Recovery of a log with groups of redo of any payload, with checksums that are right.

#![no_main]

use highwater_fuzz::bases::bases;
use highwater_fuzz::input::Input;
use highwater_fuzz::judge;
use std::sync::Arc;

libfuzzer_sys::fuzz_target!(init: highwater_fuzz::start(), |data: &[u8]| {
    let mut input = Input::new(data);
    let base = input.one_of(bases());
    let mut groups = Vec::new();
    while !input.is_empty() {
        let len = usize::from(input.u16() & 0x1fff);
        groups.push(input.take(len));
    }
    let mut files = base.files().clone();
    let mut redo = files[1].to_vec();
    base.checksums.append_redo(&mut redo, groups.into_iter());
    files[1] = Arc::new(redo);
    judge::open_and_use(&files, &base.options);
});
