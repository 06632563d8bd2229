//! The translation layer: a page map at 4 KiB, write frontiers per stream, garbage collection.
//!
//! Rules
//! 1. `map[lba]` is the slot that holds the current data of `lba`, or none. A slot is *valid* iff some `map[lba]` names
//!    it; then `reverse[slot] == lba` and its bit in `valid` is set. `units[u].valid` counts those bits.
//! 2. A unit is *free* (erased, in `free`), *open* (the frontier of one stream, host or copies) or *closed* (full, in
//!    `victims`).
//! 3. A unit holds data of one stream only, unless copies are shared: then units of copies hold any stream's.
//! 4. Before a host frontier opens a unit, garbage collection runs until more than `reserve` units are free; collecting
//!    one victim opens at most one unit, so `reserve >= 1` always suffices. Configuration guarantees spare units
//!    for every frontier, so a victim with something to gain always exists.
//! 5. Slots of a frontier are allocated in order and programmed a whole program at a time; [`Nand`] asserts the
//!    physical order.
//! 6. No allocation after construction.

use super::config::{CopyBack, SsdConfig};
use super::counters::{Counters, MAX_STREAMS, SHARED};
use super::divider::Divider;
use super::listener::{Cause, MediaListener};
use super::nand::Nand;
use super::table::table;
use super::victim::{Candidate, VictimPolicy, choose};
use super::victim_index::VictimIndex;
use crate::error::Result;
use std::collections::VecDeque;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum UnitState {
    Free,
    Open,
    Closed,
}

#[derive(Clone, Copy)]
struct Unit {
    filled_at: u64,
    valid: u32,
    stream: u8,
    state: UnitState,
}

/// The write frontier of a stream: `next` is its next slot. Closed when `next == end`.
#[derive(Clone, Copy)]
struct Frontier {
    unit: u32,
    next: u32,
    program_end: u32,
    end: u32,
}

const NO_FRONTIER: Frontier = Frontier { unit: NONE, next: 0, program_end: 0, end: 0 };

/// Page-mapped translation layer over asserted flash.
pub struct Ftl {
    map: Box<[u32]>,
    reverse: Box<[u32]>,
    valid: Box<[u64]>,
    units: Box<[Unit]>,
    free: VecDeque<u32>,
    victims: VictimIndex,
    nand: Nand,
    host: [Frontier; MAX_STREAMS],
    copies: [Frontier; MAX_STREAMS + 1],
    counters: Counters,
    clock: u64,
    to_unit: Divider,
    slots_per_unit: u32,
    slots_per_program: u32,
    reserve: usize,
    policy: VictimPolicy,
    copy_back: CopyBack,
}

impl Ftl {
    /// An empty, erased device; an error if its tables do not fit in memory. The configuration must have been
    /// validated.
    pub fn new(config: &SsdConfig) -> Result<Ftl> {
        let geometry = &config.geometry;
        let (units, slots_per_unit) = (geometry.units(), geometry.slots_per_unit());
        let slots = geometry.slots() as usize;
        let unit = Unit { filled_at: 0, valid: 0, stream: 0, state: UnitState::Free };
        Ok(Ftl {
            map: table(config.capacity_blocks as usize, NONE)?,
            reverse: table(slots, NONE)?,
            valid: table(slots / 64, 0)?,
            units: table(units as usize, unit)?,
            free: (0..units).collect(),
            victims: VictimIndex::new(config.victim_policy, units, slots_per_unit)?,
            nand: Nand::new(geometry)?,
            host: [NO_FRONTIER; MAX_STREAMS],
            copies: [NO_FRONTIER; MAX_STREAMS + 1],
            counters: Counters { slots_per_unit, ..Counters::default() },
            clock: 0,
            to_unit: Divider::new(slots_per_unit),
            slots_per_unit,
            slots_per_program: geometry.slots_per_program(),
            reserve: config.reserve_units as usize,
            policy: config.victim_policy,
            copy_back: config.copy_back,
        })
    }

