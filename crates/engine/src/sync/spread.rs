//! What all threads use all the time, spread over several places, so that two threads seldom write the same memory.
//!
//! Rules
//! 1. Which place a thread uses decides how fast it is, nothing else.
//! 2. A thread keeps its place. Threads that run at the same time mostly have different ones: there are more places
//!    than processors, up to 64.

use super::Mutex;
use super::atomic::{AtomicU64, Ordering::Relaxed};
use std::ops::Deref;

/// The most places there are.
#[cfg(not(shuttle))]
const MOST_PLACES: usize = 64;

/// How many places there are; a power of two.
#[cfg(not(shuttle))]
pub fn places() -> usize {
    (super::processors() + 1).next_power_of_two().clamp(4, MOST_PLACES)
}

/// As few as let threads differ from others that came before, whatever the machine.
#[cfg(shuttle)]
pub fn places() -> usize {
    2
}

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

/// The place of this thread; with fewer places than [`MOST_PLACES`], its lowest bits.
#[cfg(not(shuttle))]
#[inline]
pub fn place() -> usize {
    use std::cell::Cell;
    use std::sync::atomic::AtomicUsize;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PLACE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    PLACE.with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Relaxed) % MOST_PLACES);
        }
        own.get()
    })
}

/// A checker repeats schedules: where threads meet must not depend on those before.
#[cfg(shuttle)]
pub fn place() -> usize {
    0
}

/// Something at each place.
#[derive(Debug)]
pub struct Spread<T>(Box<[Apart<T>]>);

impl<T: Default> Default for Spread<T> {
    fn default() -> Spread<T> {
        Spread::of(T::default)
    }
}

impl<T> Spread<T> {
    /// What `make` makes, at each place.
    pub fn of(mut make: impl FnMut() -> T) -> Spread<T> {
        Spread((0..places()).map(|_| Apart(make())).collect())
    }

    /// That of this thread's place.
    #[inline]
    pub fn own(&self) -> &T {
        // There is a power of two of them, so the mask is the remainder.
        &self.0[place() & (self.0.len() - 1)]
    }

    /// Those of all places.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|apart| &apart.0)
    }
}

/// A number that many threads change and few read: the sum of one at each place. What was added at one place may be
/// taken off at another.
#[derive(Debug, Default)]
pub struct Sum(Spread<AtomicU64>);

impl Sum {
    /// Beginning at `n`.
    pub fn new(n: u64) -> Sum {
        let sum = Sum::default();
        sum.add(n);
        sum
    }

    /// Adds `n`.
    #[inline]
    pub fn add(&self, n: u64) {
        self.0.own().fetch_add(n, Relaxed);
    }

    /// Takes `n` off.
    #[inline]
    pub fn sub(&self, n: u64) {
        self.0.own().fetch_sub(n, Relaxed);
    }

    /// The sum. Beside threads that change it, it may lack what one of them added while it has what the same or another
    /// took off later; then it is 0 rather than less.
    pub fn get(&self) -> u64 {
        let sum = self.0.iter().fold(0u64, |sum, part| sum.wrapping_add(part.load(Relaxed)));
        if sum > u64::MAX / 2 { 0 } else { sum }
    }
}

/// Things that were used and can be used again, by the same thread if possible: what it has written last is in its
/// caches.
#[derive(Debug)]
pub struct Spares<T> {
    places: Spread<Mutex<Vec<Box<T>>>>,
    /// Most that are kept at each place.
    most: usize,
}

impl<T> Spares<T> {
    /// None yet; of each place's, `most` will be kept.
    pub fn new(most: usize) -> Spares<T> {
        Spares { places: Spread::of(|| Mutex::new(Vec::new())), most }
    }

    /// One that this thread's place has.
    #[inline]
    pub fn take(&self) -> Option<Box<T>> {
        self.places.own().lock().pop()
    }

    /// Keeps one, unless there are enough.
    #[inline]
    pub fn keep(&self, spare: Box<T>) {
        let mut spares = self.places.own().lock();
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
        assert!(own == place() && other.0 == other.1 && own < MOST_PLACES && other.0 < MOST_PLACES);
    }

    #[test]
    fn a_sum_is_that_of_all_places_and_never_below_zero() {
        let sum = Sum::new(3);
        std::thread::scope(|scope| {
            (0..5).for_each(|_| drop(scope.spawn(|| sum.add(2))));
        });
        assert_eq!(sum.get(), 13);
        sum.sub(14);
        assert_eq!(sum.get(), 0);
        sum.add(2);
        assert_eq!(sum.get(), 1);
    }

    #[test]
    fn there_is_a_power_of_two_of_places() {
        assert!(places().is_power_of_two() && places() <= MOST_PLACES);
        assert_eq!(Spread::<u8>::default().iter().count(), places());
    }

    #[test]
    fn spares_are_used_again_and_not_hoarded() {
        let spares = Spares::new(2);
        assert!(spares.take().is_none());
        (1..=3).for_each(|n| spares.keep(Box::new(n)));
        assert_eq!((spares.take(), spares.take(), spares.take()), (Some(Box::new(2)), Some(Box::new(1)), None));
    }
}
