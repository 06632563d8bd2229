//! The reader's end of a connection.
//!
//! Rule: after an error of the connection, or an invalid answer, the connection is never used again: every later call
//! is [`Error::ReaderDisconnected`].

use super::message::{Answer, Kind, MAX_ANSWER_BYTES, PROTOCOL, Request, message, put_message, read_frame};
use super::socket::{self, Stream};
use crate::error::{Error, Result};
use highwater_storage::OpenError;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The process that has the database open says hello within this time.
const HELLO_TIMEOUT: Duration = Duration::from_secs(10);
/// Reason of a disconnect by the other end.
const ENDED: &str = "it has closed the database, or has ended";

/// A connection to the process that has a database open.
pub(super) struct Link {
    folder: PathBuf,
    stream: Stream,
    out: Vec<u8>,
    /// The last frame that was received.
    pub(super) frame: Vec<u8>,
    /// The reason why the connection is no longer used.
    broken: Option<String>,
}

impl Link {
    /// Connects to the process that has the database in `folder` open.
    pub(super) fn connect(folder: &Path) -> Result<Link> {
        if !folder.is_dir() {
            return Err(OpenError::NotFound(folder.to_path_buf()).into());
        }
        let stream = socket::connect(folder).map_err(|error| match error.kind() {
            ErrorKind::NotFound | ErrorKind::ConnectionRefused => not_served(folder, "no process listens".to_string()),
            _ => not_served(folder, error.to_string()),
        })?;
        let (folder, frame, out) = (folder.to_path_buf(), Vec::new(), Vec::new());
        let mut link = Link { folder, stream, out, frame, broken: None };
        link.greet()?;
        Ok(link)
    }

    fn greet(&mut self) -> Result<()> {
        let set = self.stream.set_read_timeout(Some(HELLO_TIMEOUT));
        set.map_err(|error| self.fail(&error.to_string()))?;
        // A process that refuses a reader sends the reason and closes the connection, maybe before this is sent.
        let _ = self.send(&Request::Hello { protocol: PROTOCOL });
        self.broken = None;
        let answer = self.receive();
        let cleared = self.stream.set_read_timeout(None);
        cleared.map_err(|error| self.fail(&error.to_string()))?;
        match answer? {
            Received::Answer(Answer::Hello { protocol: PROTOCOL }) => Ok(()),
            Received::Answer(Answer::Hello { protocol }) => {
                Err(self.fail(&format!("it is of another version (its protocol is {protocol}, this one's {PROTOCOL})")))
            }
            _ => Err(self.fail("it does not say hello")),
        }
    }

    /// The folder of the database.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// The connection is not used any more.
    pub(super) fn fail(&mut self, reason: &str) -> Error {
        let reason = self.broken.get_or_insert_with(|| reason.to_string()).clone();
        Error::ReaderDisconnected { folder: self.folder.clone(), reason }
    }

    /// The other end has closed the connection, as a failed write or the end of its data shows; or the connection has
    /// failed.
    fn fail_io(&mut self, error: &std::io::Error) -> Error {
        match error.kind() {
            ErrorKind::BrokenPipe | ErrorKind::ConnectionReset => self.fail(ENDED),
            _ => self.fail(&error.to_string()),
        }
    }

    pub(super) fn send(&mut self, request: &Request<'_>) -> Result<()> {
        if self.broken.is_some() {
            return Err(self.fail(""));
        }
        self.out.clear();
        put_message(request, &mut self.out);
        self.stream.write_all(&self.out).map_err(|error| self.fail_io(&error))
    }

    /// The answer is of another kind than the request asks for: the connection is not used any more.
    pub(super) fn unexpected(&mut self) -> Error {
        self.fail("its answer is not to the question")
    }

    /// Receives a frame: rows in [`frame`](Self::frame), and whether they are the last ones; bytes of a dump
    /// or changes there; or a message.
    pub(super) fn receive(&mut self) -> Result<Received> {
        if self.broken.is_some() {
            return Err(self.fail(""));
        }
        match read_frame(&mut self.stream, &mut self.frame, MAX_ANSWER_BYTES) {
            Ok(Some(Kind::Rows)) => Ok(Received::Rows { are_last: false }),
            Ok(Some(Kind::LastRows)) => Ok(Received::Rows { are_last: true }),
            Ok(Some(Kind::Dump)) => Ok(Received::Dump),
            Ok(Some(Kind::Changes)) => Ok(Received::Changes),
            Ok(Some(Kind::Message)) => match message::<Answer>(&self.frame) {
                Ok(Answer::Failed(failure)) => Err(failure.into_error()),
                Ok(answer) => Ok(Received::Answer(answer)),
                Err(reason) => Err(self.fail(&reason)),
            },
            Ok(None) => Err(self.fail(ENDED)),
            Err(error) => Err(self.fail_io(&error)),
        }
    }

    /// The answer to a request that is not answered by rows.
    pub(super) fn answer(&mut self, request: &Request<'_>) -> Result<Answer> {
        self.send(request)?;
        match self.receive()? {
            Received::Answer(answer) => Ok(answer),
            Received::Rows { .. } | Received::Dump | Received::Changes => Err(self.fail("rows without a request")),
        }
    }
}

/// A received frame.
pub(super) enum Received {
    /// Rows, in the link's frame.
    Rows { are_last: bool },
    /// Bytes of a dump, in the link's frame.
    Dump,
    /// Changes, in the link's frame.
    Changes,
    /// No failure.
    Answer(Answer),
}

fn not_served(folder: &Path, reason: String) -> Error {
    Error::NotServed { folder: folder.to_path_buf(), reason }
}
