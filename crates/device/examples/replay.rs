//! Replays a trace from the command line: `replay TRACE [STREAM=WHAT ...]`. For the recorded traces' independent check.
use highwater_device::replay::{self, ReplayOptions};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut options =
        ReplayOptions::on_preset(args.next().ok_or("usage: replay TRACE [STREAM=WHAT ...]")?, "simple-2gb")?;
    options.rules = args.map(|a| a.parse()).collect::<Result<_, _>>()?;
    options.passes = 2;
    let result = replay::run(&options, &mut |_, _| {})?;
    println!("{}", serde_json::to_string_pretty(&result)?);
    Ok(())
}
