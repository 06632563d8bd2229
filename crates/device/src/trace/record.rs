//! Records requests as a compressed CSV trace that [`super::csv`] reads.
//!
//! Rule: recording never makes a request fail. The first error ends the recording; [`Recorder::finish`] returns it.

use crate::error::{DeviceError, Result};
use crate::model::Op;
use crate::trace::ranges::NamedRange;
use highwater_storage::OutputFile;
use parking_lot::Mutex;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

type Encoder = zstd::stream::write::Encoder<'static, BufWriter<OutputFile>>;

/// The state of the output file.
enum Out {
    /// Lines are written to the file.
    Open(Encoder),
    /// This error ended the recording.
    Failed(std::io::Error),
    /// The file is complete, or the error has been returned.
    Ended,
}

/// Writes `NAME.csv.zst`, and `NAME.files.csv` next to it.
pub struct Recorder {
    out: Mutex<Out>,
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
        let file = OutputFile::stream(path).map_err(failed)?;
        let encoder = Encoder::new(BufWriter::new(file), 3).map_err(failed)?;
        Ok(Recorder { out: Mutex::new(Out::Open(encoder)), path: path.into(), began: Instant::now() })
    }

    /// Appends a request. Nothing is written any more after an error or [`finish`](Self::finish).
    pub fn record(&self, op: Op, lba: u64, blocks: u64) {
        let letter = match op {
            Op::Read => 'R',
            Op::Write => 'W',
            Op::Discard => 'D',
            Op::Flush => 'F',
        };
        let mut out = self.out.lock();
        let Out::Open(encoder) = &mut *out else { return };
        let written = writeln!(encoder, "{},{letter},{lba},{blocks}", self.began.elapsed().as_micros());
        if let Err(error) = written {
            // What was written before can be read if the stream can still be ended; the first error is returned.
            if let Out::Open(encoder) = std::mem::replace(&mut *out, Out::Failed(error)) {
                let _ = end(encoder);
            }
        }
    }

    /// Ends the file and writes the map of named ranges next to it. An error, also an earlier one, is returned once.
    pub fn finish(&self, ranges: &[NamedRange]) -> Result<()> {
        match std::mem::replace(&mut *self.out.lock(), Out::Ended) {
            Out::Open(encoder) => end(encoder).map_err(|e| self.failed(e))?,
            Out::Failed(error) => return Err(self.failed(error)),
            Out::Ended => return Ok(()),
        }
        let line = |r: &NamedRange| format!("{},{},{},{}\n", r.first_lba, r.blocks, r.name, r.first_block_in_file);
        let name = self.path.to_string_lossy();
        let name = format!("{}.files.csv", name.strip_suffix(".csv.zst").unwrap_or(&name));
        let text: String = ranges.iter().map(line).collect();
        OutputFile::write(Path::new(&name), text.as_bytes()).map_err(|e| DeviceError::io(format!("writing {name}"), e))
    }

    fn failed(&self, source: std::io::Error) -> DeviceError {
        DeviceError::io(format!("recording to {}: the trace is incomplete", self.path.display()), source)
    }
}

fn end(encoder: Encoder) -> std::io::Result<()> {
    encoder.finish().and_then(|mut file| file.flush())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::{Trace, ranges};

    #[test]
    fn what_was_recorded_can_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("runs.csv.zst.d").join("t.csv.zst");
        std::fs::create_dir(path.parent().unwrap()).unwrap();
        let recorder = Recorder::create(&path).unwrap();
        recorder.record(Op::Write, 5, 2);
        recorder.record(Op::Flush, 0, 0);
        let journal = NamedRange { name: "journal".into(), first_lba: 7, blocks: 9, first_block_in_file: 0 };
        recorder.finish(std::slice::from_ref(&journal)).unwrap();
        recorder.record(Op::Read, 1, 1);
        let events: Vec<_> = Trace::open(&path).unwrap().events().unwrap().map(|e| e.unwrap()).collect();
        assert_eq!(
            events.iter().map(|e| (e.op, e.lba, e.blocks)).collect::<Vec<_>>(),
            [(Op::Write, 5, 2), (Op::Flush, 0, 0)]
        );
        assert_eq!(ranges::read_files(&ranges::file_map_of(&path).unwrap()).unwrap(), [journal]);
        assert!(Recorder::create(&folder.path().join("t.csv")).is_err());
    }

    /// A full disk is reported at the end, once, however long ago the write failed.
    #[cfg(target_os = "linux")]
    #[test]
    fn a_full_disk_is_reported_at_the_end() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t.csv.zst");
        std::os::unix::fs::symlink("/dev/full", &path).unwrap();
        let recorder = Recorder::create(&path).unwrap();
        for i in 0..200_000u64 {
            recorder.record(Op::Write, i.wrapping_mul(2_654_435_761) % 1_000_000_007, 1);
        }
        assert!(matches!(*recorder.out.lock(), Out::Failed(_)), "met on the way");
        let error = recorder.finish(&[]).unwrap_err().to_string();
        assert!(error.contains("t.csv.zst: the trace is incomplete"), "{error}");
        recorder.finish(&[]).unwrap();
    }
}
