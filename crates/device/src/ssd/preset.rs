//! Presets of SSDs. Each parameter is marked as published, with its source, or as assumed, with the reason.
//!
//! Rules
//! 1. Every field of [`SsdConfig`] has a [`Source`]; a test (`crate::preset`) holds the lists to it.
//! 2. "Published" names where the figure can be read. Figures that no maker publishes (the inside of a drive) are
//!    assumptions chosen so that the model reaches the published speeds; a test checks the sequential write speed.

use super::config::{CopyBack, SsdConfig};
use super::geometry::Geometry;
use super::timing::SsdTiming;
use super::victim::VictimPolicy;
use crate::preset::Basis::{Assumed, Published};
use crate::preset::Source;
use crate::promises::Promises;

const INSIDE: &str = "makers do not publish it; greedy is what the literature and open firmware use";
const DIES: &str = "from capacity and die size; channels as reviews of the controller give them";
const SPARE: &str = "flash comes in powers of two: the gap between GiB of flash and GB of capacity";
const RESERVE: &str = "the smallest number that works; more would only reduce the overprovisioning";
const TIMES: &str = "chosen so that the model reaches the published sequential and random speeds";

/// Samsung SSD 850 PRO 256 GB: SATA, MLC V-NAND, no power-loss protection.
pub fn samsung_850_pro_256gb() -> SsdConfig {
    let geometry = Geometry {
        channels: 8,
        dies_per_channel: 4,
        planes_per_die: 2,
        blocks_per_plane: 1024,
        pages_per_block: 256,
        page_bytes: 16384,
        dies_per_unit: 32,
    };
    SsdConfig {
        name: "samsung-850-pro-256gb".into(),
        geometry,
        capacity_blocks: 62_514_774,
        streams: 1,
        victim_policy: VictimPolicy::Greedy,
        copy_back: CopyBack::Separate,
        reserve_units: 2,
        write_buffer_blocks: 4096,
        power_loss_protection: false,
        timing: SsdTiming {
            read_ns: 50_000,
            program_ns: 660_000,
            erase_ns: 4_000_000,
            suspend_ns: 400_000,
            channel_mb_per_s: 400,
            link_mb_per_s: 550,
            command_ns: 20_000,
        },
        promises: Promises::default(),
    }
}

/// The sources of the values of [`samsung_850_pro_256gb`].
pub const SOURCES_850_PRO: &[Source] = &[
    Source(
        "capacity_blocks",
        Published,
        "256 GB (Samsung's specification, printed in ubergizmo.com's review of 2014); in sectors by IDEMA's rule \
         LBA1-03: 500,118,192",
    ),
    Source("geometry", Assumed, DIES),
    Source("geometry.blocks_per_plane", Assumed, SPARE),
    Source("streams", Assumed, "client drive; the specification lists no streams"),
    Source("victim_policy", Assumed, INSIDE),
    Source("copy_back", Assumed, "irrelevant with one stream"),
    Source("reserve_units", Assumed, RESERVE),
    Source(
        "write_buffer_blocks",
        Assumed,
        "16 MiB of the 512 MB LPDDR2 that the specification lists; most of that holds the map",
    ),
    Source("power_loss_protection", Assumed, "client drive; the specification lists no power-loss protection"),
    Source(
        "timing.link_mb_per_s",
        Published,
        "Samsung's specification, printed in ubergizmo.com's review of 2014: sequential read 550 MB/s (write 520 MB/s)",
    ),
    Source(
        "timing.program_ns",
        Assumed,
        "the 24-layer MLC V-NAND before it programs 50 MB/s (ISSCC 2014, paper 19.5): 32 KiB in 655 us",
    ),
    Source("timing", Assumed, TIMES),
    Source("promises", Assumed, "4 KiB mapping unit; FAST 2013 found most client drives to keep less"),
];

/// Samsung SSD 960 PRO 512 GB: NVMe, MLC V-NAND.
pub fn samsung_960_pro_512gb() -> SsdConfig {
    let geometry = Geometry {
        channels: 8,
        dies_per_channel: 2,
        planes_per_die: 2,
        blocks_per_plane: 1024,
        pages_per_block: 512,
        page_bytes: 32768,
        dies_per_unit: 16,
    };
    SsdConfig {
        name: "samsung-960-pro-512gb".into(),
        geometry,
        capacity_blocks: 125_026_902,
        streams: 1,
        victim_policy: VictimPolicy::Greedy,
        copy_back: CopyBack::Separate,
        reserve_units: 2,
        write_buffer_blocks: 8192,
        power_loss_protection: false,
        timing: SsdTiming {
            read_ns: 50_000,
            program_ns: 480_000,
            erase_ns: 4_000_000,
            suspend_ns: 200_000,
            channel_mb_per_s: 533,
            link_mb_per_s: 3500,
            command_ns: 10_000,
        },
        promises: Promises::default(),
    }
}

