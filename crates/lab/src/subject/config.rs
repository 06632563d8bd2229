//! [`Settings`] as the configuration file of each server.
//!
//! Rules
//! 1. Every setting is written, also the defaults: the file is the record of the measured configuration.
//! 2. The whole redo log has `log_bytes`: two files of half the size in MySQL 5.6, one file in MariaDB.
//! 3. Caches start cold. Only InnoDB writes (no binary log, no query cache, no performance schema). Connections are
//!    possible through the socket only.
//! 4. Every metric of InnoDB counts.
//! 5. `extra` overrides everything else.
//! 6. With MyRocks there is no InnoDB. Of the cache a quarter is memtables, as with RocksDB; the rest is the example of
//!    the project's page "my.cnf tuning": Bloom filters, levels sized from the last one, LZ4 and at the bottom
//!    Zstandard, blocks of 16 KiB. Index and filters are divided, for caches that are small against the data.

use super::{Files, Settings, SubjectKind};
use highwater::config::{FlushMethod, OptionValue};
use highwater_bench::{Error, Result};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// The folders and files of one server.
#[derive(Clone, Debug)]
pub(super) struct ServerPaths {
    /// Folder of the server program.
    pub(super) base: PathBuf,
    /// The server's data folder.
    pub(super) data: PathBuf,
    /// Folder of the redo log.
    pub(super) log: PathBuf,
    /// Folder of the system tablespace.
    pub(super) system: PathBuf,
    /// Folder of the socket and of temporary files; short, for the length of a socket's path is limited.
    pub(super) run: PathBuf,
    pub(super) error_log: PathBuf,
}

impl ServerPaths {
    pub(super) fn new(base: &Path, files: &Files, run: &Path) -> ServerPaths {
        let data = files.data.join("db");
        ServerPaths {
            base: base.into(),
            log: files.log.clone().unwrap_or_else(|| data.clone()),
            system: files.system.clone().unwrap_or_else(|| data.clone()),
            data,
            run: run.into(),
            error_log: files.data.join("error.log"),
        }
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.run.join("socket")
    }
}

/// Names and values of a server's options, in the order of the file. An empty value is an option that takes none.
pub(super) type Options = Vec<(String, String)>;

/// The options of a server.
///
/// # Errors
/// [`Error::Usage`] for a setting that the server does not have.
pub(super) fn options(kind: SubjectKind, place: &ServerPaths, settings: &Settings) -> Result<Options> {
    check(kind, settings)?;
    let mut options = common(place);
    options.extend(match kind {
        SubjectKind::Mysql => [innodb(place, settings), mysql(place, settings)].concat(),
        SubjectKind::Myrocks => myrocks(settings),
        SubjectKind::MariadbHighwater => highwater(place, settings),
        _ => [innodb(place, settings), mariadb(place, settings)].concat(),
    });
    for (name, value) in &settings.extra {
        let name = name.replace('-', "_");
        options.retain(|(other, _)| other.replace('-', "_") != name);
        options.push((name, value.clone()));
    }
    Ok(options)
}

fn check(kind: SubjectKind, settings: &Settings) -> Result<()> {
    let refuse = |what: String| Err(Error::Usage(format!("{kind} has no {what}")));
    if !matches!(settings.flush_neighbors.as_str(), "0" | "1" | "2") {
        return refuse(format!("flush_neighbors={} (it has 0, 1 and 2)", settings.flush_neighbors));
    }
    if !matches!(settings.page_bytes, 4096 | 8192 | 16384) {
        return refuse(format!("pages of {} bytes", settings.page_bytes));
    }
    if settings.flush_log_at_trx_commit > 2 {
        return refuse(format!("flush_log_at_trx_commit={}", settings.flush_log_at_trx_commit));
    }
    if settings.log_bytes < 4 << 20 || !settings.log_bytes.is_multiple_of(2 << 20) {
        return refuse(format!("redo log of {} bytes: take 4 MiB or more, in steps of 2 MiB", settings.log_bytes));
    }
    Ok(())
}

fn pairs<const N: usize>(pairs: [(&str, String); N]) -> Options {
    pairs.into_iter().map(|(name, value)| (name.to_string(), value)).collect()
}

