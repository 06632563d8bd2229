//! Threads for many clients, or an error with the number of possible threads.
//!
//! Rules
//! 1. A thread that cannot be started is an error with the number of threads that can, never a panic or an abort.
//! 2. Clients need little stack ([`STACK_BYTES`]): thousands of them fit an address space that is limited.
//! 3. When the last thread starts, the free address space must suffice for the allocations of all threads and for those
//!    of the standard library in each new thread, where a failure ends the process. So before each start this much
//!    memory is allocated and released again.

use crate::error::{Error, Result};
use std::thread::{Builder, Scope};

/// Stack of a client's thread.
pub(crate) const STACK_BYTES: usize = 512 << 10;
/// Address space that must be free for the process, and for each client.
const ROOM_BYTES: usize = 64 << 20;
const CLIENT_ROOM_BYTES: usize = 64 << 10;

/// Starts thread `n` (from 0) of `of` in `scope`.
///
/// # Errors
/// [`Error::Usage`] has the number of possible threads.
pub(crate) fn spawn<'scope, 'env>(
    scope: &'scope Scope<'scope, 'env>,
    n: usize,
    of: usize,
    work: impl FnOnce() + Send + 'scope,
) -> Result<()> {
    let mut room = Vec::<u8>::new();
    let left = room.try_reserve_exact(ROOM_BYTES + CLIENT_ROOM_BYTES * of);
    // `black_box` keeps the compiler from removing the reservation.
    drop(std::hint::black_box(room));
    let started = left.map_err(|_| "no memory is left for it".to_string()).and_then(|()| {
        let thread = Builder::new().name(format!("client-{n}")).stack_size(STACK_BYTES).spawn_scoped(scope, work);
        thread.map(drop).map_err(|error| error.to_string())
    });
    started.map_err(|reason| {
        Error::Usage(format!(
            "only {n} of {of} client threads could be started ({reason}): use fewer threads, or raise the limits \
             (ulimit -u, -v)"
        ))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[test]
    fn thousands_of_threads_start() {
        let ran = AtomicUsize::new(0);
        let work = || {
            ran.fetch_add(1, Ordering::Relaxed);
        };
        std::thread::scope(|scope| (0..1000).for_each(|n| spawn(scope, n, 1000, work).unwrap()));
        assert_eq!(ran.into_inner(), 1000);
    }
}
