//! An emulated disk: a model that counts requests and computes their times, a store that keeps the bytes, a log for
//! power cuts, a clock.
//!
//! Rules
//! 1. Ranges are bytes, multiples of 512. The model sees the 4 KiB blocks they touch.
//! 2. A write is checked; the model computes its completion time; the old bytes are saved in the crash log; the new
//!    bytes are stored; then the write waits for its completion time. So the store and the crash log never differ, and
//!    a request that fails has changed no bytes.
//! 3. Lock order: crash log < damage < model; a write takes them one after another, never two at once. Requests on
//!    overlapping ranges are ordered by the caller, as on any disk.
//! 4. After a power cut every request fails until [`Disk::power_on`]. A request that waits for its completion when the
//!    power is cut fails too, because its data may be lost.

use crate::age::{self, Age};
use crate::clock::Clock;
use crate::crash::{CrashLog, CutReport, Damage, LOG_BYTES, NEVER};
use crate::error::{DeviceError, Result};
use crate::image::Image;
use crate::labels::Labels;
use crate::model::{BlockModel, Request, Wear};
use crate::preset::DeviceConfig;
use crate::promises::Promises;
use crate::ssd::counters::Counters;
use crate::ssd::geometry::BLOCK_BYTES;
use crate::store::{FileClaim, MemoryStore, Store};
use parking_lot::{Mutex, RwLock};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU32, AtomicU64, Ordering};

const BLOCK: u64 = BLOCK_BYTES as u64;
/// Ranges must be multiples of this.
pub const SECTOR_BYTES: u64 = 512;

/// The clock of a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TimeMode {
    /// Requests take no time: only wear is counted.
    #[default]
    Off,
    /// Requests complete at once; the model's time is only added up.
    Virtual,
    /// Each request takes the time that the model computes.
    Real,
}

/// Options of a disk.
#[derive(Clone, Debug)]
pub struct DiskOptions {
    /// The device.
    pub config: DeviceConfig,
    /// Its clock.
    pub time: TimeMode,
    /// Whether power can be cut: keeps an undo log.
    pub crashes: bool,
    /// A file for the bytes; memory if none.
    pub backing: Option<PathBuf>,
    /// The ageing of the device before its time begins: wear and mapping only, no bytes.
    pub age: Age,
}

impl DiskOptions {
    /// A new disk in memory, without time or crashes.
    pub fn new(config: DeviceConfig) -> DiskOptions {
        DiskOptions { config, time: TimeMode::Off, crashes: false, backing: None, age: Age::NONE }
    }
}

/// A request in flight: its completion time, and the number of power cuts when it was submitted.
#[must_use = "a request is acknowledged only after `Disk::wait`"]
#[derive(Clone, Copy, Debug)]
pub struct Ticket {
    done_ns: u64,
    cuts: u64,
}

impl Ticket {
    /// The ticket of both requests: it completes with the later one, and fails if either fails.
    pub fn and(self, other: Ticket) -> Ticket {
        Ticket { done_ns: self.done_ns.max(other.done_ns), cuts: self.cuts.min(other.cuts) }
    }
}

/// An emulated disk with its data.
pub struct Disk {
    model: Mutex<Box<dyn BlockModel>>,
    store: Box<dyn Store>,
    crash: Option<Mutex<CrashLog>>,
    atomic_write_bytes: AtomicU32,
    clock: Clock,
    capacity_bytes: u64,
    streams: u8,
    wears: bool,
    name: String,
    damage: RwLock<Damage>,
    damaged: AtomicBool,
    powered: AtomicBool,
    /// Power cuts so far; changes under the crash log's lock.
    cuts: AtomicU64,
    /// Number of writes until the power is cut; negative: never.
    fuse: AtomicI64,
    fuse_seed: AtomicI64,
}

impl Disk {
    /// Builds the disk.
    pub fn new(options: &DiskOptions) -> Result<Disk> {
        Disk::with_progress(options, &mut |_| Ok(()))
    }