fn common(place: &ServerPaths) -> Options {
    let path = |path: &Path| path.display().to_string();
    pairs([
        ("datadir", path(&place.data)),
        ("socket", path(&place.socket())),
        ("pid_file", path(&place.run.join("pid"))),
        ("tmpdir", path(&place.run)),
        ("log_error", path(&place.error_log)),
        ("skip_networking", String::new()),
        ("skip_grant_tables", String::new()),
        ("skip_log_bin", String::new()),
        ("performance_schema", "OFF".into()),
        ("query_cache_type", "0".into()),
        ("query_cache_size", "0".into()),
        ("character_set_server", "latin1".into()),
        ("collation_server", "latin1_bin".into()),
        ("sql_mode", "STRICT_ALL_TABLES".into()),
        ("transaction_isolation", "REPEATABLE-READ".into()),
        ("max_connections", "1000".into()),
        ("max_prepared_stmt_count", "1000000".into()),
        ("max_allowed_packet", (64 << 20).to_string()),
        ("table_open_cache", "2000".into()),
    ])
}

fn on(value: bool) -> String {
    if value { "ON" } else { "OFF" }.into()
}

fn innodb(place: &ServerPaths, settings: &Settings) -> Options {
    pairs([
        ("default_storage_engine", "InnoDB".into()),
        ("innodb_data_home_dir", place.system.display().to_string()),
        ("innodb_buffer_pool_size", settings.buffer_pool_bytes.to_string()),
        ("innodb_page_size", settings.page_bytes.to_string()),
        ("innodb_doublewrite", on(settings.doublewrite)),
        ("innodb_flush_neighbors", settings.flush_neighbors.clone()),
        ("innodb_flush_log_at_trx_commit", settings.flush_log_at_trx_commit.to_string()),
        ("innodb_lru_scan_depth", settings.lru_scan_depth.to_string()),
        ("innodb_max_dirty_pages_pct", settings.max_dirty_pages_pct.to_string()),
        ("innodb_io_capacity", settings.io_capacity.to_string()),
        ("innodb_io_capacity_max", (2 * settings.io_capacity).to_string()),
        ("innodb_file_per_table", "ON".into()),
        ("innodb_buffer_pool_dump_at_shutdown", "OFF".into()),
        ("innodb_buffer_pool_load_at_startup", "OFF".into()),
        ("innodb_monitor_enable", "all".into()),
        ("innodb_stats_auto_recalc", "OFF".into()),
    ])
}

fn mysql(place: &ServerPaths, settings: &Settings) -> Options {
    let mut options = pairs([
        ("basedir", place.base.display().to_string()),
        ("lc_messages_dir", place.base.join("share").display().to_string()),
        ("explicit_defaults_for_timestamp", "ON".into()),
        ("innodb_log_group_home_dir", place.log.display().to_string()),
        ("innodb_log_files_in_group", "2".into()),
        ("innodb_log_file_size", (settings.log_bytes / 2).to_string()),
    ]);
    // In 5.6 fsync is what happens when the option is not given.
    if settings.flush_method != FlushMethod::Fsync {
        options.push(("innodb_flush_method".into(), settings.flush_method.show()));
    }
    options
}

fn mariadb(place: &ServerPaths, settings: &Settings) -> Options {
    pairs([
        ("innodb_log_group_home_dir", place.log.display().to_string()),
        ("innodb_log_file_size", settings.log_bytes.to_string()),
        ("innodb_flush_method", settings.flush_method.show()),
    ])
}

