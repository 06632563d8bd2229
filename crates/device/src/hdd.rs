//! The emulated hard disk: seek curve, rotation, zoned transfer, and a write cache that is emptied in elevator order.
//!
//! Rules
//! 1. The arm is at the end of the last media access; the platter's angle follows from the time alone.
//! 2. A seek over a share d of the stroke takes `a + b*sqrt(d) + c*d` (Ruemmler and Wilkes, "An Introduction to Disk
//!    Drive Modeling", IEEE Computer 1994: square root for short seeks, linear for long ones), fitted to the
//!    track-to-track, average (d = 1/3) and full-stroke times.
//! 3. Outer tracks come first and are faster; speed falls linearly over the stroke.
//! 4. An access that begins where the last one ended neither seeks nor waits if it is a read (read-ahead) or if it
//!    starts no later than the last one ended (streaming; track skew). A later write waits until its sector is below
//!    the head again.
//! 5. With the write cache on, a write completes when the cache has space. The cache is emptied upwards from the arm
//!    (one-way elevator): in idle time from the moment a block has come, when full, and at a flush. Reads come before
//!    what waits in the cache; blocks in the cache are read from there.

use crate::error::{DeviceError, Result};
use crate::model::{BlockModel, Op, Request, Wear};
use crate::preset::Basis::{Assumed, Published};
use crate::preset::Source;
use crate::promises::Promises;
use crate::ssd::counters::Counters;
use crate::ssd::geometry::BLOCK_BYTES;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// The parameters of a hard disk.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HddConfig {
    /// Name in reports.
    pub name: String,
    /// Size in 4 KiB blocks.
    pub capacity_blocks: u32,
    /// Revolutions per minute.
    pub rpm: u32,
    /// Seek to the next track.
    pub track_seek_ns: u64,
    /// Seek over a third of the stroke.
    pub average_seek_ns: u64,
    /// Seek over the whole stroke.
    pub full_seek_ns: u64,
    /// Media speed of the outermost track, decimal megabytes per second.
    pub outer_mb_per_s: u32,
    /// Media speed of the innermost track, decimal megabytes per second.
    pub inner_mb_per_s: u32,
    /// 4 KiB blocks of write cache; 0 switches it off.
    pub cache_blocks: u32,
    /// Interface speed, decimal megabytes per second.
    pub link_mb_per_s: u32,
    /// Controller time of a command.
    pub command_ns: u64,
    /// The device's promises about power cuts.
    pub promises: Promises,
}

impl HddConfig {
    /// The same disk cut down to `capacity_blocks`: seeks stay those of the whole stroke, the cache shrinks in
    /// proportion.
    pub fn scaled_to(mut self, capacity_blocks: u32) -> HddConfig {
        let ratio = f64::from(capacity_blocks) / f64::from(self.capacity_blocks);
        self.cache_blocks = ((f64::from(self.cache_blocks) * ratio) as u32).max(self.cache_blocks.min(256));
        self.capacity_blocks = capacity_blocks;
        self
    }

    /// Whether the values make sense.
    pub fn validate(&self) -> Result<()> {
        self.promises.validate()?;
        let seeks_grow = self.track_seek_ns <= self.average_seek_ns && self.average_seek_ns <= self.full_seek_ns;
        let speeds = self.outer_mb_per_s >= self.inner_mb_per_s && self.inner_mb_per_s > 0 && self.link_mb_per_s > 0;
        if self.capacity_blocks == 0 || self.rpm == 0 || !seeks_grow || !speeds {
            let what = format!("hard disk {}: capacity, rpm and speeds must be positive, seeks must grow", self.name);
            return Err(DeviceError::Config(what));
        }
        if self.full_seek_ns.max(self.command_ns) > MAX_NS {
            let what = format!("hard disk {}: a seek or a command takes more than a minute", self.name);
            return Err(DeviceError::Config(what));
        }
        Ok(())
    }
}

/// Maximum of the times in a configuration: sums of longer times could overflow in a long replay.
const MAX_NS: u64 = 60_000_000_000;

