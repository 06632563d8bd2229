//! Options of a replay.

use crate::age::Age;
use crate::error::{DeviceError, Result};
use crate::preset::{self, DeviceConfig};
use crate::ssd::config::{CopyBack, MIN_UNIT_BYTES};
use crate::ssd::geometry::BLOCK_BYTES;
use crate::ssd::victim::VictimPolicy;
use crate::trace::ranges::{NamedRange, StreamRule};
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// The arrival of requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Pace {
    /// Without time: only wear is counted. The fastest.
    Untimed,
    /// At the recorded times.
    AsRecorded,
    /// This many requests are always outstanding.
    QueueDepth(u32),
}

impl Pace {
    /// Whether requests take time.
    pub fn is_timed(self) -> bool {
        self != Pace::Untimed
    }
}

impl std::str::FromStr for Pace {
    type Err = DeviceError;

    /// `untimed`, `as-recorded` or `queue-depth:N`.
    fn from_str(text: &str) -> Result<Pace> {
        let depth = |n: &str| n.parse().ok().filter(|n| (1..=65_536).contains(n));
        match (text, text.strip_prefix("queue-depth:").and_then(depth)) {
            ("untimed", _) => Ok(Pace::Untimed),
            ("as-recorded", _) => Ok(Pace::AsRecorded),
            (_, Some(depth)) => Ok(Pace::QueueDepth(depth)),
            _ => {
                let what =
                    format!("pace \"{text}\" is not one of untimed, as-recorded, queue-depth:N (N from 1 to 65536)");
                Err(DeviceError::Config(what))
            }
        }
    }
}

/// Options of a replay. Only `trace` and `device` must be set; [`ReplayOptions::new`] gives the rest defaults.
#[derive(Clone, Debug)]
pub struct ReplayOptions {
    /// The trace.
    pub trace: PathBuf,
    /// The device.
    pub device: DeviceConfig,
    /// Scales the device to this many bytes (a multiple of 4096); ratios stay.
    pub capacity_bytes: Option<u64>,
    /// Replaces the overprovisioning: spare flash over user capacity.
    pub overprovisioning: Option<f64>,
    /// Replaces the size of the erase unit, in bytes.
    pub erase_unit_bytes: Option<u64>,
    /// Replaces the victim policy.
    pub victim_policy: Option<VictimPolicy>,
    /// Replaces the placement of copies.
    pub copy_back: Option<CopyBack>,
    /// Replaces the size of the write buffer, in bytes.
    pub write_buffer_bytes: Option<u64>,
    /// Stream rules; later ones win.
    pub rules: Vec<StreamRule>,
    /// Additional named ranges. One named `journal` replaces the search for the journal in the trace.
    pub ranges: Vec<NamedRange>,
    /// The file map; by default `NAME.files.csv` next to the trace, if it exists.
    pub files: Option<PathBuf>,
    /// The ageing of the device before the replay.
    pub age: Age,
    /// Number of passes.
    pub passes: u32,
    /// The arrival of requests.
    pub pace: Pace,
    /// Host bytes between two samples; by default a tenth of the capacity.
    pub sample_bytes: Option<u64>,
}

impl ReplayOptions {
    /// A replay of `trace` on `device`, everything else by default: filled once, one pass, untimed.
    pub fn new(trace: impl Into<PathBuf>, device: DeviceConfig) -> ReplayOptions {
        ReplayOptions {
            trace: trace.into(),
            device,
            capacity_bytes: None,
            overprovisioning: None,
            erase_unit_bytes: None,
            victim_policy: None,
            copy_back: None,
            write_buffer_bytes: None,
            rules: Vec::new(),
            ranges: Vec::new(),
            files: None,
            age: Age::default(),
            passes: 1,
            pace: Pace::Untimed,
            sample_bytes: None,
        }
    }

    /// A replay on the preset of that name.
    pub fn on_preset(trace: impl Into<PathBuf>, name: &str) -> Result<ReplayOptions> {
        Ok(ReplayOptions::new(trace, preset::find(name)?.config()))
    }

    /// The device with every replacement applied.
    pub fn device_config(&self) -> Result<DeviceConfig> {
        let mut config = self.device.clone();
        if let Some(bytes) = self.capacity_bytes {
            config = config.at_capacity(blocks_of(bytes, "the capacity")?)?;
        }
        match config {
            DeviceConfig::Ssd(ssd) => Ok(DeviceConfig::Ssd(self.adjust(ssd)?)),
            DeviceConfig::Hdd(_) if self.wants_ssd() => {
                let what = "overprovisioning, erase units, victims, copies and write buffers belong to an SSD, not to \
                            a hard disk";
                Err(DeviceError::Config(what.into()))
            }
            hdd => Ok(hdd),
        }
    }