/// The options that the engine has in this process too, under the names that the plugin gives them.
fn highwater(place: &ServerPaths, settings: &Settings) -> Options {
    let mut options = pairs([
        ("plugin_load_add", "ha_highwater".into()),
        ("plugin_maturity", "experimental".into()),
        ("innodb", "OFF".into()),
        ("default_storage_engine", "HIGHWATER".into()),
        ("default_tmp_storage_engine", "Aria".into()),
        ("highwater_buffer_pool_size", settings.buffer_pool_bytes.to_string()),
        ("highwater_page_size", settings.page_bytes.to_string()),
        ("highwater_log_file_size", settings.log_bytes.to_string()),
        ("highwater_flush_method", settings.flush_method.show()),
        ("highwater_flush_neighbors", settings.flush_neighbors.clone()),
        ("highwater_doublewrite", on(settings.doublewrite).to_lowercase()),
        ("highwater_flush_log_at_trx_commit", settings.flush_log_at_trx_commit.to_string()),
        ("highwater_lru_scan_depth", settings.lru_scan_depth.to_string()),
        ("highwater_max_dirty_pages_pct", settings.max_dirty_pages_pct.to_string()),
        ("highwater_io_capacity", settings.io_capacity.to_string()),
    ]);
    if place.log != place.data {
        options.push(("highwater_log_dir".into(), place.log.display().to_string()));
    }
    options
}

fn myrocks(settings: &Settings) -> Options {
    let memtables = settings.buffer_pool_bytes / 4;
    let jobs = std::thread::available_parallelism().map_or(2, |n| n.get().max(2));
    let blocks = "cache_index_and_filter_blocks=1;filter_policy=bloomfilter:10:false;whole_key_filtering=1;\
                  index_type=kTwoLevelIndexSearch;partition_filters=1;metadata_block_size=4096;\
                  pin_top_level_index_and_filter=1;pin_l0_filter_and_index_blocks_in_cache=1;format_version=5";
    let trees = format!(
        "write_buffer_size={};max_write_buffer_number=2;compression=kLZ4Compression;bottommost_compression=kZSTD;\
         level_compaction_dynamic_level_bytes=true;block_based_table_factory={{{blocks}}}",
        memtables / 2
    );
    pairs([
        ("plugin_load_add", "ha_rocksdb".into()),
        ("innodb", "OFF".into()),
        ("default_storage_engine", "ROCKSDB".into()),
        ("default_tmp_storage_engine", "Aria".into()),
        ("rocksdb_block_cache_size", (settings.buffer_pool_bytes - memtables).to_string()),
        ("rocksdb_db_write_buffer_size", memtables.to_string()),
        ("rocksdb_block_size", settings.page_bytes.to_string()),
        ("rocksdb_default_cf_options", trees),
        ("rocksdb_flush_log_at_trx_commit", settings.flush_log_at_trx_commit.to_string()),
        ("rocksdb_max_background_jobs", jobs.to_string()),
        ("rocksdb_bytes_per_sync", (1 << 20).to_string()),
        ("rocksdb_deadlock_detect", "ON".into()),
    ])
}

pub(super) fn file(options: &Options) -> String {
    let line = |(name, value): &(String, String)| {
        if value.is_empty() { format!("{name}\n") } else { format!("{name} = {value}\n") }
    };
    format!("[mysqld]\n{}", options.iter().map(line).collect::<String>())
}

