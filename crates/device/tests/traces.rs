//! Recorded writes of a MySQL (`traces/README.md`) on a device of 2 GiB: the replay must agree with a second model,
//! written here as plainly as can be (one table, linear search), and with the figures it gave before.
//!
//! Both models: page map at 4 KiB, units of 1,024 slots, 15 % spare, greedy, filled once, three passes, copies stay in
//! their stream. What they may differ in: when collection starts (the replay keeps a unit in reserve).

use highwater_device::replay::{self, ReplayOptions};
use highwater_device::trace::Trace;
use std::path::PathBuf;

const CAPACITY: usize = 524_288;
const SLOTS: usize = 1024;
const PASSES: u32 = 3;
const JOURNAL: std::ops::Range<usize> = 262_144..264_192;

fn path(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/traces").join(name)
}

/// A unit: the blocks written into it in order, and how many of them are current.
#[derive(Clone, Default)]
struct Unit {
    blocks: Vec<u32>,
    valid: usize,
    stream: usize,
}

/// The plain model.
struct Plain {
    units: Vec<Unit>,
    place: Vec<Option<usize>>,
    /// By stream: the unit the host fills, and the unit copies fill.
    open: [[Option<usize>; 2]; 2],
    free: Vec<usize>,
    media: u64,
}

impl Plain {
    fn new() -> Plain {
        let units = (CAPACITY as f64 * 1.15 / SLOTS as f64).ceil() as usize;
        Plain {
            units: vec![Unit::default(); units],
            place: vec![None; CAPACITY],
            open: [[None; 2]; 2],
            free: (0..units).collect(),
            media: 0,
        }
    }

    fn write(&mut self, lba: usize, stream: usize) {
        self.put(lba, stream, 0);
        while self.free.len() < 2 {
            self.collect();
        }
    }

    fn put(&mut self, lba: usize, stream: usize, copies: usize) {
        let open = self.open[stream][copies].filter(|u| self.units[*u].blocks.len() < SLOTS);
        let unit = open.unwrap_or_else(|| self.free.pop().expect("collection keeps units free"));
        self.open[stream][copies] = Some(unit);
        if let Some(old) = self.place[lba].replace(unit) {
            self.units[old].valid -= 1;
        }
        let unit = &mut self.units[unit];
        unit.stream = stream;
        unit.blocks.push(lba as u32);
        unit.valid += 1;
        self.media += 1;
    }

    /// The full unit with the fewest current blocks.
    fn collect(&mut self) {
        let is_full = |u: &usize| self.units[*u].blocks.len() == SLOTS;
        let victim = (0..self.units.len()).filter(is_full).min_by_key(|u| self.units[*u].valid).expect("a full unit");
        let Unit { blocks, stream, .. } = self.units[victim].clone();
        let mut kept: Vec<u32> = blocks.into_iter().filter(|b| self.place[*b as usize] == Some(victim)).collect();
        kept.sort_unstable();
        kept.dedup();
        for lba in kept {
            self.put(lba as usize, stream, 1);
        }
        self.units[victim] = Unit::default();
        self.free.push(victim);
    }
}

/// Write amplification of the last pass in the plain model.
fn plain(name: &str, journal_apart: bool) -> f64 {
    let stream = |lba: usize| usize::from(journal_apart && JOURNAL.contains(&lba));
    let mut model = Plain::new();
    (0..CAPACITY).for_each(|lba| model.write(lba, stream(lba)));
    let mut waf = 0.0;
    for _ in 0..PASSES {
        let (before, mut host) = (model.media, 0u64);
        for event in Trace::open(path(name)).unwrap().events().unwrap() {
            let event = event.unwrap();
            for lba in event.lba as usize..(event.lba + event.blocks) as usize {
                model.write(lba, stream(lba));
                host += 1;
            }
        }
        waf = (model.media - before) as f64 / host as f64;
    }
    waf
}

fn replayed(name: &str, journal_apart: bool) -> f64 {
    let mut options = ReplayOptions::on_preset(path(name), "simple-2gb").unwrap();
    options.passes = PASSES;
    options.ranges = vec!["journal=262144+2048".parse().unwrap()];
    if journal_apart {
        options.rules = vec!["1=journal".parse().unwrap()];
    }
    replay::run(&options, &mut |_| {}).unwrap().totals.write_amplification
}

/// Both models within 3 %, and the replay as it was.
fn check(name: &str, journal_apart: bool, expected: f64) -> f64 {
    let (ours, plain) = (replayed(name, journal_apart), plain(name, journal_apart));
    assert!(
        (ours / plain - 1.0).abs() < 0.03,
        "{name}, journal apart: {journal_apart}: {ours:.4}, plain model {plain:.4}"
    );
    assert!((ours / expected - 1.0).abs() < 0.005, "{name}, journal apart: {journal_apart}: {ours:.4}, was {expected}");
    ours
}

#[test]
fn recorded_writes_amplify_as_in_a_plain_model() {
    let ordered = check("tpcc-ordered-j8-dwb-head.csv.zst", false, 2.0506);
    let data = check("tpcc-data-j8-head.csv.zst", false, 1.8456);
    let apart = check("tpcc-data-j8-head.csv.zst", true, 1.5324);
    assert!(apart < data * 0.97, "a journal in a stream of its own: {apart:.3}, {data:.3}; ordered {ordered:.3}");
}
