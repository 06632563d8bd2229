//! The manifest of a backup, `backup.json`: a JSON object with the manifest and the CRC-32C of its compact text.

use super::files::FileSum;
use crate::error::{Error, Result};
use highwater_storage::OutputFile;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::Path;

/// Name of the manifest.
pub(super) const MANIFEST: &str = "backup.json";
/// Name of the file of pages, in ascending order: the number of each page, u32 little-endian, then its bytes.
pub(super) const PAGES: &str = "pages";
/// Name of the file of redo: consecutive groups with their frames (see `log::format`).
pub(super) const REDO: &str = "redo-groups";
/// Name of the table of keys, of an encrypted backup.
pub(super) const KEYS: &str = "keys";
/// Version of a backup's format.
pub(super) const FORMAT: u32 = 3;

/// The manifest of a backup.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct BackupManifest {
    /// Version of the format.
    pub format: u32,
    /// Random number of this backup, in hexadecimal.
    pub backup_id: String,
    /// The database's id, in hexadecimal.
    pub database_id: String,
    /// The base of an incremental backup; `None` for a full one.
    pub base: Option<Base>,
    /// Page size of the database.
    pub page_bytes: u64,
    /// Size of a segment of a store out of place; 0 of one in place.
    pub segment_bytes: u64,
    /// Size of the redo log.
    pub log_file_bytes: u64,
    /// Generation of the redo log.
    pub generation: u64,
    /// The LSN at which recovery begins.
    pub start_lsn: u64,
    /// The first LSN to which the backup can be restored.
    pub pages_lsn: u64,
    /// The first time to which it can be: microseconds since 1970.
    pub pages_unix_us: u64,
    /// The last LSN.
    pub end_lsn: u64,
    /// Pages that the database had at the end.
    pub page_count: u32,
    /// Pages in the backup.
    pub pages_copied: u64,
    /// Damaged pages that were left out.
    pub damaged_pages: Vec<u32>,
    /// Time of its completion: seconds since 1970.
    pub finished_unix_s: u64,
    /// Id, in hexadecimal, of the key that encrypts the files of an encrypted backup. The file `keys` in the same
    /// folder has that key, wrapped by the key with which the database was opened.
    pub key_id: Option<String>,
    /// Pages, and redo.
    pub files: [FileSum; 2],
}

/// The backup that an incremental one adds to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Base {
    /// Its [`backup_id`](BackupManifest::backup_id).
    pub backup_id: String,
    /// Its end LSN.
    pub end_lsn: u64,
}

/// The file's contents.
#[derive(Serialize, Deserialize)]
struct ManifestFile {
    manifest: BackupManifest,
    crc32c: String,
}

impl BackupManifest {
    /// Whether its files are encrypted.
    pub fn is_encrypted(&self) -> bool {
        self.key_id.is_some()
    }

    /// Bytes of all files, before they were encrypted.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.bytes).sum()
    }

    /// Whether it has every page.
    pub fn is_full(&self) -> bool {
        self.base.is_none()
    }

    /// Reads the manifest of the backup in `dir`.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if there is none that this build reads, [`Error::Corrupt`] if it is damaged.
    pub fn read(dir: &Path) -> Result<BackupManifest> {
        let path = dir.join(MANIFEST);
        let text = std::fs::read(&path).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::NotADirectory => {
                let what = match std::fs::metadata(dir) {
                    Ok(found) if found.is_dir() => format!("it has no {MANIFEST}, which is written last"),
                    Ok(_) => "it is not a folder".to_string(),
                    Err(_) => "there is no such folder".to_string(),
                };
                Error::Incompatible(format!("{} is not a complete backup: {what}", dir.display()))
            }
            _ => super::files::failed("read", &path, error),
        })?;
        let damaged = |what: &str| Error::Corrupt(format!("{} is damaged: {what}", path.display()));
        let value: serde_json::Value = serde_json::from_slice(&text).map_err(|error| damaged(&error.to_string()))?;
        let format = value["manifest"]["format"].as_u64().ok_or_else(|| damaged("it says no format"))?;
        if format != u64::from(FORMAT) {
            let what = format!("{} has backup format {format}; this program reads format {FORMAT}", path.display());
            return Err(Error::Incompatible(what));
        }
        let sealed: ManifestFile = serde_json::from_value(value).map_err(|error| damaged(&error.to_string()))?;
        if sum(&sealed.manifest) != sealed.crc32c {
            return Err(damaged("its checksum does not match"));
        }
        sealed.manifest.check().map_err(|what| damaged(&what))?;
        Ok(sealed.manifest)
    }

    /// Writes it into `dir`, durable on return; the last step of a backup.
    ///
    /// # Errors
    /// An I/O error.
    pub(super) fn write(&self, dir: &Path) -> Result<()> {
        debug_assert_eq!(self.check(), Ok(()), "a manifest is not read as it is written");
        let sealed = ManifestFile { manifest: self.clone(), crc32c: sum(self) };
        let text = serde_json::to_string_pretty(&sealed).expect("a manifest has string keys") + "\n";
        let path = dir.join(MANIFEST);
        OutputFile::write(&path, text.as_bytes()).map_err(|error| super::files::failed("write", &path, error))
    }

    /// Refuses an impossible manifest.
    fn check(&self) -> std::result::Result<(), String> {
        let are_lsns_in_order = self.start_lsn <= self.end_lsn && self.pages_lsn <= self.end_lsn;
        let are_numbers_possible = [4096, 8192, 16384].contains(&self.page_bytes)
            && self.end_lsn < 1 << 62
            && (self.segment_bytes == 0 || self.segment_bytes.is_power_of_two())
            && Some(self.files[0].bytes) == self.pages_copied.checked_mul(4 + self.page_bytes)
            && self.files[1].bytes == self.end_lsn.saturating_sub(self.start_lsn)
            && self.id().is_some()
            && self.key_id.as_ref().is_none_or(|id| u64::from_str_radix(id, 16).is_ok_and(|id| id > 0));
        let are_names_right = self.files[0].name == PAGES && self.files[1].name == REDO;
        match are_lsns_in_order && are_numbers_possible && are_names_right {
            true => Ok(()),
            false => Err("its numbers contradict each other".into()),
        }
    }

    /// The database's id as a number.
    pub(super) fn id(&self) -> Option<u64> {
        u64::from_str_radix(&self.database_id, 16).ok()
    }

    /// The id of the key that the files are encrypted with, 0 for none.
    pub(super) fn key_number(&self) -> u64 {
        self.key_id.as_ref().and_then(|id| u64::from_str_radix(id, 16).ok()).unwrap_or(0)
    }
}

fn sum(manifest: &BackupManifest) -> String {
    let text = serde_json::to_string(manifest).expect("a manifest has string keys");
    format!("{:08x}", crc32c::crc32c(text.as_bytes()))
}
