//! The state of appending: the groups' open segments, and the sequences of batches. The rules are those of
//! [`super::append`].

use super::format::{self, GroupTails, ImageEntry, MAX_IMAGES, Tail, batch_bytes};
use super::lifetime::GROUPS;
use super::map::Location;
use super::segments::{Move, Victim};
use crate::sync::Mutex;
use crate::types::{Lsn, PageNo};
use highwater_storage::{AlignedBuf, Placement};
use std::collections::BTreeMap;

/// Sequences that each opening skips. Of the batches in flight at a power cut a later one may be on the device in a
/// segment that begins with a lost one: its sequence is then unknown, and must not be reused.
const UNKNOWN: u64 = 4096;

/// An image in flight: `bytes` from `at` in some buffer.
#[derive(Clone, Copy, Debug)]
pub(super) struct PageImage {
    pub page_no: PageNo,
    pub lsn: Lsn,
    pub at: usize,
    pub bytes: usize,
    /// The location from which the cleaner copied it; `None` for a new image.
    pub from: Option<Location>,
}

impl PageImage {
    pub(super) fn entry(&self, source: &[u8]) -> ImageEntry {
        let sum = format::sum_of(&source[self.at..self.at + self.bytes]);
        ImageEntry { page_no: self.page_no, bytes: self.bytes, sum, lsn: self.lsn }
    }
}

/// The source of appended images: flush or cleaner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AppendSource {
    Flush,
    Cleaner,
}

/// Appended batches that are not yet synced.
#[derive(Default)]
pub(super) struct Appended {
    pub moves: Vec<Move>,
    /// The group of each batch, and the batch as that group's tail.
    pub(super) tails: Vec<(usize, Tail)>,
    /// Segments whose live images were copied.
    pub victims: Vec<Victim>,
}

impl Appended {
    /// Number of appended batches.
    pub(super) fn batches(&self) -> usize {
        self.tails.len()
    }

    /// The segment of each batch, and each segment that was held to be cleaned.
    pub(super) fn segments(&self) -> impl Iterator<Item = u32> {
        let batches = self.tails.iter().map(|(_, batch)| batch.segment);
        batches.chain(self.victims.iter().map(|victim| victim.segment))
    }
}

/// A segment that batches are appended to.
pub(super) struct OpenSegment {
    pub(super) segment: u32,
    pub(super) placement: Placement,
    /// 0 before its first batch.
    pub(super) life: u64,
    /// Sequences of its last batch but one, and of its last.
    pub(super) sequences: [u64; 2],
    /// The sequence up to which its last header calls batches durable.
    pub(super) durable: u64,
    /// Offset of the next batch.
    pub(super) at: usize,
    pub(super) summary: Vec<u8>,
}

/// A group: its open segment, and memory for its batches.
#[derive(Default)]
pub(super) struct AppendGroup {
    pub(super) open: Option<OpenSegment>,
    pub(super) buffer: AlignedBuf,
}

/// The groups' open segments.
pub(super) struct Appender {
    pub(super) groups: [Mutex<AppendGroup>; GROUPS],
    pub(super) sequences: Mutex<Sequences>,
}

pub(super) struct Sequences {
    /// Of the next batch.
    next: u64,
    /// Of batches that are not synced, with their groups.
    unsynced: BTreeMap<u64, usize>,
    pub(super) tails: GroupTails,
    /// Every batch up to this sequence is durable, if it was ever written.
    durable: u64,
}

impl Appender {
    /// For a store whose newest batch is `newest`, all of whose segments have their footers, and whose headers call
    /// what is up to `durable` so.
    pub(super) fn new(newest: u64, durable: u64) -> Appender {
        let tails = GroupTails::default();
        let sequences = Mutex::new(Sequences { next: newest + UNKNOWN + 1, unsynced: BTreeMap::new(), tails, durable });
        Appender { groups: Default::default(), sequences }
    }

    /// Sequence of the newest batch.
    pub(super) fn newest(&self) -> u64 {
        self.sequences.lock().next - 1
    }

    pub(super) fn newest_and_tails(&self) -> (u64, GroupTails) {
        let sequences = self.sequences.lock();
        (sequences.next - 1, sequences.tails)
    }

    /// Sequence up to which every batch is durable.
    pub(super) fn durable(&self) -> u64 {
        self.sequences.lock().durable
    }
}