    /// Builds the disk; `progress` gets the share of the ageing that is done and may end it.
    pub fn with_progress(options: &DiskOptions, progress: &mut age::Progress<'_>) -> Result<Disk> {
        let mut model = options.config.build(options.time != TimeMode::Off)?;
        let capacity_bytes = u64::from(model.capacity_blocks()) * BLOCK;
        let claim = options.backing.as_deref().map(FileClaim::new).transpose()?;
        age::apply(&options.age, model.as_mut(), &Labels::all(0), progress)?;
        let store: Box<dyn Store> = match claim {
            Some(claim) => Box::new(claim.into_store(capacity_bytes)?),
            None => Box::new(MemoryStore::new(capacity_bytes)),
        };
        let log = || Mutex::new(CrashLog::new(options.config.promises(), LOG_BYTES));
        Ok(Disk {
            streams: model.streams(),
            wears: model.wear().is_some(),
            model: Mutex::new(model),
            store,
            crash: options.crashes.then(log),
            atomic_write_bytes: AtomicU32::new(options.config.promises().atomic_write_bytes),
            clock: if options.time == TimeMode::Real { Clock::real_time() } else { Clock::virtual_time() },
            capacity_bytes,
            name: options.config.name().into(),
            damage: RwLock::default(),
            damaged: AtomicBool::new(false),
            powered: AtomicBool::new(true),
            cuts: AtomicU64::new(0),
            fuse: AtomicI64::new(-1),
            fuse_seed: AtomicI64::new(0),
        })
    }

    /// Name of the device.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether requests take the time that the model computes.
    pub fn takes_time(&self) -> bool {
        matches!(self.clock, Clock::Real(_))
    }

    /// Size in bytes.
    pub fn capacity_bytes(&self) -> u64 {
        self.capacity_bytes
    }

    /// Streams a write may name.
    pub fn streams(&self) -> u8 {
        self.streams
    }

    /// Whether the medium wears out, so that discards reduce its wear.
    pub fn wears(&self) -> bool {
        self.wears
    }

    /// Fills `buf` from `offset`.
    pub fn read(&self, offset: u64, buf: &mut [u8]) -> Result<()> {
        let (len, cuts) = (buf.len() as u64, self.cuts.load(Ordering::SeqCst));
        self.check(offset, len)?;
        if self.damaged.load(Ordering::Relaxed) {
            let damage = self.damage.read();
            let (first, end) = (offset / BLOCK, (offset + len).div_ceil(BLOCK));
            if let Some(lba) = damage.unreadable.range(first as u32..end as u32).next() {
                return Err(DeviceError::Unreadable { lba: u64::from(*lba) });
            }
        }
        let done_ns = self.submit(Request::read, offset, len)?;
        self.store.read(offset, buf)?;
        self.wait(Ticket { done_ns, cuts })
    }

    /// Writes `data` at `offset` in `stream`.
    pub fn write(&self, offset: u64, data: &[u8], stream: u8) -> Result<()> {
        self.wait(self.begin_write(offset, data, stream)?)
    }

    /// Waits until a request completes.
    ///
    /// # Errors
    /// [`DeviceError::Dead`] if power failed meanwhile, even if it is back.
    pub fn wait(&self, ticket: Ticket) -> Result<()> {
        self.clock.wait_until(ticket.done_ns);
        match self.cuts.load(Ordering::SeqCst) == ticket.cuts {
            true => Ok(()),
            false => Err(DeviceError::Dead("power failed before the request completed")),
        }
    }

