//! Labels of a mounted disk's blocks: region (journal or not) and stream.

use super::file_system::Label;
use super::traffic::Region;
use crate::disk::Disk;
use crate::error::{DeviceError, Result};
use crate::labels::Labels;
use crate::trace::ranges::{NamedRange, StreamRule};
use std::ops::Range;

/// A block that no rule names.
pub(super) const PLAIN: Label = Label { stream: 0, region: Region::Main };

/// The labels: ranges of the journal are the region [`Region::Journal`]; rules assign streams, and later rules win.
pub(super) fn labels_of(journal: &[NamedRange], rules: &[StreamRule], capacity_blocks: u32) -> Result<Labels<Label>> {
    let mut labels = Labels::all(PLAIN);
    for range in journal {
        labels.paint(range.first_lba, range.blocks, Label { stream: 0, region: Region::Journal });
    }
    for rule in rules {
        for range in rule.resolve(journal)? {
            range.check(capacity_blocks)?;
            let mut pieces = Vec::new();
            labels.split(range.first_lba, range.blocks, |first, blocks, label| {
                pieces.push((first, blocks, label.region));
                Ok::<(), DeviceError>(())
            })?;
            for (first, blocks, region) in pieces {
                labels.paint(first, blocks, Label { stream: rule.stream, region });
            }
        }
    }
    Ok(labels)
}

/// Whether the disk has every stream that the rules name.
pub(super) fn has_streams(disk: &Disk, rules: &[StreamRule]) -> Result<()> {
    let streams = disk.streams();
    match rules.iter().map(|rule| rule.stream).find(|stream| *stream >= streams) {
        Some(stream) => Err(DeviceError::NoSuchStream { stream: stream.into(), streams: streams.into() }),
        None => Ok(()),
    }
}

/// A range of the journal, in bytes, as a named range.
pub(super) fn journal_range(range: &Range<u64>) -> NamedRange {
    let (first, end) = (range.start / 4096, range.end.div_ceil(4096));
    let (first_lba, blocks) = (first as u32, (end - first) as u32);
    NamedRange { name: "journal".into(), first_lba, blocks, first_block_in_file: 0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A rule that covers the journal moves its stream, not its name; one beyond the device is refused.
    #[test]
    fn rules_change_streams_and_not_regions() {
        let journal = [NamedRange { name: "journal".into(), first_lba: 100, blocks: 50, first_block_in_file: 0 }];
        let rules = |text: &str| [text.parse::<StreamRule>().unwrap()];
        let labels = labels_of(&journal, &rules("1=0-119"), 1000).unwrap();
        let at = |lba| (labels.at(lba).stream, labels.at(lba).region);
        assert_eq!([at(99), at(100), at(119)], [(1, Region::Main), (1, Region::Journal), (1, Region::Journal)]);
        assert_eq!([at(120), at(150)], [(0, Region::Journal), (0, Region::Main)]);
        let error = labels_of(&journal, &rules("1=999+2"), 1000).unwrap_err().to_string();
        assert!(error.contains("beyond the device's 1000 blocks"), "{error}");
    }
}
