//! The LRU list, free frames, and victims.
//!
//! | file | what |
//! |---|---|
//! | `list` | the LRU list with midpoint insertion |
//! | `promote` | noting uses of pages |
//! | `evict` | getting free frames |
//! | `victim` | what happens when the least recently used page is dirty: one file for each policy |

mod evict;
mod list;
mod promote;
mod victim;

use super::{FrameNo, Frames};
use crate::config::Options;
use crate::sync::Mutex;
use crate::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering::Relaxed};
use crate::sync::sharded::CachePadded;
use list::LruList;
pub use victim::Victims;

/// The part of the pool that belongs to this folder.
pub struct LruPart {
    list: CachePadded<Mutex<LruList>>,
    /// Moves to the head of the list so far; the unit of a frame's `young_stamp`.
    clock: CachePadded<AtomicU32>,
    /// The clock as it was lately, which every use of a page reads: it is written seldom.
    published: CachePadded<AtomicU32>,
    /// By how much it may lag behind.
    lag: AtomicU32,
    /// Pool time in milliseconds, moved on by the cleaner; starts at 1.
    now_ms: AtomicU32,
    old_blocks_time_ms: AtomicU32,
    /// Pages that come in while a page passes through the first half of the old part.
    old_arrivals: AtomicU32,
    /// Pages looked at from the tail of the list: the option, within what a pool of this size allows.
    scan_depth: AtomicUsize,
    /// Batches of pages that became clean.
    cleanings: AtomicU32,
    /// The same when the list's cursor was last sent back.
    searched: AtomicU32,
    free_target: AtomicUsize,
    free_frame_timeout_ms: AtomicU64,
    /// Searches for clean victims since a thread without others wrote a page.
    clean_in_a_row: AtomicU32,
    pub victims: Box<dyn Victims>,
}

impl LruPart {
    pub fn new(options: &Options, frames: usize) -> LruPart {
        let scan_depth = options.lru_scan_depth as usize;
        LruPart {
            list: CachePadded(Mutex::new(LruList::new(frames, options.old_blocks_pct as usize))),
            clock: CachePadded(AtomicU32::new(1)),
            published: CachePadded(AtomicU32::new(1)),
            lag: AtomicU32::new(lag_of(frames)),
            now_ms: AtomicU32::new(1),
            old_blocks_time_ms: AtomicU32::new(old_blocks_time_ms(options)),
            old_arrivals: AtomicU32::new(old_arrivals_of(options, frames)),
            scan_depth: AtomicUsize::new(scan_depth_of(options, frames)),
            cleanings: AtomicU32::new(0),
            searched: AtomicU32::new(0),
            free_target: AtomicUsize::new(scan_depth.min(frames / 8).max(4)),
            free_frame_timeout_ms: AtomicU64::new(evict::FREE_FRAME_TIMEOUT_MS),
            clean_in_a_row: AtomicU32::new(0),
            victims: victim::of(options.victim_policy, frames),
        }
    }

    /// Changes what can be changed while the pool is in use; `frames` are those in use.
    pub fn set_options(&self, options: &Options, frames: usize) {
        self.old_blocks_time_ms.store(old_blocks_time_ms(options), Relaxed);
        self.scan_depth.store(scan_depth_of(options, frames), Relaxed);
        self.lag.store(lag_of(frames), Relaxed);
        self.old_arrivals.store(old_arrivals_of(options, frames), Relaxed);
    }

    /// Pages looked at from the tail of the list.
    pub fn scan_depth(&self) -> usize {
        self.scan_depth.load(Relaxed)
    }

    /// Enters a page just read.
    pub fn insert_old(&self, frames: &Frames, frame: FrameNo) {
        self.list.lock().insert_old(frames, frame);
    }

    /// Takes a frame out, if it is on the list.
    pub fn take_out(&self, frames: &Frames, frame: FrameNo) {
        let mut list = self.list.lock();
        if list.contains(frame) {
            list.remove(frames, frame);
        }
    }

    /// Pages became clean: the search for clean ones begins at the tail again.
    pub fn note_cleaned(&self) {
        self.cleanings.fetch_add(1, Relaxed);
    }

    /// Batches of pages that became clean so far.
    fn cleanings(&self) -> u32 {
        self.cleanings.load(Relaxed)
    }
}

fn old_blocks_time_ms(options: &Options) -> u32 {
    u32::try_from(options.old_blocks_time_ms).unwrap_or(u32::MAX)
}

fn lag_of(frames: usize) -> u32 {
    (frames / 64) as u32
}

fn old_arrivals_of(options: &Options, frames: usize) -> u32 {
    (frames as u64 * options.old_blocks_pct / 100 / 2) as u32
}

/// The option, within what a pool of this size allows.
fn scan_depth_of(options: &Options, frames: usize) -> usize {
    (options.lru_scan_depth as usize).min(frames / 4).max(8)
}
