//! The bytes of a device in memory: the visible bytes, the durable bytes, and the changes between them.

use super::image::Image;
use crate::power_cut::{Guarantees, PendingWrite, SECTOR_BYTES, WriteOutcome, choose_fates};
use fastrand::Rng;
use std::collections::BTreeSet;

#[derive(Default)]
pub(super) struct Bytes {
    pub(super) current: Image,
    pub(super) durable: Image,
    pub(super) unsynced: Vec<Change>,
    /// Blocks that were discarded and not written or reserved since.
    pub(super) holes: BTreeSet<u64>,
    /// Bytes of a limited device that other files use.
    pub(super) others_bytes: u64,
}

pub(super) enum Change {
    Write { offset: usize, data: Vec<u8> },
    SetLen(usize),
}

impl Bytes {
    pub(super) fn durable(image: Image) -> Bytes {
        Bytes { current: image.clone(), durable: image, ..Bytes::default() }
    }

    /// An image that a power cut could leave. It tears no aligned piece of `untorn_bytes` and, if that is more than a
    /// sector, no shorter write.
    pub(super) fn power_cut(&self, untorn_bytes: u32, seed: u64) -> Image {
        let mut random = Rng::with_seed(seed);
        let mut image = self.durable.clone();
        let lens: Vec<usize> = self.unsynced.iter().filter_map(Change::new_len).collect();
        for &len in &lens[..random.usize(..=lens.len())] {
            image.resize(len);
        }
        let writes: Vec<(usize, &[u8])> = self.unsynced.iter().filter_map(Change::written).collect();
        let pending = |(at, data): &(usize, &[u8])| PendingWrite::completed(*at as u64..(at + data.len()) as u64);
        let atomic_anywhere = u64::from(untorn_bytes) > SECTOR_BYTES;
        let guarantees = Guarantees { atomic_write_bytes: untorn_bytes, atomic_anywhere, ..Guarantees::SECTORS };
        let pending: Vec<PendingWrite> = writes.iter().map(pending).collect();
        let fates = choose_fates(&guarantees, &pending, &mut random);
        let mut landing: Vec<_> = writes.into_iter().zip(fates).collect();
        random.shuffle(&mut landing);
        landing.into_iter().for_each(|((at, data), fate)| land(&mut image, at, data, &fate));
        image
    }

    /// The image after a power cut with these outcomes of the unsynced changes.
    pub(super) fn kept(&self, fates: &[WriteOutcome]) -> Image {
        assert_eq!(fates.len(), self.unsynced.len(), "a fate for each change");
        let mut image = self.durable.clone();
        for (change, fate) in self.unsynced.iter().zip(fates) {
            match change {
                Change::SetLen(len) if !fate.is_empty() => image.resize(*len),
                Change::SetLen(_) => {}
                Change::Write { offset, data } => land(&mut image, *offset, data, fate),
            }
        }
        image
    }
}

/// Applies the surviving parts of a write to the image, up to the image's end.
fn land(image: &mut Image, at: usize, data: &[u8], fate: &WriteOutcome) {
    for kept in fate {
        let (from, to) = (kept.start as usize, image.len().min(kept.end as usize));
        if from < to {
            image.write(from, &data[from - at..to - at]);
        }
    }
}

impl Change {
    pub(super) fn is_len(&self) -> bool {
        self.new_len().is_some()
    }

    fn new_len(&self) -> Option<usize> {
        match self {
            Change::SetLen(len) => Some(*len),
            Change::Write { .. } => None,
        }
    }

    /// The bytes of a write; nothing for a length.
    pub(super) fn range(&self) -> std::ops::Range<u64> {
        match self {
            Change::SetLen(len) => *len as u64..*len as u64,
            Change::Write { offset, data } => *offset as u64..(offset + data.len()) as u64,
        }
    }

    fn written(&self) -> Option<(usize, &[u8])> {
        match self {
            Change::Write { offset, data } => Some((*offset, data)),
            Change::SetLen(_) => None,
        }
    }

    pub(super) fn apply(&self, image: &mut Image) {
        match self {
            Change::SetLen(len) => image.resize(*len),
            Change::Write { offset, data } => {
                if image.len() < offset + data.len() {
                    image.resize(offset + data.len());
                }
                image.write(*offset, data);
            }
        }
    }
}
