//! Undo log: streams of records that lead back to older versions of rows.
//!
//! | file | concept |
//! |---|---|
//! | `space.rs`, `open.rs`, `free_idle.rs` | the streams: bound and extended, found at opening, freed |
//! | `ended_streams.rs` | the directory's notes on streams whose transactions have all ended |
//! | `append.rs` | the stream of one transaction |
//! | `record.rs`, `new_record.rs` | records as bytes: read, written |
//! | `page.rs`, `read.rs` | pages as bytes; records read in place |
//! | `xid.rs` | names of prepared transactions |
//!
//! Terms. A *stream* is a chain of undo pages to which transactions append one after another. A transaction *binds* a
//! free stream at its first write and releases it at its end; its part of the stream starts with a header record, which
//! has its outcome. The *directory* names each stream's first and last page.
//!
//! Rules
//! 1. Streams are append-only. Rolling a record back marks it dead in place, in the mini-transaction that restores the
//!    row.
//! 2. A record and the row change it undoes are one mini-transaction; a header record and the first record after it as
//!    well.
//! 3. In a stream, commit numbers ascend: a transaction gets its number before it releases the stream.
//! 4. Pages are removed at the front of a stream, after every transaction with records on them has been purged. The
//!    last page stays until the stream is freed, which happens when it is free, purged and idle for a while.
//! 5. Latch order: tree leaf, undo page, directory page, extent maps (at commit).
//! 6. The last record of a prepared transaction is the one with its name. It is in the log before the header says that
//!    the transaction is prepared, or in the same mini-transaction: no crash leaves a prepared one without a name. Then
//!    the transaction writes no more records. Before its rollback begins, the header says that it is active again.
//!
//! Differs from InnoDB: one stream for inserts and updates together, no rollback segments, no slots to run out of, and
//! no list of history: a stream is its own list.

mod append;
mod ended_streams;
mod free_idle;
mod new_record;
mod open;
mod page;
mod read;
pub(crate) mod record;
mod space;
mod xid;

pub(crate) use append::{Bound, UndoLog, mark};
pub(crate) use new_record::{NewChange, put_change, put_entry, put_insert, put_overflow};
pub(crate) use open::{Recovered, number_at};
pub(crate) use page::{RECORDS_AT, StreamEntry, UndoFields, UndoPlace, expect_type, read_directory, record_at, write};
pub(crate) use read::{
    OwnedRecord, place_of, pointer_to, read_directories, read_record, record_before, scan_page, with_record,
};
pub(crate) use space::{Stream, StreamFront, UndoSpace};
pub use xid::Xid;
