//! Counters of accesses to the mounted disk: writes of each block; reads and writes of the journal and of the rest.

use super::file_system::Label;
use super::traffic::Region;
use crate::error::Result;
use crate::labels::Labels;
use crate::replay::result::GroupResult;
use crate::ssd::table::room;
use serde::{Deserialize, Serialize};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};

const STRETCHES: u64 = 512;

/// Accesses by block and by region.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AccessReport {
    /// Blocks written over the device's address space, in up to 512 equal stretches.
    pub heat_written_blocks: Vec<u64>,
    /// The journal and the rest.
    pub groups: Vec<GroupResult>,
}

/// Counts accesses. Four bytes per 4 KiB block.
pub struct Access {
    writes: Box<[AtomicU32]>,
    read_blocks: [AtomicU64; 2],
}

impl Access {
    /// Counters of a disk of `blocks` blocks, all zero.
    pub fn new(blocks: u32) -> Result<Access> {
        let mut writes = room(blocks as usize)?;
        writes.extend((0..blocks).map(|_| AtomicU32::new(0)));
        Ok(Access { writes: writes.into_boxed_slice(), read_blocks: Default::default() })
    }

    /// Counts a write.
    pub fn written(&self, lba: u32, blocks: u32) {
        for counter in &self.writes[lba as usize..(lba + blocks) as usize] {
            counter.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Counts a read.
    pub fn read(&self, region: Region, blocks: u32) {
        self.read_blocks[region as usize].fetch_add(u64::from(blocks), Ordering::Relaxed);
    }

    /// Resets the counters.
    pub fn reset(&self) {
        self.writes.iter().for_each(|w| w.store(0, Ordering::Relaxed));
        self.read_blocks.iter().for_each(|r| r.store(0, Ordering::Relaxed));
    }

    /// The accesses since the last reset, by the regions of `labels`.
    pub fn report(&self, labels: &Labels<Label>) -> AccessReport {
        let total = self.writes.len() as u64;
        let mut heat = vec![0; STRETCHES.min(total) as usize];
        let (mut blocks, mut touched, mut written) = ([0u64; 2], [0u64; 2], [0u64; 2]);
        let _: std::result::Result<(), ()> = labels.split(0, total as u32, |first, n, label| {
            let region = label.region as usize;
            blocks[region] += u64::from(n);
            for lba in first..first + n {
                let writes = u64::from(self.writes[lba as usize].load(Ordering::Relaxed));
                touched[region] += u64::from(writes > 0);
                written[region] += writes;
                heat[(u64::from(lba) * STRETCHES.min(total) / total) as usize] += writes;
            }
            Ok(())
        });
        let per = |n: u64, of: u64| if of == 0 { 0.0 } else { n as f64 / of as f64 };
        let group = |region: Region| {
            let i = region as usize;
            GroupResult {
                name: region.name().into(),
                bytes: blocks[i] * 4096,
                written_bytes: written[i] * 4096,
                read_bytes: self.read_blocks[i].load(Ordering::Relaxed) * 4096,
                writes_per_block: per(written[i], blocks[i]),
                writes_per_written_block: per(written[i], touched[i]),
            }
        };
        AccessReport { heat_written_blocks: heat, groups: Region::ALL.map(group).into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_counted_by_region_and_place() {
        let access = Access::new(1024).unwrap();
        let mut labels = Labels::all(Label { stream: 0, region: Region::Main });
        labels.paint(512, 16, Label { stream: 1, region: Region::Journal });
        (0..10).for_each(|_| access.written(512, 8));
        access.written(0, 2);
        access.read(Region::Main, 3);
        let report = access.report(&labels);
        assert_eq!((report.heat_written_blocks.len(), report.heat_written_blocks[256]), (512, 20));
        let [main, journal] = &report.groups[..] else { panic!() };
        assert_eq!((main.written_bytes, main.read_bytes, main.bytes), (8192, 12288, 1008 * 4096));
        assert_eq!((journal.writes_per_block, journal.writes_per_written_block), (5.0, 10.0));
        access.reset();
        assert_eq!(access.report(&labels).heat_written_blocks.iter().sum::<u64>(), 0);
    }
}
