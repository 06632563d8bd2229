//! The sampled traces in this program: one page in 16 of the recorded traces (`traces/README.md`).
//!
//! Rules
//! 1. All sizes of the device (capacity, journal, write buffer) are divided by the same number.

use crate::experiment::Workspace;
use highwater_bench::{Error, Result};
use highwater_device::preset::DeviceConfig;
use highwater_device::replay::ReplayOptions;
use highwater_device::trace::ranges::NamedRange;

/// One page of this many was kept.
pub(super) const SHARE: u64 = 16;
/// First block of ext4's journal in the samples.
const JOURNAL_LBA: u32 = 16_384;

const BLOCK_BYTES: u64 = 4096;

struct Sample {
    name: &'static str,
    journal_blocks: u32,
    bytes: &'static [u8],
}

macro_rules! sample {
    ($name:literal, $journal_blocks:literal) => {
        Sample {
            name: $name,
            journal_blocks: $journal_blocks,
            bytes: include_bytes!(concat!("traces/", $name, ".csv.zst")),
        }
    };
}

static SAMPLES: [Sample; 3] =
    [sample!("tpcc-ordered-j8-dwb", 128), sample!("tpcc-data-j8", 128), sample!("tpcc-data-j64", 1024)];

/// Options for the sample of that name, on a preset; the complete traces need `capacity_bytes`.
pub(super) fn options(
    name: &str,
    device: &str,
    capacity_bytes: u64,
    workspace: &mut Workspace<'_>,
) -> Result<ReplayOptions> {
    let unknown = || Error::Usage(format!("there is no sampled trace {name:?}"));
    let sample = SAMPLES.iter().find(|sample| sample.name == name).ok_or_else(unknown)?;
    let path = workspace.work_dir().join(format!("{name}.csv.zst"));
    if !path.is_file() {
        std::fs::write(&path, sample.bytes).map_err(|e| Error::file(&path, e))?;
    }
    let mut options = ReplayOptions::on_preset(path, device)?;
    options.capacity_bytes = Some(capacity_bytes);
    if let DeviceConfig::Ssd(whole) = options.device_config()? {
        options.write_buffer_bytes = Some(u64::from(whole.write_buffer_blocks) / SHARE * BLOCK_BYTES);
    }
    options.capacity_bytes = Some(capacity_bytes / SHARE);
    options.ranges.push(NamedRange {
        name: "journal".into(),
        first_lba: JOURNAL_LBA,
        blocks: sample.journal_blocks,
        first_block_in_file: 0,
    });
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::measure::Quiet;
    use highwater_device::replay;

    /// The samples on the document's device: the order that its write amplification has.
    #[test]
    fn samples_keep_the_order_of_the_modes() {
        let folder = tempfile::tempdir().unwrap();
        let mut quiet = Quiet;
        let mut workspace = Workspace::new(folder.path(), &mut quiet);
        let mut waf = |name: &str, rule: &[&str]| {
            let mut options = options(name, "samsung-pm953-960gb", 2 << 30, &mut workspace).unwrap();
            options.passes = 2;
            options.rules = rule.iter().map(|rule| rule.parse().unwrap()).collect();
            let result = replay::run(&options, &mut |_| {}).unwrap();
            let journal = result.groups.iter().find(|group| group.name == "journal").unwrap();
            assert!(journal.writes_per_written_block > 100.0, "{name}: the journal is elsewhere");
            result.totals.write_amplification
        };
        let own = ["1=journal"];
        let ordered = waf("tpcc-ordered-j8-dwb", &[]);
        for name in ["tpcc-data-j8", "tpcc-data-j64"] {
            let (data, streams) = (waf(name, &[]), waf(name, &own));
            assert!(ordered > data && data > streams && streams > 1.0, "{name}: {ordered} {data} {streams}");
        }
    }
}
