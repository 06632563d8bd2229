//! Redo log: a ring in its own file or device, group commit, checkpoints, and the scan from which recovery starts. It
//! handles bytes and LSNs, never pages.
//!
//! Terms: a *group* is the redo of one mini-transaction. An *LSN* counts all appended bytes of groups (with their
//! heads); a group's end LSN is the next one's start. The *checkpoint* is the LSN at which recovery starts. A
//! *generation* is the log from one `start` to the next. *Written* bytes were passed to the device, *durable* bytes are
//! synced.
//!
//! Rules
//! 1. `checkpoint <= durable <= written <= end <= reserved end <= checkpoint + capacity`, always. While readers (a
//!    backup, the archive) follow the log, the oldest LSN that they have not copied replaces the last `checkpoint` if
//!    it is older (`keep`).
//! 2. Redo space in the ring is reserved before a mini-transaction latches anything, so `append` never waits for a
//!    checkpoint.
//! 3. Appending is a mutex around: take the LSN, copy into the log buffer, `in_order`. The device is never touched
//!    under it, except that a thread that finds the buffer full writes it out (which takes no latch, so it always
//!    ends).
//! 4. One thread at a time, the owner of the I/O mutex, writes and syncs; it takes everything appended so far.
//! 5. The last, partly filled block is written again as it fills. Its older bytes do not change, so a torn write of it
//!    loses nothing that was durable.
//! 6. Each written block and each header has the LSN up to which the log was durable at that time. A log that ends
//!    below such a mark is damaged, not torn (`damage`).
//! 7. The first failed write or sync stops the database: nothing is written afterwards, and every call and every waiter
//!    gets [`Error::Poisoned`](crate::Error::Poisoned).
//!
//! [`Log`] is its parts, one around the other; each knows only those within it. `tidy` checks their order.
//!
//! | file | what |
//! |---|---|
//! | `format`, `headers` | the format on the device |
//! | `damage`, `scan`, `stream` | reading redo back, from a ring or as a stream |
//! | `group` | the leader of a group commit |
//! | `buffer`, `space` | the log buffer; space in the ring |
//! | `ring`, `reservation` | `Ring`: device, buffer, space, positions; reservations |
//! | `writer` | `RingWriter`: appending, writing, syncing |
//! | `commit` | `GroupCommit`: the wait of a commit |
//! | `ring_size`, `growth`, `shrinking` | `RingSize` |
//! | `checkpoint` | `Checkpoints`: generations and checkpoints |
//! | `redo_log` | [`Log`]: the calls of the layers above |
//! | `keep` | redo that readers follow |
//!
//! Lock order: `turn` < I/O mutex < buffer mutex; the queue mutexes of `space` and `group` are leaves.
//!
//! Differs from InnoDB: a block's header carries no checksum of the block and no place of its first group (a group
//! carries one checksum, which covers its place and generation); no separate writer and flusher threads (a committing
//! thread leads, so one client pays no hand-over).

mod buffer;
mod checkpoint;
mod commit;
mod damage;
pub(crate) mod format;
mod group;
mod growth;
pub(crate) mod headers;
mod keep;
mod redo_log;
mod reservation;
mod ring;
mod ring_size;
mod scan;
mod shrinking;
mod space;
mod stream;
mod writer;

pub use damage::LogDamage;
pub(crate) use headers::LogRemains;
pub(crate) use keep::KeptRedo;
pub use redo_log::Log;
pub(crate) use reservation::{EndRedo, Reservation};
pub(crate) use scan::Windows;
pub use scan::{RecoveryScan, Window};
pub(crate) use space::RedoReader;
pub(crate) use stream::{StreamGroups, whole_groups};

use crate::sync;

#[cfg(test)]
mod log_test;
