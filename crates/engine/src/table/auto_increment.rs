//! Auto-increment: numbers from memory, an upper bound in the catalog.
//!
//! Rules
//! 1. No number at or above the bound in the catalog is assigned: the bound is raised (logged) before. So after a crash
//!    numbering continues at the bound, which may leave a gap and never assigns a number twice. A gap takes at most a
//!    64th of the remaining numbers, so crashes do not exhaust a small type.
//! 2. A clean close lowers the bound to the next number, so it leaves no gap. A number that is taken concurrently is
//!    below that bound, or a new bound is written for it.
//! 3. An explicit value moves the counter past it, and is below the bound before it is used. This is also checked for a
//!    value that the counter has already passed, because the thread that moved the counter may not have written the
//!    bound yet, or may have failed.
//! 4. While a statement holds the table's auto-increment lock (`txn/auto_increment_lock.rs`), only its transaction
//!    moves the counter: others get [`Moved::IsLocked`], and wait for the lock. The counter's own note of the owner
//!    stays when the lock is released; the next transaction that gets the lock replaces or removes it.

use crate::error::{Error, Result};
use crate::lock::OwnerId;
use crate::sync::atomic::{AtomicU64, Ordering};
use crate::sync::{Mutex, RwLock};

/// Maximum of numbers assigned per write of the bound.
const BLOCK: u64 = 1024;
/// At most one in this many of the numbers that are left.
const SHARE: u64 = 64;

/// Numbers that are reserved together, by [`WriteTxn::reserve_numbers`](crate::WriteTxn::reserve_numbers).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NumberRange {
    /// Number of values.
    pub count: u64,
    /// Step between two values.
    pub every: u64,
    /// Each is this much more than a multiple of `every`.
    pub offset: u64,
}

impl Default for NumberRange {
    /// The next number.
    fn default() -> NumberRange {
        NumberRange { count: 1, every: 1, offset: 0 }
    }
}

impl NumberRange {
    /// Its first and last number from `next` on, if they are at most `last`. The distance is not 0.
    fn from(self, next: u64, last: u64) -> Option<(u64, u64)> {
        let NumberRange { count, every, offset } = self;
        let (wanted, has) = (offset % every, next % every);
        let first = next.checked_add(if wanted >= has { wanted - has } else { every - (has - wanted) })?;
        let end = first.checked_add(every.checked_mul(count.checked_sub(1)?)?)?;
        debug_assert!(next <= first && first <= end, "numbers from {first} to {end} are taken behind {next}");
        debug_assert_eq!(first % every, offset % every, "the number {first} is not of the kind asked for");
        (end <= last && end < u64::MAX).then_some((first, end))
    }

    /// Number of values from `next` to `last`.
    fn left(self, next: u64, last: u64) -> u64 {
        let one = NumberRange { count: 1, ..self };
        one.from(next, last).map_or(0, |(first, _)| (last.min(u64::MAX - 1) - first) / self.every + 1)
    }
}

/// The outcome of an attempt to move the counter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Moved<T> {
    /// It is moved.
    To(T),
    /// Rule 4: another transaction has locked it.
    IsLocked,
}

impl<T> Moved<T> {
    fn map<R>(self, change: impl FnOnce(T) -> Result<R>) -> Result<Moved<R>> {
        match self {
            Moved::To(done) => change(done).map(Moved::To),
            Moved::IsLocked => Ok(Moved::IsLocked),
        }
    }
}

/// The counter of one table.
#[derive(Debug)]
pub(crate) struct AutoIncrement {
    /// The next number; above `last` when there are none left.
    next: AtomicU64,
    /// Copy of the bound in the catalog.
    bound: AtomicU64,
    /// The column type's largest number.
    last: u64,
    extending: Mutex<()>,
    /// Rule 4: who has locked it. Read while the counter is moved.
    locked_by: RwLock<Option<OwnerId>>,
}

impl AutoIncrement {
    /// Counts from `bound` up to `last`.
    pub(crate) fn new(bound: u64, last: u64) -> AutoIncrement {
        debug_assert!(bound > 0, "numbers begin with 1");
        AutoIncrement {
            next: AtomicU64::new(bound),
            bound: AtomicU64::new(bound),
            last,
            extending: Mutex::new(()),
            locked_by: RwLock::new(None),
        }
    }

    /// Rule 4: from now on only `owner` moves it, which has the table's auto-increment lock. `None`: everyone does.
    pub(crate) fn set_locked_by(&self, owner: Option<OwnerId>) {
        *self.locked_by.write() = owner;
    }

    /// Moves the counter for `me`.
    #[inline]
    fn change<T>(&self, me: OwnerId, change: impl FnOnce(&AtomicU64) -> T) -> Moved<T> {
        let locked_by = self.locked_by.read();
        if locked_by.is_none_or(|owner| owner == me) { Moved::To(change(&self.next)) } else { Moved::IsLocked }
    }

