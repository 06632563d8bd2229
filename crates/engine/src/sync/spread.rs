//! What all threads use all the time, spread over several places, so that two threads seldom write the same memory.
//!
//! Rules
//! 1. Which place a thread uses decides how fast it is, nothing else.
//! 2. A thread keeps its place. Threads that run at the same time mostly have different ones.

use super::Mutex;
use std::ops::Deref;

/// How many places there are.
pub const PLACES: usize = 16;

/// A value on cache lines of its own: threads that only use what lies beside it do not pay for its changes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Apart<T>(pub T);

impl<T> Deref for Apart<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The place of this thread.
#[cfg(not(shuttle))]
#[inline]
pub fn place() -> usize {
    use std::cell::Cell;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PLACE: Cell<usize> = const { Cell::new(PLACES) };
    }
    PLACE.with(|own| {
        if own.get() == PLACES {
            own.set(NEXT.fetch_add(1, Relaxed) % PLACES);
        }
        own.get()
    })
}

/// A checker repeats schedules: where threads meet must not depend on those before.
#[cfg(shuttle)]
pub fn place() -> usize {
    0
}

/// Things that were used and can be used again, by the same thread if possible: what it has written last is in its
/// caches.
#[derive(Debug)]
pub struct Spares<T> {
    places: [Apart<Mutex<Vec<Box<T>>>>; PLACES],
    /// Most that are kept at each place.
    most: usize,
}

impl<T> Spares<T> {
    /// None yet; of each place's, `most` will be kept.
    pub fn new(most: usize) -> Spares<T> {
        Spares { places: std::array::from_fn(|_| Apart(Mutex::new(Vec::new()))), most }
    }

    /// One that this thread's place has.
    #[inline]
    pub fn take(&self) -> Option<Box<T>> {
        self.places[place()].lock().pop()
    }

    /// Keeps one, unless there are enough.
    #[inline]
    pub fn keep(&self, spare: Box<T>) {
        let mut spares = self.places[place()].lock();
        if spares.len() < self.most {
            spares.push(spare);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_place_and_the_next_one_has_another() {
        let (own, other) = (place(), std::thread::spawn(|| (place(), place())).join().unwrap());
        assert!(own == place() && other.0 == other.1 && own < PLACES && other.0 < PLACES);
    }

    #[test]
    fn spares_are_used_again_and_not_hoarded() {
        let spares = Spares::new(2);
        assert!(spares.take().is_none());
        (1..=3).for_each(|n| spares.keep(Box::new(n)));
        assert_eq!((spares.take(), spares.take(), spares.take()), (Some(Box::new(2)), Some(Box::new(1)), None));
    }
}
