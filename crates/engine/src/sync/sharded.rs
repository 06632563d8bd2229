//! Frequently written state, distributed over several shards, so that two threads seldom write the same memory.
//!
//! Rules
//! 1. The shard of a thread affects only speed.
//! 2. A thread keeps its shard. Threads that run at the same time mostly have different ones: there are more shards
//!    than processors, up to 64.

use super::Mutex;
use super::atomic::{AtomicU64, Ordering::Relaxed};
use std::ops::Deref;

/// The most shards there are.
#[cfg(not(shuttle))]
const MAX_SHARDS: usize = 64;

/// Number of shards; a power of two.
#[cfg(not(shuttle))]
pub(crate) fn shard_count() -> usize {
    (super::cpu_count() + 1).next_power_of_two().clamp(4, MAX_SHARDS)
}

/// As few as let threads differ from others that came before, for any machine.
#[cfg(shuttle)]
pub(crate) fn shard_count() -> usize {
    2
}

/// A value on cache lines of its own: threads that only use neighboring data do not pay for its changes.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct CachePadded<T>(pub T);

impl<T> Deref for CachePadded<T> {
    type Target = T;

    #[inline]
    fn deref(&self) -> &T {
        &self.0
    }
}

/// The shard of this thread; with fewer shards than [`MAX_SHARDS`], its lowest bits.
#[cfg(not(shuttle))]
#[inline]
pub(crate) fn shard() -> usize {
    use std::cell::Cell;
    use std::sync::atomic::AtomicUsize;
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    thread_local! {
        static PLACE: Cell<usize> = const { Cell::new(usize::MAX) };
    }
    PLACE.with(|own| {
        if own.get() == usize::MAX {
            own.set(NEXT.fetch_add(1, Relaxed) % MAX_SHARDS);
        }
        own.get()
    })
}

/// A checker repeats schedules: where threads meet must not depend on those before.
#[cfg(shuttle)]
pub(crate) fn shard() -> usize {
    0
}

/// Something at each shard.
#[derive(Debug)]
pub(crate) struct Sharded<T>(Box<[CachePadded<T>]>);

impl<T: Default> Default for Sharded<T> {
    fn default() -> Sharded<T> {
        Sharded::of(T::default)
    }
}

impl<T> Sharded<T> {
    /// Creates each shard's value by `make`.
    pub(crate) fn of(mut make: impl FnMut() -> T) -> Sharded<T> {
        let shards = shard_count();
        debug_assert!(shards.is_power_of_two(), "the remainder of {shards} is not a mask");
        Sharded((0..shards).map(|_| CachePadded(make())).collect())
    }

    /// The value at this thread's shard.
    #[inline]
    pub(crate) fn local(&self) -> &T {
        // There is a power of two of them, so the mask is the remainder.
        &self.0[shard() & (self.0.len() - 1)]
    }

    /// The values of all shards.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.0.iter().map(|apart| &apart.0)
    }
}

/// A counter that many threads change and few read: the sum over its shards. A thread may subtract at one shard what
/// another thread added at another shard.
#[derive(Debug, Default)]
pub(crate) struct ShardedCounter(Sharded<AtomicU64>);

impl ShardedCounter {
    /// Beginning at `n`.
    pub(crate) fn new(n: u64) -> ShardedCounter {
        let sum = ShardedCounter::default();
        sum.add(n);
        sum
    }

    #[inline]
    pub(crate) fn add(&self, n: u64) {
        self.0.local().fetch_add(n, Relaxed);
    }

    /// Takes `n` off.
    #[inline]
    pub(crate) fn sub(&self, n: u64) {
        self.0.local().fetch_sub(n, Relaxed);
    }

    /// The sum. While threads change it, it may lack what one of them added while it has what the same or another
    /// took off later; then it is 0 rather than less.
    pub(crate) fn get(&self) -> u64 {
        let sum = self.0.iter().fold(0u64, |sum, part| sum.wrapping_add(part.load(Relaxed)));
        if sum > u64::MAX / 2 { 0 } else { sum }
    }
}

/// Things that were used and can be used again, by the same thread if possible: what it has written last is in its
/// caches.
#[derive(Debug)]
pub(crate) struct ObjectPool<T> {
    places: Sharded<Mutex<Vec<Box<T>>>>,
    /// Most that are kept at each shard.
    max: usize,
}

impl<T> ObjectPool<T> {
    /// None yet; of each shard's, `max` will be kept.
    pub(crate) fn new(max: usize) -> ObjectPool<T> {
        ObjectPool { places: Sharded::of(|| Mutex::new(Vec::new())), max }
    }

    /// An object of this thread's shard.
    #[inline]
    pub(crate) fn take(&self) -> Option<Box<T>> {
        self.places.local().lock().pop()
    }

    /// Keeps one, unless there are enough.
    #[inline]
    pub(crate) fn keep(&self, spare: Box<T>) {
        let mut spares = self.places.local().lock();
        if spares.len() < self.max {
            spares.push(spare);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_keeps_its_place_and_the_next_one_has_another() {
        let (own, other) = (shard(), std::thread::spawn(|| (shard(), shard())).join().unwrap());
        assert!(own == shard() && other.0 == other.1 && own < MAX_SHARDS && other.0 < MAX_SHARDS);
    }

    #[test]
    fn a_sum_is_that_of_all_places_and_never_below_zero() {
        let sum = ShardedCounter::new(3);
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
        assert!(shard_count().is_power_of_two() && shard_count() <= MAX_SHARDS);
        assert_eq!(Sharded::<u8>::default().iter().count(), shard_count());
    }

    #[test]
    fn spares_are_used_again_and_not_hoarded() {
        let spares = ObjectPool::new(2);
        assert!(spares.take().is_none());
        (1..=3).for_each(|n| spares.keep(Box::new(n)));
        assert_eq!((spares.take(), spares.take(), spares.take()), (Some(Box::new(2)), Some(Box::new(1)), None));
    }
}
