//! Block traces, maps of files and stream rules of any bytes, and the replay of what is one.

#![no_main]

use highwater_device::model::Op;
use highwater_device::preset::DeviceConfig;
use highwater_device::replay::{self, Pace, ReplayOptions};
use highwater_device::ssd::config::SsdConfig;
use highwater_device::trace::ranges::{self, NamedRange, StreamRule};
use highwater_device::trace::{Event, Format, Trace};
use highwater_fuzz::input::Input;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// Blocks of the device.
const CAPACITY: u32 = 16 * 256;
/// Events of a trace that is replayed: more are read only.
const REPLAYED: usize = 4000;

static FOLDER: OnceLock<tempfile::TempDir> = OnceLock::new();

libfuzzer_sys::fuzz_target!(init: highwater_fuzz::start(), |data: &[u8]| {
    let mut input = Input::new(data);
    let folder = FOLDER.get_or_init(highwater_fuzz::folder).path();
    let (how, map) = (input.byte(), usize::from(input.byte()));
    let (map, rules) = (input.take(map), input.some(60));
    let trace = write(folder, "x.csv", packed(how, 1, input.rest()));
    let files = write(folder, "x.files.csv", packed(how, 2, map));
    let rules_file = write(folder, "rules", rules.to_vec());
    let named = ranges::read_files(&files).unwrap_or_default();
    let _ = ranges::doublewrite(&named);
    let rules = ranges::read_rules(&rules_file);
    rules.iter().flatten().for_each(|rule| drop(rule.resolve(&named)));
    text(rules_file);
    let Ok(opened) = Trace::open(&trace) else { return };
    let Ok(events) = opened.events() else { return };
    let events: Vec<Event> = events.map_while(Result::ok).take(REPLAYED).collect();
    if opened.format() == Format::Csv {
        reads_back(folder, &events);
    }
    if events.len() < REPLAYED {
        run(&trace, &opened, &named, rules.unwrap_or_default(), how);
    }
});

fn packed(how: u8, bit: u8, bytes: &[u8]) -> Vec<u8> {
    match how & bit {
        0 => bytes.to_vec(),
        _ => zstd::bulk::compress(bytes, 1).expect("bytes are compressed"),
    }
}

fn write(folder: &Path, name: &str, bytes: Vec<u8>) -> PathBuf {
    let path = folder.join(name);
    std::fs::write(&path, bytes).expect("a file in memory is written");
    path
}

/// Texts that a command line takes.
fn text(file: PathBuf) {
    let Ok(text) = std::fs::read_to_string(file) else { return };
    let _ = (text.parse::<NamedRange>(), text.parse::<StreamRule>(), text.parse::<Pace>());
}

/// Events that are written as lines read as the same.
fn reads_back(folder: &Path, events: &[Event]) {
    let line = |event: &Event| {
        let letter = match event.op {
            Op::Read => 'R',
            Op::Write => 'W',
            Op::Discard => 'D',
            Op::Flush => 'F',
        };
        format!("{},{letter},{},{}\n", event.time_ns / 1000, event.lba, event.blocks)
    };
    let text: String = events.iter().map(line).collect();
    let again = write(folder, "again.csv", text.into_bytes());
    let Ok(trace) = Trace::open(&again) else { return assert!(events.is_empty(), "a trace that was written opens") };
    let read: Vec<Event> = trace.events().expect("it is there").map(|event| event.expect("a line is one")).collect();
    assert_eq!(read, events);
}

/// Replays the trace on a small device.
fn run(path: &Path, trace: &Trace, named: &[NamedRange], rules: Vec<StreamRule>, how: u8) {
    let _ = ranges::find_journal(trace, named, CAPACITY);
    let device = SsdConfig { streams: 4, ..SsdConfig::simple(CAPACITY, 0.15, 64) };
    let mut options = ReplayOptions::new(path, DeviceConfig::Ssd(device));
    options.rules = rules;
    options.pace = [Pace::Untimed, Pace::AsRecorded, Pace::QueueDepth(4)][usize::from(how >> 2) % 3];
    if let Ok(result) = replay::run(&options, &mut |_| {}) {
        let totals = &result.totals;
        assert!(totals.write_amplification.is_finite() && totals.write_amplification >= 0.0);
    }
}