impl Sequences {
    /// The sequence of a new batch, and what its header calls durable.
    pub(super) fn begin(&mut self, group: usize) -> (u64, u64, GroupTails) {
        let sequence = self.next;
        debug_assert!(self.durable <= self.synced(), "{} is durable, {} is synced", self.durable, self.synced());
        debug_assert!(self.tails[group].sequence < sequence, "sequence {sequence} is not the newest of its group");
        self.next += 1;
        self.unsynced.insert(sequence, group);
        (sequence, self.synced(), self.tails)
    }

    fn synced(&self) -> u64 {
        self.unsynced.keys().next().unwrap_or(&self.next) - 1
    }

    /// Notes that batches are durable, and with each those of its group before it (rule 1): their writes had ended when
    /// the sync began.
    pub(super) fn end(&mut self, done: &[(usize, Tail)]) {
        let before = self.durable;
        for (group, tail) in done {
            self.unsynced.retain(|sequence, of| of != group || *sequence > tail.sequence);
            // Another thread may have synced a later one before.
            if self.tails[*group].sequence < tail.sequence {
                debug_assert!(tail.sequence < self.next, "batch {} is synced before it is begun", tail.sequence);
                self.tails[*group] = *tail;
            }
        }
        // A crash may have left a gap before the first batch since the opening; its header calls that durable.
        if !done.is_empty() {
            self.durable = self.synced();
            debug_assert!(before <= self.durable, "rule 3: {} was durable after {before}", self.durable);
        }
    }
}

impl OpenSegment {
    pub(super) fn new(segment: u32, placement: Placement) -> OpenSegment {
        OpenSegment { segment, placement, life: 0, sequences: [0; 2], durable: 0, at: 0, summary: Vec::new() }
    }

    /// Number of the images that fit into the segment as one batch, with their list at the segment's end.
    pub(super) fn fitting(&self, images: &[PageImage], segment_bytes: usize) -> usize {
        let mut bytes = 0;
        let fits = |(n, image): &(usize, &PageImage)| {
            bytes += image.bytes;
            let end = format::end_bytes(self.summary.len() + format::summary_bytes(n + 1));
            self.at + batch_bytes(n + 1, bytes) + end <= segment_bytes
        };
        images.iter().take(MAX_IMAGES).enumerate().take_while(fits).count()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_takes_as_many_images_as_fit() {
        let image = PageImage { page_no: PageNo(1), lsn: Lsn(1), at: 0, bytes: 4096, from: None };
        let images = [image; 300];
        let mut open = OpenSegment::new(1, Placement::Lifetime0);
        let fitting = |open: &OpenSegment, images: &[PageImage], segment: usize| open.fitting(images, segment);
        let end = 4096;
        assert_eq!(fitting(&open, &images, end + 4096), 0);
        assert_eq!(fitting(&open, &images, end + 8192), 1);
        assert_eq!(fitting(&open, &images, end + 3 * 4096), 2);
        assert_eq!(fitting(&open, &images, 4 << 20), MAX_IMAGES);
        assert_eq!(fitting(&open, &images[..5], 4 << 20), 5);
        (open.at, open.summary) = (8192, vec![0; 4096 - 168]);
        assert_eq!(fitting(&open, &images, 8192 + end + 3 * 4096), 1, "the summary needs another block");
    }

    #[test]
    fn a_header_calls_durable_what_lies_below_every_unsynced_batch() {
        let tails = GroupTails::default();
        let mut sequences = Sequences { next: 8, unsynced: BTreeMap::new(), tails, durable: 5 };
        let tail = |group, sequence| (group, Tail { segment: sequence as u32 + 100, sequence });
        assert_eq!(sequences.begin(1), (8, 7, tails));
        assert_eq!(sequences.begin(2), (9, 7, tails));
        sequences.end(&[]);
        assert_eq!(sequences.durable, 5, "6 and 7 were never written");
        sequences.end(&[tail(1, 8)]);
        let (sequence, durable, newest) = sequences.begin(1);
        assert_eq!((sequence, durable, newest[1], sequences.durable), (10, 8, tail(1, 8).1, 8));
        sequences.end(&[tail(1, 10)]);
        let (sequence, durable, newest) = sequences.begin(1);
        assert_eq!((sequence, durable, newest[1]), (11, 8, tail(1, 10).1), "9 is another group's");
        sequences.end(&[tail(2, 9), tail(1, 11)]);
        let (sequence, durable, newest) = sequences.begin(1);
        assert_eq!((sequence, durable, newest[1], newest[0]), (12, 11, tail(1, 11).1, Tail::default()));
        sequences.begin(1);
        sequences.end(&[tail(1, 13)]);
        assert_eq!(sequences.durable, 13, "12 was written before 13 was");
    }
}