/// Western Digital WD10EZEX, 1 TB: the hard disk of the `insert-buffer` document.
pub fn wd10ezex() -> HddConfig {
    HddConfig {
        name: "wd10ezex-1tb".into(),
        capacity_blocks: 244_190_646,
        rpm: 7200,
        track_seek_ns: 1_000_000,
        average_seek_ns: 8_900_000,
        full_seek_ns: 18_000_000,
        outer_mb_per_s: 180,
        inner_mb_per_s: 85,
        cache_blocks: 8192,
        link_mb_per_s: 550,
        command_ns: 100_000,
        promises: Promises { atomic_write_bytes: 4096, ..Promises::default() },
    }
}

/// The sources of the values of [`wd10ezex`].
pub const SOURCES_WD10EZEX: &[Source] = &[
    Source("capacity_blocks", Published, "1 TB (maker's listing); in sectors by IDEMA's rule LBA1-03: 1,953,525,168"),
    Source("rpm", Published, "maker's listing of WD10EZEX: 7200 rpm, SATA 6 Gb/s, 64 MB cache"),
    Source("track_seek_ns", Assumed, "typical for desktop disks; the listing has no seek times"),
    Source("average_seek_ns", Assumed, "usual for desktop disks of 7200 rpm: 8.5 to 9 ms"),
    Source("full_seek_ns", Assumed, "twice the average, as in data sheets that list both"),
    Source("outer_mb_per_s", Assumed, "one platter of 1 TB at 7200 rpm: about 180 MB/s outside"),
    Source("inner_mb_per_s", Assumed, "a little under half of the outside, as on disks that list both"),
    Source("cache_blocks", Assumed, "half of the 64 MB for writes"),
    Source("link_mb_per_s", Published, "maker's listing: SATA 6 Gb/s; less coding and frames"),
    Source("command_ns", Assumed, "firmware time of a desktop disk"),
    Source("promises", Assumed, "4 KiB physical sectors, volatile cache"),
];

/// A 7200 rpm SATA disk of the time of the `flush-method` document.
pub fn sata_7200rpm() -> HddConfig {
    HddConfig {
        name: "sata-7200rpm-500gb".into(),
        capacity_blocks: 122_096_646,
        rpm: 7200,
        track_seek_ns: 1_000_000,
        average_seek_ns: 8_500_000,
        full_seek_ns: 17_000_000,
        outer_mb_per_s: 65,
        inner_mb_per_s: 31,
        cache_blocks: 2048,
        link_mb_per_s: 270,
        command_ns: 200_000,
        promises: Promises { atomic_write_bytes: 512, ..Promises::default() },
    }
}

/// The sources of the values of [`sata_7200rpm`].
pub const SOURCES_SATA_7200: &[Source] = &[
    Source(
        "capacity_blocks",
        Published,
        "500 GB (Deskstar 7K500, techreport.com review 8752); in sectors by IDEMA's rule LBA1-03: 976,773,168",
    ),
    Source("rpm", Published, "the document: SATA HDD, 7200 rpm"),
    Source("track_seek_ns", Assumed, "usual for desktop disks of the time"),
    Source("average_seek_ns", Published, "Deskstar 7K500: 8.5 ms (techreport.com review 8752)"),
    Source("full_seek_ns", Assumed, "twice the average"),
    Source("outer_mb_per_s", Published, "Deskstar 7K500 specification, table 10: 64.8 MB/s sustained in zone 0"),
    Source("inner_mb_per_s", Published, "Deskstar 7K500 specification, table 10: 31.0 MB/s sustained in zone 29"),
    Source("cache_blocks", Assumed, "half of the 16 MB (Deskstar 7K500, techreport.com review 8752) for writes"),
    Source("link_mb_per_s", Published, "Deskstar 7K500: 300 MB/s (its specification, table 10); less frames"),
    Source("command_ns", Assumed, "firmware time of a desktop disk"),
    Source("promises", Assumed, "512-byte sectors, volatile cache"),
];

