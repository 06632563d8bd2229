//! Pages of any bytes, read as trees read them, and changed by any redo operations.

#![no_main]

use highwater::internals::fuzz_properties;
use highwater_fuzz::bases::bases;
use highwater_fuzz::input::Input;

/// Operations of an input.
const MAX: usize = 64;

libfuzzer_sys::fuzz_target!(init: highwater_fuzz::start(), |data: &[u8]| {
    let mut input = Input::new(data);
    let mut page = match input.byte() {
        0..=127 => vec![0; 4096],
        n => bases()[usize::from(n) % bases().len()].block(&mut input),
    };
    if page[16] == 0 {
        fuzz_properties::format_page(&mut page, input.byte(), input.byte(), 1);
    }
    for _ in 0..usize::from(input.byte() % 8) {
        let at = input.below(page.len() - 16);
        let bytes = input.some(16);
        page[at..at + bytes.len()].copy_from_slice(bytes);
    }
    let key = input.some(40);
    fuzz_properties::page(&page, key);
    let mut operations = input.rest();
    for _ in 0..MAX {
        let Some(used) = fuzz_properties::operation(&mut page, operations) else { break };
        operations = &operations[used..];
        fuzz_properties::page(&page, key);
    }
});
