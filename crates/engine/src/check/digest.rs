//! The digest of an index: it shows whether the entries match the rows. See [`super`] for the term.

use std::hash::Hasher;

/// Buckets of a digest.
const BUCKETS: usize = 1 << 14;

pub(super) struct Digest {
    sums: Vec<u64>,
    /// Live rows less live entries.
    pub surplus: i64,
}

impl Digest {
    pub(super) fn new() -> Digest {
        Digest { sums: vec![0; BUCKETS], surplus: 0 }
    }

    pub(super) fn add(&mut self, entry: &[u8], prefix_bytes: usize, covered: &[u8]) {
        let hash = hash(entry, prefix_bytes, covered);
        let sum = &mut self.sums[bucket(hash)];
        *sum = sum.wrapping_add(hash);
        self.surplus += 1;
    }

    pub(super) fn take(&mut self, entry: &[u8], prefix_bytes: usize, covered: &[u8]) {
        let hash = hash(entry, prefix_bytes, covered);
        let sum = &mut self.sums[bucket(hash)];
        *sum = sum.wrapping_sub(hash);
        self.surplus -= 1;
    }

    /// Whether rows and entries are the same.
    pub(super) fn is_even(&self) -> bool {
        self.surplus == 0 && self.sums.iter().all(|sum| *sum == 0)
    }

    /// Whether rows and entries differ where this entry is counted.
    pub(super) fn differs_at(&self, entry: &[u8], prefix_bytes: usize, covered: &[u8]) -> bool {
        self.sums[bucket(hash(entry, prefix_bytes, covered))] != 0
    }
}

fn hash(entry: &[u8], prefix_bytes: usize, covered: &[u8]) -> u64 {
    let mut hasher = std::hash::DefaultHasher::new();
    hasher.write(entry);
    hasher.write_usize(prefix_bytes);
    hasher.write(covered);
    hasher.finish()
}

fn bucket(hash: u64) -> usize {
    (hash >> 32) as usize % BUCKETS
}
