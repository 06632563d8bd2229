//! Which core has which cache line: counts the times that a line goes from one core to another.
//!
//! Terms. A *transfer*: a core reads a line that another core wrote last and that it has no copy of, or writes a line
//! of which another core has a copy. A *visit*: accesses of one core to one line within a turn, at most
//! [`VISIT_INSTRUCTIONS`] instructions between each and the next. A *turn* is a transaction, or some background steps.
//!
//! Rules
//! 1. Caches are of any size: a line leaves one only because another core writes it. What was never written since the
//!    start is in all caches.
//! 2. A visit counts one transfer at most: an atomic operation reads and writes, and takes the line once.
//! 3. Only turns of the measured rounds count; those before fill the caches.
//! 4. Transfers are what happens when cores take turns. Cores that run concurrently with each other may take a line
//!    from each other between two visits; so a transfer for every visit is the most there can be.

use std::collections::HashMap;

/// Bytes of a cache line.
pub(super) const LINE_BYTES: u64 = 64;
/// Instructions after which an access is another visit: longer than a short critical section.
const VISIT_INSTRUCTIONS: u64 = 100;
/// No core.
const NONE: u8 = u8::MAX;

/// How an instruction uses memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Access {
    /// It reads.
    Load,
    /// It writes.
    Store,
}

/// What is counted of a line, and of each place in the code.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Count {
    /// Times the line came from another core.
    pub transfers: u64,
    /// Times that a transaction used it; background steps are left out.
    pub visits: u64,
}

/// A line that was transferred in the measured rounds.
#[derive(Debug)]
pub(super) struct Shared {
    pub address: u64,
    /// In the turns of transactions and steps.
    pub count: Count,
    /// Instructions that began its visits, with their counts; those of most transfers first.
    pub places: Vec<(u64, Count)>,
}

#[derive(Debug)]
struct Line {
    /// Cores with a copy.
    holders: u128,
    writer: u8,
    last_core: u8,
    last_turn: u64,
    last_instruction: u64,
    /// The present visit began here, and whether it has counted a transfer.
    place: u64,
    has_transferred: bool,
    places: Vec<(u64, Count)>,
}

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Directory {
    lines: HashMap<u64, Line>,
    /// Cores from here on take background steps.
    background: u8,
    core: u8,
    turn: u64,
    is_measured: bool,
    transactions: u64,
}

impl Directory {
    /// No one has a line; transactions are those of cores below `background`.
    pub(super) fn new(background: u8) -> Directory {
        Directory { background, ..Directory::default() }
    }

    /// The turn of a core begins; there are at most 128.
    pub(super) fn begin(&mut self, core: u8) {
        (self.core, self.turn) = (core, self.turn + 1);
        self.transactions += u64::from(self.is_measured && core < self.background);
    }

    /// The rounds that count begin.
    pub(super) fn measure(&mut self) {
        self.is_measured = true;
    }

    /// Measured transactions.
    pub(super) fn transactions(&self) -> u64 {
        self.transactions
    }

    /// Instruction number `now` uses a line; `place` says where in the code, asked when a visit begins.
    pub(super) fn access(&mut self, access: Access, address: u64, now: u64, place: impl FnOnce() -> u64) {
        let (core, turn, is_measured) = (self.core, self.turn, self.is_measured);
        let line = self.lines.entry(address / LINE_BYTES).or_insert_with(Line::new);
        let is_new =
            line.last_core != core || line.last_turn != turn || now - line.last_instruction > VISIT_INSTRUCTIONS;
        (line.last_core, line.last_turn, line.last_instruction) = (core, turn, now);
        if is_new && is_measured {
            line.begin_visit(place(), core < self.background);
        }
        if line.take(access, core) && is_measured {
            line.count_transfer();
        }
    }

    /// The lines that were transferred while it was measured, most first.
    pub(super) fn shared(self) -> Vec<Shared> {
        let mut shared: Vec<Shared> = self.lines.into_iter().filter_map(|(number, line)| line.shared(number)).collect();
        shared.sort_by_key(|line| (std::cmp::Reverse(line.count.transfers), line.address));
        shared
    }
}

impl Line {
    fn new() -> Line {
        Line {
            holders: 0,
            writer: NONE,
            last_core: NONE,
            last_turn: 0,
            last_instruction: 0,
            place: 0,
            has_transferred: false,
            places: Vec::new(),
        }
    }