    /// Takes a number for `me`. `persist` writes a new bound into the catalog.
    ///
    /// # Errors
    /// `BadValue` when the column's type has no more numbers; what `persist` returns.
    #[inline]
    pub(crate) fn take(
        &self,
        me: OwnerId,
        column: &str,
        persist: impl FnOnce(u64) -> Result<()>,
    ) -> Result<Moved<u64>> {
        let advance = |next| (next <= self.last && next < u64::MAX).then(|| next + 1);
        let taken = self.change(me, |next| next.fetch_update(Ordering::SeqCst, Ordering::Relaxed, advance));
        taken.map(|taken| {
            let taken = taken.map_err(|_| Error::BadValue {
                column: column.to_string(),
                reason: format!("auto-increment has reached {}, the last number of the column's type", self.last),
            })?;
            self.cover(taken, persist)?;
            Ok(taken)
        })
    }

    /// Takes the numbers of a range for `me`; returns the first. Its count and distance are not 0.
    ///
    /// # Errors
    /// `BadValue` if fewer numbers are left; none is taken then. An error of `persist`.
    pub(crate) fn reserve(
        &self,
        me: OwnerId,
        column: &str,
        range: NumberRange,
        persist: impl FnOnce(u64) -> Result<()>,
    ) -> Result<Moved<u64>> {
        let advance = |next| range.from(next, self.last).map(|(_, end)| end + 1);
        let taken = self.change(me, |next| next.fetch_update(Ordering::SeqCst, Ordering::Relaxed, advance));
        taken.map(|taken| {
            let taken = taken.map_err(|next| Error::BadValue {
                column: column.to_string(),
                reason: format!(
                    "{} numbers are asked for, {} of that kind are left up to {}, the last one of the column's type",
                    range.count,
                    range.left(next, self.last),
                    self.last
                ),
            })?;
            let (first, end) = range.from(taken, self.last).unwrap_or((taken, taken));
            self.cover(end, persist)?;
            Ok(first)
        })
    }

    /// The next number; `None` if there is none left.
    pub(crate) fn next(&self) -> Option<u64> {
        let next = self.next.load(Ordering::SeqCst);
        (next <= self.last && next < u64::MAX).then_some(next)
    }

    /// Makes `next` the next number. If it is a smaller one, the bound stays: after a crash counting continues there.
    ///
    /// # Errors
    /// `BadValue` if the column's type does not have it; what `persist` returns.
    pub(crate) fn set_next(&self, column: &str, next: u64, persist: impl FnOnce(u64) -> Result<()>) -> Result<()> {
        if next == 0 || next > self.last {
            let reason = format!("{next} is no number of an auto-increment column that ends at {}", self.last);
            return Err(Error::BadValue { column: column.to_string(), reason });
        }
        self.next.store(next, Ordering::SeqCst);
        if next == 1 { Ok(()) } else { self.cover(next - 1, persist) }
    }

    /// Moves the counter past an explicit value of `me`. A value that the counter has already passed waits for no lock.
    ///
    /// # Errors
    /// What `persist` returns.
    #[inline]
    pub(crate) fn observe(
        &self,
        me: OwnerId,
        value: u64,
        persist: impl FnOnce(u64) -> Result<()>,
    ) -> Result<Moved<()>> {
        let is_passed = value < self.next.load(Ordering::Relaxed);
        let move_past = |next: &AtomicU64| next.fetch_max(value.saturating_add(1), Ordering::SeqCst);
        let moved = if is_passed { Moved::To(value) } else { self.change(me, move_past) };
        moved.map(|_| self.cover(value, persist))
    }

    /// Makes the bound greater than `number`.
    #[inline]
    fn cover(&self, number: u64, persist: impl FnOnce(u64) -> Result<()>) -> Result<()> {
        if number < self.bound.load(Ordering::SeqCst) {
            return Ok(());
        }
        let _one_at_a_time = self.extending.lock();
        if number < self.bound.load(Ordering::SeqCst) {
            return Ok(());
        }
        // Others may have greater ones, if a close could not write the bound.
        let number = number.max(self.next.load(Ordering::SeqCst).saturating_sub(1));
        let left = self.last.saturating_sub(number);
        let bound = number.saturating_add(BLOCK.min(left / SHARE + 1));
        debug_assert!(number < bound || number == u64::MAX, "rule 1: the bound {bound} does not cover {number}");
        persist(bound)?;
        self.bound.store(bound, Ordering::SeqCst);
        Ok(())
    }

    /// Writes the bound down to the next number, at a clean close. A thread that takes a number meanwhile, or later,
    /// writes a new bound for it.
    ///
    /// # Errors
    /// What `persist` returns.
    pub(crate) fn persist_exact(&self, persist: impl FnOnce(u64) -> Result<()>) -> Result<()> {
        let _one_at_a_time = self.extending.lock();
        // Either a taker finds no bound, or its number is below `next` here: both orders are `SeqCst`.
        let bound = self.bound.swap(0, Ordering::SeqCst);
        let next = self.next.load(Ordering::SeqCst);
        if next != bound {
            persist(next)?;
        }
        self.bound.store(next, Ordering::SeqCst);
        Ok(())
    }
}

#[cfg(test)]
#[path = "auto_increment_test.rs"]
mod tests;
