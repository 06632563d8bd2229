//! The configuration of an emulated SSD.

use super::counters::MAX_STREAMS;
use super::geometry::{BLOCK_BYTES, Geometry};
use super::timing::SsdTiming;
use super::victim::VictimPolicy;
use crate::error::{DeviceError, Result};
use crate::promises::Promises;
use serde::{Deserialize, Serialize};

/// Placement of the copies that garbage collection makes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CopyBack {
    /// Each stream's copies stay apart (FDP: persistently isolated).
    Separate,
    /// Copies of all streams mix in common units (FDP: initially isolated).
    Shared,
}

highwater_storage::names!(CopyBack { Separate => "separate", Shared => "shared" });

impl std::str::FromStr for CopyBack {
    type Err = DeviceError;

    fn from_str(name: &str) -> Result<CopyBack> {
        let what = || format!("copy-back \"{name}\" is neither separate nor shared");
        CopyBack::named(name).ok_or_else(|| DeviceError::Config(what()))
    }
}

/// The parameters of an emulated SSD.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdConfig {
    /// Name in reports.
    pub name: String,
    /// Shape of the flash.
    pub geometry: Geometry,
    /// 4 KiB blocks the host sees; the rest of the flash is overprovisioning.
    pub capacity_blocks: u32,
    /// Streams the host may use, 1 to 16.
    pub streams: u8,
    /// The victim policy of garbage collection.
    pub victim_policy: VictimPolicy,
    /// Whether copies keep the streams apart.
    pub copy_back: CopyBack,
    /// Free erase units in reserve: garbage collection starts when only these are free. At least 1.
    pub reserve_units: u32,
    /// 4 KiB blocks of the write buffer in which rewrites are absorbed; 0 for none.
    pub write_buffer_blocks: u32,
    /// Whether a power cut leaves the write buffer intact (capacitors). Then a flush costs nothing.
    pub power_loss_protection: bool,
    /// Times of the flash and of the interface.
    pub timing: SsdTiming,
    /// The device's promises about power cuts.
    pub promises: Promises,
}

impl SsdConfig {
    /// The plain model of the literature: one die, one stream, no buffer, greedy.
    /// `overprovisioning` is spare flash over user capacity.
    pub fn simple(capacity_blocks: u32, overprovisioning: f64, slots_per_unit: u32) -> SsdConfig {
        let units = units_for(capacity_blocks, overprovisioning, slots_per_unit);
        SsdConfig {
            name: "simple".into(),
            geometry: Geometry::simple(units, slots_per_unit),
            capacity_blocks,
            streams: MAX_STREAMS as u8,
            victim_policy: VictimPolicy::Greedy,
            copy_back: CopyBack::Separate,
            reserve_units: 1,
            write_buffer_blocks: 0,
            power_loss_protection: false,
            timing: SsdTiming::default(),
            promises: Promises::default(),
        }
    }

    /// Spare flash over user capacity.
    pub fn overprovisioning(&self) -> f64 {
        self.geometry.slots() as f64 / f64::from(self.capacity_blocks) - 1.0
    }

    /// The same device with other overprovisioning: blocks are added to or taken from each plane.
    pub fn with_overprovisioning(mut self, overprovisioning: f64) -> SsdConfig {
        let units = units_for(self.capacity_blocks, overprovisioning, self.geometry.slots_per_unit());
        self.geometry.blocks_per_plane = units.div_ceil(self.geometry.die_groups());
        self
    }

    /// The same device with erase units of about `slots` slots; the capacity of the flash stays.
    pub fn with_erase_units(mut self, slots: u32) -> SsdConfig {
        let overprovisioning = self.overprovisioning();
        self.resize_units(f64::from(slots));
        self.with_overprovisioning(overprovisioning)
    }

    /// The same device scaled to `capacity_blocks`: the ratios stay. Overprovisioning, channels, dies, planes and times
    /// are kept; the number of erase units is kept too, so pages per block (and the time to erase one) shrink with the
    /// capacity, down to units of [`MIN_UNIT_BYTES`]; from there on the number of units shrinks.
    pub fn scaled_to(mut self, capacity_blocks: u32) -> SsdConfig {
        let ratio = f64::from(capacity_blocks) / f64::from(self.capacity_blocks);
        let overprovisioning = self.overprovisioning();
        let slots = (f64::from(self.geometry.slots_per_unit()) * ratio).max(f64::from(MIN_UNIT_BYTES / BLOCK_BYTES));
        self.resize_units(slots);
        let buffer = f64::from(self.write_buffer_blocks) * ratio;
        self.write_buffer_blocks = (buffer as u32).max(MIN_BUFFER_BLOCKS).min(self.write_buffer_blocks);
        self.capacity_blocks = capacity_blocks;
        self.with_overprovisioning(overprovisioning)
    }

    /// Gives units about `slots` slots. The erase time shrinks in proportion to the block. Otherwise erases, which take
    /// a few per cent of the time of a whole block, would dominate on a scaled-down device.
    fn resize_units(&mut self, slots: f64) {
        let pages = f64::from(self.geometry.pages_per_block);
        self.geometry = with_unit_slots(self.geometry.clone(), slots);
        let share = f64::from(self.geometry.pages_per_block) / pages;
        self.timing.erase_ns = (f64::from(self.timing.erase_ns) * share).round() as u32;
    }

