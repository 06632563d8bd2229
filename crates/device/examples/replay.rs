use highwater_device::{
    replay::{self, Pace, ReplayOptions},
    report,
};
fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut args = std::env::args().skip(1);
    let mut options =
        ReplayOptions::on_preset(args.next().ok_or("usage: replay TRACE [STREAM=WHAT ...]")?, "simple-2gb")?;
    if let Ok(p) = std::env::var("PRESET") {
        options.device = highwater_device::preset::find(&p)?.config();
        options.capacity_bytes = Some(2 << 30);
    }
    if let Ok(o) = std::env::var("OP") {
        options.overprovisioning = Some(o.parse()?);
    }
    if let Ok(o) = std::env::var("CB") {
        options.copy_back = Some(o.parse()?);
    }
    if let Ok(o) = std::env::var("PACE") {
        options.pace = if o == "rec" { Pace::AsRecorded } else { Pace::QueueDepth(o.parse()?) };
    }
    options.rules = args.map(|a| a.parse()).collect::<Result<_, _>>()?;
    options.passes = 2;
    let result = replay::run(&options, &mut |_, _| {})?;
    if let Ok(p) = std::env::var("HTML") {
        report::write_html(&result, p.as_ref())?;
    }
    print!("{}", report::text(&result));
    Ok(())
}