    /// Writes `blocks` blocks from `lba` in `stream`. The caller checks bounds.
    pub fn write<L: MediaListener>(&mut self, lba: u32, blocks: u32, stream: u8, listener: &mut L) {
        let (mut lba, end) = (lba, lba + blocks);
        while lba < end {
            if self.host[stream as usize].next == self.host[stream as usize].end {
                self.open_host(stream, listener);
            }
            let frontier = self.host[stream as usize];
            let run = (end - lba).min(frontier.program_end - frontier.next);
            for i in 0..run {
                self.place(lba + i, frontier.next + i);
            }
            self.units[frontier.unit as usize].valid += run;
            self.clock += u64::from(run);
            self.counters.streams[stream as usize].host_blocks += u64::from(run);
            self.host[stream as usize] = self.advance(frontier, run, Cause::Host, listener);
            lba += run;
        }
    }

    /// Unmaps `blocks` blocks from `lba`: they have no data until they are written again.
    pub fn trim(&mut self, lba: u32, blocks: u32) {
        for lba in lba..lba + blocks {
            let old = std::mem::replace(&mut self.map[lba as usize], NONE);
            if old != NONE {
                self.invalidate(old);
                self.counters.trimmed_blocks += 1;
            }
        }
    }

    /// Finishes half-filled programs of host frontiers with empty slots: what a flush costs a device without power-loss
    /// protection.
    pub fn pad<L: MediaListener>(&mut self, listener: &mut L) {
        for stream in 0..MAX_STREAMS {
            let frontier = self.host[stream];
            let gap = frontier.program_end - frontier.next;
            if gap > 0 && gap < self.slots_per_program {
                self.counters.streams[stream].padded_blocks += u64::from(gap);
                self.host[stream] = self.advance(frontier, gap, Cause::Host, listener);
            }
        }
    }

    /// The erase unit and the program within it that hold `lba`, if it holds data.
    #[inline]
    pub fn locate(&self, lba: u32) -> Option<(u32, u32)> {
        let slot = self.map[lba as usize];
        if slot == NONE {
            return None;
        }
        let unit = self.to_unit.divide(slot);
        Some((unit, (slot - unit * self.slots_per_unit) / self.slots_per_program))
    }

    /// Capacity in host blocks.
    pub fn capacity_blocks(&self) -> u32 {
        self.map.len() as u32
    }

    /// The counters.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The counters, for updates by the layers above.
    pub fn counters_mut(&mut self) -> &mut Counters {
        &mut self.counters
    }

    /// Erases so far by unit.
    pub fn erases(&self) -> &[u32] {
        self.nand.erases()
    }

    /// Bytes of memory held, all of it allocated at construction.
    pub fn memory_bytes(&self) -> usize {
        (self.map.len() + self.reverse.len() + self.free.capacity()) * 4
            + self.valid.len() * 8
            + self.units.len() * size_of::<Unit>()
            + self.victims.memory_bytes()
            + self.nand.memory_bytes()
    }

    #[inline(always)]
    fn place(&mut self, lba: u32, slot: u32) {
        let old = std::mem::replace(&mut self.map[lba as usize], slot);
        self.reverse[slot as usize] = lba;
        self.valid[(slot / 64) as usize] |= 1 << (slot % 64);
        if old != NONE {
            self.invalidate(old);
        }
    }

    #[inline(always)]
    fn invalidate(&mut self, slot: u32) {
        self.valid[(slot / 64) as usize] &= !(1 << (slot % 64));
        let number = self.to_unit.divide(slot);
        let unit = &mut self.units[number as usize];
        unit.valid -= 1;
        if unit.state == UnitState::Closed {
            self.victims.invalidated(number, unit.valid);
        }
    }

    /// Advances a frontier by `run` slots (at most to `program_end`). Programs a full program, and closes a full unit.
    #[inline]
    fn advance<L: MediaListener>(&mut self, mut at: Frontier, run: u32, cause: Cause, listener: &mut L) -> Frontier {
        at.next += run;
        if at.next < at.program_end {
            return at;
        }
        let program = (at.program_end - at.unit * self.slots_per_unit) / self.slots_per_program - 1;
        self.nand.program(at.unit, program);
        listener.program(at.unit, program, cause);
        if at.next == at.end {
            self.close(at.unit);
        } else {
            at.program_end += self.slots_per_program;
        }
        at
    }

