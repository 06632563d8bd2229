//! Draws the report of a result: `cargo run -p highwater-bench --example report RESULT.json REPORT.html`.

use highwater_bench::report;
use highwater_bench::result::RunResult;
use std::path::Path;

fn main() -> highwater_bench::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [result, page] = arguments.as_slice() else {
        return Err(highwater_bench::Error::Usage("two arguments: RESULT.json REPORT.html".into()));
    };
    report::write(&RunResult::from_file(Path::new(result))?, Path::new(page))
}
