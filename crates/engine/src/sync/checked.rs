//! The primitives of a model checker with the interface of the engine's own ([`super::native`]), so that the unchanged
//! engine code runs under it: under shuttle the whole engine, under loom single files.
//!
//! Rules
//! 1. A mutex is never poisoned: a panic ends the whole run.
//! 2. No time passes. A pause, and a wait shorter than [`SHORT`], ends at once. A wait of at most [`LONG`] times out or
//!    not, as the checker chooses; a longer one never times out, so a lost wake-up is a deadlock, which the checker
//!    reports.
//! 3. A thread whose wait times out consumes no notification.

use std::time::Duration;

/// Waits below this are pauses: a waiter checks its condition again by itself.
const SHORT: Duration = Duration::from_secs(1);
/// Waits above this never time out.
const LONG: Duration = Duration::from_secs(3600);

/// The outcome of a wait of this length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Wait {
    TimesOut,
    MayTimeOut,
    Lasts,
}

impl Wait {
    pub(crate) fn of(length: Duration) -> Wait {
        if length < SHORT {
            Wait::TimesOut
        } else if length <= LONG {
            Wait::MayTimeOut
        } else {
            Wait::Lasts
        }
    }
}

/// The primitives over a checker's crate. `$chooses` says whether a wait that may time out does.
macro_rules! primitives {
    ($checker:ident, $chooses:expr) => {
        use crate::sync::checked::Wait;
        use std::ops::{Deref, DerefMut};
        use std::time::{Duration, Instant};

        /// See the engine's own. Once is enough where nothing takes time.
        pub(crate) const SPINS: u32 = 1;

        pub(crate) use $checker::sync::atomic;
        pub(crate) use $checker::{hint::spin_loop, thread, thread_local};

        #[derive(Debug, Default)]
        pub(crate) struct Mutex<T>($checker::sync::Mutex<T>);

        pub(crate) struct MutexGuard<'m, T> {
            mutex: &'m Mutex<T>,
            /// None only while it waits.
            held: Option<$checker::sync::MutexGuard<'m, T>>,
        }

        impl<T> Mutex<T> {
            #[track_caller]
            pub(crate) fn new(value: T) -> Mutex<T> {
                Mutex($checker::sync::Mutex::new(value))
            }

            pub(crate) fn lock(&self) -> MutexGuard<'_, T> {
                MutexGuard { mutex: self, held: Some(self.0.lock().unwrap()) }
            }

            pub(crate) fn try_lock(&self) -> Option<MutexGuard<'_, T>> {
                self.0.try_lock().ok().map(|held| MutexGuard { mutex: self, held: Some(held) })
            }

            pub(crate) fn get_mut(&mut self) -> &mut T {
                self.0.get_mut().unwrap()
            }
        }

        impl<T> Deref for MutexGuard<'_, T> {
            type Target = T;
            fn deref(&self) -> &T {
                self.held.as_ref().expect("it does not wait now")
            }
        }

        impl<T> DerefMut for MutexGuard<'_, T> {
            fn deref_mut(&mut self) -> &mut T {
                self.held.as_mut().expect("it does not wait now")
            }
        }

        impl<T: std::fmt::Debug> std::fmt::Debug for MutexGuard<'_, T> {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                (**self).fmt(f)
            }
        }

        #[derive(Debug, Default)]
        pub(crate) struct Condvar($checker::sync::Condvar);

        /// Whether a wait timed out.
        #[derive(Debug)]
        pub(crate) struct TimedOut(bool);

        impl TimedOut {
            pub(crate) fn timed_out(&self) -> bool {
                self.0
            }
        }

        impl Condvar {
            #[track_caller]
            pub(crate) fn new() -> Condvar {
                Condvar($checker::sync::Condvar::new())
            }

            pub(crate) fn wait<T>(&self, guard: &mut MutexGuard<'_, T>) {
                guard.held = guard.held.take().map(|held| self.0.wait(held).unwrap());
            }

            pub(crate) fn wait_for<T>(&self, guard: &mut MutexGuard<'_, T>, length: Duration) -> TimedOut {
                let times_out = match Wait::of(length) {
                    Wait::TimesOut => true,
                    Wait::MayTimeOut => $chooses,
                    Wait::Lasts => false,
                };
                if !times_out {
                    self.wait(guard);
                } else {
                    guard.held = None;
                    thread::yield_now();
                    guard.held = Some(guard.mutex.0.lock().unwrap());
                }
                TimedOut(times_out)
            }

            pub(crate) fn wait_until<T>(&self, guard: &mut MutexGuard<'_, T>, until: Instant) -> TimedOut {
                self.wait_for(guard, until.saturating_duration_since(Instant::now()))
            }

            pub(crate) fn notify_one(&self) {
                self.0.notify_one();
            }

            pub(crate) fn notify_all(&self) {
                self.0.notify_all();
            }
        }

        #[derive(Debug, Default)]
        pub(crate) struct RwLock<T>($checker::sync::RwLock<T>);

        pub(crate) use $checker::sync::{RwLockReadGuard, RwLockWriteGuard};

        impl<T> RwLock<T> {
            #[track_caller]
            pub(crate) fn new(value: T) -> RwLock<T> {
                RwLock($checker::sync::RwLock::new(value))
            }

            pub(crate) fn read(&self) -> RwLockReadGuard<'_, T> {
                self.0.read().unwrap()
            }

            pub(crate) fn write(&self) -> RwLockWriteGuard<'_, T> {
                self.0.write().unwrap()
            }

            pub(crate) fn try_read(&self) -> Option<RwLockReadGuard<'_, T>> {
                self.0.try_read().ok()
            }
        }

        /// Threads that are parked on an address.
        pub(crate) mod parking {
            use super::{Condvar, Mutex};

            #[derive(Default)]
            struct Lot {
                /// Address and ticket of each thread that is parked.
                parked: Mutex<(Vec<(usize, u64)>, u64)>,
                notify: Condvar,
            }

            $checker::lazy_static! {
                static ref LOT: Lot = Lot::default();
            }

            /// # Safety
            /// None is needed here; see the engine's own.
            pub(crate) unsafe fn park(address: usize, is_needed: impl FnOnce() -> bool) {
                let mut parked = LOT.parked.lock();
                if !is_needed() {
                    return;
                }
                let ticket = parked.1;
                parked.1 += 1;
                parked.0.push((address, ticket));
                while parked.0.contains(&(address, ticket)) {
                    LOT.notify.wait(&mut parked);
                }
            }

            /// # Safety
            /// None is needed here; see the engine's own.
            pub(crate) unsafe fn unpark_all(address: usize) {
                LOT.parked.lock().0.retain(|(at, _)| *at != address);
                LOT.notify.notify_all();
            }
        }
    };
}

/// Under shuttle: random schedules of the whole engine. Atomics are sequentially consistent.
#[cfg(shuttle)]
pub(crate) mod shuttle_primitives {
    use shuttle::rand::Rng;
    primitives!(shuttle, shuttle::rand::thread_rng().gen_bool(0.5));
}

/// Under loom: every schedule of a few steps, and every order of memory that the atomics allow. Waits do not time out.
#[cfg(all(test, not(shuttle)))]
pub(crate) mod loom_primitives {
    primitives!(loom, false);
}

/// Runs a model under loom, with at most `preemptions` switches away from a thread that could continue.
#[cfg(all(test, not(shuttle)))]
pub(crate) fn model(preemptions: usize, threads: impl Fn() + Sync + Send + 'static) {
    let mut builder = loom::model::Builder::new();
    builder.preemption_bound = Some(preemptions);
    builder.check(threads);
}
