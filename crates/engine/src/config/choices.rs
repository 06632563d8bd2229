//! Options whose values have names.

use super::value::{OptionValue, parse_size};
use highwater_storage::{FlushMethod, names, read_by_name, shown_by_name};
use std::fmt;
use std::str::FromStr;

/// Options that are read and shown as their type is.
macro_rules! option_value {
    ($($type:ident)*) => {
        $(impl OptionValue for $type {
            fn parse(text: &str) -> std::result::Result<Self, String> {
                text.parse()
            }

            fn show(&self) -> String {
                self.to_string()
            }
        })*
    };
}

option_value! {
    ChangeBuffering Doublewrite FlushLog FlushMethod FlushNeighbors MergeAtClose PageCompression PageSize PageStoreKind
    VictimPolicy
}

/// The neighbors that are flushed with a page: other dirty pages of its extent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlushNeighbors {
    /// 0: nothing.
    Off,
    /// 1: the contiguous run of dirty pages around it.
    Contiguous,
    /// 2: every dirty page.
    Extent,
    /// Chosen for the device, which is measured when the database is opened.
    #[default]
    Auto,
}

names!(FlushNeighbors { Off => "0", Contiguous => "1", Extent => "2", Auto => "auto" });
shown_by_name!(FlushNeighbors);
read_by_name!(FlushNeighbors);

/// The handling of a dirty page at the LRU tail when a frame is needed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum VictimPolicy {
    /// The thread writes the page, waits, and reads then: InnoDB's read-after-write.
    Raw,
    /// The page is deferred: the thread reads first, and the page is written later.
    War,
    /// The least recently used clean page is evicted; dirty pages are written in batches in the background.
    #[default]
    LruClean,
}

names!(VictimPolicy { Raw => "raw", War => "war", LruClean => "lru-clean" });
shown_by_name!(VictimPolicy);
read_by_name!(VictimPolicy);

/// The buffering of changes of secondary indexes whose leaves are not in the buffer pool.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChangeBuffering {
    /// The leaf is read and changed.
    Off,
    /// The change goes to a B+tree of buffered operations, whose pages are read and written as others are: InnoDB's
    /// change buffer.
    Disk,
    /// The change goes to memory, and the redo log alone makes it durable.
    #[default]
    Memory,
}

names!(ChangeBuffering { Off => "off", Disk => "disk", Memory => "memory" });
shown_by_name!(ChangeBuffering);
read_by_name!(ChangeBuffering);

/// Whether the change buffer is merged when the database is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergeAtClose {
    /// With mode `memory`, because the next opening would have to apply its changes; not with mode `disk`.
    #[default]
    Auto,
    /// Always: a close may take long.
    On,
    /// Never.
    Off,
}

names!(MergeAtClose { Auto => "auto", On => "on", Off => "off" });
shown_by_name!(MergeAtClose);
read_by_name!(MergeAtClose);

impl MergeAtClose {
    /// What it means with this way of buffering.
    pub fn applies_to(self, buffering: ChangeBuffering) -> bool {
        match self {
            MergeAtClose::Auto => buffering == ChangeBuffering::Memory,
            MergeAtClose::On => true,
            MergeAtClose::Off => false,
        }
    }
}

/// Size of a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageSize {
    /// Chosen for the device and the page store when the database is created.
    #[default]
    Auto,
    /// This many bytes.
    Bytes(u64),
}

impl PageSize {
    /// The bytes; `None` if they are not chosen yet. An open database's are.
    pub const fn bytes(self) -> Option<u64> {
        match self {
            PageSize::Auto => None,
            PageSize::Bytes(bytes) => Some(bytes),
        }
    }
}

impl From<u64> for PageSize {
    fn from(bytes: u64) -> PageSize {
        PageSize::Bytes(bytes)
    }
}

impl fmt::Display for PageSize {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PageSize::Auto => f.pad("auto"),
            PageSize::Bytes(bytes) => bytes.fmt(f),
        }
    }
}

impl FromStr for PageSize {
    type Err = String;

    /// Reads a size such as `16KiB` or `16384`, or `auto`.
    fn from_str(text: &str) -> std::result::Result<PageSize, String> {
        if text.eq_ignore_ascii_case("auto") {
            return Ok(PageSize::Auto);
        }
        parse_size(text).map(PageSize::Bytes).map_err(|reason| format!("{reason}, nor is it auto"))
    }
}

/// The protection of pages in place from being torn by a crash.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doublewrite {
    /// It is first written to the doublewrite file.
    #[default]
    On,
    /// A page is first written to the journal, a ring in the doublewrite file. The write to its place is synced later.
    Journal,
    /// Not at all.
    Off,
    /// By the device, which promises that a write of a page is not torn.
    Atomic,
    /// By the device if it promises that, else by the doublewrite file.
    Auto,
}

