//! The time model: it computes the times at which flash and buses are busy, so that garbage collection slows the host
//! as on a real device.
//!
//! Terms
//! - Each die, each channel and the host link has a time until which it is busy. Times are nanoseconds of whatever
//!   clock the caller uses; they only grow.
//! - *Backlog* of a die: the time of garbage-collection work that is not done yet.
//!
//! Rules
//! 1. A read takes the die (`read_ns`, once for the blocks of one program), then the channel and the link, for each
//!    block. A program takes the channel, then the die. An erase takes the die.
//! 2. A write completes when it is in the write buffer. A block leaves the buffer when its program ends; a full buffer
//!    makes the host wait.
//! 3. A die works off its backlog while it would be idle. The host programs on that die wait for the remaining backlog
//!    in equal parts, so that the backlog of one collection is gone when the slots that it freed are used up. No host
//!    request waits for a whole collection.
//! 4. A read waits at most `suspend_ns` for a program or an erase in progress on its die (program and erase suspend);
//!    the delayed work is pushed back by the time of the read.
//! 5. A flush completes when all earlier programs have ended; with power-loss protection at once.

use super::geometry::{BLOCK_BYTES, Geometry};
use super::listener::{Cause, MediaListener};
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Times of flash, buses and interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SsdTiming {
    /// Reading a page of every plane into the die's registers.
    pub read_ns: u32,
    /// Programming a page of every plane.
    pub program_ns: u32,
    /// Erasing a block of every plane.
    pub erase_ns: u32,
    /// Longest wait of a read for a program or erase in progress on its die.
    pub suspend_ns: u32,
    /// Speed of one channel, decimal megabytes per second.
    pub channel_mb_per_s: u32,
    /// Speed of the host interface, decimal megabytes per second.
    pub link_mb_per_s: u32,
    /// Controller and protocol time of one command.
    pub command_ns: u32,
}

impl Default for SsdTiming {
    /// Round figures of a data-centre TLC drive.
    fn default() -> SsdTiming {
        SsdTiming {
            read_ns: 60_000,
            program_ns: 600_000,
            erase_ns: 4_000_000,
            suspend_ns: 20_000,
            channel_mb_per_s: 800,
            link_mb_per_s: 3200,
            command_ns: 8_000,
        }
    }
}

#[derive(Clone, Copy, Default)]
struct Die {
    /// End of the last program. A read during the program delays it.
    until: u64,
    /// End of the last read.
    read_until: u64,
    /// The backlog of garbage collection.
    backlog: u64,
}

/// Busy-until state of one SSD.
pub struct SsdTimer {
    timing: SsdTiming,
    geometry: Geometry,
    program_bus_ns: u64,
    dies: Vec<Die>,
    channels: Vec<u64>,
    link_until: u64,
    /// Earliest start of the current request's work.
    start: u64,
    /// Number of future host programs that share the backlog.
    owed_programs: u64,
    in_flight: VecDeque<(u64, u32)>,
    in_flight_blocks: u32,
    buffer_blocks: u32,
}

impl SsdTimer {
    /// An idle device. `buffer_blocks` is the write buffer; at least two programs per die always fit.
    pub fn new(timing: SsdTiming, geometry: &Geometry, buffer_blocks: u32) -> SsdTimer {
        let per_die = 2 * geometry.slots_per_program();
        SsdTimer {
            timing,
            program_bus_ns: transfer_ns(geometry.slots_per_program(), timing.channel_mb_per_s),
            dies: vec![Die::default(); geometry.dies() as usize],
            channels: vec![0; geometry.channels as usize],
            geometry: geometry.clone(),
            link_until: 0,
            start: 0,
            owed_programs: 0,
            in_flight: VecDeque::new(),
            in_flight_blocks: 0,
            buffer_blocks: buffer_blocks.max(per_die * geometry.dies()),
        }
    }

    /// A write of `blocks` blocks arrives at `now`; returns the time at which its data is in the controller. Programs
    /// that are reported afterwards start no earlier.
    pub fn receive(&mut self, now: u64, blocks: u32) -> u64 {
        let arrival = self.command_done(now);
        self.start = occupy(&mut self.link_until, arrival, arrival, transfer_ns(blocks, self.timing.link_mb_per_s));
        self.start
    }

    /// Returns the time at which the last received request is in the write buffer: at once, or when enough earlier
    /// programs have ended.
    pub fn admit(&mut self) -> u64 {
        let mut admitted = self.start;
        while let Some(&(end, blocks)) = self.in_flight.front() {
            if end > admitted && self.in_flight_blocks <= self.buffer_blocks {
                break;
            }
            admitted = admitted.max(end);
            self.in_flight_blocks -= blocks;
            self.in_flight.pop_front();
        }
        admitted
    }

