//! Records requests as a compressed CSV trace that [`super::csv`] reads.

use crate::error::{DeviceError, Result};
use crate::model::Op;
use crate::trace::ranges::NamedRange;
use parking_lot::Mutex;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Writes `NAME.csv.zst`, and `NAME.files.csv` beside it.
pub struct Recorder {
    out: Mutex<Option<zstd::stream::write::Encoder<'static, BufWriter<File>>>>,
    path: PathBuf,
    began: Instant,
}

impl Recorder {
    /// Creates the file; its name must end in `.csv.zst`. Times are counted from now.
    pub fn create(path: &Path) -> Result<Recorder> {
        if !path.to_string_lossy().ends_with(".csv.zst") {
            let what = format!("a recorded trace is named NAME.csv.zst, not {}", path.display());
            return Err(DeviceError::Config(what));
        }
        let failed = |e| DeviceError::io(format!("creating {}", path.display()), e);
        let file = File::create(path).map_err(failed)?;
        let encoder = zstd::stream::write::Encoder::new(BufWriter::new(file), 3).map_err(failed)?;
        Ok(Recorder { out: Mutex::new(Some(encoder)), path: path.into(), began: Instant::now() })
    }

    /// Appends a request. Nothing is written any more after an error or [`finish`](Self::finish).
    pub fn record(&self, op: Op, lba: u64, blocks: u64) -> Result<()> {
        let letter = match op {
            Op::Read => 'R',
            Op::Write => 'W',
            Op::Discard => 'D',
            Op::Flush => 'F',
        };
        let mut out = self.out.lock();
        let Some(encoder) = &mut *out else { return Ok(()) };
        let written = writeln!(encoder, "{},{letter},{lba},{blocks}", self.began.elapsed().as_micros());
        written.map_err(|e| {
            *out = None;
            self.failed(e)
        })
    }

    /// Ends the file and writes the map of named ranges beside it.
    pub fn finish(&self, ranges: &[NamedRange]) -> Result<()> {
        let Some(encoder) = self.out.lock().take() else { return Ok(()) };
        encoder.finish().and_then(|mut file| file.flush()).map_err(|e| self.failed(e))?;
        let line = |r: &NamedRange| format!("{},{},{},{}\n", r.first_lba, r.blocks, r.name, r.first_block_in_file);
        let name = self.path.to_string_lossy().replace(".csv.zst", ".files.csv");
        let text: String = ranges.iter().map(line).collect();
        std::fs::write(&name, text).map_err(|e| DeviceError::io(format!("writing {name}"), e))
    }

    fn failed(&self, source: std::io::Error) -> DeviceError {
        DeviceError::io(format!("recording to {}", self.path.display()), source)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Trace, ranges};

    #[test]
    fn what_was_recorded_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv.zst");
        let recorder = Recorder::create(&path).unwrap();
        recorder.record(Op::Write, 5, 2).unwrap();
        recorder.record(Op::Flush, 0, 0).unwrap();
        let journal = NamedRange { name: "journal".into(), first_lba: 7, blocks: 9, first_block_in_file: 0 };
        recorder.finish(std::slice::from_ref(&journal)).unwrap();
        recorder.record(Op::Read, 1, 1).unwrap();
        let events: Vec<_> = Trace::open(&path).unwrap().events().unwrap().map(|e| e.unwrap()).collect();
        assert_eq!(
            events.iter().map(|e| (e.op, e.lba, e.blocks)).collect::<Vec<_>>(),
            [(Op::Write, 5, 2), (Op::Flush, 0, 0)]
        );
        assert_eq!(ranges::read_files(&ranges::beside(&path).unwrap()).unwrap(), [journal]);
        assert!(Recorder::create(&folder.path().join("t.csv")).is_err());
    }
}