    fn close(&mut self, unit: u32) {
        let entry = &mut self.units[unit as usize];
        debug_assert_eq!(entry.state, UnitState::Open);
        entry.state = UnitState::Closed;
        entry.filled_at = self.clock;
        self.victims.insert(unit, entry.valid);
    }

    fn open_host<L: MediaListener>(&mut self, stream: u8, listener: &mut L) {
        while self.free.len() <= self.reserve {
            self.collect(listener);
        }
        self.host[stream as usize] = self.open(stream);
    }

    fn open(&mut self, stream: u8) -> Frontier {
        let unit = self.free.pop_front().expect("rule 4: a free unit is always kept for copies");
        let entry = &mut self.units[unit as usize];
        assert!(entry.state == UnitState::Free && entry.valid == 0, "unit {unit} opened while in use");
        (entry.state, entry.stream) = (UnitState::Open, stream);
        let first = unit * self.slots_per_unit;
        Frontier { unit, next: first, program_end: first + self.slots_per_program, end: first + self.slots_per_unit }
    }

    /// Collects one victim: copies what is valid, erases the unit.
    fn collect<L: MediaListener>(&mut self, listener: &mut L) {
        let victim = self.take_victim();
        let Unit { valid, stream, .. } = self.units[victim as usize];
        self.counters.streams[stream as usize].copied_blocks += u64::from(valid);
        self.counters.streams[stream as usize].collected_units += 1;
        let target = match self.copy_back {
            CopyBack::Separate => stream as usize,
            CopyBack::Shared => SHARED,
        };
        self.relocate(victim, target, listener);
        self.units[victim as usize].state = UnitState::Free;
        assert_eq!(self.units[victim as usize].valid, 0, "unit {victim} erased while it holds data");
        self.nand.erase(victim);
        self.counters.erased_units += 1;
        listener.erase(victim, self.slots_per_unit - valid);
        self.free.push_back(victim);
    }

    fn take_victim(&mut self) -> u32 {
        let victim = match self.policy {
            VictimPolicy::CostBenefit => choose(self.policy, self.candidates(), self.clock),
            VictimPolicy::Greedy | VictimPolicy::Fifo => self.victims.take(),
        };
        victim.expect("rule 4: spare units guarantee a victim")
    }

    fn candidates(&self) -> impl Iterator<Item = Candidate> + '_ {
        let slots = self.slots_per_unit;
        let closed = self.units.iter().enumerate().filter(|(_, u)| u.state == UnitState::Closed);
        closed.map(move |(n, u)| Candidate { unit: n as u32, valid: u.valid, slots, filled_at: u.filled_at })
    }

    fn relocate<L: MediaListener>(&mut self, victim: u32, target: usize, listener: &mut L) {
        self.nand.assert_programmed(victim, self.slots_per_unit / self.slots_per_program - 1);
        let first = victim * self.slots_per_unit;
        let mut last_read = NONE;
        for word in first / 64..(first + self.slots_per_unit) / 64 {
            let mut bits = std::mem::take(&mut self.valid[word as usize]);
            while bits != 0 {
                let slot = word * 64 + bits.trailing_zeros();
                bits &= bits - 1;
                if L::LISTENS && last_read != (slot - first) / self.slots_per_program {
                    last_read = (slot - first) / self.slots_per_program;
                    listener.copy_read(victim, last_read);
                }
                self.copy(slot, target, listener);
            }
        }
        self.units[victim as usize].valid = 0;
    }

    #[inline]
    fn copy<L: MediaListener>(&mut self, slot: u32, target: usize, listener: &mut L) {
        if self.copies[target].next == self.copies[target].end {
            self.copies[target] = self.open(target as u8);
        }
        let frontier = self.copies[target];
        let (lba, new) = (self.reverse[slot as usize], frontier.next);
        debug_assert_eq!(self.map[lba as usize], slot);
        self.map[lba as usize] = new;
        self.reverse[new as usize] = lba;
        self.valid[(new / 64) as usize] |= 1 << (new % 64);
        self.units[frontier.unit as usize].valid += 1;
        self.copies[target] = self.advance(frontier, 1, Cause::CopyBack, listener);
    }
}

#[cfg(test)]
#[path = "ftl_test.rs"]
mod tests;