    /// A read at `now` of the pages of the given programs; returns the time at which the last of its `blocks` blocks
    /// has reached the host.
    pub fn read(&mut self, now: u64, places: impl Iterator<Item = (u32, u32)>, blocks: u32) -> u64 {
        let start = now + u64::from(self.timing.command_ns);
        let mut ready = start;
        let mut places = places.peekable();
        while let Some(place) = places.next() {
            let mut of_program = 1;
            while places.next_if_eq(&place).is_some() {
                of_program += 1;
            }
            ready = ready.max(self.read_pages(start, place, of_program));
        }
        occupy(&mut self.link_until, start, ready, transfer_ns(blocks, self.timing.link_mb_per_s))
    }

    /// A command at `now` that moves no data.
    pub fn command(&mut self, now: u64) -> u64 {
        now + u64::from(self.timing.command_ns)
    }

    /// Returns the time at which all reported host programs have ended.
    pub fn drained(&self, now: u64) -> u64 {
        self.dies.iter().fold(self.command_done(now), |end, die| end.max(die.until))
    }

    /// Starts flush work (padding programs) at `now`.
    pub fn begin(&mut self, now: u64) {
        self.start = self.command_done(now);
    }

    fn command_done(&self, now: u64) -> u64 {
        now + u64::from(self.timing.command_ns)
    }

    /// Blocks of one program are sensed together and cross the channel one after another.
    fn read_pages(&mut self, start: u64, (unit, program): (u32, u32), blocks: u32) -> u64 {
        let die_number = self.geometry.die_of(unit, program);
        self.work_off(die_number, start);
        let timing = self.timing;
        let die = &mut self.dies[die_number as usize];
        let busy_until = if die.until <= start && die.backlog > 0 { start + die.backlog } else { die.until };
        let begin = start.max(busy_until.min(start + u64::from(timing.suspend_ns))).max(die.read_until);
        let sensed = begin + u64::from(timing.read_ns);
        die.read_until = sensed;
        if die.until > begin {
            die.until += u64::from(timing.read_ns);
        }
        let channel = &mut self.channels[self.geometry.channel_of(die_number) as usize];
        occupy(channel, start, sensed, transfer_ns(blocks, timing.channel_mb_per_s))
    }

    /// Works off the backlog of a die in its idle time before `now`.
    fn work_off(&mut self, die: u32, now: u64) {
        let die = &mut self.dies[die as usize];
        if now > die.until && die.backlog > 0 {
            let done = die.backlog.min(now - die.until);
            die.backlog -= done;
            die.until += done;
        }
    }

    fn host_program(&mut self, die_number: u32) {
        self.work_off(die_number, self.start);
        let channel = &mut self.channels[self.geometry.channel_of(die_number) as usize];
        *channel = (*channel).max(self.start) + self.program_bus_ns;
        let arrived = *channel;
        let sharers = (self.owed_programs / self.dies.len() as u64).max(1);
        self.owed_programs = self.owed_programs.saturating_sub(1);
        let die = &mut self.dies[die_number as usize];
        let share = die.backlog.div_ceil(sharers);
        die.backlog -= share;
        die.until = die.until.max(arrived).max(die.read_until) + share + u64::from(self.timing.program_ns);
        self.in_flight.push_back((die.until, self.geometry.slots_per_program()));
        self.in_flight_blocks += self.geometry.slots_per_program();
    }

    fn owe(&mut self, die: u32, ns: u64) {
        self.dies[die as usize].backlog += ns;
    }
}

impl MediaListener for SsdTimer {
    fn program(&mut self, unit: u32, program: u32, cause: Cause) {
        let die = self.geometry.die_of(unit, program);
        match cause {
            Cause::Host => self.host_program(die),
            Cause::CopyBack => self.owe(die, self.program_bus_ns + u64::from(self.timing.program_ns)),
        }
    }

    fn copy_read(&mut self, unit: u32, program: u32) {
        let die = self.geometry.die_of(unit, program);
        self.owe(die, u64::from(self.timing.read_ns) + self.program_bus_ns);
    }

    fn erase(&mut self, unit: u32, freed_slots: u32) {
        for i in 0..self.geometry.dies_per_unit {
            let die = self.geometry.die_of(unit, i);
            self.owe(die, u64::from(self.timing.erase_ns));
        }
        self.owed_programs += u64::from(freed_slots / self.geometry.slots_per_program()).max(1);
    }
}

/// Takes `ns` of a bus for a request that came at `from` and is ready for the bus at `ready`; returns the end of the
/// transfer. The bus is charged from the arrival of the request, so that a slow request does not block the bus for
/// others.
fn occupy(bus: &mut u64, from: u64, ready: u64, ns: u64) -> u64 {
    *bus = (*bus).max(from) + ns;
    (*bus).max(ready + ns)
}

/// Time that `blocks` 4 KiB blocks take on a bus of `mb_per_s` decimal megabytes per second.
fn transfer_ns(blocks: u32, mb_per_s: u32) -> u64 {
    u64::from(blocks) * u64::from(BLOCK_BYTES) * 1000 / u64::from(mb_per_s.max(1))
}

#[cfg(test)]
#[path = "timing_test.rs"]
mod tests;
