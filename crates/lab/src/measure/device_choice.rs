//! The device of a measurement's data: this machine's disk, or an emulated device.

use serde::{Deserialize, Serialize};

/// The device of the data.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", from = "String")]
pub enum DeviceChoice {
    /// Folders on this machine's disk.
    Local,
    /// An emulated device by the name of its preset.
    Preset(String),
}

impl DeviceChoice {
    /// `local`, or the preset's name.
    pub fn name(&self) -> &str {
        match self {
            DeviceChoice::Local => "local",
            DeviceChoice::Preset(name) => name,
        }
    }
}

impl From<String> for DeviceChoice {
    fn from(name: String) -> DeviceChoice {
        if name == "local" { DeviceChoice::Local } else { DeviceChoice::Preset(name) }
    }
}

impl From<DeviceChoice> for String {
    fn from(device: DeviceChoice) -> String {
        device.name().to_string()
    }
}
