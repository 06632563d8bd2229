//! Devices that are described in a file: JSON with the fields of the presets, such as `highwater device list PRESET
//! --config` prints.
//!
//! Rules
//! 1. Every field must be present, except those of `promises`, whose defaults are an honest device's. An unknown field
//!    is an error, so that a misspelled one is not ignored.
//! 2. An error names the file, and the line and column or the field.
//! 3. A device from a file may not have the name of a preset: reports would cite the preset's sources for its figures.

use crate::error::{DeviceError, Result};
use crate::preset::{DeviceConfig, PRESETS, find};
use std::io::Read;
use std::path::Path;

/// Longest file that is read.
const MAX_BYTES: u64 = 1 << 20;

/// The preset of that name, or the device that the file of that name describes.
///
/// # Errors
/// [`DeviceError::UnknownPreset`] if it is neither; those of [`read`].
pub fn named(name: &str) -> Result<DeviceConfig> {
    let path = Path::new(name);
    let is_file = path.components().count() > 1 || path.extension().is_some() || path.exists();
    match find(name) {
        Ok(preset) => Ok(preset.config()),
        Err(_) if is_file => read(path),
        Err(unknown) => Err(unknown),
    }
}

/// The device that a file describes.
///
/// # Errors
/// [`DeviceError::Io`], and [`DeviceError::Config`] says what is wrong with the file.
pub fn read(path: &Path) -> Result<DeviceConfig> {
    let failed = |error| DeviceError::io(format!("reading the device in {}", path.display()), error);
    let wrong = |what: String| DeviceError::Config(format!("{}: {what}", path.display()));
    let mut text = String::new();
    let mut file = std::fs::File::open(path).map_err(failed)?.take(MAX_BYTES + 1);
    if file.read_to_string(&mut text).map_err(failed)? as u64 > MAX_BYTES {
        return Err(wrong("the description of a device is at most 1 MiB long".into()));
    }
    let config: DeviceConfig = serde_json::from_str(&text).map_err(|error| wrong(error.to_string()))?;
    config.validate().map_err(|error| match error {
        DeviceError::Config(what) => wrong(what),
        other => other,
    })?;
    match PRESETS.iter().find(|preset| preset.name == config.name()) {
        Some(preset) if preset.config() != config => {
            Err(wrong(format!("name \"{}\" is a preset's; give the device another name", preset.name)))
        }
        _ => Ok(config),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn written(folder: &tempfile::TempDir, text: &str) -> PathBuf {
        let path = folder.path().join("mine.json");
        std::fs::write(&path, text).unwrap();
        path
    }

    fn text_of(name: &str) -> String {
        serde_json::to_string_pretty(&find(name).unwrap().config()).unwrap()
    }

    #[test]
    fn each_preset_is_read_back_and_can_be_changed() {
        let folder = tempfile::tempdir().unwrap();
        for preset in PRESETS {
            let path = written(&folder, &text_of(preset.name));
            assert_eq!(named(path.to_str().unwrap()).unwrap(), preset.config());
        }
        let text = text_of("wd10ezex-1tb").replace("7200", "5400").replace("wd10ezex-1tb", "mine");
        let slow = read(&written(&folder, &text)).unwrap();
        assert_eq!((slow.name(), slow == find("wd10ezex-1tb").unwrap().config()), ("mine", false));
    }

    #[test]
    fn what_is_wrong_is_named_with_its_place() {
        let folder = tempfile::tempdir().unwrap();
        let flash = text_of("samsung-pm953-960gb");
        for (text, reason) in [
            (flash.replace("\"streams\"", "\"stream\""), "unknown field `stream`"),
            (flash.replace("\"channels\": 8,", ""), "missing field `channels` at line 12 column 5"),
            (
                flash.replace("\"read_ns\": 60000", "\"read_ns\": -1"),
                "invalid value: integer `-1`, expected u32 at line",
            ),
            (flash.replace("\"channels\": 8", "\"channels\": 0"), "channels must not be 0"),
            (flash.replace("\"link_mb_per_s\": 1000", "\"link_mb_per_s\": 0"), "link_mb_per_s must not be 0"),
            (flash.replace("\"streams\": 16", "\"streams\": 15"), "is a preset's"),
            (flash.replace("\"ssd\"", "\"tape\""), "unknown variant `tape`, expected `ssd` or `hdd`"),
            (text_of("wd10ezex-1tb").replace("18000000", "18446744073709551615"), "more than a minute"),
            (" ".repeat(1 << 21), "at most 1 MiB"),
            (String::new(), "EOF while parsing"),
        ] {
            let path = written(&folder, &text);
            let error = read(&path).unwrap_err().to_string();
            assert!(error.contains(reason) && error.contains("mine.json"), "{reason}: {error}");
        }
        assert!(matches!(named("no/such.json"), Err(DeviceError::Io { .. })));
        let unknown = named("floppy").unwrap_err().to_string();
        assert!(
            unknown.contains("no device preset named \"floppy\"") && unknown.contains("or name a file"),
            "{unknown}"
        );
    }
}
