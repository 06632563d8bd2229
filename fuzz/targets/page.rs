//! Pages of any bytes, read as trees read them, and changed by any redo operations.

#![no_main]

use highwater::internals::laws;
use highwater_fuzz::bases::bases;
use highwater_fuzz::input::Input;

/// Operations of an input.
const MOST: usize = 64;

libfuzzer_sys::fuzz_target!(init: highwater_fuzz::start(), |data: &[u8]| {
    let mut input = Input::new(data);
    let mut page = match input.byte() {
        0..=127 => vec![0; 4096],
        n => bases()[usize::from(n) % bases().len()].block(&mut input),
    };
    if page[16] == 0 {
        laws::format_page(&mut page, input.byte(), input.byte(), 1);
    }
    for _ in 0..usize::from(input.byte() % 8) {
        let at = input.below(page.len() - 16);
        let bytes = input.some(16);
        page[at..at + bytes.len()].copy_from_slice(bytes);
    }
    let key = input.some(40);
    laws::page(&page, key);
    let mut operations = input.rest();
    for _ in 0..MOST {
        let Some(used) = laws::operation(&mut page, operations) else { break };
        operations = &operations[used..];
        laws::page(&page, key);
    }
});
