//! The journaling modes that the `stream-journal` document compares, as settings of the file system, the streams and
//! the server.

use highwater_bench::{Error, Result};
use highwater_device::DeviceError;
use highwater_device::disk::DiskOptions;
use highwater_device::mount::{FileSystemKind, JournalMode, Mount, MountOptions};
use std::path::Path;

/// A way of journaling.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// Ordered journaling, InnoDB's doublewrite on.
    OrderedDoublewrite,
    /// Ordered journaling, doublewrite off.
    Ordered,
    /// Data journaling, doublewrite off.
    Data,
    /// Data journaling with the journal in a stream of its own, doublewrite off.
    DataStreams,
}

highwater_storage::names!(Mode {
    OrderedDoublewrite => "OJ+DWB",
    Ordered => "OJ",
    Data => "DJ",
    DataStreams => "MS-DJ",
});

impl Mode {
    /// The mode that the document calls `name`.
    pub(super) fn of(name: &str) -> Result<Mode> {
        Mode::named(name).ok_or_else(|| Error::Usage(format!("there is no way of journaling {name:?}")))
    }

    pub(super) fn doublewrite(self) -> bool {
        self == Mode::OrderedDoublewrite
    }

    pub(super) fn journals_data(self) -> bool {
        matches!(self, Mode::Data | Mode::DataStreams)
    }

    fn journal_mode(self) -> JournalMode {
        if self.journals_data() { JournalMode::Data } else { JournalMode::Ordered }
    }

    fn rules(self) -> Vec<&'static str> {
        if self == Mode::DataStreams { vec!["1=journal"] } else { Vec::new() }
    }

    pub(super) fn stream_rules(self) -> Result<Vec<highwater_device::trace::ranges::StreamRule>> {
        Ok(self.rules().into_iter().map(str::parse).collect::<std::result::Result<Vec<_>, DeviceError>>()?)
    }

    /// A disk with ext4 mounted this way at `place`.
    pub(super) fn mount(self, disk: DiskOptions, journal_bytes: u64, place: &Path) -> Result<Mount> {
        let mut options = MountOptions::new(disk, place);
        let journal_bytes = Some(journal_bytes);
        options.file_system = FileSystemKind::Ext4 { journal_mode: self.journal_mode(), journal_bytes };
        options.rules = self.stream_rules()?;
        options.classify = false;
        Ok(Mount::new(&options)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modes_read_back_and_differ() {
        for mode in Mode::ALL {
            assert_eq!(Mode::of(mode.name()).unwrap(), mode);
        }
        assert!(Mode::of("XJ").is_err());
        assert!(Mode::OrderedDoublewrite.doublewrite() && !Mode::Data.doublewrite());
        assert_eq!(Mode::DataStreams.stream_rules().unwrap().len(), 1);
    }
}
