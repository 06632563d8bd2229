//! The redo archive: a folder that receives all redo of a database in use, so that a backup can be restored to any
//! later moment.
//!
//! Terms
//! - A *segment* is a file of the archive: a head, then consecutive redo groups of one generation of the log
//!   (`segment`). Segments are read in the order of their LSNs.
//! - A segment *follows* a position (generation, LSN): the end of the preceding redo. A segment that follows no
//!   position begins the archive, or comes after a *gap*: redo that was not archived.
//!
//! Rules
//! 1. Only durable redo is archived, in whole verified groups. So the archive is never ahead of the database, and its
//!    contents are, except for gaps, a prefix of all redo of the database.
//! 2. The log keeps redo until the archive has made it durable
//!    ([`RedoReader::Archive`](crate::log::RedoReader::Archive)). Commits do not wait for the archive; writers wait if
//!    it is a whole ring behind.
//! 3. An opening copies the end of the previous redo, which may be missing after a crash, from the ring before a new
//!    generation may overwrite it. The new generation's first segment is durable before the generation begins, and
//!    names the position that it follows. A close archives all remaining redo.
//! 4. A failed write of the archive is repeated in a new segment, from the last durable position on (a failed sync is
//!    never retried). When the log is nearly full meanwhile, a gap begins and the database continues. The position that
//!    the new segment follows may be within the previous segment: the rest of that segment is not part of the archive.
//! 5. An archive belongs to one database id; a restored database has another id. An archive that is ahead of the
//!    database is refused: the database is an older copy, whose new history must not be mixed with the archived one.
//! 6. A head is written to a file of another name, synced, and renamed: a segment has a whole head.
//! 7. The archiver locks the archive's folder, because copies of one database have the same id. An opening uses the end
//!    of the archive only after a sync, as read from the device: a crash, or a failed sync, may have left bytes that
//!    are only in the page cache.
//! 8. Times in the archive never decrease, even if the clock does: an opening finds the latest one, and the database
//!    logs no earlier time.
//! 9. The archive of an encrypted database is encrypted: each write is one record of whole groups, and the head names
//!    the key. The folder has the database's table of keys as of the last opening or change of the user's key; it is
//!    durable before the first segment.
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

pub(crate) use reader::{Archive, Begin, RedoGroup};
pub(crate) use segment::{ArchivePosition, redo_of};
pub(crate) use writer::Archiver;
