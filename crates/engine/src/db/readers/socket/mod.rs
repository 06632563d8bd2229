//! The socket in the folder of an open database, and connections to it.
//!
//! | file | of which systems |
//! |---|---|
//! | `unix` | every Unix |
//! | `none` | others, which have no such sockets: no thread listens, and a connection attempt gets the reason |

#[cfg(not(unix))]
mod none;
#[cfg(unix)]
mod unix;

#[cfg(not(unix))]
pub(super) use none::{Listener, Stream, Waker, connect, remove};
#[cfg(unix)]
pub(super) use unix::{Listener, Stream, Waker, connect, remove};
