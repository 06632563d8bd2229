//! Systems without sockets: no value of these types exists, and every call fails or does nothing.

use std::convert::Infallible;
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::net::Shutdown;
use std::path::Path;
use std::time::Duration;

fn unsupported<T>() -> Result<T> {
    let text = "readers in other processes need Unix sockets, which this system does not have";
    Err(Error::new(ErrorKind::Unsupported, text))
}

/// A connection; no value of this type exists.
pub(crate) struct Stream(Infallible);

/// A listener; no value of this type exists.
pub(crate) struct Listener(Infallible);

/// Ends the wait of a [`Listener`].
pub(crate) struct Waker(Infallible);

/// Fails.
///
/// # Errors
/// Always.
pub(crate) fn connect(_folder: &Path) -> Result<Stream> {
    unsupported()
}

/// There is nothing to remove.
pub(crate) fn remove(_folder: &Path) {}

impl Listener {
    /// Fails.
    ///
    /// # Errors
    /// Always.
    pub(crate) fn bind(_folder: &Path) -> Result<Listener> {
        unsupported()
    }

    /// There is no listener that waits.
    pub(crate) fn accept(&self) -> Result<Stream> {
        match self.0 {}
    }

    /// There is no listener that waits.
    pub(crate) fn waker(&self, _folder: &Path) -> Result<Waker> {
        match self.0 {}
    }
}

impl Waker {
    /// There is nothing to wake.
    pub(crate) fn wake(&self) -> bool {
        match self.0 {}
    }
}

impl Stream {
    pub(crate) fn try_clone(&self) -> Result<Stream> {
        match self.0 {}
    }

    pub(crate) fn set_read_timeout(&self, _: Option<Duration>) -> Result<()> {
        match self.0 {}
    }

    pub(crate) fn set_nonblocking(&self, _: bool) -> Result<()> {
        match self.0 {}
    }

    pub(crate) fn shutdown(&self, _: Shutdown) -> Result<()> {
        match self.0 {}
    }
}

impl Read for Stream {
    fn read(&mut self, _: &mut [u8]) -> Result<usize> {
        match self.0 {}
    }
}

impl Read for &Stream {
    fn read(&mut self, _: &mut [u8]) -> Result<usize> {
        match self.0 {}
    }
}

impl Write for Stream {
    fn write(&mut self, _: &[u8]) -> Result<usize> {
        match self.0 {}
    }

    fn flush(&mut self) -> Result<()> {
        match self.0 {}
    }
}