/// An emulated hard disk.
pub struct Hdd {
    config: HddConfig,
    timed: bool,
    /// Coefficients of the seek curve: constant, square-root, linear.
    curve: (f64, f64, f64),
    revolution_ns: f64,
    busy_until: u64,
    /// Block at which the last media access ended.
    arm: u32,
    /// Time at which it ended.
    arm_since: u64,
    /// Blocks waiting in the write cache.
    dirty: BTreeSet<u32>,
    /// Time at which the first block entered the empty cache.
    dirty_since: u64,
    counters: Counters,
}

impl Hdd {
    /// An idle disk, arm outside. With `timed`, requests take time.
    pub fn new(config: HddConfig, timed: bool) -> Result<Hdd> {
        config.validate()?;
        Ok(Hdd {
            curve: seek_curve(&config),
            revolution_ns: 60e9 / f64::from(config.rpm),
            timed,
            busy_until: 0,
            arm: 0,
            arm_since: 0,
            dirty: BTreeSet::new(),
            dirty_since: 0,
            counters: Counters::default(),
            config,
        })
    }

    /// Time to move the arm over a share of the stroke.
    pub fn seek_ns(&self, share: f64) -> u64 {
        let (a, b, c) = self.curve;
        if share <= 0.0 { 0 } else { (a + b * share.sqrt() + c * share) as u64 }
    }

    /// Position of a block's track as a share of the stroke: 0 outermost, 1 innermost.
    fn radius(&self, lba: u32) -> f64 {
        let (outer, inner) = (f64::from(self.config.outer_mb_per_s), f64::from(self.config.inner_mb_per_s));
        let share = f64::from(lba) / f64::from(self.config.capacity_blocks);
        if outer - inner < 1e-9 {
            return share;
        }
        let root = (outer * outer - (outer - inner) * (outer + inner) * share).max(0.0).sqrt();
        (outer - root) / (outer - inner)
    }

    fn media_ns_per_byte(&self, radius: f64) -> f64 {
        let (outer, inner) = (f64::from(self.config.outer_mb_per_s), f64::from(self.config.inner_mb_per_s));
        1000.0 / (outer - (outer - inner) * radius)
    }

    /// Returns the time at which a media access that may start at `from` has transferred its blocks. Moves the arm.
    fn access(&mut self, op: Op, from: u64, lba: u32, blocks: u32) -> u64 {
        let radius = self.radius(lba);
        let per_byte = self.media_ns_per_byte(radius);
        let mut at = from;
        let goes_on = lba == self.arm && (op == Op::Read || from <= self.arm_since);
        if !goes_on {
            at += self.seek_ns((radius - self.radius(self.arm)).abs());
            let track_bytes = self.revolution_ns / per_byte;
            let target = (f64::from(lba) * f64::from(BLOCK_BYTES) / track_bytes).fract();
            let angle = (at as f64 / self.revolution_ns).fract();
            at += ((target - angle).rem_euclid(1.0) * self.revolution_ns) as u64;
        }
        self.arm = lba + blocks;
        self.arm_since = at + (f64::from(blocks) * f64::from(BLOCK_BYTES) * per_byte) as u64;
        self.arm_since
    }

    fn link_ns(&self, blocks: u32) -> u64 {
        u64::from(blocks) * u64::from(BLOCK_BYTES) * 1000 / u64::from(self.config.link_mb_per_s)
    }

    /// Writes the next run of waiting blocks, upwards from the arm, starting at `from` or when they entered the cache,
    /// whichever is later; returns its end.
    fn destage(&mut self, from: u64) -> u64 {
        let next = self.dirty.range(self.arm..).next().or_else(|| self.dirty.first()).copied();
        let Some(first) = next else { return from };
        let mut blocks = 0;
        while blocks < 2048 && self.dirty.remove(&(first + blocks)) {
            blocks += 1;
        }
        self.access(Op::Write, from.max(self.dirty_since), first, blocks)
    }

