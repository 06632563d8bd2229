//! The magic numbers of a database's files, which identify them under any name.
//!
//! Rule: the formats themselves belong to the engine; it takes its magic numbers from here.

/// Bytes at the start of a file that include its mark.
pub const LENGTH: usize = DATA_AT + 8;
/// Mark of the data file, after the header of its first page.
pub const DATA: [u8; 8] = *b"HIGHWTR\0";
/// Offset of the mark in the page.
pub const DATA_AT: usize = 32;
/// Mark of the redo log, at its start.
pub const REDO: [u8; 8] = *b"HWREDO\r\n";
/// Mark of the doublewrite file, in a directory.
pub const DOUBLEWRITE: [u8; 8] = *b"HWDBLWR1";
/// Offset of the mark in the directory.
pub const DOUBLEWRITE_AT: usize = 8;

/// Mark of the table of data keys of an encrypted database, at its start.
pub const KEYS: [u8; 8] = *b"HWKEYS\r\n";

/// Mark of an encrypted copy: a file of a backup, or a segment of archived redo after its head.
pub const SEALED: [u8; 8] = *b"HWSEAL\r\n";

/// Whether a file that begins with these bytes belongs to a database.
pub fn is_of_a_database(start: &[u8; LENGTH]) -> bool {
    let is_at = |at: usize, mark: &[u8; 8]| start[at..at + 8] == *mark;
    is_at(0, &REDO) || is_at(0, &KEYS) || is_at(DATA_AT, &DATA) || is_at(DOUBLEWRITE_AT, &DOUBLEWRITE)
}
