//! `highwater device replay TRACE`: the wear and time of recorded requests on a device.

use super::parsed;
use super::target::device_config;
use crate::engine_options::size;
use crate::failure::Failure;
use crate::output::{Json, Lines, json_must_be_writable, must_be_writable, must_differ, write_file, write_json};
use crate::progress::Progress as Bar;
use clap::Args;
use highwater_device::age::Age;
use highwater_device::replay::{self, Pace, Progress, ReplayOptions, ReplayResult};
use highwater_device::report;
use highwater_device::ssd::config::CopyBack;
use highwater_device::ssd::victim::VictimPolicy;
use highwater_device::trace::ranges::{self, NamedRange, StreamRule};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = "\
Examples:
  highwater device replay tpcc.csv.zst
  highwater device replay tpcc.csv.zst --stream 1=journal --passes 2 --report tpcc.html
  highwater device replay tpcc.csv.zst --device samsung-pm953-960gb --capacity 2G --age random:1 --rules rules.txt
  highwater device replay sda.blktrace.0 --device datacenter-nvme --capacity 64G --pace as-recorded --json -
  highwater device replay src1_0.csv --device mine.json --capacity 32G --pace as-recorded

TRACE is CSV (time_us,op,lba,blocks a line, in blocks of 4 KiB; op R, W, D or F), blktrace's binary output \
(NAME.blktrace.0 stands for
the files of all processors), fio's iolog of version 2 or 3 (several files lie one after another, each at a multiple \
of 1 MiB) or a
trace of MSR Cambridge; each may be compressed with zstd. NAME.files.csv next to NAME.csv.zst names files
(first_lba,blocks,file,first_block_in_file). A stream rule is STREAM=WHAT; WHAT is journal, doublewrite, a file name \
or pattern
(tpcc/*.ibd), FIRST-LAST or FIRST+COUNT in blocks. A rules file has one rule a line; # begins a comment; later rules \
win.

Exit status: 0 fine; 1 the trace is damaged; 2 wrong use: not a trace, it does not fit the device, a stream the \
device does not have.";

/// Replay a recorded trace on a device: write amplification, copies per stream, wear, time
#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(super) struct ReplayArgs {
    /// The trace file; its formats are described below
    trace: PathBuf,
    /// The preset of the device (`highwater device list`), or a file as `highwater device list PRESET --config`
    /// prints it
    #[arg(long, default_value = "simple-2gb", value_name = "PRESET|FILE")]
    device: String,
    /// Scale the device to this capacity, with the same ratios [default: the preset's capacity, at most 4G]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    capacity: Option<u64>,
    /// What the flash holds at the start: none (empty), fill (written once), or random:N (written once, then N times
    /// the capacity overwritten at random)
    #[arg(long, default_value = "fill", value_parser = parsed::<Age>)]
    age: Age,
    /// A rule that maps data to a stream, for example 1=journal; may be repeated, a later rule overrides earlier ones
    #[arg(long, value_name = "STREAM=WHAT", value_parser = parsed::<StreamRule>)]
    stream: Vec<StreamRule>,
    /// A file with such rules; --stream overrides them
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// CSV file with the place of each file on the device [default: NAME.files.csv in the folder of the trace]
    #[arg(long, value_name = "CSV")]
    files: Option<PathBuf>,
    /// A name for a range of blocks, for example journal=262144+2048; may be repeated
    #[arg(long, value_name = "NAME=FIRST+COUNT", value_parser = parsed::<NamedRange>)]
    range: Vec<NamedRange>,
    /// How garbage collection selects the unit to erase: greedy, cost-benefit or fifo [default: the preset's]
    #[arg(long, value_name = "POLICY", value_parser = parsed::<VictimPolicy>)]
    victim: Option<VictimPolicy>,
    /// Whether copies of different streams go to different units (separate) or to the same one (shared) [default: the
    /// preset's]
    #[arg(long, value_name = "HOW", value_parser = parsed::<CopyBack>)]
    copy_back: Option<CopyBack>,
    /// Spare flash as a share of the capacity, for example 0.15 [default: the preset's]
    #[arg(long, value_name = "SHARE")]
    overprovisioning: Option<f64>,
    /// Size of an erase unit [default: the preset's]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    erase_unit: Option<u64>,
    /// Size of the write buffer; 0 for none [default: the preset's]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    write_buffer: Option<u64>,
    /// How many times the trace is replayed; the figures are of the last pass
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=1000))]
    passes: u32,
    /// When requests arrive: untimed (no time passes, only wear is counted), as-recorded, or queue-depth:N (N requests
    /// at a time)
    #[arg(long, default_value = "untimed", value_parser = parsed::<Pace>)]
    pace: Pace,
    /// Host bytes between two samples of the write amplification [default: a tenth of the capacity]
    #[arg(long, value_name = "SIZE", value_parser = size)]
    sample: Option<u64>,
    /// Write the result as JSON to FILE; with -, write only the JSON to stdout
    #[arg(long, value_name = "FILE")]
    json: Option<Json>,
    /// Write a report with charts to FILE: one HTML page that needs no network
    #[arg(long, value_name = "FILE.html")]
    report: Option<PathBuf>,
}

impl ReplayArgs {
    fn options(&self) -> Result<ReplayOptions, Failure> {
        let mut rules = match &self.rules {
            Some(path) => ranges::read_rules(path)?,
            None => Vec::new(),
        };
        rules.extend(self.stream.iter().cloned());
        Ok(ReplayOptions {
            overprovisioning: self.overprovisioning,
            erase_unit_bytes: self.erase_unit,
            victim_policy: self.victim,
            copy_back: self.copy_back,
            write_buffer_bytes: self.write_buffer,
            rules,
            ranges: self.range.clone(),
            files: self.files.clone(),
            age: self.age,
            passes: self.passes,
            pace: self.pace,
            sample_bytes: self.sample,
            ..ReplayOptions::new(&self.trace, device_config(&self.device, self.capacity)?)
        })
    }
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] says why and with which exit status.
pub(super) fn run(args: &ReplayArgs) -> Result<(), Failure> {
    let options = args.options()?;
    options.device_config()?;
    let mut shown = Shown { pass: None, bar: None };
    let result = check_outputs(args).and_then(|()| Ok(replay::run(&options, &mut |p| shown.at(p))?));
    drop(shown);
    let result = result.map_err(|failure| args.with_advice(failure))?;
    let lines = Lines { stdout_taken: args.json == Some(Json::Stdout) };
    lines.write(report::text(&result).trim_end());
    write_results(args, &result)
}

impl ReplayArgs {
    /// A trace that does not fit a capacity that the user did not choose.
    fn with_advice(&self, failure: Failure) -> Failure {
        match failure {
            Failure::Usage(text) if self.capacity.is_none() && text.contains("goes beyond the device") => {
                Failure::Usage(format!("{text}; --capacity makes it larger"))
            }
            failure => failure,
        }
    }
}

/// Checks that the result files can be created. The trace is opened first, so that a mistyped name is reported first.
fn check_outputs(args: &ReplayArgs) -> Result<(), Failure> {
    highwater_device::trace::Trace::open(&args.trace)?;
    json_must_be_writable(args.json.as_ref())?;
    must_differ(args.json.as_ref(), args.report.as_deref())?;
    match args.report.as_deref() {
        Some(path) if path == Path::new("-") => {
            Err(Failure::Usage("--report needs the name of a file; only --json takes -".into()))
        }
        Some(path) => must_be_writable(path),
        None => Ok(()),
    }
}

fn write_results(args: &ReplayArgs, result: &ReplayResult) -> Result<(), Failure> {
    if let Some(json) = &args.json {
        let text = serde_json::to_string_pretty(result).map_err(|e| Failure::Failed(e.to_string()))?;
        write_json(json, &text)?;
    }
    match &args.report {
        Some(path) => write_file(path, &report::html(result)?),
        None => Ok(()),
    }
}

/// The progress bar: one for the ageing, one for each pass.
struct Shown {
    pass: Option<u32>,
    bar: Option<Bar>,
}

impl Shown {
    const STEPS: u64 = 1000;

    fn at(&mut self, progress: Progress) {
        if self.pass != Some(progress.pass) {
            self.pass = Some(progress.pass);
            let what = if progress.pass == 0 { "ageing" } else { "replaying" };
            // The old bar goes before the new one is drawn.
            self.bar = None;
            self.bar = Some(Bar::new(what, Self::STEPS).counting("blocks"));
        }
        if let Some(bar) = &mut self.bar {
            bar.at((progress.share * Self::STEPS as f64) as u64, progress.host_blocks);
        }
    }
}