    fn wants_ssd(&self) -> bool {
        self.overprovisioning.is_some()
            || self.erase_unit_bytes.is_some()
            || self.victim_policy.is_some()
            || self.copy_back.is_some()
            || self.write_buffer_bytes.is_some()
    }

    fn adjust(&self, mut ssd: crate::ssd::config::SsdConfig) -> Result<crate::ssd::config::SsdConfig> {
        let overprovisioning = self.overprovisioning.unwrap_or(ssd.overprovisioning());
        if !(0.0..100.0).contains(&overprovisioning) {
            return Err(DeviceError::Config(format!("overprovisioning {overprovisioning} is not between 0 and 100")));
        }
        if let Some(bytes) = self.erase_unit_bytes {
            let capacity = u64::from(ssd.capacity_blocks) * u64::from(BLOCK_BYTES);
            if !(u64::from(MIN_UNIT_BYTES)..=capacity).contains(&bytes) {
                let what = format!("--erase-unit must be 256K to the capacity ({capacity} bytes), not {bytes} bytes");
                return Err(DeviceError::Config(what));
            }
            ssd = ssd.with_erase_units(blocks_of(bytes, "the erase unit")?);
        }
        if self.overprovisioning.is_some() || self.erase_unit_bytes.is_some() {
            ssd = ssd.with_overprovisioning(overprovisioning);
        }
        if let Some(bytes) = self.write_buffer_bytes {
            ssd.write_buffer_blocks = if bytes == 0 { 0 } else { blocks_of(bytes, "the write buffer")? };
        }
        ssd.victim_policy = self.victim_policy.unwrap_or(ssd.victim_policy);
        ssd.copy_back = self.copy_back.unwrap_or(ssd.copy_back);
        ssd.validate()?;
        Ok(ssd)
    }
}

/// Bytes as 4 KiB blocks; an error if they are zero, too many or not whole blocks.
pub fn blocks_of(bytes: u64, what: &str) -> Result<u32> {
    let blocks = bytes / u64::from(BLOCK_BYTES);
    if bytes == 0 || !bytes.is_multiple_of(u64::from(BLOCK_BYTES)) || blocks > u64::from(u32::MAX / 2) {
        let text = format!("{what} must be a multiple of 4096 bytes, more than 0 and below 8 TiB, not {bytes}");
        return Err(DeviceError::Config(text));
    }
    Ok(blocks as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn replacements_are_applied_and_checked() {
        let mut options = ReplayOptions::on_preset("t", "simple-2gb").unwrap();
        options.capacity_bytes = Some(1 << 30);
        options.erase_unit_bytes = Some(2 << 20);
        options.overprovisioning = Some(0.25);
        let DeviceConfig::Ssd(ssd) = options.device_config().unwrap() else { panic!() };
        assert_eq!((ssd.capacity_blocks, ssd.geometry.slots_per_unit(), ssd.geometry.units()), (1 << 18, 512, 640));
        for bytes in [4096, 7 << 40] {
            let options = ReplayOptions { erase_unit_bytes: Some(bytes), ..options.clone() };
            assert!(options.device_config().unwrap_err().to_string().contains("--erase-unit must be 256K"));
        }
        options.capacity_bytes = Some(1000);
        assert!(options.device_config().unwrap_err().to_string().contains("multiple of 4096"));
        options.capacity_bytes = None;
        options.overprovisioning = Some(-1.0);
        assert!(options.device_config().is_err());
        options.overprovisioning = Some(0.001);
        assert!(options.device_config().unwrap_err().to_string().contains("more overprovisioning"));
    }

    #[test]
    fn pace_as_text() {
        assert_eq!("as-recorded".parse::<Pace>().unwrap(), Pace::AsRecorded);
        assert_eq!("queue-depth:32".parse::<Pace>().unwrap(), Pace::QueueDepth(32));
        for bad in ["", "fast", "queue-depth:", "queue-depth:0", "queue-depth:x"] {
            assert!(bad.parse::<Pace>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_hard_disk_has_no_victims() {
        let mut options = ReplayOptions::on_preset("t", "wd10ezex-1tb").unwrap();
        options.capacity_bytes = Some(1 << 30);
        assert_eq!(options.device_config().unwrap().capacity_blocks(), 1 << 18);
        options.victim_policy = Some(VictimPolicy::Fifo);
        assert!(options.device_config().unwrap_err().to_string().contains("hard disk"));
    }
}
