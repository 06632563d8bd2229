//! Unix sockets with a name in the file system.
//!
//! Rules
//! 1. A path too long for the name of a socket leads through the open folder on Linux; elsewhere it is an error.
//! 2. An existing socket belongs to a killed process, because this one has the folder's lock, and is replaced. A file
//!    of another kind is not replaced.
//! 3. To end the wait for connections, the socket is shut down on Linux; on other systems a connection is made.

use std::fs::File;
use std::io::{Error, ErrorKind, Result};
use std::net::Shutdown;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};

/// A connection.
pub(crate) type Stream = UnixStream;

/// Name of the socket in the database's folder.
const SOCKET: &str = "readers";
/// Longest path of a socket (`sun_path`, with a zero byte): 108 bytes on Linux, 104 on other systems.
const MAX_PATH_BYTES: usize = if cfg!(target_os = "linux") { 107 } else { 103 };

/// The path of a folder's socket; a long one leads through the open folder, which is to be kept as long as the path is
/// used.
fn path_of(folder: &Path) -> Result<(PathBuf, Option<File>)> {
    let path = folder.join(SOCKET);
    if path.as_os_str().len() <= MAX_PATH_BYTES {
        return Ok((path, None));
    }
    if cfg!(not(target_os = "linux")) {
        let text = format!("{} is longer than {MAX_PATH_BYTES} bytes: no socket has such a path here", path.display());
        return Err(Error::new(ErrorKind::InvalidFilename, text));
    }
    let opened = File::open(folder)?;
    Ok((PathBuf::from(format!("/proc/self/fd/{}/{SOCKET}", opened.as_raw_fd())), Some(opened)))
}

/// Connects to the socket of a folder.
///
/// # Errors
/// No thread listens; the system's.
pub(crate) fn connect(folder: &Path) -> Result<Stream> {
    let (path, _opened) = path_of(folder)?;
    UnixStream::connect(path)
}

/// Removes the socket of a folder, if it is there.
pub(crate) fn remove(folder: &Path) {
    let _ = std::fs::remove_file(folder.join(SOCKET));
}

/// A listener.
pub(crate) struct Listener(UnixListener);

impl Listener {
    /// Makes the socket of a folder, which is locked.
    ///
    /// # Errors
    /// Rules 1 and 2; the system's.
    pub(crate) fn bind(folder: &Path) -> Result<Listener> {
        let (path, _opened) = path_of(folder)?;
        match UnixListener::bind(&path) {
            Err(error) if error.kind() == ErrorKind::AddrInUse => {
                if !std::fs::symlink_metadata(&path)?.file_type().is_socket() {
                    return Err(error);
                }
                std::fs::remove_file(&path)?;
                UnixListener::bind(&path).map(Listener)
            }
            bound => bound.map(Listener),
        }
    }

    /// Waits for a connection.
    ///
    /// # Errors
    /// It was woken (rule 3); the system's.
    pub(crate) fn accept(&self) -> Result<Stream> {
        self.0.accept().map(|(stream, _)| stream)
    }

    /// A handle that ends the wait on this socket of `folder`.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn waker(&self, folder: &Path) -> Result<Waker> {
        Ok(Waker { socket: UnixStream::from(OwnedFd::from(self.0.try_clone()?)), folder: folder.to_path_buf() })
    }
}

/// Ends the waiting of a [`Listener`].
pub(crate) struct Waker {
    /// The socket once more.
    socket: UnixStream,
    folder: PathBuf,
}

impl Waker {
    /// Ends it; returns whether that could be done.
    pub(crate) fn wake(&self) -> bool {
        if cfg!(target_os = "linux") { self.socket.shutdown(Shutdown::Both).is_ok() } else { self.wake_by_connecting() }
    }

    fn wake_by_connecting(&self) -> bool {
        connect(&self.folder).is_ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ways_end_the_waiting() {
        for wake in [Waker::wake, Waker::wake_by_connecting] {
            let folder = tempfile::tempdir().unwrap();
            let listener = Listener::bind(folder.path()).unwrap();
            let waker = listener.waker(folder.path()).unwrap();
            let waiting = std::thread::spawn(move || drop(listener.accept()));
            assert!(wake(&waker));
            waiting.join().unwrap();
            remove(folder.path());
            assert!(!folder.path().join(SOCKET).exists() && !waker.wake_by_connecting());
        }
    }
}
