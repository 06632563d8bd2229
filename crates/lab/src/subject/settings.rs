//! The settings that experiments vary, the same for every subject, with InnoDB's names.

use highwater::Options;
use highwater::config::{FlushMethod, OptionValue};
use highwater_bench::{Error, Result};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The settings of a subject.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Settings {
    /// Bytes of the buffer pool.
    pub buffer_pool_bytes: u64,
    /// Bytes of a page.
    pub page_bytes: u64,
    /// Bytes of the whole redo log, all its files together.
    pub log_bytes: u64,
    /// The flush method.
    #[serde(serialize_with = "show", deserialize_with = "parse")]
    pub flush_method: FlushMethod,
    /// Neighbor flushing: 0, 1 or 2, and `auto` on Highwater.
    pub flush_neighbors: String,
    /// Whether doublewrite is on.
    pub doublewrite: bool,
    /// Durability of a commit: 1: it is durable when it returns.
    pub flush_log_at_trx_commit: u8,
    /// Pages looked at from the tail of the LRU list.
    pub lru_scan_depth: u64,
    /// Percentage of dirty pages above which flushing is no longer put off.
    pub max_dirty_pages_pct: u64,
    /// Pages per second that background flushing may write.
    pub io_capacity: u64,
    /// Memory for the subject and what the operating system caches for it, in bytes; `None` is no limit.
    pub memory_limit_bytes: Option<u64>,
    /// Options of one subject only, by the name that it gives them.
    pub extra: BTreeMap<String, String>,
}

impl Default for Settings {
    /// InnoDB's defaults as the source documents used them, on a small pool.
    fn default() -> Settings {
        Settings {
            buffer_pool_bytes: 128 << 20,
            page_bytes: 16 << 10,
            log_bytes: 256 << 20,
            flush_method: FlushMethod::Direct,
            flush_neighbors: "1".into(),
            doublewrite: true,
            flush_log_at_trx_commit: 1,
            lru_scan_depth: 1024,
            max_dirty_pages_pct: 75,
            io_capacity: 2000,
            memory_limit_bytes: None,
            extra: BTreeMap::new(),
        }
    }
}

fn show<S: Serializer>(method: &FlushMethod, serializer: S) -> std::result::Result<S::Ok, S::Error> {
    serializer.serialize_str(&method.show())
}

fn parse<'de, D: Deserializer<'de>>(deserializer: D) -> std::result::Result<FlushMethod, D::Error> {
    let text = String::deserialize(deserializer)?;
    FlushMethod::parse(&text).map_err(serde::de::Error::custom)
}

/// The folders of a subject's files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Files {
    /// Folder of the database.
    pub data: PathBuf,
    /// Folder of the redo log, if it has one of its own.
    pub log: Option<PathBuf>,
    /// Folder of a server's system tablespace, if it has one of its own.
    pub system: Option<PathBuf>,
}

impl Files {
    /// Everything in one folder.
    pub fn in_folder(data: impl Into<PathBuf>) -> Files {
        Files { data: data.into(), log: None, system: None }
    }

    pub(super) fn create(&self) -> Result<()> {
        for folder in [Some(&self.data), self.log.as_ref(), self.system.as_ref()].into_iter().flatten() {
            std::fs::create_dir_all(folder).map_err(|e| Error::file(folder, e))?;
        }
        Ok(())
    }
}

impl Settings {
    /// As Highwater's options.
    ///
    /// # Errors
    /// The first value that Highwater does not take.
    pub fn options(&self, log: Option<&Path>) -> Result<Options> {
        let mut options = Options::default();
        let on = |value: bool| if value { "on" } else { "off" }.to_string();
        for (name, value) in [
            ("buffer_pool_size", self.buffer_pool_bytes.to_string()),
            ("page_size", self.page_bytes.to_string()),
            ("log_file_size", self.log_bytes.to_string()),
            ("flush_method", self.flush_method.show()),
            ("flush_neighbors", self.flush_neighbors.clone()),
            ("doublewrite", on(self.doublewrite)),
            ("flush_log_at_trx_commit", self.flush_log_at_trx_commit.to_string()),
            ("lru_scan_depth", self.lru_scan_depth.to_string()),
            ("max_dirty_pages_pct", self.max_dirty_pages_pct.to_string()),
            ("io_capacity", self.io_capacity.to_string()),
        ] {
            options.set(name, &value)?;
        }
        for (name, value) in &self.extra {
            options.set(name, value)?;
        }
        options.log_dir = log.map(Path::to_path_buf);
        Ok(options)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_highwaters_options() {
        let extra = BTreeMap::from([("lock_wait_timeout_ms".to_string(), "77".to_string())]);
        let settings = Settings { flush_neighbors: "2".into(), log_bytes: 8 << 20, extra, ..Settings::default() };
        let options = settings.options(Some(Path::new("/l"))).unwrap();
        let values: BTreeMap<_, _> = options.values().into_iter().collect();
        assert_eq!((values["flush_neighbors"].as_str(), values["log_dir"].as_str()), ("2", "/l"));
        assert_eq!((options.log_file_size, options.lock_wait_timeout_ms), (8 << 20, 77));
        let unknown = BTreeMap::from([("innodb_magic".to_string(), "1".to_string())]);
        let error = Settings { extra: unknown, ..Settings::default() }.options(None).unwrap_err().to_string();
        assert!(error.contains("innodb-magic"), "{error}");
    }

    #[test]
    fn settings_read_back_from_json() {
        let settings =
            Settings { flush_method: FlushMethod::DSync, memory_limit_bytes: Some(5), ..Settings::default() };
        let json = serde_json::to_string(&settings).unwrap();
        assert!(json.contains("\"O_DSYNC\""), "{json}");
        assert_eq!(serde_json::from_str::<Settings>(&json).unwrap(), settings);
        assert!(serde_json::from_str::<Settings>("{\"flush_method\": \"hope\"}").is_err());
    }
}
