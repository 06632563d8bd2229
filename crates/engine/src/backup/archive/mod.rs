//! The archive of redo: a folder that gets all redo of a database while it is in use, so that a backup can be restored
//! to any moment after it.
//!
//! Terms
//! - A *segment* is a file of the archive: a head, then groups of redo of one generation of the log, one behind the
//!   other (`segment`). Segments are read in the order of their LSNs.
//! - A segment *follows* a position (generation, LSN): the end of the redo before it. One that follows nothing begins
//!   the archive, or comes after a *gap*: redo that was not archived.
//!
//! Rules
//! 1. Only durable redo is archived, in whole groups, each verified. So the archive is never ahead of the database, and
//!    its contents are a prefix of what the log ever held, but for gaps.
//! 2. The log keeps redo until the archive has made it durable
//!    ([`RedoReader::Archive`](crate::log::RedoReader::Archive)). Commits do not wait for the archive; writers wait if
//!    it is slower than they are by a whole ring.
//! 3. At an opening the end of the redo before, which a crash may have left out, is copied out of the ring before a new
//!    generation may overwrite it. The new generation's first segment is durable before the generation begins, and says
//!    what it follows. Closing archives all that is left.
//! 4. If the archive cannot be written it is tried again, from what was last made durable on, in a new segment (a
//!    failed sync is never retried). When the log is about to be full meanwhile, a gap begins: the database goes on.
//!    What the new segment follows may lie within the one before: the rest of that one is not part of the archive.
//! 5. An archive is of one database, by its id; a restored database has another id. One that is ahead of the database
//!    is refused: the database is an older copy, whose new history must not be mixed with the archived one.
//! 6. A head is written to a file of another name, synced, and renamed: a segment has a whole head.
//! 7. The archiver has the archive's folder locked: copies of one database have the same id. An opening believes the
//!    end of the archive only after a sync, and as the device has it: a crash, or a failed sync, may have left bytes
//!    in the page cache that are nowhere else.
//! 8. Times in the archive never go back, whatever the clock does: an opening looks for the latest one, and the
//!    database notes none before it.
//! 9. The archive of an encrypted database is encrypted: what is written at once is one record, of whole groups, and
//!    the head names the key. The folder has the database's table of keys, that of the last opening or change of the
//!    user's key; it is durable before the first segment is.
//!
//! | file | what |
//! |---|---|
//! | `segment` | the format; the segments of a folder |
//! | `writer` | following the log |
//! | `reader` | reading groups from a backup's end on |

mod reader;
mod segment;
mod writer;

#[cfg(test)]
mod archive_test;

pub use reader::{Archive, Begin, RedoGroup};
pub use segment::{ArchivePosition, redo_of};
pub use writer::Archiver;
