//! All device presets by name, solid state and hard disk.

use crate::error::{DeviceError, Result};
use crate::hdd::{self, Hdd, HddConfig};
use crate::model::BlockModel;
use crate::promises::Promises;
use crate::ssd::config::SsdConfig;
use crate::ssd::{Ssd, preset as ssd};
use serde::{Deserialize, Serialize};

/// The basis of a figure: a publication or an assumption.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Basis {
    /// Published; the note names the source.
    Published,
    /// Assumed; the note has the reason.
    Assumed,
}

/// A parameter (a path such as `timing.read_ns`, or a whole group), its basis and a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Source(pub &'static str, pub Basis, pub &'static str);

/// The configuration of a device.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum DeviceConfig {
    /// A flash device.
    Ssd(SsdConfig),
    /// A hard disk.
    Hdd(HddConfig),
}

/// 4 KiB blocks in a MiB.
const MIB_BLOCKS: u32 = 256;

impl DeviceConfig {
    /// Name in reports.
    pub fn name(&self) -> &str {
        match self {
            DeviceConfig::Ssd(config) => &config.name,
            DeviceConfig::Hdd(config) => &config.name,
        }
    }

    /// Size in 4 KiB blocks.
    pub fn capacity_blocks(&self) -> u32 {
        match self {
            DeviceConfig::Ssd(config) => config.capacity_blocks,
            DeviceConfig::Hdd(config) => config.capacity_blocks,
        }
    }

    /// The same device at another capacity; ratios stay.
    pub fn scaled_to(self, capacity_blocks: u32) -> DeviceConfig {
        match self {
            DeviceConfig::Ssd(config) => DeviceConfig::Ssd(config.scaled_to(capacity_blocks)),
            DeviceConfig::Hdd(config) => DeviceConfig::Hdd(config.scaled_to(capacity_blocks)),
        }
    }

    /// The same device at another capacity; an error that names the least one if it is too small.
    pub fn at_capacity(self, capacity_blocks: u32) -> Result<DeviceConfig> {
        let scaled = self.clone().scaled_to(capacity_blocks);
        match scaled.validate() {
            Ok(()) => Ok(scaled),
            Err(_) if capacity_blocks < self.min_capacity_blocks() => {
                let (name, least) = (self.name(), self.min_capacity_blocks() / MIB_BLOCKS);
                Err(DeviceError::Config(format!("--capacity is too small for {name}: it must be at least {least}M")))
            }
            Err(error) => Err(error),
        }
    }

    /// The least capacity, in whole MiB, that makes a device of this kind.
    pub fn min_capacity_blocks(&self) -> u32 {
        let works = |mib: u32| self.clone().scaled_to(mib * MIB_BLOCKS).validate().is_ok();
        let native = (self.capacity_blocks() / MIB_BLOCKS).max(1);
        let (mut too_small, mut enough) = (0, native);
        while enough - too_small > 1 {
            let middle = too_small + (enough - too_small) / 2;
            if works(middle) { enough = middle } else { too_small = middle }
        }
        enough * MIB_BLOCKS
    }

    /// Whether its values make a working device.
    pub fn validate(&self) -> Result<()> {
        match self {
            DeviceConfig::Ssd(config) => config.validate(),
            DeviceConfig::Hdd(config) => config.validate(),
        }
    }

    /// The device's promises about power cuts.
    pub fn promises(&self) -> Promises {
        match self {
            DeviceConfig::Ssd(config) => config.promises,
            DeviceConfig::Hdd(config) => config.promises,
        }
    }

    /// Changes the promises. Whether an SSD has power-loss protection follows from whether its cache is volatile.
    pub fn set_promises(&mut self, promises: Promises) {
        match self {
            DeviceConfig::Ssd(config) => {
                (config.promises, config.power_loss_protection) = (promises, !promises.volatile_cache);
            }
            DeviceConfig::Hdd(config) => config.promises = promises,
        }
    }

    /// Builds the device; with `timed`, requests take time.
    pub fn build(&self, timed: bool) -> Result<Box<dyn BlockModel>> {
        Ok(match self {
            DeviceConfig::Ssd(config) => Box::new(Ssd::new(config.clone(), timed)?),
            DeviceConfig::Hdd(config) => Box::new(Hdd::new(config.clone(), timed)?),
        })
    }
}

/// A named device.
#[derive(Clone, Copy)]
pub struct Preset {
    /// Name on the command line.
    pub name: &'static str,
    /// One line about it.
    pub summary: &'static str,
    /// The sources of its values.
    pub sources: &'static [Source],
    make: fn() -> DeviceConfig,
}

impl Preset {
    /// The device at its native capacity.
    pub fn config(&self) -> DeviceConfig {
        (self.make)()
    }

    /// The source of a parameter: its own source, else its group's, else that of the whole preset.
    pub fn source_of(&self, path: &str) -> Option<&'static Source> {
        let speaks_of = |source: &&Source| {
            source.0 == "all"
                || path.strip_prefix(source.0).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        let length = |source: &&Source| if source.0 == "all" { 0 } else { source.0.len() };
        self.sources.iter().filter(speaks_of).max_by_key(length)
    }
}