names!(Doublewrite { On => "on", Journal => "journal", Off => "off", Atomic => "atomic", Auto => "auto" });
shown_by_name!(Doublewrite);

impl FromStr for Doublewrite {
    type Err = String;

    /// Reads a name, or `1`, `true`, `yes` for on and `0`, `false`, `no` for off; the error has all names.
    fn from_str(text: &str) -> std::result::Result<Doublewrite, String> {
        let switched = |on| if on { Doublewrite::On } else { Doublewrite::Off };
        match text.to_ascii_lowercase().as_str() {
            "atomic" => Ok(Doublewrite::Atomic),
            "journal" => Ok(Doublewrite::Journal),
            "auto" => Ok(Doublewrite::Auto),
            _ => {
                bool::parse(text).map(switched).map_err(|_| format!("{text:?} is not one of {}", Doublewrite::names()))
            }
        }
    }
}

/// The durability of a commit: the handling of its redo.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum FlushLog {
    /// 0: nothing. It is written and synced once a second: a crash of the process or the machine can lose the commits
    /// of the last second.
    EverySecond,
    /// 1: it is written and synced before the commit returns.
    #[default]
    Sync,
    /// 2: it is written before the commit returns, and synced once a second: a crash of the machine can lose the
    /// commits of the last second.
    Write,
}

names!(FlushLog { EverySecond => "0", Sync => "1", Write => "2" });
shown_by_name!(FlushLog);
read_by_name!(FlushLog);

/// The page store of the data file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageStoreKind {
    /// Page number is place; a page is written over its older copy.
    #[default]
    InPlace,
    /// Pages are appended to segments and never overwritten.
    OutOfPlace,
    /// Chosen for the device when the database is created.
    Auto,
}

names!(PageStoreKind { InPlace => "in-place", OutOfPlace => "out-of-place", Auto => "auto" });
shown_by_name!(PageStoreKind);
read_by_name!(PageStoreKind);

/// The compression of pages before they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageCompression {
    /// They are not.
    Off,
    /// LZ4: less processor time.
    Lz4,
    /// Zstandard: smaller pages.
    Zstd,
    /// Chosen for the device and the processor when the database is created. Off in place.
    #[default]
    Auto,
}

impl PageCompression {
    /// The feature of this crate that it needs, if the program was built without that.
    pub(crate) fn missing_feature(self) -> Option<&'static str> {
        match self {
            PageCompression::Lz4 if cfg!(not(feature = "lz4")) => Some("lz4"),
            PageCompression::Zstd if cfg!(not(feature = "zstd")) => Some("zstd"),
            _ => None,
        }
    }
}

names!(PageCompression { Off => "off", Lz4 => "lz4", Zstd => "zstd", Auto => "auto" });
shown_by_name!(PageCompression);
read_by_name!(PageCompression);

#[cfg(test)]
mod tests {
    use super::*;

    /// Each value is read as it is shown, in upper or lower case; the error of another word lists all words.
    fn leads_back<T: FromStr<Err = String> + fmt::Display + PartialEq + fmt::Debug + Copy>(values: &[T]) {
        for value in values {
            assert_eq!(value.to_string().parse(), Ok(*value));
            assert_eq!(value.to_string().to_uppercase().parse(), Ok(*value));
        }
        let refused = "neither".parse::<T>().unwrap_err();
        assert!(values.iter().all(|value| refused.contains(&value.to_string())), "{refused}");
    }

    #[test]
    fn values_are_read_as_they_are_shown() {
        leads_back(&FlushNeighbors::ALL);
        leads_back(&VictimPolicy::ALL);
        leads_back(&ChangeBuffering::ALL);
        leads_back(&MergeAtClose::ALL);
        leads_back(&FlushLog::ALL);
        leads_back(&PageStoreKind::ALL);
        leads_back(&PageCompression::ALL);
        leads_back(&FlushMethod::ALL);
        leads_back(&crate::Isolation::ALL);
        leads_back(&crate::LockMode::ALL);
        leads_back(&Doublewrite::ALL);
        assert_eq!(("TRUE".parse(), "0".parse()), (Ok(Doublewrite::On), Ok(Doublewrite::Off)));
        assert_eq!("16KiB".parse(), Ok(PageSize::from(16 << 10)));
        assert_eq!(("auto".parse(), PageSize::from(4096).to_string()), (Ok(PageSize::Auto), "4096".to_string()));
        assert!("big".parse::<PageSize>().unwrap_err().ends_with("nor is it auto"));
        assert_eq!("READ COMMITTED".parse(), Ok(crate::Isolation::ReadCommitted));
    }
}
