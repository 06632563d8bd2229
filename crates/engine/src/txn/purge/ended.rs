//! Undo streams with ended transactions that are not purged: the candidates for purge.
//!
//! Rules
//! 1. A stream is here at most once; only the thread that takes it out purges it.
//! 2. A transaction that ends puts its stream into its thread's shard, without contention. Purge gathers the streams of
//!    all shards once a step, before it chooses.

use crate::sync::Mutex;
use crate::sync::sharded::Sharded;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// The number of a stream's oldest ended transaction, and the stream's.
pub(crate) type EndedStream = (u64, usize);

/// See the file's head.
#[derive(Debug, Default)]
pub(crate) struct EndedTxns {
    put: Sharded<Mutex<Vec<EndedStream>>>,
    /// The smallest number first.
    gathered: Mutex<BinaryHeap<Reverse<EndedStream>>>,
}

impl EndedTxns {
    /// These, as gathered.
    pub(crate) fn new(entries: Vec<EndedStream>) -> EndedTxns {
        EndedTxns { gathered: Mutex::new(entries.into_iter().map(Reverse).collect()), ..EndedTxns::default() }
    }

    /// From a transaction that ends.
    pub(crate) fn put(&self, entry: EndedStream) {
        self.put.local().lock().push(entry);
    }

    /// From purge: to be taken again at once.
    pub(crate) fn put_back(&self, entry: EndedStream) {
        let mut gathered = self.gathered.lock();
        let waits = gathered.iter().any(|Reverse((_, stream))| *stream == entry.1);
        debug_assert!(!waits, "rule 1: the stream {} is put back and waits already", entry.1);
        gathered.push(Reverse(entry));
    }

    /// Makes what is at the places something to choose from. Returns how many streams there are.
    pub(crate) fn gather(&self) -> usize {
        let mut gathered = self.gathered.lock();
        self.put.iter().for_each(|put| gathered.extend(put.lock().drain(..).map(Reverse)));
        EndedTxns::check(&gathered);
        gathered.len()
    }

    /// The stream with the smallest number, if that is below `limit`.
    pub(crate) fn take(&self, limit: u64) -> Option<EndedStream> {
        let mut gathered = self.gathered.lock();
        let Reverse((number, _)) = gathered.peek()?;
        if *number < limit { gathered.pop().map(|Reverse(entry)| entry) } else { None }
    }

    /// Rule 1, for the gathered ones.
    fn check(gathered: &BinaryHeap<Reverse<EndedStream>>) {
        if cfg!(debug_assertions) {
            let mut streams: Vec<usize> = gathered.iter().map(|Reverse((_, stream))| *stream).collect();
            streams.sort_unstable();
            debug_assert!(streams.is_sorted_by(|a, b| a < b), "rule 1: a stream waits twice: {streams:?}");
        }
    }

    /// The stream that would be taken first, in tests.
    #[cfg(test)]
    pub(crate) fn first(&self) -> Option<usize> {
        self.gather();
        self.gathered.lock().peek().map(|Reverse((_, stream))| *stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_any_thread_put_is_taken_by_number() {
        let ended = EndedTxns::new(vec![(30, 3)]);
        std::thread::scope(|scope| {
            for n in [5, 4, 1] {
                let ended = &ended;
                scope.spawn(move || ended.put((n * 10, n as usize)));
            }
        });
        assert_eq!(ended.take(30), None);
        assert_eq!(ended.gather(), 4);
        assert_eq!((ended.take(35), ended.take(35), ended.take(35)), (Some((10, 1)), Some((30, 3)), None));
        ended.put_back((10, 1));
        assert_eq!((ended.take(35), ended.gather()), (Some((10, 1)), 2));
    }
}