    /// Whether the values make a working device.
    pub fn validate(&self) -> Result<()> {
        self.geometry.validate()?;
        self.promises.validate()?;
        if self.streams == 0 || usize::from(self.streams) > MAX_STREAMS {
            return Err(DeviceError::Config(format!("{} streams; a device has 1 to {MAX_STREAMS}", self.streams)));
        }
        if self.capacity_blocks == 0 || self.reserve_units == 0 {
            return Err(DeviceError::Config("capacity_blocks and reserve_units must not be 0".into()));
        }
        if self.timing.channel_mb_per_s == 0 || self.timing.link_mb_per_s == 0 {
            let what = "timing.channel_mb_per_s and timing.link_mb_per_s must not be 0";
            return Err(DeviceError::Config(what.into()));
        }
        if self.write_buffer_blocks > self.capacity_blocks {
            let (buffer, capacity) = (self.write_buffer_blocks, self.capacity_blocks);
            return Err(DeviceError::Config(format!(
                "a write buffer of {buffer} blocks on a device of {capacity}: --write-buffer must be at most the \
                 capacity"
            )));
        }
        if self.power_loss_protection == self.promises.volatile_cache {
            return Err(DeviceError::Config(
                "power_loss_protection and promises.volatile_cache contradict each other: one of them is true".into(),
            ));
        }
        self.validate_spare()
    }

    /// Every frontier may be open at once, and the reserve and one victim come on top (rule 4 of the translation
    /// layer).
    fn validate_spare(&self) -> Result<()> {
        let user_units = u64::from(self.capacity_blocks).div_ceil(u64::from(self.geometry.slots_per_unit()));
        let units = u64::from(self.geometry.units());
        let copies = if self.copy_back == CopyBack::Shared { 1 } else { u64::from(self.streams) };
        let needed = u64::from(self.streams) + copies + u64::from(self.reserve_units) + 1;
        if units < user_units + needed {
            return Err(DeviceError::Config(format!(
                "{units} erase units leave {} spare for {user_units} units of user data, but {} streams need {needed}: \
                 more overprovisioning, fewer streams or smaller erase units",
                units.saturating_sub(user_units),
                self.streams
            )));
        }
        Ok(())
    }
}

/// Smallest erase unit that scaling down makes, in bytes.
pub const MIN_UNIT_BYTES: u32 = 256 << 10;
/// Smallest write buffer that scaling down makes, in 4 KiB blocks.
pub const MIN_BUFFER_BLOCKS: u32 = 64;

fn units_for(capacity_blocks: u32, overprovisioning: f64, slots_per_unit: u32) -> u32 {
    (f64::from(capacity_blocks) * (1.0 + overprovisioning) / f64::from(slots_per_unit)).ceil() as u32
}

/// `geometry` with units of about `slots` slots: fewer pages per block first, then fewer dies per unit.
fn with_unit_slots(mut geometry: Geometry, slots: f64) -> Geometry {
    let per_program = f64::from(geometry.slots_per_program());
    while slots < per_program * f64::from(geometry.dies_per_unit) && geometry.dies_per_unit.is_multiple_of(2) {
        geometry.dies_per_unit /= 2;
    }
    let pages = (slots / (per_program * f64::from(geometry.dies_per_unit))).round().max(1.0) as u32;
    geometry.pages_per_block = pages;
    while !geometry.slots_per_unit().is_multiple_of(64) {
        geometry.pages_per_block += 1;
    }
    geometry
}

#[cfg(test)]
mod tests {
    use super::*;

    fn big() -> SsdConfig {
        let geometry = Geometry {
            channels: 8,
            dies_per_channel: 4,
            planes_per_die: 2,
            blocks_per_plane: 1100,
            pages_per_block: 256,
            page_bytes: 16384,
            dies_per_unit: 32,
        };
        let mut config = SsdConfig::simple(1, 0.1, 64);
        config.capacity_blocks = 1000 * geometry.slots_per_unit();
        config.write_buffer_blocks = 4096;
        config.geometry = geometry;
        config
    }

    #[test]
    fn scaling_keeps_ratios() {
        let native = big();
        native.validate().unwrap();
        for divisor in [2, 4, 16, 64] {
            let scaled = native.clone().scaled_to(native.capacity_blocks / divisor);
            scaled.validate().unwrap();
            assert!((scaled.overprovisioning() - native.overprovisioning()).abs() < 0.002, "1/{divisor}");
            assert_eq!(scaled.geometry.units(), native.geometry.units(), "1/{divisor}");
            assert_eq!(scaled.geometry.dies(), 32);
            let per_page = |c: &SsdConfig| f64::from(c.timing.erase_ns) / f64::from(c.geometry.pages_per_block);
            assert!((per_page(&scaled) / per_page(&native) - 1.0).abs() < 0.001, "time to erase a page");
        }
        let tiny = native.clone().scaled_to(native.capacity_blocks / 2000);
        assert_eq!(tiny.geometry.slots_per_unit(), 64);
        assert!(tiny.geometry.units() < 1100);
        assert_eq!(tiny.write_buffer_blocks, MIN_BUFFER_BLOCKS);
        tiny.validate().unwrap();
    }

    #[test]
    fn too_little_spare_is_refused() {
        let mut config = SsdConfig::simple(10 * 64, 0.5, 64);
        config.streams = 8;
        assert!(config.validate().unwrap_err().to_string().contains("more overprovisioning"));
        config.streams = 1;
        config.validate().unwrap();
        config.power_loss_protection = true;
        assert!(config.validate().unwrap_err().to_string().contains("volatile_cache"));
        config.streams = 17;
        assert!(config.validate().unwrap_err().to_string().contains("1 to 16"));
    }
}
