//! Readers in other processes: they read snapshots of an open database through a socket in its folder.
//!
//! | file | what |
//! |---|---|
//! | `message` | what a reader and the process that serves it say to each other, as bytes |
//! | `value` | values of keys in messages |
//! | `socket` | the socket, where the system has such sockets |
//! | `server` | the threads behind the socket |
//! | `connection` | one reader's requests, answered |
//! | `offers` | snapshots that connections share |
//! | `link` | the reader's end of a connection |
//! | `served_changes` | the change log as a stream of frames |
//! | `reader`, `reader_scan`, `reader_changes` | what users call |
//!
//! Why a socket and not shared memory: rows that a snapshot sees lie in the pool, in undo pages and in the change
//! buffer of the process that writes. A second process that read them in shared memory would need the latches of all
//! three, and one that died would leave them held. Here a reader has no part in the engine: the process that writes
//! runs a transaction for it.
//!
//! Rules
//! 1. A connection is one snapshot, which it may share with others of the reader's, or one stream of changes. A
//!    snapshot is a transaction of the database like any other that reads: no writer waits for it, purge keeps what it
//!    sees, and changes of the tables it uses wait for its end. A stream keeps nothing between two of its requests.
//! 2. The snapshot ends with its connection. The kernel closes that when the reader's process dies, however it dies.
//! 3. Rows are copied out of their pages before they are sent: a reader that stops in the middle of an answer keeps no
//!    latch. Long requests look for the end of the connection, and for the closing of the database, again and again.
//! 4. Neither side believes the other: a length, a number or a text that cannot be is an error, before memory is taken
//!    for it.
//! 5. A closing ends every connection before it does anything else. The socket is removed; one that a killed process
//!    left is replaced by the next opening, which holds the folder's lock.
//! 6. A folder in which there can be no socket, and a system that has none, do not keep a database from opening: it has
//!    no readers then.

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
