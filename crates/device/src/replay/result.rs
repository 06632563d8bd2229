//! The result of a replay, for tables, JSON and reports. Field names are kept across releases.

use super::options::Pace;
use crate::age::Age;
use crate::histogram::Latency;
use crate::model::Wear;
use crate::preset::DeviceConfig;
use crate::ssd::counters::{Counters, MAX_STREAMS, StreamCounters};
use crate::ssd::geometry::BLOCK_BYTES;
use crate::trace::ranges::NamedRange;
use serde::{Deserialize, Serialize};

/// The result of a replay. Figures are those of the last pass, unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ReplayResult {
    /// The trace's path.
    pub trace: String,
    /// The device as it was built.
    pub device: DeviceConfig,
    /// Its capacity.
    pub capacity_bytes: u64,
    /// The ageing.
    pub age: Age,
    /// The arrival of requests.
    pub pace: Pace,
    /// The named ranges; `journal` may have been derived from the trace.
    pub ranges: Vec<NamedRange>,
    /// Whether the journal's range was derived from the trace.
    pub journal_found: bool,
    /// Requests of one pass.
    #[serde(default)]
    pub requests: u64,
    /// Totals of the last pass.
    pub totals: Totals,
    /// Totals of the ageing.
    pub age_totals: Totals,
    /// Totals of each pass.
    pub passes: Vec<Totals>,
    /// By stream, those that wrote anything.
    pub streams: Vec<StreamResult>,
    /// By named range.
    pub groups: Vec<GroupResult>,
    /// Host writes of the last pass over the device's address space, in up to 512 equal stretches.
    pub heat_written_blocks: Vec<u64>,
    /// Over time, all passes.
    pub samples: Vec<Sample>,
    /// Wear at the end, where the medium wears.
    pub wear: Option<Wear>,
    /// Device time and latencies, if the replay was timed.
    pub timing: Option<TimingResult>,
    /// The speed of the replay.
    pub speed: Speed,
}

/// Bytes and requests of a part of the replay.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Totals {
    /// Bytes the host wrote (FDP: HBMW).
    pub host_written_bytes: u64,
    /// Bytes written to the medium (FDP: MBMW).
    pub media_written_bytes: u64,
    /// Bytes of flash erased (FDP: MBE).
    pub media_erased_bytes: u64,
    /// Bytes copied by garbage collection.
    pub copied_bytes: u64,
    /// Bytes left empty to finish a flash page at a flush.
    pub padded_bytes: u64,
    /// Bytes overwritten in the write buffer before they reached the medium.
    pub absorbed_bytes: u64,
    /// Bytes in the write buffer at the end: written by the host, but not yet to the medium.
    #[serde(default)]
    pub waiting_bytes: u64,
    /// Bytes the host read.
    pub host_read_bytes: u64,
    /// Bytes discarded that held data.
    pub trimmed_bytes: u64,
    /// Flushes.
    pub flushes: u64,
    /// Medium writes over host writes.
    pub write_amplification: f64,
}

/// One stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StreamResult {
    /// The stream's number, or `shared` for copies out of units that streams share.
    pub stream: String,
    /// Host bytes that were programmed to flash; rewrites absorbed in the write buffer are not counted.
    pub host_written_bytes: u64,
    /// Bytes copied out of its erase units.
    pub copied_bytes: u64,
    /// Padding.
    pub padded_bytes: u64,
    /// Its erase units collected.
    pub collected_units: u64,
    /// Medium writes over host writes.
    pub write_amplification: f64,
}

/// One named range.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GroupResult {
    /// Its name.
    pub name: String,
    /// Its size.
    pub bytes: u64,
    /// Bytes written to it.
    pub written_bytes: u64,
    /// Bytes read from it.
    pub read_bytes: u64,
    /// Mean number of writes of a block.
    pub writes_per_block: f64,
    /// Mean number of writes of a block that was written at least once.
    pub writes_per_written_block: f64,
}

/// A point in the course of the replay.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Sample {
    /// Pass, from 1.
    pub pass: u32,
    /// Host bytes written since the first pass began.
    pub host_written_bytes: u64,
    /// Trace time within the pass.
    pub trace_s: f64,
    /// Write amplification since the previous sample.
    pub write_amplification: f64,
    /// Write amplification since the first pass began.
    pub write_amplification_so_far: f64,
}

/// Device time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TimingResult {
    /// From the first arrival to the last completion of the pass.
    pub device_s: f64,
    /// Latency of reads.
    pub read: Latency,
    /// Latency of writes.
    pub write: Latency,
    /// Latency of flushes.
    pub flush: Latency,
}

/// Speed of the emulation.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Speed {
    /// Wall time of ageing and all passes.
    pub wall_s: f64,
    /// 4 KiB blocks of the trace written per second of wall time of all passes, parsing included, ageing not.
    pub host_blocks_per_s: f64,
}

const BLOCK: u64 = BLOCK_BYTES as u64;

impl Totals {
    /// The totals of a difference of counters.
    pub fn of(counters: &Counters) -> Totals {
        Totals {
            host_written_bytes: counters.hbmw(),
            media_written_bytes: counters.mbmw(),
            media_erased_bytes: counters.mbe(),
            copied_bytes: counters.copied_blocks() * BLOCK,
            padded_bytes: counters.streams.iter().map(|s| s.padded_blocks).sum::<u64>() * BLOCK,
            absorbed_bytes: counters.absorbed_blocks * BLOCK,
            waiting_bytes: counters.waiting_blocks * BLOCK,
            host_read_bytes: counters.read_blocks * BLOCK,
            trimmed_bytes: counters.trimmed_blocks * BLOCK,
            flushes: counters.flushes,
            write_amplification: counters.write_amplification(),
        }
    }
}

/// The streams of a difference of counters that have writes or copies.
pub fn streams_of(counters: &Counters) -> Vec<StreamResult> {
    let busy = counters.streams.iter().enumerate().filter(|(_, s)| **s != StreamCounters::default());
    busy.map(|(number, s)| StreamResult {
        stream: if number == MAX_STREAMS { "shared".into() } else { number.to_string() },
        host_written_bytes: s.host_blocks * BLOCK,
        copied_bytes: s.copied_blocks * BLOCK,
        padded_bytes: s.padded_blocks * BLOCK,
        collected_units: s.collected_units,
        write_amplification: s.write_amplification(),
    })
    .collect()
}
