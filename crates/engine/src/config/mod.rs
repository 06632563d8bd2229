//! The table of options: name, type, default, accepted values, unit and meaning of each.

mod choices;
mod collations;
mod info;
mod innodb;
mod value;

pub use choices::{
    ChangeBuffering, Doublewrite, FlushLog, FlushNeighbors, MergeAtClose, PageCompression, PageSize, PageStoreKind,
    VictimPolicy,
};
pub use collations::{ASCII_CI, Collation, Collations};
pub use highwater_storage::{EncryptionKey, FlushMethod};
pub use info::{InnodbName, OptionInfo};
pub use value::{OptionValue, parse_size};

use crate::error::{Error, Result};
use highwater_storage::OpenError;
use info::option_name;
use std::path::PathBuf;

macro_rules! options {
    ($(
        $(#[doc = $doc:literal])+
        $name:ident$(($innodb:ident $(* $unit:literal)?))?: $type:ty = $default:expr,
        $text:literal, $accepts:literal, |$v:ident| $valid:expr
        $(, $dynamic:ident)?;
    )*) => {
        /// Every option of a database. `Options::default()` is durable and needs no tuning.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Options {
            $($(#[doc = $doc])+ pub $name: $type,)*
            /// The collations that text columns can have. Not in the table of options: they are functions.
            pub collations: Collations,
            /// The key of an encrypted database, and of one that is created encrypted: instead of `key_file`, for
            /// programs that have keys of their own. Not in the table of options: it is a secret. An open database
            /// does not keep it.
            pub encryption_key: Option<EncryptionKey>,
        }

        impl Default for Options {
            fn default() -> Self {
                Options { $($name: $default,)* collations: Collations::default(), encryption_key: None }
             }
        }

        /// The table of options.
        pub const OPTION_TABLE: &[OptionInfo] = &[$(OptionInfo {
            name: stringify!($name),
            doc: concat!($($doc),+).trim_ascii(),
            default: $text,
            accepts: $accepts,
            innodb: &[$(InnodbName { name: stringify!($innodb), unit: 1 $(* $unit)? })?],
            is_dynamic: !concat!($(stringify!($dynamic))?).is_empty(),
        },)*];

        impl Options {
            /// Sets an option by its name; dashes and underscores are the same. InnoDB's name with its prefix is
            /// understood too, and its value in InnoDB's unit: `innodb_lock_wait_timeout` is in seconds.
            ///
            /// ```
            /// # use highwater::Options;
            /// let mut options = Options::default();
            /// options.set("io-capacity", "500")?;
            /// options.set("innodb_buffer_pool_size", "64M")?;
            /// options.set("innodb_lock_wait_timeout", "50")?;
            /// assert_eq!((options.buffer_pool_size, options.lock_wait_timeout_ms), (64 << 20, 50_000));
            /// # Ok::<(), highwater::Error>(())
            /// ```
            ///
            /// # Errors
            /// [`Error::BadOption`] for an unknown name or a value that is not accepted.
            pub fn set(&mut self, name: &str, value: &str) -> Result<()> {
                let key = name.trim_start_matches('-').replace('-', "_");
                let (key, value) = innodb::in_our_terms(OPTION_TABLE, &key, value)?;
                let mut changed = self.clone();
                match &*key {
                    $(stringify!($name) => {
                        changed.$name = <$type>::parse(&value)
                            .map_err(|reason| Error::BadOption { option: option_name(&key), reason })?;
                    })*
                    _ => return Err(Error::BadOption {
                        option: option_name(name),
                        reason: "no such option".to_string(),
                    }),
                }
                changed.validate()?;
                *self = changed;
                Ok(())
            }

            /// Checks every option's range.
            ///
            /// # Errors
            /// [`Error::BadOption`] names the first one out of range.
            pub fn validate(&self) -> Result<()> {
                $({
                    let $v = &self.$name;
                    if !$valid {
                        return Err(Error::BadOption {
                            option: option_name(stringify!($name)),
                            reason: format!("{} is not allowed; accepted: {}", $v.show(), $accepts),
                        });
                    }
                })*
                self.check_built_in()
            }

            /// Checks that this program has the parts that the options need.
            fn check_built_in(&self) -> Result<()> {
                let Some(feature) = self.page_compression.missing_feature() else { return Ok(()) };
                let reason = format!(
                    "{feature} needs the feature `{feature}` of the crate highwater, and this program was built \
                     without it"
                );
                Err(Error::BadOption { option: option_name("page_compression"), reason })
            }

            /// The key that `encryption_key` or `key_file` names, if one of them does.
            ///
            /// # Errors
            /// [`Error::BadOption`] if both do; [`Error::Open`] for an unusable key file.
            pub fn read_key(&self) -> Result<Option<EncryptionKey>> {
                match (&self.encryption_key, &self.key_file) {
                    (Some(_), Some(_)) => {
                        let reason = "a key was given in addition to the file".to_string();
                        Err(Error::BadOption { option: option_name("key_file"), reason })
                    }
                    (Some(key), None) => Ok(Some(key.clone())),
                    (None, Some(file)) => Ok(Some(EncryptionKey::read_file(file).map_err(OpenError::from)?)),
                    (None, None) => Ok(None),
                }
            }

            /// The first option that differs from `other`'s and cannot be changed while a database is open.
            pub fn fixed_difference(&self, other: &Options) -> Option<&'static str> {
                let differ = [$((stringify!($name), self.$name != other.$name),)*];
                let fixed = OPTION_TABLE.iter().zip(differ).find(|(info, (_, differs))| *differs && !info.is_dynamic);
                fixed.map(|(_, (name, _))| name)
            }

            /// Name and present value of every option, in table order.
            pub fn values(&self) -> Vec<(&'static str, String)> {
                vec![$((stringify!($name), self.$name.show()),)*]
            }
        }
    };
}

options! {
    /// Size of the buffer pool: bytes of memory for page frames.
    buffer_pool_size: u64 = 128 << 20, "128MiB", "1MiB to 15TiB", |v| (1 << 20..=15 << 40).contains(v), dynamic;
    /// Upper limit of buffer_pool_size while the database is open; 0 = its size at the opening. Each page of it takes
    /// about a hundredth of a page of memory.
    buffer_pool_size_max: u64 = 0, "0", "0 to 15TiB", |v| *v <= 15 << 40;
    /// Page size in bytes, fixed when the database is created; auto = by the device and the page store.
    page_size: PageSize = PageSize::Auto, "auto", "4KiB, 8KiB, 16KiB or auto",
        |v| matches!(v.bytes(), None | Some(4096 | 8192 | 16384));
    /// Where pages are stored, fixed when the database is created: in-place = each over its older copy, protected by
    /// the doublewrite file; out-of-place = appended to segments and found through a map, without double writes; auto =
    /// by the device.
    page_store: PageStoreKind = PageStoreKind::InPlace, "in-place", "in-place, out-of-place or auto", |_v| true;
    /// How pages are compressed before they are written; only out of place. auto = by device and processor, decided
    /// when the database is created.
    page_compression: PageCompression = PageCompression::Auto, "auto", "off, lz4, zstd or auto", |_v| true;
    /// Bytes of a segment of a page store out of place, fixed when the database is created.
    segment_size: u64 = 4 << 20, "4MiB", "a power of two from 256KiB to 32MiB",
        |v| v.is_power_of_two() && (256 << 10..=32 << 20).contains(v);
    /// How full segments may be, in percent, before the data file grows instead of segments being cleaned.
    segment_fill_pct: u64 = 75, "75", "20 to 90", |v| (20..=90).contains(v);
    /// Size of the redo log (a ring) in bytes to which it grows: in a file it begins with 4 MiB. A log that is larger
    /// shrinks to it when the database is opened. A close shrinks it to a quarter of the data's size (at least 4 MiB)
    /// if that is at most half of its size. On a block device it always has this size.
    log_file_size(redo_log_capacity): u64 = 256 << 20, "256MiB", "4MiB to 64GiB",
        |v| (4 << 20..=64 << 30).contains(v), dynamic;
    /// Bytes of the in-memory log buffer.
    log_buffer_size: u64 = 16 << 20, "16MiB", "1MiB to 1GiB", |v| (1 << 20..=1 << 30).contains(v);
    /// What a commit does with its redo: 1 = write and sync it before it returns, 2 = write it before it returns (it is
    /// synced once a second), 0 = nothing (it is written and synced once a second).
    flush_log_at_trx_commit: FlushLog = FlushLog::Sync, "1", "0, 1 or 2", |_v| true, dynamic;
    /// How files are written and made durable; O_DIRECT_NO_FSYNC only on devices whose cache survives a power cut.
    flush_method: FlushMethod = FlushMethod::Direct, "O_DIRECT",
        "fsync, O_DSYNC, O_DIRECT or O_DIRECT_NO_FSYNC", |_v| true;
    /// Protection of pages in place from torn writes: on = each is written to the doublewrite file first; journal =
    /// each is written to a ring in that file first, and its place is made durable later, with half as many syncs; off
    /// = none; atomic = the device promises atomic page writes (refused if it does not); auto = atomic if the device
    /// promises that, else on.
    doublewrite: Doublewrite = Doublewrite::On, "on", "on, journal, off, atomic or auto", |_v| true;
    /// Bytes of the journal, with doublewrite=journal: each time that much was written, the data file is synced.
    journal_size: u64 = 16 << 20, "16MiB", "8MiB to 1GiB", |v| (8 << 20..=1 << 30).contains(v);
    /// Pages examined from the tail of the LRU list when there are few free frames.
    lru_scan_depth: u64 = 1024, "1024", "16 and more", |v| *v >= 16, dynamic;
    /// Percentage of dirty frames above which the page cleaner flushes even if the redo log has enough room.
    max_dirty_pages_pct: f32 = 75.0, "75", "0 to 99.99", |v| (0.0..=99.99).contains(v), dynamic;
    /// Neighbors that are flushed with a page: 0 = none, 1 = the contiguous dirty pages around it in its extent, 2 =
    /// all dirty pages of its extent, auto = by the device.
    flush_neighbors: FlushNeighbors = FlushNeighbors::Auto, "auto", "0, 1, 2 or auto", |_v| true;
    /// Measure the device again at this opening to choose what auto means, even if an earlier measurement is stored.
    probe_again: bool = false, "off", "on or off", |_v| true;
    /// What happens when a frame is needed and the page at the LRU tail is dirty: raw = write it, then read; war =
    /// defer it, read, write it later; lru-clean = evict the least recently used clean page.
    victim_policy: VictimPolicy = VictimPolicy::LruClean, "lru-clean", "raw, war or lru-clean", |_v| true;
    /// What happens to a change of a non-unique secondary index whose leaf is not in the buffer pool: off = the leaf is
    /// read; disk = the change is buffered in pages of the change buffer; memory = it is buffered in memory and in the
    /// redo log.
    change_buffering: ChangeBuffering = ChangeBuffering::Memory, "memory", "off, disk or memory", |_v| true;
    /// Largest size of the change buffer, in percent of the buffer pool; with memory at most an eighth of the redo log,
    /// less if checkpoint_age_async_pct is below 75.
    change_buffer_max_size: u64 = 25, "25", "1 to 50", |v| (1..=50).contains(v);
    /// Merge the change buffer when the database is closed. Otherwise, with disk the changes stay buffered, with memory
    /// the next opening merges them. auto = with memory only.
    change_buffer_merge_at_close: MergeAtClose = MergeAtClose::Auto, "auto", "auto, on or off", |_v| true;
    /// Milliseconds between two rounds of the page cleaner, if nothing wakes it earlier.
    cleaner_interval_ms: u64 = 50, "50", "1 to 10000", |v| (1..=10_000).contains(v);
    /// Percentage of dirty frames above which dirty pages are flushed, faster the more there are; 0 = only above
    /// max_dirty_pages_pct.
    max_dirty_pages_pct_lwm: f32 = 50.0, "50", "0 to 99.99", |v| (0.0..=99.99).contains(v), dynamic;
    /// Checkpoint age, in percent of the log's capacity, above which pages are flushed to free room in the log.
    adaptive_flushing_lwm: u64 = 10, "10", "0 to 70", |v| *v <= 70, dynamic;
    /// Checkpoint age, in percent of the log's capacity, above which writers are slowed to the speed of flushing.
    checkpoint_age_async_pct: u64 = 75, "75", "20 to 95", |v| (20..=95).contains(v), dynamic;
    /// Checkpoint age, in percent of the log's capacity, above which flushed pages count as sync flush.
    checkpoint_age_sync_pct: u64 = 90, "90", "25 to 99", |v| (25..=99).contains(v), dynamic;
    /// Pages per second that the page cleaner may write when the redo log has enough room.
    io_capacity: u64 = 2000, "2000", "16 and more", |v| *v >= 16, dynamic;
    /// Milliseconds after which another access makes a page of the old part of the LRU list young; earlier if half of
    /// the old part has been replaced since.
    old_blocks_time_ms(old_blocks_time): u64 = 1000, "1000", "any", |_v| true, dynamic;
    /// Size of the old part of the LRU list, in percent of the list.
    old_blocks_pct: u64 = 37, "37", "5 to 95", |v| (5..=95).contains(v);
    /// Longest time a transaction waits for a lock, in milliseconds. (InnoDB's default of 50 s is for interactive
    /// sessions; in a program such a long wait is mostly a thread that waits for its own open transaction.)
    lock_wait_timeout_ms(lock_wait_timeout * 1000): u64 = 10_000, "10000", "1 and more", |v| *v >= 1, dynamic;
    /// Read-ahead threads, for scans and for lookups and insertions of several rows; 0 = no read-ahead.
    read_io_threads: u64 = 16, "16", "0 to 64", |v| *v <= 64;
    /// Purge threads; more than one works only while several undo streams wait.
    purge_threads: u64 = 4, "4", "1 to 32", |v| (1..=32).contains(v);
    /// History list length (committed transactions whose undo is not purged) above which each row change is delayed; 0
    /// = no limit.
    max_purge_lag: u64 = 0, "0", "0 to 4294967295", |v| *v <= 0xffff_ffff, dynamic;
    /// Longest delay of a change because of max_purge_lag, in microseconds.
    max_purge_lag_delay: u64 = 1_000_000, "1000000", "0 to 10000000", |v| *v <= 10_000_000, dynamic;
    /// Seconds after which the change log (`Schema::log_changes`) drops changes, even if consumers have not read them;
    /// 0 = only by `Database::trim_changes`. A later consumer has to copy its tables again.
    change_log_expire_seconds: u64 = 0, "0", "0 to 4294967295", |v| *v <= 0xffff_ffff, dynamic;
    /// Maximum number of concurrent snapshots of readers in other processes (`Database::open_reader`), through the
    /// socket `readers` in the database's folder; 0 = no socket.
    max_readers: u64 = 64, "64", "0 to 1024", |v| *v <= 1024;
    /// Folder of the redo log, or a block device that holds it; empty = the folder of the database.
    log_dir(log_group_home_dir): Option<PathBuf> = None, "", "a folder or a block device", |_v| true;
    /// Folder of the archive of redo, new or this database's: all redo is copied there, so that a backup can be
    /// restored to any later moment; empty = none. Needed at every opening: redo made without it is missing. One
    /// database writes it at a time.
    redo_archive: Option<PathBuf> = None, "", "a folder outside of the database's", |_v| true;
    /// File with the key of an encrypted database: 32 bytes, or 64 hexadecimal digits, for its owner alone. A database
    /// that is created with a key is encrypted, and needs it at every opening; empty = it is not encrypted.
    key_file: Option<PathBuf> = None, "", "a file", |_v| true;
    /// Create the database if the folder holds none.
    create_if_missing: bool = true, "on", "on or off", |_v| true;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refusal(name: &str, value: &str) -> String {
        Options::default().set(name, value).unwrap_err().to_string()
    }

    #[test]
    fn an_option_has_one_spelling_in_every_message() {
        for name in ["lru_scan_depth", "lru-scan-depth", "--lru_scan_depth"] {
            for value in ["0", "99999999999999999999", "deep"] {
                let text = refusal(name, value);
                assert!(text.starts_with("option lru-scan-depth: "), "{text}");
            }
        }
        assert_eq!(refusal("no_such_thing", "1"), "option no-such-thing: no such option");
    }

    #[test]
    fn a_value_that_is_refused_changes_nothing() {
        let mut options = Options::default();
        let before = options.values();
        options.set("lru_scan_depth", "0").unwrap_err();
        assert_eq!(options.values(), before);
        options.set("io_capacity", "100").unwrap();
    }

    #[test]
    fn percentages_have_fractions() {
        let mut options = Options::default();
        for (value, shown) in [("75.5", "75.5"), ("0", "0"), ("99.99", "99.99"), ("75", "75"), ("0.01", "0.01")] {
            for name in ["max_dirty_pages_pct", "max_dirty_pages_pct_lwm"] {
                options.set(name, value).unwrap();
                assert!(options.values().contains(&(name, shown.to_string())), "{name} {value}");
            }
        }
        for value in ["100", "99.999", "-1", "nan", "inf", "1e1", "", "75 %"] {
            assert!(refusal("max-dirty-pages-pct", value).starts_with("option max-dirty-pages-pct: "), "{value}");
        }
    }

    #[test]
    fn defaults_are_shown_as_they_are() {
        for (option, (name, value)) in OPTION_TABLE.iter().zip(Options::default().values()) {
            let mut options = Options::default();
            if !option.default.is_empty() {
                options.set(name, option.default).unwrap();
            }
            assert_eq!(options, Options::default(), "{name}: {} is not {value}", option.default);
        }
    }

    #[test]
    fn fdatasync_gets_a_hint() {
        assert!(refusal("flush_method", "fdatasync").ends_with("what older InnoDB calls fdatasync is fsync"));
        assert!(!refusal("flush_method", "mmap").contains("fdatasync"));
    }

    #[test]
    fn a_pool_of_more_frames_than_numbers_is_refused_before_anything_is_made() {
        let mut options = Options::default();
        let error = options.set("buffer-pool-size", "900T").unwrap_err().to_string();
        assert!(
            error.starts_with("option buffer-pool-size: ") && error.ends_with("accepted: 1MiB to 15TiB"),
            "{error}"
        );
    }
}