    /// Gives the line to a core; whether it came from another one.
    fn take(&mut self, access: Access, core: u8) -> bool {
        let own = 1u128 << core;
        match access {
            Access::Load => {
                let comes = self.holders & own == 0 && self.writer != NONE && self.writer != core;
                self.holders |= own;
                comes
            }
            Access::Store => {
                let comes = self.holders & !own != 0;
                (self.holders, self.writer) = (own, core);
                comes
            }
        }
    }

    fn begin_visit(&mut self, place: u64, is_transaction: bool) {
        (self.place, self.has_transferred) = (place, false);
        self.count().visits += u64::from(is_transaction);
    }

    fn count_transfer(&mut self) {
        if !std::mem::replace(&mut self.has_transferred, true) {
            self.count().transfers += 1;
        }
    }

    fn count(&mut self) -> &mut Count {
        let at = self.places.iter().position(|(place, _)| *place == self.place);
        let at = at.unwrap_or_else(|| {
            self.places.push((self.place, Count::default()));
            self.places.len() - 1
        });
        &mut self.places[at].1
    }

    fn shared(mut self, number: u64) -> Option<Shared> {
        let sum = |of: fn(&Count) -> u64| self.places.iter().map(|(_, count)| of(count)).sum();
        let count = Count { transfers: sum(|c| c.transfers), visits: sum(|c| c.visits) };
        self.places.sort_by_key(|(place, count)| (std::cmp::Reverse((count.transfers, count.visits)), *place));
        (count.transfers > 0).then(|| Shared { address: number * LINE_BYTES, count, places: self.places })
    }
}

#[cfg(test)]
mod tests {
    use super::Access::{Load, Store};
    use super::*;

    /// Turns `(core, accesses)`, 1000 instructions between two accesses; counts of the line at 0 after `warm_up` turns.
    fn counted(warm_up: usize, turns: &[(u8, &[Access])]) -> Option<Count> {
        let (mut directory, mut now) = (Directory::new(3), 0);
        for (at, (core, accesses)) in turns.iter().enumerate() {
            if at == warm_up {
                directory.measure();
            }
            directory.begin(*core);
            for access in *accesses {
                now += 1000;
                directory.access(*access, 8, now, || 77);
            }
        }
        directory.shared().first().map(|line| line.count)
    }

    #[test]
    fn a_line_that_each_core_writes_is_transferred_at_each_turn() {
        // The load brings it, and the store has it: 1000 instructions later another core could have had it.
        let turns: Vec<(u8, &[Access])> = (0..8).map(|turn| (turn % 2, &[Store, Store][..])).collect();
        assert_eq!(counted(2, &turns), Some(Count { transfers: 6, visits: 12 }));
    }

    #[test]
    fn lines_that_are_only_read_or_only_one_cores_are_not_transferred() {
        assert_eq!(counted(0, &[(0, &[Load]), (1, &[Load]), (0, &[Load])]), None);
        assert_eq!(counted(0, &[(0, &[Store]), (0, &[Load, Store])]), None);
    }

    #[test]
    fn a_reader_gets_a_line_once_after_each_write() {
        let (write, read): (&[Access], &[Access]) = (&[Store], &[Load]);
        assert_eq!(counted(0, &[(0, write), (1, read), (1, read)]).unwrap().transfers, 1);
        // The write takes it from the reader.
        assert_eq!(counted(0, &[(0, write), (1, read), (0, write), (1, read)]).unwrap().transfers, 3);
    }

    #[test]
    fn an_atomic_operation_takes_a_line_once_and_places_are_told_apart() {
        let mut directory = Directory::new(3);
        directory.measure();
        for core in 0..4 {
            directory.begin(core);
            directory.access(Load, 64, 10, || 1);
            directory.access(Store, 71, 11, || 2);
            directory.access(Store, 64, 500, || 3);
        }
        assert_eq!(directory.transactions(), 3);
        let shared = directory.shared();
        assert_eq!((shared.len(), shared[0].address), (1, 64));
        let count = |transfers, visits| Count { transfers, visits };
        assert_eq!(shared[0].places, [(1, count(3, 3)), (3, count(0, 3))]);
    }
}
