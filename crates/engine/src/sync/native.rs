//! The primitives of a normal build: those of `parking_lot` and `std`, and a condition variable.

pub(crate) use super::condvar::Condvar;
pub(crate) use parking_lot::{Mutex, MutexGuard, RwLock, RwLockReadGuard, RwLockWriteGuard};
pub(crate) use std::hint::spin_loop;
pub(crate) use std::sync::atomic;
pub(crate) use std::{thread, thread_local};

/// Number of spins on a latch before a thread is parked.
pub(crate) const SPINS: u32 = 64;

/// Threads that are parked on an address.
pub(crate) mod parking {
    use parking_lot_core::{DEFAULT_PARK_TOKEN, DEFAULT_UNPARK_TOKEN};

    /// Parks this thread on an address until [`unpark_all`], unless `is_needed` denies it. That is asked while no
    /// thread is parked or unparked on the address.
    ///
    /// # Safety
    /// The address belongs to the caller, so that no other code parks on it; `is_needed` neither panics nor parks.
    #[inline]
    pub(crate) unsafe fn park(address: usize, is_needed: impl FnOnce() -> bool) {
        // SAFETY: the caller's promise; the other callbacks do nothing.
        unsafe { parking_lot_core::park(address, is_needed, || {}, |_, _| {}, DEFAULT_PARK_TOKEN, None) };
    }

    /// Wakes all threads that are parked on an address.
    ///
    /// # Safety
    /// The address belongs to the caller, as in [`park`].
    #[inline]
    pub(crate) unsafe fn unpark_all(address: usize) {
        // SAFETY: the caller's promise.
        unsafe { parking_lot_core::unpark_all(address, DEFAULT_UNPARK_TOKEN) };
    }
}