    /// Destages blocks in the idle time before `now`.
    fn use_idle_time(&mut self, now: u64) {
        while !self.dirty.is_empty() && self.busy_until.max(self.dirty_since) < now {
            self.busy_until = self.destage(self.busy_until);
        }
    }

    fn write(&mut self, now: u64, lba: u32, blocks: u32) -> u64 {
        let arrived = now + self.config.command_ns + self.link_ns(blocks);
        if self.config.cache_blocks == 0 {
            self.busy_until = self.access(Op::Write, arrived.max(self.busy_until), lba, blocks);
            return self.busy_until;
        }
        let mut done = arrived;
        while self.dirty.len() as u32 + blocks > self.config.cache_blocks.max(blocks) {
            self.busy_until = self.destage(self.busy_until.max(now));
            done = done.max(self.busy_until);
        }
        if self.dirty.is_empty() {
            self.dirty_since = arrived;
        }
        self.dirty.extend(lba..lba + blocks);
        done
    }

    fn read(&mut self, now: u64, lba: u32, blocks: u32) -> u64 {
        let start = now + self.config.command_ns;
        if (lba..lba + blocks).all(|lba| self.dirty.contains(&lba)) {
            return start + self.link_ns(blocks);
        }
        self.busy_until = self.access(Op::Read, start.max(self.busy_until), lba, blocks);
        self.busy_until + self.link_ns(1)
    }

    fn flush(&mut self, now: u64) -> u64 {
        if self.config.promises.faults.lying_flush {
            return now + self.config.command_ns;
        }
        self.busy_until = self.busy_until.max(now + self.config.command_ns);
        while !self.dirty.is_empty() {
            self.busy_until = self.destage(self.busy_until);
        }
        self.busy_until
    }

    fn count(&mut self, request: &Request) {
        let blocks = u64::from(request.blocks);
        match request.op {
            Op::Write => {
                self.counters.accepted_blocks += blocks;
                self.counters.streams[0].host_blocks += blocks;
            }
            Op::Read => self.counters.read_blocks += blocks,
            Op::Flush => self.counters.flushes += 1,
            Op::Discard => {}
        }
    }
}

impl BlockModel for Hdd {
    fn capacity_blocks(&self) -> u32 {
        self.config.capacity_blocks
    }

    fn streams(&self) -> u8 {
        1
    }

    fn submit(&mut self, now_ns: u64, request: &Request) -> Result<u64> {
        let (lba, blocks) = (u64::from(request.lba), u64::from(request.blocks));
        if lba + blocks > u64::from(self.config.capacity_blocks) {
            return Err(DeviceError::OutOfRange { lba, blocks, capacity_blocks: self.config.capacity_blocks.into() });
        }
        if request.stream > 0 {
            return Err(DeviceError::NoSuchStream { stream: request.stream.into(), streams: 1 });
        }
        self.count(request);
        if !self.timed {
            return Ok(now_ns);
        }
        self.use_idle_time(now_ns);
        Ok(match request.op {
            Op::Write => self.write(now_ns, request.lba, request.blocks),
            Op::Read => self.read(now_ns, request.lba, request.blocks),
            Op::Flush => self.flush(now_ns),
            Op::Discard => now_ns + self.config.command_ns,
        })
    }

    fn counters(&self) -> Counters {
        self.counters
    }

    fn wear(&self) -> Option<Wear> {
        None
    }

    fn power_cut(&mut self) {
        self.rest();
    }

    fn rest(&mut self) {
        self.dirty.clear();
        (self.busy_until, self.arm, self.arm_since, self.dirty_since) = (0, 0, 0, 0);
    }
}

/// Coefficients of rule 2.
fn seek_curve(config: &HddConfig) -> (f64, f64, f64) {
    let a = config.track_seek_ns as f64;
    let (average, full) = (config.average_seek_ns as f64 - a, config.full_seek_ns as f64 - a);
    let b = (average - full / 3.0) / ((1.0_f64 / 3.0).sqrt() - 1.0 / 3.0);
    (a, b, full - b)
}

#[cfg(test)]
#[path = "hdd_test.rs"]
mod tests;
