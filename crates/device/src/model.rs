//! The interface of every emulated device: requests in, completion times and counters out.
//!
//! Rules
//! 1. Addresses and lengths are 4 KiB blocks. Times are nanoseconds; `submit` is called with monotonic times.
//! 2. A request that returns an error changed nothing.
//! 3. The model keeps no data; [`crate::disk::Disk`] joins it with a store.

use crate::error::Result;
use crate::ssd::counters::Counters;
use serde::{Deserialize, Serialize};

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Op {
    /// Reads blocks.
    Read,
    /// Writes blocks.
    Write,
    /// Discards the contents of blocks (trim).
    Discard,
    /// Makes all completed writes durable.
    Flush,
}

/// One request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Request {
    /// The operation.
    pub op: Op,
    /// First 4 KiB block; 0 for a flush.
    pub lba: u32,
    /// Number of 4 KiB blocks; 0 for a flush.
    pub blocks: u32,
    /// Stream of a write; 0 otherwise.
    pub stream: u8,
}

impl Request {
    /// A write.
    pub fn write(lba: u32, blocks: u32, stream: u8) -> Request {
        Request { op: Op::Write, lba, blocks, stream }
    }

    /// A read.
    pub fn read(lba: u32, blocks: u32) -> Request {
        Request { op: Op::Read, lba, blocks, stream: 0 }
    }

    /// A discard.
    pub fn discard(lba: u32, blocks: u32) -> Request {
        Request { op: Op::Discard, lba, blocks, stream: 0 }
    }

    /// A flush.
    pub fn flush() -> Request {
        Request { op: Op::Flush, lba: 0, blocks: 0, stream: 0 }
    }
}

/// An emulated device without its data.
pub trait BlockModel: Send {
    /// Size in 4 KiB blocks.
    fn capacity_blocks(&self) -> u32;
    /// Streams a write may name.
    fn streams(&self) -> u8;
    /// Submits a request at `now_ns`; returns its completion time.
    fn submit(&mut self, now_ns: u64, request: &Request) -> Result<u64>;
    /// The counters.
    fn counters(&self) -> Counters;
    /// Wear, where the medium wears.
    fn wear(&self) -> Option<Wear>;
    /// Empties the volatile buffers, as a power cut does.
    fn power_cut(&mut self);
    /// Completes everything in flight without taking time: buffered data is on the medium, and the device is idle at
    /// time 0.
    fn rest(&mut self);
}

/// The distribution of erases over the erase units.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Wear {
    /// Erase units on the device.
    pub units: u32,
    /// Fewest erases of a unit.
    pub min_erases: u32,
    /// Mean erases of a unit.
    pub mean_erases: f64,
    /// Most erases of a unit.
    pub max_erases: u32,
    /// Standard deviation of the erases.
    pub deviation_erases: f64,
    /// Units by erases in up to 32 equal classes from `min_erases` to `max_erases`.
    pub histogram_units: Vec<u32>,
}

impl Wear {
    /// Summarises erase counts by unit.
    pub fn of(erases: &[u32]) -> Wear {
        let (min, max) = (erases.iter().min().copied().unwrap_or(0), erases.iter().max().copied().unwrap_or(0));
        let n = erases.len().max(1) as f64;
        let mean = erases.iter().map(|e| f64::from(*e)).sum::<f64>() / n;
        let variance = erases.iter().map(|e| (f64::from(*e) - mean).powi(2)).sum::<f64>() / n;
        let classes = (max - min + 1).min(32);
        let mut histogram = vec![0; classes as usize];
        for e in erases {
            let class = u64::from(e - min) * u64::from(classes) / u64::from(max - min + 1);
            histogram[class as usize] += 1;
        }
        Wear {
            units: erases.len() as u32,
            min_erases: min,
            mean_erases: mean,
            max_erases: max,
            deviation_erases: variance.sqrt(),
            histogram_units: histogram,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wear_is_summarised() {
        let wear = Wear::of(&[1, 3, 3, 5]);
        assert_eq!((wear.min_erases, wear.max_erases, wear.mean_erases), (1, 5, 3.0));
        assert_eq!(wear.histogram_units, [1, 0, 2, 0, 1]);
        assert_eq!(wear.deviation_erases, 2.0_f64.sqrt());
        assert_eq!(Wear::of(&[0; 100]).histogram_units, [100]);
        let many: Vec<u32> = (0..1000).collect();
        let wide = Wear::of(&many);
        assert_eq!((wide.histogram_units.len(), wide.histogram_units.iter().sum::<u32>()), (32, 1000));
    }
}