/// The options as a result records them.
pub(super) fn record(options: &Options) -> BTreeMap<String, String> {
    let value = |value: &String| if value.is_empty() { "ON".to_string() } else { value.clone() };
    options.iter().map(|(name, v)| (name.clone(), value(v))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(kind: SubjectKind, settings: &Settings) -> BTreeMap<String, String> {
        let files = Files { log: Some("/l".into()), ..Files::in_folder("/d") };
        let place = ServerPaths::new(Path::new("/base"), &files, Path::new("/tmp/highwater-x"));
        record(&options(kind, &place, settings).unwrap())
    }

    #[test]
    fn flush_methods_have_each_servers_names() {
        let expected = [
            (FlushMethod::Fsync, None, "fsync"),
            (FlushMethod::DSync, Some("O_DSYNC"), "O_DSYNC"),
            (FlushMethod::Direct, Some("O_DIRECT"), "O_DIRECT"),
            (FlushMethod::DirectNoFsync, Some("O_DIRECT_NO_FSYNC"), "O_DIRECT_NO_FSYNC"),
        ];
        for (flush_method, mysql, mariadb) in expected {
            let settings = Settings { flush_method, ..Settings::default() };
            let method = |kind| written(kind, &settings).get("innodb_flush_method").cloned();
            assert_eq!(method(SubjectKind::Mysql).as_deref(), mysql);
            assert_eq!(method(SubjectKind::Mariadb).as_deref(), Some(mariadb));
        }
    }

    #[test]
    fn the_whole_log_has_the_bytes_asked_for() {
        let settings = Settings { log_bytes: 96 << 20, ..Settings::default() };
        for kind in [SubjectKind::Mysql, SubjectKind::Mariadb] {
            let options = written(kind, &settings);
            let files = options.get("innodb_log_files_in_group").map_or(1, |n| n.parse::<u64>().unwrap());
            assert_eq!(files * options["innodb_log_file_size"].parse::<u64>().unwrap(), 96 << 20);
        }
    }

    #[test]
    fn myrocks_has_the_cache_and_no_innodb() {
        let settings = Settings { buffer_pool_bytes: 64 << 20, flush_log_at_trx_commit: 2, ..Settings::default() };
        let options = written(SubjectKind::Myrocks, &settings);
        let bytes = |name: &str| options[name].parse::<u64>().unwrap() >> 20;
        assert_eq!((bytes("rocksdb_block_cache_size"), bytes("rocksdb_db_write_buffer_size")), (48, 16));
        assert_eq!((options["rocksdb_flush_log_at_trx_commit"].as_str(), options["innodb"].as_str()), ("2", "OFF"));
        assert!(options.keys().all(|name| !name.starts_with("innodb_")), "{options:?}");
    }

    #[test]
    fn highwaters_plugin_has_the_settings_of_the_engine_in_this_process() {
        let settings = Settings { buffer_pool_bytes: 64 << 20, flush_log_at_trx_commit: 2, ..Settings::default() };
        let options = written(SubjectKind::MariadbHighwater, &settings);
        assert_eq!(options["default_storage_engine"], "HIGHWATER");
        assert_eq!((options["innodb"].as_str(), options["highwater_log_dir"].as_str()), ("OFF", "/l"));
        assert!(options.keys().all(|name| !name.starts_with("innodb_")), "{options:?}");
        let mut engine = settings.options(None).unwrap();
        for (name, value) in options.iter().filter_map(|(name, value)| Some((name.strip_prefix("highwater_")?, value)))
        {
            engine.set(name, value).unwrap();
        }
        let with_log = settings.options(Some(Path::new("/l"))).unwrap();
        assert_eq!(engine.values(), with_log.values());
    }

    #[test]
    fn the_system_tablespace_may_lie_apart() {
        let home = |files: &Files| {
            let place = ServerPaths::new(Path::new("/base"), files, Path::new("/tmp/highwater-x"));
            record(&options(SubjectKind::Mysql, &place, &Settings::default()).unwrap())["innodb_data_home_dir"].clone()
        };
        let files = Files::in_folder("/d");
        assert_eq!(home(&files), "/d/db");
        assert_eq!(home(&Files { system: Some("/m".into()), ..files }), "/m");
    }

    #[test]
    fn extra_options_win() {
        let extra = BTreeMap::from([("innodb-io-capacity".to_string(), "7".to_string())]);
        let settings = Settings { extra, ..Settings::default() };
        assert_eq!(written(SubjectKind::Mysql, &settings)["innodb_io_capacity"], "7");
    }

    #[test]
    fn what_a_server_does_not_have_is_refused() {
        let place = ServerPaths::new(Path::new("/b"), &Files::in_folder("/d"), Path::new("/r"));
        for (settings, word) in [
            (Settings { flush_neighbors: "auto".into(), ..Settings::default() }, "flush_neighbors=auto"),
            (Settings { page_bytes: 1024, ..Settings::default() }, "1024"),
            (Settings { log_bytes: 5_000_000, ..Settings::default() }, "5000000"),
            (Settings { flush_log_at_trx_commit: 3, ..Settings::default() }, "=3"),
        ] {
            let error = options(SubjectKind::Mariadb, &place, &settings).unwrap_err().to_string();
            assert!(error.starts_with("mariadb has no ") && error.contains(word), "{error}");
        }
    }

    #[test]
    fn options_without_value_stand_alone() {
        let text = file(&vec![("a".into(), String::new()), ("b".into(), "1".into())]);
        assert_eq!(text, "[mysqld]\na\nb = 1\n");
    }
}
