//! Options whose values have names.

use super::{OptionValue, parse_size};
use highwater_storage::{FlushMethod, names};

/// Options whose values have names, as InnoDB writes them; capital or small letters are the same.
macro_rules! named_value {
    ($type:ident, $hint:expr) => {
        impl OptionValue for $type {
            fn parse(text: &str) -> std::result::Result<Self, String> {
                let found = $type::ALL.into_iter().find(|value| value.name().eq_ignore_ascii_case(text));
                found.ok_or_else(|| format!("{text:?} is not one of {}{}", $type::names(), $hint(text)))
            }

            fn show(&self) -> String {
                self.name().to_string()
            }
        }
    };
}

named_value!(FlushMethod, |text: &str| match text.eq_ignore_ascii_case("fdatasync") {
    true => "; what older InnoDB calls fdatasync is fsync",
    false => "",
});

/// Which other dirty pages of its extent are flushed with a page.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FlushNeighbors {
    /// 0: nothing.
    Off,
    /// 1: the contiguous run of dirty pages around it.
    Contiguous,
    /// 2: every dirty page.
    Extent,
    /// What suits the device; it is measured when the database is opened.
    #[default]
    Auto,
}

names!(FlushNeighbors { Off => "0", Contiguous => "1", Extent => "2", Auto => "auto" });
named_value!(FlushNeighbors, |_| "");

/// What happens when a frame is needed and the page at the LRU tail is dirty.
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
named_value!(VictimPolicy, |_| "");

/// What happens to a change of a secondary index when the leaf is not in the buffer pool.
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
named_value!(ChangeBuffering, |_| "");

/// Whether the change buffer is merged when the database is closed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum MergeAtClose {
    /// With `memory`, whose changes the next opening would have to apply before it is done; not with `disk`.
    #[default]
    Auto,
    /// Always: a close may take long.
    On,
    /// Never.
    Off,
}

names!(MergeAtClose { Auto => "auto", On => "on", Off => "off" });
named_value!(MergeAtClose, |_| "");

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
    /// What suits the device and the page store; chosen when the database is created.
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

impl OptionValue for PageSize {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        if text.eq_ignore_ascii_case("auto") { Ok(PageSize::Auto) } else { parse_size(text).map(PageSize::Bytes) }
    }

    fn show(&self) -> String {
        self.bytes().map_or_else(|| "auto".into(), |bytes| bytes.to_string())
    }
}

/// How a page is protected from being torn by a crash, in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Doublewrite {
    /// It is first written to the doublewrite file.
    #[default]
    On,
    /// It is first written to the journal, a ring in the doublewrite file; what reaches its place is made durable
    /// later.
    Journal,
    /// Not at all.
    Off,
    /// By the device, which promises that a write of a page is not torn.
    Atomic,
    /// By the device if it promises that, else by the doublewrite file.
    Auto,
}

names!(Doublewrite { On => "on", Journal => "journal", Off => "off", Atomic => "atomic", Auto => "auto" });

impl OptionValue for Doublewrite {
    fn parse(text: &str) -> std::result::Result<Self, String> {
        let switched = |on| if on { Doublewrite::On } else { Doublewrite::Off };
        match text {
            "atomic" => Ok(Doublewrite::Atomic),
            "journal" => Ok(Doublewrite::Journal),
            "auto" => Ok(Doublewrite::Auto),
            _ => {
                bool::parse(text).map(switched).map_err(|_| format!("{text:?} is not one of {}", Doublewrite::names()))
            }
        }
    }

    fn show(&self) -> String {
        self.name().to_string()
    }
}

/// What a commit does with its redo.
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
named_value!(FlushLog, |_| "");

/// How pages are kept in the data file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageStoreKind {
    /// Page number is place; a page is written over its older copy.
    #[default]
    InPlace,
    /// Pages are appended to segments and never overwritten.
    OutOfPlace,
    /// What suits the device; chosen when the database is created.
    Auto,
}

names!(PageStoreKind { InPlace => "in-place", OutOfPlace => "out-of-place", Auto => "auto" });
named_value!(PageStoreKind, |_| "");

/// How pages are compressed before they are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PageCompression {
    /// They are not.
    Off,
    /// LZ4: less processor time.
    Lz4,
    /// Zstandard: smaller pages.
    Zstd,
    /// What suits the device and the processor; chosen when the database is created. Off in place.
    #[default]
    Auto,
}

names!(PageCompression { Off => "off", Lz4 => "lz4", Zstd => "zstd", Auto => "auto" });
named_value!(PageCompression, |_| "");