/// The sources of the values of [`samsung_960_pro_512gb`].
pub const SOURCES_960_PRO: &[Source] = &[
    Source(
        "capacity_blocks",
        Published,
        "512 GB (AnandTech's review 10754); in sectors by IDEMA's rule LBA1-03: 1,000,215,216",
    ),
    Source(
        "geometry.channels",
        Assumed,
        "eight is usual for the class; reviews of the Polaris controller name five cores",
    ),
    Source(
        "geometry.dies_per_channel",
        Assumed,
        "48-layer 256 Gbit MLC V-NAND (AnandTech's review 10754): 16 dies make 512 GiB; over the eight channels \
         assumed",
    ),
    Source("geometry", Assumed, "two MLC pages of 16 KiB go in one program per plane"),
    Source("geometry.blocks_per_plane", Assumed, SPARE),
    Source("streams", Assumed, "client drive without the streams directive"),
    Source("victim_policy", Assumed, INSIDE),
    Source("copy_back", Assumed, "irrelevant with one stream"),
    Source("reserve_units", Assumed, RESERVE),
    Source("write_buffer_blocks", Assumed, "32 MiB of the 512 MB DRAM; most of that holds the map"),
    Source("power_loss_protection", Assumed, "client drive; the specification lists no power-loss protection"),
    Source(
        "timing.link_mb_per_s",
        Published,
        "AnandTech's review 10754: sequential read 3,500 MB/s (write 2,100 MB/s)",
    ),
    Source("timing", Assumed, TIMES),
    Source("promises", Assumed, "4 KiB mapping unit"),
];

/// Samsung PM953 960 GB: the multi-stream data-centre NVMe drive of the `stream-journal` document.
pub fn samsung_pm953_960gb() -> SsdConfig {
    let geometry = Geometry {
        channels: 8,
        dies_per_channel: 8,
        planes_per_die: 2,
        blocks_per_plane: 2048,
        pages_per_block: 256,
        page_bytes: 16384,
        dies_per_unit: 64,
    };
    SsdConfig {
        name: "samsung-pm953-960gb".into(),
        geometry,
        capacity_blocks: 234_423_126,
        streams: 16,
        victim_policy: VictimPolicy::Greedy,
        copy_back: CopyBack::Separate,
        reserve_units: 2,
        write_buffer_blocks: 8192,
        power_loss_protection: true,
        timing: SsdTiming {
            read_ns: 60_000,
            program_ns: 2_300_000,
            erase_ns: 5_000_000,
            suspend_ns: 200_000,
            channel_mb_per_s: 400,
            link_mb_per_s: 1000,
            command_ns: 12_000,
        },
        promises: Promises::protected(4096),
    }
}

/// The sources of the values of [`samsung_pm953_960gb`].
pub const SOURCES_PM953: &[Source] = &[
    Source(
        "capacity_blocks",
        Published,
        "960 GB as M.2 (computerbase.de, 2015, news 51111); in sectors by IDEMA's rule LBA1-03: 1,875,385,008",
    ),
    Source("streams", Published, "stream-journal document: up to 16 streams"),
    Source("geometry", Assumed, DIES),
    Source("geometry.blocks_per_plane", Assumed, SPARE),
    Source("victim_policy", Assumed, INSIDE),
    Source("copy_back", Assumed, "needed for streams to have an effect; try shared to see the difference"),
    Source("reserve_units", Assumed, RESERVE),
    Source("write_buffer_blocks", Assumed, "32 MiB: what capacitors of that size can save"),
    Source("power_loss_protection", Assumed, "data-centre drive with tantalum capacitors"),
    Source("timing", Assumed, "chosen for about 1,000 MB/s reading and 900 MB/s writing, the speed class of the drive"),
    Source("promises", Assumed, "protected by capacitors; 4 KiB atomic unit"),
];

