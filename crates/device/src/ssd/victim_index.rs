//! An index of the closed units by their number of valid slots, to find a victim without a search of all units.
//!
//! Rules
//! 1. Exactly the full ("closed") units are listed, each once.
//! 2. Greedy: a unit with v valid slots is in list v; within a list, first come first taken.
//! 3. FIFO: all units are in list 0 in the order they were closed.
//! 4. No list below `lowest` has a unit. So finding the victim costs amortised O(1): `lowest` falls by at most one
//!    per invalidated slot and rises only over empty lists.
//!
//! Cost-benefit keeps no lists; it looks at every closed unit through [`choose`](super::victim::choose).

use super::table::table;
use super::victim::VictimPolicy;
use crate::error::Result;

const NONE: u32 = u32::MAX;

#[derive(Clone, Copy)]
struct Ends {
    head: u32,
    tail: u32,
}

#[derive(Clone, Copy)]
struct Links {
    next: u32,
    previous: u32,
}

/// The closed units in lists, from which the next victim is chosen.
pub struct VictimIndex {
    policy: VictimPolicy,
    lists: Box<[Ends]>,
    links: Box<[Links]>,
    lowest: u32,
}

impl VictimIndex {
    /// An empty index for `units` units of `slots_per_unit` slots.
    pub fn new(policy: VictimPolicy, units: u32, slots_per_unit: u32) -> Result<VictimIndex> {
        let lists = if policy == VictimPolicy::Greedy { slots_per_unit as usize + 1 } else { 1 };
        Ok(VictimIndex {
            policy,
            lists: table(lists, Ends { head: NONE, tail: NONE })?,
            links: table(units as usize, Links { next: NONE, previous: NONE })?,
            lowest: lists as u32,
        })
    }

    /// A unit was filled; it has `valid` valid slots.
    pub fn insert(&mut self, unit: u32, valid: u32) {
        match self.policy {
            VictimPolicy::Greedy => self.push_back(valid, unit),
            VictimPolicy::Fifo => self.push_back(0, unit),
            VictimPolicy::CostBenefit => {}
        }
    }

    /// A closed unit lost a valid slot and now has `valid`.
    #[inline]
    pub fn invalidated(&mut self, unit: u32, valid: u32) {
        if self.policy == VictimPolicy::Greedy {
            self.unlink(valid + 1, unit);
            self.push_back(valid, unit);
        }
    }

    /// Removes the victim from its list and returns it; `None` if there is none, or no lists are kept.
    pub fn take(&mut self) -> Option<u32> {
        let lists = self.lists.len() as u32;
        while self.lowest < lists && self.lists[self.lowest as usize].head == NONE {
            self.lowest += 1;
        }
        let unit = self.lists.get(self.lowest as usize)?.head;
        self.unlink(self.lowest, unit);
        Some(unit)
    }

    #[inline]
    fn push_back(&mut self, list: u32, unit: u32) {
        let ends = &mut self.lists[list as usize];
        self.links[unit as usize] = Links { next: NONE, previous: ends.tail };
        match ends.tail {
            NONE => ends.head = unit,
            tail => self.links[tail as usize].next = unit,
        }
        ends.tail = unit;
        self.lowest = self.lowest.min(list);
    }

    #[inline]
    fn unlink(&mut self, list: u32, unit: u32) {
        let Links { next, previous } = self.links[unit as usize];
        match previous {
            NONE => self.lists[list as usize].head = next,
            previous => self.links[previous as usize].next = next,
        }
        match next {
            NONE => self.lists[list as usize].tail = previous,
            next => self.links[next as usize].previous = previous,
        }
    }

    /// Bytes of memory held.
    pub fn memory_bytes(&self) -> usize {
        (self.lists.len() + self.links.len()) * 8
    }
}

#[cfg(test)]
mod tests {
    use super::super::victim::{Candidate, choose};
    use super::*;
    use fastrand::Rng;

    /// Random inserts, invalidations and takes; every greedy victim must have as few valid slots as the pure choice.
    #[test]
    fn index_agrees_with_the_pure_choice() {
        for (policy, seed) in [(VictimPolicy::Greedy, 1), (VictimPolicy::Fifo, 2)] {
            let mut rng = Rng::with_seed(seed);
            let mut index = VictimIndex::new(policy, 50, 64).unwrap();
            let mut model: Vec<Candidate> = Vec::new();
            for now in 0..20_000u64 {
                match rng.usize(0..10) {
                    0 if model.len() < 50 => {
                        let unit = (0..50).find(|u| model.iter().all(|c| c.unit != *u)).unwrap();
                        index.insert(unit, 64);
                        model.push(Candidate { unit, valid: 64, slots: 64, filled_at: now });
                    }
                    1 if choose(policy, model.iter().copied(), now).is_some() => {
                        let expected = choose(policy, model.iter().copied(), now).unwrap();
                        let taken = index.take().unwrap();
                        let valid = |u| model.iter().find(|c| c.unit == u).unwrap().valid;
                        assert_eq!(valid(taken), valid(expected));
                        assert!(policy == VictimPolicy::Greedy || taken == expected);
                        model.retain(|c| c.unit != taken);
                    }
                    _ if !model.is_empty() => {
                        let at = rng.usize(0..model.len());
                        let c = &mut model[at];
                        if c.valid > 0 {
                            c.valid -= 1;
                            index.invalidated(c.unit, c.valid);
                        }
                    }
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn an_empty_index_has_no_victim() {
        assert_eq!(VictimIndex::new(VictimPolicy::Greedy, 4, 64).unwrap().take(), None);
    }
}
