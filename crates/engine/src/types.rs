//! Numbers with a meaning, each a type of its own.

macro_rules! number {
    ($(#[$doc:meta])* $visibility:vis $name:ident($int:ty)) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(transparent)]
        $visibility struct $name(pub $int);

        impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

number!(
    /// Number of a page. Page 0 is the file header. The store knows the location of a page.
    pub PageNo(u32)
);
number!(
    /// Log sequence number: bytes of redo ever written before this point.
    pub Lsn(u64)
);
number!(
    /// Transaction number, in order of the first write. 48 bits on disk; 0 = older than all others.
    pub(crate) TxnId(u64)
);
number!(
    /// Place of an undo record: `page_no << 16 | offset_in_page`. 0 = no earlier version. 48 bits on disk.
    pub(crate) RollPtr(u64)
);
number!(
    /// Owner of extents: a tree, the undo log, overflow pages of a table. 0 = none.
    pub SegmentId(u32)
);
number!(
    /// Number of a table in the catalog.
    pub(crate) TableId(u32)
);
number!(
    /// Number of an index in the catalog, unique in the database.
    pub(crate) IndexId(u32)
);

/// The owner of the change buffer's own tree. The catalog gives no index this number.
pub(crate) const CHANGE_BUFFER_INDEX: IndexId = IndexId(u32::MAX);

/// Pages of an extent, the unit in which space is allocated and neighbors are flushed.
pub(crate) const EXTENT_PAGES: u32 = 64;

/// A random number, not 0: the id of a new database or backup.
pub(crate) fn random_id() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The standard library seeds this from the operating system's randomness.
    std::hash::RandomState::new().build_hasher().finish() | 1
}

/// The first whole characters of a text, `bytes` bytes of them at most.
pub(crate) fn cut_text(text: &str, bytes: usize) -> &str {
    let mut end = text.len().min(bytes);
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// The wall clock: microseconds since 1970.
pub(crate) fn unix_us() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.map_or(0, |since| u64::try_from(since.as_micros()).unwrap_or(u64::MAX))
}

impl RollPtr {
    /// No earlier version.
    pub(crate) const NONE: RollPtr = RollPtr(0);

    /// The pointer to `offset` in page `page`.
    pub(crate) fn new(page: PageNo, offset: u16) -> RollPtr {
        RollPtr(u64::from(page.0) << 16 | u64::from(offset))
    }

    /// The undo page.
    pub(crate) fn page(self) -> PageNo {
        PageNo((self.0 >> 16) as u32)
    }

    /// Byte offset of the record in its page.
    pub(crate) fn offset(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}
