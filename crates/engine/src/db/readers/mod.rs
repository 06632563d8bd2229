//! Readers in other processes: they read snapshots of an open database through a socket in its folder.
//!
//! | file | what |
//! |---|---|
//! | `message` | the messages between a reader and the process that serves it |
//! | `value` | values of keys in messages |
//! | `socket` | the socket, where the system has such sockets |
//! | `server`, `accept` | the threads that serve the socket |
//! | `connection` | one reader's requests, answered |
//! | `offers` | snapshots that connections share |
//! | `link` | the reader's end of a connection |
//! | `served_changes` | the change log as a stream of frames |
//! | `reader`, `reader_scan`, `reader_changes` | the calls of users |
//!
//! Why a socket and not shared memory: the rows of a snapshot are in the pool, in undo pages and in the change buffer
//! of the process that has the database open. A second process that read them in shared memory would need latches of
//! all three, and would hold them after its death. With a socket the reader runs no engine code: the serving process
//! runs a transaction for it.
//!
//! Rules
//! 1. A connection is one snapshot, which other connections of the reader may share, or one stream of changes. A
//!    snapshot is an ordinary reading transaction: no writer waits for it, purge keeps its versions, and schema changes
//!    of its tables wait for its end. A stream holds nothing between two requests.
//! 2. The snapshot ends with its connection, which the kernel closes when the reader's process dies.
//! 3. Rows are copied out of their pages before they are sent, so a reader that stops in the middle of an answer holds
//!    no latch. Long requests repeatedly check for the end of the connection and the close of the database.
//! 4. Neither side trusts the other: an invalid length, number or text is an error before memory is allocated for it.
//! 5. A close first ends every connection and removes the socket. The next opening, which holds the folder's lock,
//!    replaces the socket of a killed process.
//! 6. If the file system or the operating system has no sockets, the database opens without readers.

mod accept;
mod connection;
mod link;
mod message;
mod offers;
mod reader;
mod reader_changes;
mod reader_scan;
mod served_changes;
mod server;
mod socket;
mod value;

pub use reader::{Reader, ReaderSnapshot, ServedTable};
pub use reader_changes::ReaderChanges;
pub use reader_scan::{ReaderRows, ReaderScan};
pub(super) use server::ReaderServer;

#[cfg(test)]
mod readers_test;