/// A current data-centre NVMe drive (PCIe 4, TLC, 1.92 TB) with flexible data placement.
pub fn datacenter_nvme() -> SsdConfig {
    let geometry = Geometry {
        channels: 16,
        dies_per_channel: 2,
        planes_per_die: 4,
        blocks_per_plane: 1366,
        pages_per_block: 256,
        page_bytes: 49152,
        dies_per_unit: 32,
    };
    SsdConfig {
        name: "datacenter-nvme".into(),
        geometry,
        capacity_blocks: 468_843_606,
        streams: 16,
        victim_policy: VictimPolicy::Greedy,
        copy_back: CopyBack::Separate,
        reserve_units: 2,
        write_buffer_blocks: 16384,
        power_loss_protection: true,
        timing: SsdTiming {
            read_ns: 55_000,
            program_ns: 1_900_000,
            erase_ns: 6_000_000,
            suspend_ns: 30_000,
            channel_mb_per_s: 1200,
            link_mb_per_s: 6500,
            command_ns: 8_000,
        },
        promises: Promises { atomic_anywhere: true, ..Promises::protected(16384) },
    }
}

/// The sources of the values of [`datacenter_nvme`].
pub const SOURCES_DATACENTER: &[Source] = &[
    Source(
        "capacity_blocks",
        Published,
        "1.92 TB, as Micron's 9200 PRO (its data sheet); in sectors by IDEMA's rule LBA1-03: 3,750,748,848",
    ),
    Source("streams", Assumed, "FDP drives give 8 to 128 reclaim unit handles; 16 is this emulator's most"),
    Source("geometry", Assumed, "512 Gbit TLC dies of four planes; three 16 KiB pages go in one program"),
    Source("geometry.blocks_per_plane", Assumed, SPARE),
    Source("victim_policy", Assumed, INSIDE),
    Source("copy_back", Assumed, "FDP: persistently isolated handles"),
    Source("reserve_units", Assumed, RESERVE),
    Source("write_buffer_blocks", Assumed, "64 MiB: what the capacitors can save"),
    Source("power_loss_protection", Published, "Micron 9200 data sheet: power-backed cache; the class has it"),
    Source("timing.link_mb_per_s", Assumed, "PCIe 4.0 x4 carries 7,900 MB/s; drives read a sixth or so below it"),
    Source(
        "timing",
        Assumed,
        "a write acknowledged from protected memory takes about 20 us, a read about 90 us (Micron 9200 data \
         sheet: 21 and 92 to 150); writing at about 3,000 MB/s",
    ),
    Source(
        "promises",
        Assumed,
        "16 KiB atomic writes wherever they begin, for databases without doublewrite; drives differ (Micron's 9200 \
         lists 4 KiB)",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{BlockModel, Request};
    use crate::ssd::Ssd;

    fn all() -> Vec<(SsdConfig, f64)> {
        vec![
            (samsung_850_pro_256gb(), 520.0),
            (samsung_960_pro_512gb(), 2100.0),
            (samsung_pm953_960gb(), 870.0),
            (datacenter_nvme(), 3000.0),
        ]
    }

    #[test]
    fn native_and_scaled_presets_are_valid() {
        for (config, _) in all() {
            config.validate().unwrap();
            let spare = config.overprovisioning();
            assert!((0.06..0.16).contains(&spare), "{}: overprovisioning {spare}", config.name);
            for gib in [1u32, 2, 8, 40] {
                let scaled = config.clone().scaled_to(gib << 18);
                scaled.validate().unwrap_or_else(|e| panic!("{} at {gib} GiB: {e}", config.name));
                assert!((scaled.overprovisioning() - spare).abs() < 0.01, "{} at {gib} GiB", config.name);
            }
        }
    }

    /// The model must reach the sequential write speed that the sources give, published for two and assumed for the
    /// class of the others, within a quarter.
    #[test]
    fn sequential_write_speed_is_as_its_source_says() {
        for (config, mb_per_s) in all() {
            let name = config.name.clone();
            let mut ssd = Ssd::new(config.scaled_to(1 << 18), true).unwrap();
            let mut now = 0;
            for lba in (0..1 << 18).step_by(32) {
                now = ssd.submit(now, &Request::write(lba, 32, 0)).unwrap().saturating_sub(200_000).max(now);
            }
            let speed = f64::from(1u32 << 30) / 1e6 / (now as f64 / 1e9);
            assert!((speed / mb_per_s - 1.0).abs() < 0.25, "{name}: {speed:.0} MB/s, its source says {mb_per_s}");
        }
    }
}
