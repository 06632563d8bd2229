//! The outcome of a power cut for writes that are not durable: a pure function of the device's guarantees, the writes,
//! and random numbers.
//!
//! Terms
//! - A *piece* of a write survives whole or not at all. It is an aligned atomic unit that the write covers, a 512-byte
//!   sector of the rest, or a short write as a whole if the device guarantees that.
//! - A write is *in flight* until it has completed.
//!
//! Rules
//! 1. Without guaranteed order any subset of pieces may survive. With guaranteed order the first writes to complete
//!    survive; the last of them may survive in part.
//! 2. A write in flight is never durable, whatever the device guarantees, and is ordered after all completed writes.
//!    Many writes can be in flight.
//! 3. The same seed gives the same outcome for the same writes.

use fastrand::Rng;
use std::ops::Range;

/// Unit that a power cut does not tear.
pub const SECTOR_BYTES: u64 = 512;
/// Unit that a shorn write damages.
const BLOCK_BYTES: u64 = 4096;

/// The guarantees of a device about writes at a power cut, and the guarantees that it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Guarantees {
    /// An aligned piece of this size (a power of two, 512 or more) survives whole or not at all.
    pub atomic_write_bytes: u32,
    /// A write no longer than the atomic unit survives whole or not at all wherever it begins.
    pub atomic_anywhere: bool,
    /// Completed writes that were not flushed may be lost.
    pub volatile_cache: bool,
    /// The unflushed writes that survive are a prefix in the order of completion.
    pub ordered: bool,
    /// Broken: a 4 KiB block of a write may be left with its first 3/8 or 7/8 new and the rest old.
    pub shorn_writes: bool,
    /// Broken: writes that were flushed may be lost although later ones survive.
    pub unserializable_writes: bool,
}

impl Guarantees {
    /// The only guarantee is that no sector is torn.
    pub const SECTORS: Guarantees = Guarantees {
        atomic_write_bytes: SECTOR_BYTES as u32,
        atomic_anywhere: false,
        volatile_cache: true,
        ordered: false,
        shorn_writes: false,
        unserializable_writes: false,
    };
}

/// A write that a power cut may undo.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingWrite {
    /// Its bytes.
    pub range: Range<u64>,
    /// Whether a flush came after it.
    pub flushed: bool,
    /// Whether it had not completed.
    pub under_way: bool,
    /// Time of its completion, or expected completion.
    pub done_ns: u64,
}

impl PendingWrite {
    /// A write that completed and was not flushed.
    pub fn completed(range: Range<u64>) -> PendingWrite {
        PendingWrite { range, flushed: false, under_way: false, done_ns: 0 }
    }
}

/// The outcome of a write: the byte ranges that survive.
pub type WriteOutcome = Vec<Range<u64>>;

/// Chooses the outcome of each pending write (oldest first) within the guarantees.
pub fn choose_fates(guarantees: &Guarantees, pending: &[PendingWrite], random: &mut Rng) -> Vec<WriteOutcome> {
    // Some cuts tear nothing: all that is pending may survive, or nothing of it.
    let odds =
        CutOdds { survive_in_ten: [0, 1, 5, 9, 10][random.usize(..5)], torn_in_thirty: [0, 3, 10][random.usize(..3)] };
    let prefix = random.usize(..=pending.len());
    let ranks = completion_order(pending);
    let fate = |(i, write): (usize, &PendingWrite)| {
        let i = ranks[i];
        if write.flushed {
            return if guarantees.unserializable_writes && one_in(8, random) { vec![] } else { whole(write) };
        }
        let fate = match guarantees.ordered && guarantees.volatile_cache {
            // A write under way comes after all that completed: it may survive only if they all do.
            true if !write.under_way || i >= prefix => ordered_fate(guarantees, write, i, prefix, random),
            _ => unordered_fate(guarantees, write, odds, random),
        };
        if guarantees.shorn_writes && one_in(4, random) { shear(fate, random) } else { fate }
    };
    pending.iter().enumerate().map(fate).collect()
}

fn one_in(n: u32, random: &mut Rng) -> bool {
    random.u32(..n) == 0
}

/// The rank of each write in the order of completion, for equal times in the order of issue. Writes in flight come
/// after all completed writes.
fn completion_order(pending: &[PendingWrite]) -> Vec<usize> {
    let mut order: Vec<usize> = (0..pending.len()).collect();
    order.sort_by_key(|&n| (pending[n].under_way, pending[n].done_ns));
    let mut ranks = vec![0; pending.len()];
    for (rank, n) in order.into_iter().enumerate() {
        ranks[n] = rank;
    }
    ranks
}

fn whole(write: &PendingWrite) -> WriteOutcome {
    vec![write.range.clone()]
}

fn ordered_fate(
    guarantees: &Guarantees,
    write: &PendingWrite,
    index: usize,
    prefix: usize,
    random: &mut Rng,
) -> WriteOutcome {
    match index.cmp(&prefix) {
        std::cmp::Ordering::Less => whole(write),
        std::cmp::Ordering::Greater => vec![],
        std::cmp::Ordering::Equal => {
            let mut pieces = pieces(&write.range, guarantees);
            pieces.truncate(random.usize(..=pieces.len()));
            pieces
        }
    }
}

/// The probabilities of one cut, for a device without guaranteed order.
#[derive(Clone, Copy)]
struct CutOdds {
    survive_in_ten: u32,
    torn_in_thirty: u32,
}

fn unordered_fate(guarantees: &Guarantees, write: &PendingWrite, odds: CutOdds, random: &mut Rng) -> WriteOutcome {
    if !guarantees.volatile_cache && !write.under_way {
        return whole(write);
    }
    let torn = random.u32(..30) < odds.torn_in_thirty;
    match torn {
        false if random.u32(..10) < odds.survive_in_ten => whole(write),
        false => vec![],
        true => {
            let mut pieces = pieces(&write.range, guarantees);
            pieces.retain(|_| random.bool());
            pieces
        }
    }
}

/// Splits a write into its pieces.
fn pieces(range: &Range<u64>, guarantees: &Guarantees) -> WriteOutcome {
    let atomic = u64::from(guarantees.atomic_write_bytes);
    if guarantees.atomic_anywhere && range.end - range.start <= atomic {
        return std::iter::once(range.clone()).collect();
    }
    let (mut at, mut pieces) = (range.start, Vec::new());
    while at < range.end {
        let unit_fits = at.is_multiple_of(atomic) && at + atomic <= range.end;
        let end = if unit_fits { at + atomic } else { range.end.min((at / SECTOR_BYTES + 1) * SECTOR_BYTES) };
        pieces.push(at..end);
        at = end;
    }
    pieces
}

/// Shears one 4 KiB block of the outcome: only its first 3/8 or 7/8 survive.
fn shear(fate: WriteOutcome, random: &mut Rng) -> WriteOutcome {
    let blocks: Vec<u64> = fate.iter().flat_map(|r| r.start / BLOCK_BYTES..r.end.div_ceil(BLOCK_BYTES)).collect();
    let Some(block) = random.choice(&blocks) else { return fate };
    let keep = if random.bool() { BLOCK_BYTES * 3 / 8 } else { BLOCK_BYTES * 7 / 8 };
    let hole = block * BLOCK_BYTES + keep..(block + 1) * BLOCK_BYTES;
    let cut = |r: Range<u64>| [r.start..r.end.min(hole.start), r.start.max(hole.end)..r.end];
    fate.into_iter().flat_map(cut).filter(|r| r.start < r.end).collect()
}

#[cfg(test)]
#[path = "power_cut_test.rs"]
mod tests;
