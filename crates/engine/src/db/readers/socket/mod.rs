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

use std::io::{Error, ErrorKind, Read, Result};

/// Whether the other end of a connection, which owes nothing now, has closed it.
pub(super) fn is_gone(mut stream: &Stream) -> Result<bool> {
    stream.set_nonblocking(true)?;
    let read = stream.read(&mut [0]);
    stream.set_nonblocking(false)?;
    match read {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
        Ok(0) => Ok(true),
        Ok(_) => Err(Error::new(ErrorKind::InvalidData, "a request out of turn")),
        Err(error) => Err(error),
    }
}
