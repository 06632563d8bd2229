//! The work of a device between two moments, for the results of measurements.

use crate::disk::Disk;
use crate::model::Wear;
use crate::replay::result::{StreamResult, Totals, streams_of};
use crate::ssd::counters::Counters;
use serde::{Deserialize, Serialize};

/// A device's counters at one moment.
#[derive(Clone, Copy, Debug)]
pub struct Mark {
    counters: Counters,
    now_ns: u64,
}

impl Mark {
    /// The device's counters now.
    pub fn of(disk: &Disk) -> Mark {
        Mark { counters: disk.counters(), now_ns: disk.now_ns() }
    }
}

/// The work of a device between two moments. Field names are kept across releases.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct DeviceUsage {
    /// Name of the device.
    pub device: String,
    /// Its capacity.
    pub capacity_bytes: u64,
    /// Elapsed device time in seconds; 0 for a device without time.
    pub device_s: f64,
    /// Bytes and requests.
    pub totals: Totals,
    /// By stream, those that did anything.
    pub streams: Vec<StreamResult>,
    /// Wear in the device's life, where the medium wears.
    pub wear: Option<Wear>,
}

impl DeviceUsage {
    /// From `start` to now.
    pub fn since(disk: &Disk, start: &Mark) -> DeviceUsage {
        let now = Mark::of(disk);
        let counters = now.counters.since(&start.counters);
        DeviceUsage {
            device: disk.name().into(),
            capacity_bytes: disk.capacity_bytes(),
            device_s: now.now_ns.saturating_sub(start.now_ns) as f64 / 1e9,
            totals: Totals::of(&counters),
            streams: streams_of(&counters),
            wear: disk.wear(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::disk::DiskOptions;
    use crate::preset;

    #[test]
    fn only_what_came_after_the_mark_counts() {
        let disk =
            Disk::new(&DiskOptions::new(preset::find("simple-2gb").unwrap().config().scaled_to(16_384))).unwrap();
        disk.write(0, &[1; 8192], 0).unwrap();
        let mark = Mark::of(&disk);
        disk.write(0, &[2; 4096], 1).unwrap();
        let usage = DeviceUsage::since(&disk, &mark);
        assert_eq!((usage.totals.host_written_bytes, usage.streams.len()), (4096, 1));
        assert_eq!((usage.streams[0].stream.as_str(), usage.capacity_bytes), ("1", 64 << 20));
    }
}