    /// As [`write`](Self::write), but returns at once, so that several writes can be in flight.
    pub fn begin_write(&self, offset: u64, data: &[u8], stream: u8) -> Result<Ticket> {
        let len = data.len() as u64;
        self.check(offset, len)?;
        let done = self.submit(|lba, blocks| Request::write(lba, blocks, stream), offset, len)?;
        let last = self.burn_fuse();
        let mut ticket = Ticket { done_ns: done, cuts: 0 };
        match &self.crash {
            None => self.store.write(offset, data)?,
            Some(log) => {
                let mut log = log.lock();
                // Power may have failed while this request waited for the lock.
                self.check_power()?;
                ticket.cuts = self.cuts.load(Ordering::SeqCst);
                let done = if last { NEVER } else { done };
                log.before_write(&*self.store, offset..offset + len, done, self.clock.now_ns())?;
                self.store.write(offset, data)?;
            }
        }
        if last {
            self.power_cut(self.fuse_seed.load(Ordering::Relaxed) as u64)?;
            return self.check_power().map(|()| ticket);
        }
        self.heal(offset, len);
        Ok(ticket)
    }

    /// Discards a range; it reads as zeros afterwards. Only whole 4 KiB blocks are freed.
    pub fn discard(&self, offset: u64, len: u64) -> Result<()> {
        self.check(offset, len)?;
        let (first, end) = (offset.div_ceil(BLOCK), (offset + len) / BLOCK);
        let (mut done, mut cuts) = (0, 0);
        if first < end {
            let request = Request::discard(first as u32, (end - first) as u32);
            done = self.model.lock().submit(self.clock.now_ns(), &request)?;
        }
        match &self.crash {
            None => self.store.punch(offset, len)?,
            Some(log) => {
                const PART: u64 = 1 << 20;
                let mut log = log.lock();
                self.check_power()?;
                cuts = self.cuts.load(Ordering::SeqCst);
                for at in (offset..offset + len).step_by(PART as usize) {
                    let part = PART.min(offset + len - at);
                    log.before_discard(&*self.store, at..at + part, done, self.clock.now_ns())?;
                    self.store.punch(at, part)?;
                }
            }
        }
        self.wait(Ticket { done_ns: done, cuts })
    }

    /// Makes completed writes durable, unless the device's faults include a lying flush.
    pub fn flush(&self) -> Result<()> {
        self.check_power()?;
        let now = self.clock.now_ns();
        let done = self.model.lock().submit(now, &Request::flush())?;
        let mut cuts = 0;
        if let Some(log) = &self.crash {
            let mut log = log.lock();
            self.check_power()?;
            cuts = self.cuts.load(Ordering::SeqCst);
            log.flush(now, done);
        }
        self.wait(Ticket { done_ns: done, cuts })
    }

    /// Cuts the power now. `seed` chooses one of the outcomes that the promises allow.
    pub fn power_cut(&self, seed: u64) -> Result<CutReport> {
        let log = self.crash.as_ref().ok_or_else(|| {
            DeviceError::Config("a power cut needs a device that was created with crashes enabled".into())
        })?;
        let mut log = log.lock();
        self.powered.store(false, Ordering::SeqCst);
        self.cuts.fetch_add(1, Ordering::SeqCst);
        self.fuse.store(-1, Ordering::Relaxed);
        let capacity_blocks = (self.capacity_bytes / BLOCK) as u32;
        let (report, damage) = log.cut(&*self.store, seed, capacity_blocks, self.clock.now_ns())?;
        let mut all = self.damage.write();
        all.unreadable.extend(damage.unreadable);
        all.dead |= damage.dead;
        self.damaged.store(!all.unreadable.is_empty(), Ordering::Relaxed);
        self.model.lock().power_cut();
        Ok(report)
    }

    /// Cuts the power during the `writes`-th write from now (1 = the next).
    pub fn power_cut_at_write(&self, writes: u64, seed: u64) {
        self.fuse_seed.store(seed as i64, Ordering::Relaxed);
        self.fuse.store(writes.clamp(1, i64::MAX as u64) as i64 - 1, Ordering::Relaxed);
    }

