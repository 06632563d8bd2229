//! The page latch: one word that is a shared/exclusive latch and a version.
//!
//! Terms
//! - *holders*: 0 = free, 1..=MAX_SHARED = that many shared holders, EXCLUSIVE = one exclusive holder.
//! - *version*: grows with every exclusive hold that changed something, so that a reader without a latch can notice a
//!   change. It has 55 bits: at a million changes a second of one latch it comes around after a thousand years.
//! - *waiters*: set while threads are parked; the next release wakes them all.
//!
//! Rules
//! 1. Bytes guarded by the latch change only while it is held exclusively.
//! 2. `unlock_exclusive(changed = true)` raises the version before anyone else can take the latch.
//! 3. A version read with `version()` and confirmed with `is_version()` brackets reads that saw no change.
//! 4. While `waiters` is set, new threads queue behind the parked ones instead of overtaking them for ever.
//! 5. A thread that needs the latch only while a condition holds passes that condition (`still`). A thread that makes
//!    the condition false while it holds the latch calls `nudge`: waiting threads then check their conditions and stop
//!    waiting.
//!
//! `sync_test/latch_model.rs` checks them for every order of the threads' steps (loom).

use super::atomic::{AtomicU64, Ordering, fence};
use super::parking::{park, unpark_all};
use super::{SPINS, spin_loop};

const HOLDERS: u64 = 0xff;
const EXCLUSIVE: u64 = 0xff;
const MAX_SHARED: u64 = 0xfe;
const WAITERS: u64 = 0x100;
const VERSION_SHIFT: u32 = 9;
const VERSION_ONE: u64 = 1 << VERSION_SHIFT;

/// Shared/exclusive latch with a version.
#[derive(Debug, Default)]
pub(crate) struct Latch(AtomicU64);

#[derive(Clone, Copy, PartialEq)]
enum Mode {
    Shared,
    Exclusive,
}

impl Latch {
    /// A latch that is held exclusively from the start.
    pub(crate) fn new_exclusive() -> Latch {
        Latch(AtomicU64::new(EXCLUSIVE))
    }

    /// The version, or `None` while the latch is held exclusively.
    #[inline]
    pub(crate) fn version(&self) -> Option<u64> {
        let word = self.0.load(Ordering::Acquire);
        (word & HOLDERS != EXCLUSIVE).then_some(word >> VERSION_SHIFT)
    }

    /// Whether the guarded bytes are still those of `version`. Orders all earlier reads before the check.
    #[inline]
    pub(crate) fn is_version(&self, version: u64) -> bool {
        fence(Ordering::Acquire);
        let word = self.0.load(Ordering::Relaxed);
        word & HOLDERS != EXCLUSIVE && word >> VERSION_SHIFT == version
    }

    /// The version while the caller holds the latch.
    #[inline]
    pub(crate) fn held_version(&self) -> u64 {
        self.0.load(Ordering::Relaxed) >> VERSION_SHIFT
    }

    /// Whether a thread holds the latch exclusively: for assertions. A model checker would take the question for a step
    /// of its own.
    #[inline]
    pub(crate) fn is_held_exclusively(&self) -> bool {
        cfg!(shuttle) || self.0.load(Ordering::Relaxed) & HOLDERS == EXCLUSIVE
    }

    /// Whether a thread holds the latch, shared or exclusively: for assertions.
    #[inline]
    pub(crate) fn is_held(&self) -> bool {
        cfg!(shuttle) || self.0.load(Ordering::Relaxed) & HOLDERS != 0
    }

    /// Raises the version within an exclusive hold, independent of its end.
    #[inline]
    pub(crate) fn raise_version(&self) {
        let before = self.0.fetch_add(VERSION_ONE, Ordering::Relaxed);
        debug_assert_eq!(before & HOLDERS, EXCLUSIVE, "a version raised without the latch: {before:#x}");
    }

    /// Takes the latch shared, waiting while it is held exclusively.
    #[inline]
    #[cfg(test)]
    pub(crate) fn lock_shared(&self) {
        if !self.try_lock(Mode::Shared, false) {
            self.lock_slow(Mode::Shared, || true);
        }
    }

    /// Takes the latch exclusively, waiting for all other holders.
    #[inline]
    pub(crate) fn lock_exclusive(&self) {
        if !self.try_lock(Mode::Exclusive, false) {
            self.lock_slow(Mode::Exclusive, || true);
        }
    }

    /// As [`Latch::lock_shared`], but gives up (false) once `still` is false. What it looks at is changed by atomic
    /// stores before [`Latch::nudge`].
    #[inline]
    pub(crate) fn lock_shared_while(&self, still: impl Fn() -> bool) -> bool {
        self.try_lock(Mode::Shared, false) || self.lock_slow(Mode::Shared, still)
    }

