//! Sequence numbers of the change log; see rules 2 to 4 of the module.

/// The state of the sequence numbers.
#[derive(Debug, Default)]
pub(super) struct Sequences {
    last: u64,
    /// Numbers whose transactions have not ended: one for each transaction that is committing or prepared.
    open: Vec<u64>,
}

impl Sequences {
    /// Continues the numbers after `last`.
    pub(super) fn go_on_behind(&mut self, last: u64) {
        self.last = self.last.max(last);
    }

    pub(super) fn last(&self) -> u64 {
        self.last
    }

    /// The next number, open.
    pub(super) fn take(&mut self) -> u64 {
        self.last += 1;
        let is_behind = self.open.iter().all(|open| *open < self.last);
        debug_assert!(is_behind, "rule 2: the number {} is not behind all others: {:?}", self.last, self.open);
        self.open.push(self.last);
        self.last
    }

    /// Marks a number as open again: a transaction that was prepared before the opening has it.
    pub(super) fn take_again(&mut self, number: u64) {
        debug_assert_ne!(number, 0, "rule 2: numbers begin with 1");
        self.open.push(number);
    }

    /// The transaction has ended.
    pub(super) fn end(&mut self, number: u64) {
        let found = self.open.iter().position(|open| *open == number);
        debug_assert!(found.is_some(), "the number {number} ends that is not open");
        if let Some(at) = found {
            self.open.swap_remove(at);
        }
    }

    /// Up to this number every transaction has ended.
    pub(super) fn ended(&self) -> u64 {
        debug_assert!(!self.open.contains(&0), "rule 2: numbers begin with 1: {:?}", self.open);
        self.open.iter().min().map_or(self.last, |first| first - 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_read_beyond_an_open_number() {
        let mut sequences = Sequences::default();
        sequences.go_on_behind(7);
        assert_eq!((sequences.ended(), sequences.take(), sequences.take(), sequences.take()), (7, 8, 9, 10));
        sequences.end(9);
        assert_eq!(sequences.ended(), 7);
        sequences.end(8);
        assert_eq!(sequences.ended(), 9);
        sequences.take_again(3);
        assert_eq!((sequences.ended(), sequences.last()), (2, 10));
        sequences.end(3);
        sequences.end(10);
        assert_eq!(sequences.ended(), 10);
    }
}