    /// Power is back. An error if the device died.
    pub fn power_on(&self) -> Result<()> {
        if self.damage.read().dead {
            return Err(DeviceError::Dead("it did not restart after a power cut"));
        }
        self.powered.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Whether power is on.
    pub fn is_powered(&self) -> bool {
        self.powered.load(Ordering::SeqCst)
    }

    /// The disk's bytes now, as reads see them.
    pub fn image(&self) -> Result<Image> {
        Image::of(&*self.store, self.capacity_bytes)
    }

    /// Puts the bytes of an image on the disk, durable, and heals all damage: nothing is pending and power is on. Wear
    /// stays. No one may be using the disk meanwhile.
    pub fn restore(&self, image: &Image) -> Result<()> {
        if image.len_bytes() != self.capacity_bytes {
            let what = format!("an image of {} bytes on a disk of {}", image.len_bytes(), self.capacity_bytes);
            return Err(DeviceError::Config(what));
        }
        if let Some(log) = &self.crash {
            log.lock().forget();
        }
        self.fuse.store(-1, Ordering::Relaxed);
        *self.damage.write() = Damage::default();
        self.damaged.store(false, Ordering::Relaxed);
        image.put(&*self.store)?;
        self.powered.store(true, Ordering::SeqCst);
        Ok(())
    }

    /// Changes what the device promises from now on.
    pub fn set_promises(&self, promises: Promises) -> Result<()> {
        promises.validate()?;
        self.atomic_write_bytes.store(promises.atomic_write_bytes, Ordering::SeqCst);
        if let Some(log) = &self.crash {
            log.lock().set_promises(promises);
        }
        Ok(())
    }

    /// Size of an aligned write that the device promises not to tear.
    pub fn atomic_write_bytes(&self) -> u32 {
        self.atomic_write_bytes.load(Ordering::SeqCst)
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.model.lock().counters()
    }

    /// Wear, where the medium wears.
    pub fn wear(&self) -> Option<Wear> {
        self.model.lock().wear()
    }

    /// The device's time.
    pub fn now_ns(&self) -> u64 {
        self.clock.now_ns()
    }

    /// Memory or file bytes that the stored data uses.
    pub fn stored_bytes(&self) -> u64 {
        self.store.stored_bytes()
    }

    fn submit(&self, request: impl Fn(u32, u32) -> Request, offset: u64, len: u64) -> Result<u64> {
        if len == 0 {
            return Ok(0);
        }
        let (first, end) = (offset / BLOCK, (offset + len).div_ceil(BLOCK));
        let mut model = self.model.lock();
        model.submit(self.clock.now_ns(), &request(first as u32, (end - first) as u32))
    }

    fn check(&self, offset: u64, len: u64) -> Result<()> {
        self.check_power()?;
        let end = offset.checked_add(len).filter(|end| *end <= self.capacity_bytes);
        if end.is_none() || !offset.is_multiple_of(SECTOR_BYTES) || !len.is_multiple_of(SECTOR_BYTES) {
            let (lba, blocks, capacity_blocks) = (offset / BLOCK, len.div_ceil(BLOCK), self.capacity_bytes / BLOCK);
            return Err(match end {
                None => DeviceError::OutOfRange { lba, blocks, capacity_blocks },
                Some(_) => DeviceError::Config(format!("{len} bytes at byte {offset} are not whole 512-byte sectors")),
            });
        }
        Ok(())
    }

    fn check_power(&self) -> Result<()> {
        if self.is_powered() { Ok(()) } else { Err(DeviceError::Dead("power is off")) }
    }

    /// Counts a write; returns whether the power is cut during it.
    fn burn_fuse(&self) -> bool {
        let lit = self.fuse.load(Ordering::Relaxed) >= 0;
        lit && self.crash.is_some() && self.fuse.fetch_sub(1, Ordering::Relaxed) == 0
    }

    /// Makes the unreadable blocks that a write covers completely readable again.
    fn heal(&self, offset: u64, len: u64) {
        if !self.damaged.load(Ordering::Relaxed) {
            return;
        }
        let mut damage = self.damage.write();
        for lba in offset.div_ceil(BLOCK)..(offset + len) / BLOCK {
            damage.unreadable.remove(&(lba as u32));
        }
        self.damaged.store(!damage.unreadable.is_empty(), Ordering::Relaxed);
    }
}

#[cfg(test)]
#[path = "disk_test.rs"]
mod tests;