    /// As [`Latch::lock_exclusive`], but gives up (false) once `still` is false; see [`Latch::lock_shared_while`].
    #[inline]
    pub(crate) fn lock_exclusive_while(&self, still: impl Fn() -> bool) -> bool {
        self.try_lock(Mode::Exclusive, false) || self.lock_slow(Mode::Exclusive, still)
    }

    /// Makes all waiting threads check their conditions (rule 5).
    #[inline]
    pub(crate) fn nudge(&self) {
        // Orders the change of the condition before the read of the word: a waiter sets the bit, then checks.
        fence(Ordering::SeqCst);
        if self.0.load(Ordering::Relaxed) & WAITERS != 0 {
            self.wake();
        }
    }

    /// Takes the latch shared if that needs no wait.
    #[inline]
    pub(crate) fn try_lock_shared(&self) -> bool {
        self.try_lock(Mode::Shared, false)
    }

    /// Takes the latch exclusively if that needs no wait.
    #[inline]
    pub(crate) fn try_lock_exclusive(&self) -> bool {
        self.try_lock(Mode::Exclusive, false)
    }

    /// Takes the latch exclusively iff its version is `version` and `still` holds; waits for shared holders, but not
    /// for a changed page.
    pub(crate) fn lock_exclusive_if(&self, version: u64, still: impl Fn() -> bool) -> bool {
        if !self.lock_exclusive_while(still) {
            return false;
        }
        let same = self.held_version() == version;
        if !same {
            self.unlock_exclusive(false);
        }
        same
    }

    /// Gives a shared hold back.
    #[inline]
    pub(crate) fn unlock_shared(&self) {
        let before = self.0.fetch_sub(1, Ordering::Release);
        debug_assert!((1..=MAX_SHARED).contains(&(before & HOLDERS)), "shared unlock of {before:#x}");
        if before & WAITERS != 0 && before & HOLDERS == 1 {
            self.wake();
        }
    }

    /// Gives the exclusive hold back; `changed` raises the version.
    #[inline]
    pub(crate) fn unlock_exclusive(&self, changed: bool) {
        let word = self.0.load(Ordering::Relaxed);
        debug_assert_eq!(word & HOLDERS, EXCLUSIVE, "exclusive unlock of {word:#x}");
        let add = if changed { VERSION_ONE } else { 0 };
        let before = self.0.fetch_add(add.wrapping_sub(EXCLUSIVE), Ordering::Release);
        debug_assert_eq!(before & HOLDERS, EXCLUSIVE, "two exclusive holders of one latch: {before:#x}");
        if before & WAITERS != 0 {
            self.wake();
        }
    }

    /// Whether threads are parked, or about to be.
    #[cfg(test)]
    pub(crate) fn has_waiters(&self) -> bool {
        self.0.load(Ordering::Relaxed) & WAITERS != 0
    }

    #[inline]
    fn try_lock(&self, mode: Mode, overtake: bool) -> bool {
        let mut word = self.0.load(Ordering::Relaxed);
        loop {
            if word & WAITERS != 0 && !overtake {
                return false;
            }
            let next = match mode {
                Mode::Shared if word & HOLDERS < MAX_SHARED => word + 1,
                Mode::Exclusive if word & HOLDERS == 0 => word | EXCLUSIVE,
                _ => return false,
            };
            match self.0.compare_exchange_weak(word, next, Ordering::Acquire, Ordering::Relaxed) {
                Ok(_) => {
                    if mode == Mode::Exclusive {
                        // Orders the holder's writes after the word, for latch-free readers (rule 3).
                        fence(Ordering::Release);
                    }
                    return true;
                }
                Err(now) => word = now,
            }
        }
    }

    #[cold]
    fn lock_slow(&self, mode: Mode, still: impl Fn() -> bool) -> bool {
        for _ in 0..SPINS {
            spin_loop();
            if self.try_lock(mode, false) {
                return true;
            }
        }
        while !self.try_lock(mode, true) {
            if !still() {
                return false;
            }
            self.park(mode, &still);
        }
        true
    }

    fn park(&self, mode: Mode, still: &impl Fn() -> bool) {
        let address = self as *const Latch as usize;
        let word = self.0.fetch_or(WAITERS, Ordering::Relaxed) | WAITERS;
        if Self::available(word, mode) {
            return;
        }
        // See `nudge`.
        fence(Ordering::SeqCst);
        let still_busy = || {
            let word = self.0.load(Ordering::Relaxed);
            word & WAITERS != 0 && !Self::available(word, mode) && still()
        };
        // SAFETY: the address is this latch's own, and `still_busy` neither panics nor parks.
        unsafe { park(address, still_busy) };
    }

    fn available(word: u64, mode: Mode) -> bool {
        match mode {
            Mode::Shared => word & HOLDERS < MAX_SHARED,
            Mode::Exclusive => word & HOLDERS == 0,
        }
    }

    #[cold]
    fn wake(&self) {
        self.0.fetch_and(!WAITERS, Ordering::Relaxed);
        // SAFETY: the address is this latch's own.
        unsafe { unpark_all(self as *const Latch as usize) };
    }
}
