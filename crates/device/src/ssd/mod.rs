//! The emulated SSD: wear, write amplification and time of a multi-stream flash device.
//!
//! Emulated: geometry, page-mapped translation at 4 KiB, garbage collection, streams with erase units of their own, a
//! write buffer that absorbs rewrites, flush, trim, wear by erase unit, busy dies and buses. Not emulated: bad blocks,
//! read disturb and retention, static wear levelling, an SLC cache, the map's own writes to flash. Data is kept
//! elsewhere ([`crate::store`]): this model needs none.
//!
//! | file | owns |
//! |---|---|
//! | `geometry` | addresses |
//! | `nand` | the physical rules, asserted |
//! | `ftl` | map, frontiers, garbage collection |
//! | `victim`, `victim_index` | victim choice: pure, and incremental |
//! | `write_buffer` | blocks on their way |
//! | `timing` | when things are busy |
//! | `config`, `preset` | devices as values |
//! | `counters` | counters |

pub mod config;
pub mod counters;
mod divider;
pub mod ftl;
pub mod geometry;
pub mod listener;
pub mod nand;
pub mod preset;
pub(crate) mod table;
pub mod timing;
pub mod victim;
pub mod victim_index;
pub mod write_buffer;

use crate::error::{DeviceError, Result};
use crate::model::{BlockModel, Op, Request, Wear};
use config::SsdConfig;
use counters::Counters;
use ftl::Ftl;
use listener::{MediaListener, Silent};
use timing::SsdTimer;
use write_buffer::WriteBuffer;

/// An emulated SSD.
pub struct Ssd {
    config: SsdConfig,
    ftl: Ftl,
    buffer: Option<WriteBuffer>,
    timer: Option<SsdTimer>,
}

impl Ssd {
    /// A new, erased device. With `timed`, requests take time; otherwise they complete when submitted.
    pub fn new(config: SsdConfig, timed: bool) -> Result<Ssd> {
        config.validate()?;
        Ok(Ssd {
            ftl: Ftl::new(&config)?,
            buffer: (config.write_buffer_blocks > 0)
                .then(|| WriteBuffer::new(config.write_buffer_blocks))
                .transpose()?,
            timer: timed.then(|| SsdTimer::new(config.timing, &config.geometry, config.write_buffer_blocks)),
            config,
        })
    }

    /// The configuration.
    pub fn config(&self) -> &SsdConfig {
        &self.config
    }

    /// Bytes of memory of the emulation.
    pub fn memory_bytes(&self) -> usize {
        self.ftl.memory_bytes() + self.buffer.as_ref().map_or(0, WriteBuffer::memory_bytes)
    }

    /// Whether a block holds data (written and not trimmed since).
    pub fn holds(&self, lba: u32) -> bool {
        self.ftl.locate(lba).is_some() || self.buffer.as_ref().is_some_and(|b| b.contains(lba))
    }

    /// Resets the timing: no request is in flight.
    fn reset_time(&mut self) {
        if self.timer.is_some() {
            let (timing, geometry) = (self.config.timing, &self.config.geometry);
            self.timer = Some(SsdTimer::new(timing, geometry, self.config.write_buffer_blocks));
        }
    }

    fn check(&self, request: &Request) -> Result<()> {
        let capacity = u64::from(self.ftl.capacity_blocks());
        let (lba, blocks) = (u64::from(request.lba), u64::from(request.blocks));
        if lba + blocks > capacity {
            return Err(DeviceError::OutOfRange { lba, blocks, capacity_blocks: capacity });
        }
        if request.stream >= self.config.streams {
            let (stream, streams) = (u32::from(request.stream), u32::from(self.config.streams));
            return Err(DeviceError::NoSuchStream { stream, streams });
        }
        Ok(())
    }

    fn write(&mut self, now_ns: u64, lba: u32, blocks: u32, stream: u8) -> u64 {
        match &mut self.timer {
            None => {
                accept(&mut self.ftl, &mut self.buffer, lba, blocks, stream, &mut Silent);
                now_ns
            }
            Some(timer) => {
                timer.receive(now_ns, blocks);
                accept(&mut self.ftl, &mut self.buffer, lba, blocks, stream, timer);
                timer.admit()
            }
        }
    }

