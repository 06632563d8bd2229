//! The counters of an SSD, in the terms of NVMe Flexible Data Placement.

use super::geometry::BLOCK_BYTES;
use serde::{Deserialize, Serialize};

/// Maximum number of streams of a device.
pub const MAX_STREAMS: usize = 16;
/// The pseudo stream of copies that streams share ([`CopyBack::Shared`](super::config::CopyBack::Shared)).
pub const SHARED: usize = MAX_STREAMS;

/// Slots written for one stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StreamCounters {
    /// Host blocks of 4 KiB that were programmed to flash. Blocks that were absorbed in the write buffer, or are still
    /// in it, are not counted.
    pub host_blocks: u64,
    /// 4 KiB blocks garbage collection copied out of this stream's units.
    pub copied_blocks: u64,
    /// Slots left empty to finish a flash page at a flush.
    pub padded_blocks: u64,
    /// Erase units of this stream collected.
    pub collected_units: u64,
}

impl StreamCounters {
    /// Flash writes over host writes; 1 where the host wrote nothing.
    pub fn write_amplification(&self) -> f64 {
        match self.host_blocks {
            0 => 1.0,
            host => (host + self.copied_blocks + self.padded_blocks) as f64 / host as f64,
        }
    }
}

/// The counters of a device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// 4 KiB blocks the host wrote, counted when the device takes them.
    pub accepted_blocks: u64,
    /// Of those, the number in the write buffer now. It is a gauge: a difference of counters has the value at its end.
    pub waiting_blocks: u64,
    /// By stream; the last entry counts copies out of units shared by streams.
    pub streams: [StreamCounters; MAX_STREAMS + 1],
    /// 4 KiB blocks the host read.
    pub read_blocks: u64,
    /// 4 KiB blocks the host discarded while they held data.
    pub trimmed_blocks: u64,
    /// Flushes the host asked for.
    pub flushes: u64,
    /// Host blocks that were overwritten in the write buffer and so never reached the flash.
    pub absorbed_blocks: u64,
    /// Erase units erased.
    pub erased_units: u64,
    /// Slots in an erase unit.
    pub slots_per_unit: u32,
}

impl Counters {
    fn sum(&self, of: impl Fn(&StreamCounters) -> u64) -> u64 {
        self.streams.iter().map(of).sum()
    }

    /// 4 KiB blocks written by the host, also those absorbed in the write buffer or still waiting there.
    pub fn host_blocks(&self) -> u64 {
        self.accepted_blocks
    }

    /// 4 KiB blocks copied by garbage collection.
    pub fn copied_blocks(&self) -> u64 {
        self.sum(|s| s.copied_blocks)
    }

    /// Slots programmed: host, copies and padding.
    pub fn media_blocks(&self) -> u64 {
        self.sum(|s| s.host_blocks + s.copied_blocks + s.padded_blocks)
    }

    /// FDP's HBMW: bytes the host wrote.
    pub fn hbmw(&self) -> u64 {
        self.host_blocks() * u64::from(BLOCK_BYTES)
    }

    /// FDP's MBMW: bytes written to the flash.
    pub fn mbmw(&self) -> u64 {
        self.media_blocks() * u64::from(BLOCK_BYTES)
    }

    /// FDP's MBE: bytes of flash erased.
    pub fn mbe(&self) -> u64 {
        self.erased_units * u64::from(self.slots_per_unit) * u64::from(BLOCK_BYTES)
    }

    /// `mbmw / hbmw`; 1 where the host wrote nothing.
    pub fn write_amplification(&self) -> f64 {
        match self.host_blocks() {
            0 => 1.0,
            host => self.media_blocks() as f64 / host as f64,
        }
    }

    /// The counts since `earlier`.
    pub fn since(&self, earlier: &Counters) -> Counters {
        let mut delta = *self;
        for (now, then) in delta.streams.iter_mut().zip(&earlier.streams) {
            now.host_blocks -= then.host_blocks;
            now.copied_blocks -= then.copied_blocks;
            now.padded_blocks -= then.padded_blocks;
            now.collected_units -= then.collected_units;
        }
        delta.accepted_blocks -= earlier.accepted_blocks;
        delta.read_blocks -= earlier.read_blocks;
        delta.trimmed_blocks -= earlier.trimmed_blocks;
        delta.flushes -= earlier.flushes;
        delta.absorbed_blocks -= earlier.absorbed_blocks;
        delta.erased_units -= earlier.erased_units;
        delta
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_and_differences() {
        let mut counters =
            Counters { slots_per_unit: 64, erased_units: 2, accepted_blocks: 200, ..Counters::default() };
        counters.streams[0] = StreamCounters { host_blocks: 100, copied_blocks: 50, ..Default::default() };
        counters.streams[1] = StreamCounters { host_blocks: 90, padded_blocks: 3, ..Default::default() };
        counters.absorbed_blocks = 10;
        assert_eq!((counters.hbmw(), counters.mbmw(), counters.mbe()), (200 * 4096, 243 * 4096, 128 * 4096));
        assert_eq!(counters.write_amplification(), 243.0 / 200.0);
        assert_eq!(counters.streams[0].write_amplification(), 1.5);
        assert_eq!(counters.since(&counters).host_blocks(), 0);
        assert_eq!(Counters::default().write_amplification(), 1.0);
    }
}