/// The sources of the values of `simple-2gb`.
const SOURCES_SIMPLE: &[Source] = &[
    Source("all", Basis::Assumed, "the independent check in addition to the recorded traces uses this model"),
    Source("timing", Basis::Assumed, "round figures of a data-centre TLC drive; the independent check has no times"),
    Source("promises", Basis::Assumed, "an honest device with a volatile cache; the independent check cuts no power"),
    Source(
        "power_loss_protection",
        Basis::Assumed,
        "none, as the volatile cache says; without a buffer a flush writes nothing",
    ),
];

/// Every preset.
pub const PRESETS: &[Preset] = &[
    Preset {
        name: "samsung-850-pro-256gb",
        summary: "SATA client SSD, MLC, no power-loss protection",
        sources: ssd::SOURCES_850_PRO,
        make: || DeviceConfig::Ssd(ssd::samsung_850_pro_256gb()),
    },
    Preset {
        name: "samsung-960-pro-512gb",
        summary: "NVMe client SSD, MLC, no power-loss protection",
        sources: ssd::SOURCES_960_PRO,
        make: || DeviceConfig::Ssd(ssd::samsung_960_pro_512gb()),
    },
    Preset {
        name: "samsung-pm953-960gb",
        summary: "NVMe data-centre SSD with 16 streams",
        sources: ssd::SOURCES_PM953,
        make: || DeviceConfig::Ssd(ssd::samsung_pm953_960gb()),
    },
    Preset {
        name: "datacenter-nvme",
        summary: "current NVMe data-centre SSD, TLC, 16 placement handles",
        sources: ssd::SOURCES_DATACENTER,
        make: || DeviceConfig::Ssd(ssd::datacenter_nvme()),
    },
    Preset {
        name: "simple-2gb",
        summary: "the model of the literature: page map, greedy, 4 MiB units, 15 % spare, no buffer, 16 streams",
        sources: SOURCES_SIMPLE,
        make: || DeviceConfig::Ssd(SsdConfig { name: "simple-2gb".into(), ..SsdConfig::simple(524_288, 0.15, 1024) }),
    },
    Preset {
        name: "wd10ezex-1tb",
        summary: "hard disk, 7200 rpm, one platter",
        sources: hdd::SOURCES_WD10EZEX,
        make: || DeviceConfig::Hdd(hdd::wd10ezex()),
    },
    Preset {
        name: "sata-7200rpm-500gb",
        summary: "hard disk of about 2006 to 2010, 7200 rpm",
        sources: hdd::SOURCES_SATA_7200,
        make: || DeviceConfig::Hdd(hdd::sata_7200rpm()),
    },
];

/// The preset of that name.
pub fn find(name: &str) -> Result<&'static Preset> {
    PRESETS.iter().find(|p| p.name == name).ok_or_else(|| DeviceError::UnknownPreset {
        name: name.into(),
        known: PRESETS.iter().map(|p| p.name).collect::<Vec<_>>().join(", "),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_and_match_their_configuration() {
        for preset in PRESETS {
            assert_eq!(find(preset.name).unwrap().config().name(), preset.name);
        }
        let error = find("floppy").err().unwrap().to_string();
        assert!(error.contains("floppy") && error.contains("wd10ezex-1tb"), "{error}");
    }

    /// Every leaf of every preset, of hard disks too: by its own source or that of the group it is in.
    #[test]
    fn every_parameter_says_where_it_comes_from() {
        fn leaves(prefix: &str, value: &serde_json::Value, found: &mut Vec<String>) {
            match value.as_object() {
                Some(fields) => fields.iter().for_each(|(name, v)| leaves(&format!("{prefix}.{name}"), v, found)),
                None => found.push(prefix.trim_start_matches('.').into()),
            }
        }
        for preset in PRESETS {
            let value = match preset.config() {
                DeviceConfig::Ssd(config) => serde_json::to_value(config).unwrap(),
                DeviceConfig::Hdd(config) => serde_json::to_value(config).unwrap(),
            };
            let mut paths = Vec::new();
            leaves("", &value, &mut paths);
            assert!(paths.len() > 10);
            for path in paths.iter().filter(|path| *path != "name") {
                assert!(preset.source_of(path).is_some(), "{}: {path} has no source", preset.name);
            }
            for source in preset.sources.iter().filter(|s| s.0 != "all") {
                let speaks = paths.iter().any(|p| p == source.0 || p.starts_with(&format!("{}.", source.0)));
                assert!(speaks, "{}: the source of {} is of nothing", preset.name, source.0);
            }
        }
    }

    #[test]
    fn the_error_for_a_small_capacity_has_the_minimum() {
        for preset in PRESETS {
            let native = preset.config();
            let least = native.min_capacity_blocks();
            native.clone().at_capacity(least).unwrap();
            if let DeviceConfig::Ssd(_) = native {
                let error = native.at_capacity(100).unwrap_err().to_string();
                assert!(error.contains(&format!("at least {}M", least / 256)), "{error}");
            }
        }
    }

    #[test]
    fn presets_survive_json() {
        for preset in PRESETS {
            let json = serde_json::to_string(&preset.config()).unwrap();
            assert_eq!(serde_json::from_str::<DeviceConfig>(&json).unwrap(), preset.config());
        }
    }
}
