//! Draws the report of a result: `cargo run -p highwater-lab --example report RESULT.json REPORT.html`.

use highwater_lab::report;
use highwater_lab::result::RunResult;
use std::path::Path;

fn main() -> highwater_lab::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [result, page] = arguments.as_slice() else {
        return Err(highwater_lab::Error::Usage("two arguments: RESULT.json REPORT.html".into()));
    };
    report::write(&RunResult::from_file(Path::new(result))?, Path::new(page))
}