    fn read(&mut self, now_ns: u64, lba: u32, blocks: u32) -> u64 {
        self.ftl.counters_mut().read_blocks += u64::from(blocks);
        let (ftl, buffer) = (&self.ftl, &self.buffer);
        match &mut self.timer {
            None => now_ns,
            Some(timer) => {
                let waiting = |lba: &u32| buffer.as_ref().is_some_and(|b| b.contains(*lba));
                let on_flash = (lba..lba + blocks).filter(|lba| !waiting(lba)).filter_map(|lba| ftl.locate(lba));
                timer.read(now_ns, on_flash, blocks)
            }
        }
    }

    fn discard(&mut self, now_ns: u64, lba: u32, blocks: u32) -> u64 {
        if let Some(buffer) = &mut self.buffer {
            (lba..lba + blocks).for_each(|lba| buffer.forget(lba));
        }
        self.ftl.trim(lba, blocks);
        self.timer.as_mut().map_or(now_ns, |t| t.command(now_ns))
    }

    fn flush(&mut self, now_ns: u64) -> u64 {
        self.ftl.counters_mut().flushes += 1;
        let lies = self.config.promises.faults.lying_flush;
        match (&mut self.timer, self.config.power_loss_protection || lies) {
            (None, true) => now_ns,
            (Some(timer), true) => timer.command(now_ns),
            (None, false) => {
                drain(&mut self.ftl, &mut self.buffer, &mut Silent);
                now_ns
            }
            (Some(timer), false) => {
                timer.begin(now_ns);
                drain(&mut self.ftl, &mut self.buffer, timer);
                timer.drained(now_ns)
            }
        }
    }
}

impl BlockModel for Ssd {
    fn capacity_blocks(&self) -> u32 {
        self.ftl.capacity_blocks()
    }

    fn streams(&self) -> u8 {
        self.config.streams
    }

    #[inline]
    fn submit(&mut self, now_ns: u64, request: &Request) -> Result<u64> {
        self.check(request)?;
        let Request { op, lba, blocks, stream } = *request;
        Ok(match op {
            Op::Write => self.write(now_ns, lba, blocks, stream),
            Op::Read => self.read(now_ns, lba, blocks),
            Op::Discard => self.discard(now_ns, lba, blocks),
            Op::Flush => self.flush(now_ns),
        })
    }

    fn counters(&self) -> Counters {
        let waiting_blocks = self.buffer.as_ref().map_or(0, WriteBuffer::len) as u64;
        Counters { waiting_blocks, ..*self.ftl.counters() }
    }

    fn wear(&self) -> Option<Wear> {
        Some(Wear::of(self.ftl.erases()))
    }

    fn power_cut(&mut self) {
        if self.config.power_loss_protection {
            return;
        }
        if let Some(buffer) = &mut self.buffer {
            while buffer.take().is_some() {}
        }
        self.reset_time();
    }

    fn rest(&mut self) {
        empty(&mut self.ftl, &mut self.buffer, &mut Silent);
        self.reset_time();
    }
}

fn accept<L: MediaListener>(
    ftl: &mut Ftl,
    buffer: &mut Option<WriteBuffer>,
    lba: u32,
    blocks: u32,
    stream: u8,
    listener: &mut L,
) {
    ftl.counters_mut().accepted_blocks += u64::from(blocks);
    let Some(buffer) = buffer else {
        return ftl.write(lba, blocks, stream, listener);
    };
    for lba in lba..lba + blocks {
        if buffer.is_full()
            && let Some((lba, stream)) = buffer.take()
        {
            ftl.write(lba, 1, stream, listener);
        }
        if buffer.put(lba, stream) {
            ftl.counters_mut().absorbed_blocks += 1;
        }
    }
}

/// Flushes: programs all buffered blocks, and completes half-filled programs.
fn drain<L: MediaListener>(ftl: &mut Ftl, buffer: &mut Option<WriteBuffer>, listener: &mut L) {
    empty(ftl, buffer, listener);
    ftl.pad(listener);
}

/// Programs all buffered blocks.
fn empty<L: MediaListener>(ftl: &mut Ftl, buffer: &mut Option<WriteBuffer>, listener: &mut L) {
    if let Some(buffer) = buffer {
        while let Some((lba, stream)) = buffer.take() {
            ftl.write(lba, 1, stream, listener);
        }
    }
}

#[cfg(test)]
#[path = "ssd_test.rs"]
mod tests;
