//! What the doublewrite file and the redo log cost an SSD in streams of their own, and what discards spare.
//!
//! Greedy garbage collection takes the emptiest unit of all streams. So it takes a unit of blocks that die soon as
//! soon as that is emptier than the units of the pages, which live long, and copies blocks that were about to die.
//! Three things make the units of these streams half empty: a small batch overwrites only the head of its area, a
//! commit writes the log's last block again, and the ring dies block by block. A device without a stream of pages
//! has empty units enough, and copies nothing.
//!
//! With discards, copies of pages die together once the pages are in their places, and redo once a checkpoint has
//! passed it.

use fastrand::Rng;
use highwater_device::model::{BlockModel, Request};
use highwater_device::ssd::Ssd;
use highwater_device::ssd::config::SsdConfig;

/// `simple-2gb` at 768 MiB.
const CAPACITY: u32 = 196_608;
const UNIT: u32 = 384;
/// Pages of 16 KiB.
const PAGE: u32 = 4;
const BATCH_PAGES: u32 = 128;
/// A directory and the pages.
const AREA: u32 = 1 + BATCH_PAGES * PAGE;
/// Redo of 64 MiB.
const RING: u64 = 64 << 8;
/// Blocks of the ring between checkpoint and end.
const AGE: u64 = RING / 2;
/// Blocks of the ring discarded at once.
const CHUNK: u64 = RING / 16;
const DOUBLEWRITE: u32 = RING as u32;
const DATA: u32 = DOUBLEWRITE + 2 * AREA;
/// Bytes of redo in a block.
const REDO_BYTES: u32 = 4080;

const PAGES: u8 = 0;
const REDO: u8 = 1;
const COPIES: u8 = 2;

/// Which streams are written, and whether what is not needed is discarded.
#[derive(Clone, Copy)]
struct Load {
    pages: bool,
    redo: bool,
    doublewrite: bool,
    discards: bool,
}

const ALL: Load = Load { pages: true, redo: true, doublewrite: true, discards: false };

struct Rig {
    ssd: Ssd,
    rng: Rng,
    load: Load,
    /// The log's last block, and bytes in it.
    block: u64,
    filled: u32,
    /// Blocks of redo discarded so far.
    discarded: u64,
    /// The lane whose batch is not in its places yet, and its blocks.
    unfinished: Option<(u32, u32)>,
}

impl Rig {
    /// Every block is written once in the stream of the pages, then the log is created.
    fn new(load: Load) -> Rig {
        let ssd = Ssd::new(SsdConfig::simple(CAPACITY, 0.15, UNIT), false).unwrap();
        let (block, filled, discarded, unfinished) = (0, 0, 0, None);
        let mut rig = Rig { ssd, rng: Rng::with_seed(3), load, block, filled, discarded, unfinished };
        (0..CAPACITY).for_each(|lba| rig.write(lba, 1, PAGES));
        rig.write(0, RING as u32, REDO);
        rig
    }

    fn write(&mut self, lba: u32, blocks: u32, stream: u8) {
        self.ssd.submit(0, &Request::write(lba, blocks, stream)).unwrap();
    }

    fn exponential(&mut self, mean: f64) -> u32 {
        1 + (-mean * (1.0 - self.rng.f64()).ln()) as u32
    }

    /// Writes the log's last block and those after it, as far as a commit reaches; the checkpoint follows.
    fn commit(&mut self) {
        let end = self.filled + self.exponential(2700.0);
        for _ in 0..end.div_ceil(REDO_BYTES) {
            self.write((self.block % RING) as u32, 1, REDO);
            self.block += 1;
        }
        self.filled = end % REDO_BYTES;
        self.block -= u64::from(self.filled > 0);
        if self.load.discards && self.block >= self.discarded + AGE + CHUNK {
            let lba = (self.discarded % RING) as u32;
            self.ssd.submit(0, &Request::discard(lba, CHUNK as u32)).unwrap();
            self.discarded += CHUNK;
        }
    }

    /// Writes a batch to the area of one of two lanes. The lanes do not wait for each other: the other one's batch gets
    /// to its places meanwhile.
    fn copy(&mut self, pages: u32) {
        let (lane, blocks) = (self.rng.u32(..2), 1 + pages * PAGE);
        if self.unfinished.is_some_and(|(unfinished, _)| unfinished == lane) {
            self.finish();
        }
        self.write(DOUBLEWRITE + lane * AREA, blocks, COPIES);
        self.finish();
        self.unfinished = Some((lane, blocks));
    }

    fn finish(&mut self) {
        if let Some((lane, blocks)) = self.unfinished.take().filter(|_| self.load.discards) {
            self.ssd.submit(0, &Request::discard(DOUBLEWRITE + lane * AREA + 1, blocks - 1)).unwrap();
        }
    }

    /// The redo of some pages, their copies, and the pages, at random in six tenths of the data.
    fn round(&mut self) {
        let pages = self.exponential(24.0).min(BATCH_PAGES);
        if self.load.redo {
            (0..pages.div_ceil(3)).for_each(|_| self.commit());
        }
        if self.load.doublewrite {
            self.copy(pages);
        }
        for _ in 0..if self.load.pages { pages } else { 0 } {
            let page = self.rng.u32(..(CAPACITY - DATA) / PAGE * 6 / 10);
            self.write(DATA + page * PAGE, PAGE, PAGES);
        }
    }

    fn write_times_the_capacity(&mut self, times: u64) {
        let end = self.ssd.counters().host_blocks() + times * u64::from(CAPACITY);
        while self.ssd.counters().host_blocks() < end {
            self.round();
        }
    }
}

/// Write amplification by stream, and of all.
fn measure(load: Load) -> ([f64; 3], f64) {
    let mut rig = Rig::new(load);
    rig.write_times_the_capacity(3);
    let start = rig.ssd.counters();
    rig.write_times_the_capacity(3);
    let counters = rig.ssd.counters().since(&start);
    let by_stream = [PAGES, REDO, COPIES].map(|stream| counters.streams[stream as usize].write_amplification());
    (by_stream, counters.write_amplification())
}

#[test]
fn redo_or_doublewrite_alone_on_the_device_cost_nothing() {
    let redo = measure(Load { pages: false, doublewrite: false, ..ALL });
    let doublewrite = measure(Load { pages: false, redo: false, ..ALL });
    assert!(redo.1 < 1.01 && doublewrite.1 < 1.01, "{redo:?} {doublewrite:?}");
}

#[test]
fn discards_of_redo_save_most_of_their_cost_when_pages_share_the_device() {
    let (without, all_without) = measure(ALL);
    let (with, all_with) = measure(Load { discards: true, ..ALL });
    let figures = format!("without {without:.2?}, all {all_without:.2}; with {with:.2?}, all {all_with:.2}");
    println!("{figures}");
    let [pages, redo, copies] = [0, 1, 2].map(|stream| (with[stream] - 1.0) / (without[stream] - 1.0));
    assert!(without[1] > 1.8 && without[2] > 1.6, "{figures}");
    // What is left: blocks written again by the next commit, and batches on their way.
    assert!(redo < 0.55 && copies < 0.4, "{figures}");
    assert!(pages < 0.8 && all_with < 0.8 * all_without, "room that holds nothing is spare for the pages: {figures}");
}
