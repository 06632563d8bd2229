//! Segments: their bytes, their names, the segments of a folder.
//!
//! Head, 64 bytes, little-endian: magic `HWARCHIV` @0, version u32 @8, CRC-32C of the other bytes @12, database id u64
//! @16, generation u64 @24, LSN of the first group u64 @32, the position that it follows: generation u64 @40 (0: none),
//! LSN u64 @48; id of the key u64 @56 (0: not encrypted). Then groups with their frames (see `log::format`), of an
//! encrypted database as an encrypted copy ([`Sealer`]). The name is the LSN in 20 digits, `.redo`.

use super::super::files;
use crate::error::{Error, Result};
use crate::log::StreamGroups;
use crate::page::PageOp;
use crate::types::Lsn;
use highwater_storage::{CopyKey, CopyKeys, CopyReader, Sealer, forget_cached, plain_bytes};
use std::fs::{File, OpenOptions};
use std::io::{BufReader, ErrorKind, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

pub(super) const HEAD_BYTES: u64 = 64;
const MAGIC: [u8; 8] = *b"HWARCHIV";
const VERSION: u32 = 2;
const SUFFIX: &str = ".redo";
const NEW: &str = "new-segment";
/// The table of keys of an encrypted archive, and the next one.
const KEYS: [&str; 2] = ["keys", "keys.new"];
const READ_BYTES: usize = 1 << 20;

/// A place in the redo of a database's history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArchivePosition {
    pub generation: u64,
    pub lsn: Lsn,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub database_id: u64,
    pub generation: u64,
    pub start: Lsn,
    pub follows: Option<ArchivePosition>,
    /// The id of the key that its redo is encrypted with, 0 for none.
    pub key_id: u64,
}

/// A segment of a folder.
#[derive(Clone, Debug)]
pub(super) struct ArchiveFile {
    pub path: PathBuf,
    pub head: Head,
    /// The key of an encrypted segment, once it was [found](find_keys).
    pub key: Option<CopyKey>,
    /// Bytes after the head.
    pub stored_bytes: u64,
}

/// The end of the valid redo of a segment.
#[derive(Clone, Copy, Debug)]
pub(super) struct ArchiveEnd {
    pub lsn: Lsn,
    /// The latest time in it, 0 for none.
    pub noted_us: u64,
    /// Bytes after the head that it takes.
    pub stored_bytes: u64,
}

pub(super) type SegmentGroups = StreamGroups<CopyReader<BufReader<File>>>;

impl Head {
    fn encode(&self) -> [u8; HEAD_BYTES as usize] {
        let mut bytes = [0; HEAD_BYTES as usize];
        bytes[..8].copy_from_slice(&MAGIC);
        bytes[8..12].copy_from_slice(&VERSION.to_le_bytes());
        let (generation, lsn) = self.follows.map_or((0, 0), |position| (position.generation, position.lsn.0));
        let numbers = [self.database_id, self.generation, self.start.0, generation, lsn, self.key_id];
        for (place, number) in bytes[16..].chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        let sum = checksum(&bytes);
        bytes[12..16].copy_from_slice(&sum.to_le_bytes());
        bytes
    }

    fn decode(bytes: &[u8; HEAD_BYTES as usize]) -> std::result::Result<Head, String> {
        let u32_at = |at: usize| u32::from_le_bytes(std::array::from_fn(|n| bytes[at + n]));
        let u64_at = |at: usize| u64::from_le_bytes(std::array::from_fn(|n| bytes[at + n]));
        if bytes[..8] != MAGIC || u32_at(12) != checksum(bytes) {
            return Err("its head does not verify".into());
        }
        if u32_at(8) != VERSION {
            return Err(format!("it has format {}; this program reads format {VERSION}", u32_at(8)));
        }
        let follows = ArchivePosition { generation: u64_at(40), lsn: Lsn(u64_at(48)) };
        let follows = (follows.generation > 0).then_some(follows);
        let (database_id, generation, start) = (u64_at(16), u64_at(24), Lsn(u64_at(32)));
        Ok(Head { database_id, generation, start, follows, key_id: u64_at(56) })
    }

    /// Makes the segment, in place of an empty one of the same LSN; the file is ready to be appended to, through the
    /// sealer if there is a key.
    pub(super) fn create(&self, dir: &Path, key: Option<&CopyKey>) -> Result<(File, Option<Sealer>)> {
        debug_assert_eq!(self.key_id, key.map_or(0, CopyKey::id), "rule 9: a segment names another key");
        let is_read =
            Head::decode(&self.encode()).is_ok_and(|read| (read.start, read.follows) == (self.start, self.follows));
        debug_assert!(is_read, "a head is not read as it is written");
        let (new, path) = (dir.join(NEW), dir.join(name(self.start)));
        let (mut bytes, mut sealer) = (self.encode().to_vec(), None);
        if let Some(key) = key {
            let (records, head) = key.new_file()?;
            bytes.extend_from_slice(&head);
            sealer = Some(records);
        }
        let mut file = File::create(&new).map_err(|error| files::failed("create", &new, error))?;
        let written = file.write_all(&bytes).and_then(|()| file.sync_all());
        written.map_err(|error| files::failed("write", &new, error))?;
        std::fs::rename(&new, &path).map_err(|error| files::failed("rename", &new, error))?;
        files::sync_folder(dir)?;
        Ok((file, sealer))
    }
}

fn checksum(bytes: &[u8; HEAD_BYTES as usize]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&bytes[..12]), &bytes[16..])
}

pub(super) fn name(start: Lsn) -> String {
    format!("{:020}{SUFFIX}", start.0)
}

impl ArchiveFile {
    fn open(path: PathBuf) -> Result<ArchiveFile> {
        let mut file = File::open(&path).map_err(|error| files::failed("open", &path, error))?;
        let len = file.metadata().map_err(|error| files::failed("look at", &path, error))?.len();
        let damaged = |what: String| Error::Corrupt(format!("{} is damaged: {what}", path.display()));
        let mut head = [0; HEAD_BYTES as usize];
        file.read_exact(&mut head).map_err(|error| match error.kind() {
            ErrorKind::UnexpectedEof => damaged(format!("it has {len} bytes")),
            _ => files::failed("read", &path, error),
        })?;
        let head = Head::decode(&head).map_err(damaged)?;
        let stored_bytes = len - HEAD_BYTES;
        let is_possible = head.start.0.checked_add(stored_bytes).is_some_and(|end| end < 1 << 62);
        if path.file_name().is_none_or(|found| *found != *name(head.start)) || !is_possible {
            return Err(damaged(format!("it is the segment of LSN {}", head.start)));
        }
        Ok(ArchiveFile { path, head, key: None, stored_bytes })
    }

    /// Its groups, up to the end of the file or the first invalid byte.
    pub(super) fn groups(&self) -> Result<SegmentGroups> {
        let redo_bytes = match &self.key {
            None => self.stored_bytes,
            Some(_) => open_behind_head(&self.path)
                .and_then(|mut file| plain_bytes(&mut file, self.stored_bytes))
                .map_err(|error| files::failed("read", &self.path, error))?,
        };
        let start = self.head.start;
        let redo = redo_of(&self.path, 0, self.key.as_ref())?;
        Ok(StreamGroups::new(redo, start..Lsn(start.0 + redo_bytes), self.head.generation))
    }

    /// Makes it durable, and drops it from the page cache, so that later reads come from the device.
    pub(super) fn sync_all(&self) -> Result<()> {
        let sync_all = || {
            let file = File::open(&self.path)?;
            file.sync_all()?;
            forget_cached(&file);
            Ok(())
        };
        sync_all().map_err(|error| files::failed("sync", &self.path, error))
    }

    /// Finds the end of the groups that verify.
    pub(super) fn end(&self) -> Result<ArchiveEnd> {
        let (mut groups, mut noted_us) = (self.groups()?, 0);
        while let Ok(Some(_)) = groups.next() {
            noted_us = noted_us.max(time_noted_in(groups.payload()));
        }
        // A part that could not be read may hold such redo.
        if let Some(error) = groups.take_failed_read() {
            return Err(files::failed("read", &self.path, error));
        }
        let (lsn, redo) = (groups.at(), groups.into_inner());
        // A record has whole groups.
        let stored_bytes = match redo.left_behind_records() {
            Some(left) => self.stored_bytes.saturating_sub(left),
            None => lsn.0 - self.head.start.0,
        };
        Ok(ArchiveEnd { lsn, noted_us, stored_bytes })
    }

    /// Truncates the file at `end`, durably.
    pub(super) fn cut(&self, end: &ArchiveEnd) -> Result<()> {
        let cut = || {
            let file = OpenOptions::new().write(true).open(&self.path)?;
            file.set_len(HEAD_BYTES + end.stored_bytes)?;
            file.sync_all()
        };
        cut().map_err(|error| files::failed("cut", &self.path, error))
    }
}

/// The redo of a segment, without its first `skipped` bytes.
///
/// # Errors
/// [`Error::Corrupt`] for an encrypted one with a damaged head, an I/O error.
pub(crate) fn redo_of(path: &Path, skipped: u64, key: Option<&CopyKey>) -> Result<CopyReader<BufReader<File>>> {
    let open = || {
        let mut file = open_behind_head(path)?;
        let left = file.get_ref().metadata()?.len().saturating_sub(HEAD_BYTES);
        if key.is_none() {
            file.seek_relative(skipped as i64)?;
        }
        let mut redo = CopyReader::new(file, left, key)?;
        if key.is_some() {
            std::io::copy(&mut redo.by_ref().take(skipped), &mut std::io::sink())?;
        }
        Ok(redo)
    };
    open().map_err(|error| files::read_failed(path, error))
}

fn open_behind_head(path: &Path) -> std::io::Result<BufReader<File>> {
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(HEAD_BYTES))?;
    Ok(BufReader::with_capacity(READ_BYTES, file))
}

/// The latest time that a group's operations note, 0 for none.
pub(super) fn time_noted_in(mut payload: &[u8]) -> u64 {
    let mut noted_us = 0;
    while let Ok((_, op, bytes)) = PageOp::decode(payload) {
        if let PageOp::CommitTime { unix_us, .. } = op {
            noted_us = noted_us.max(unix_us);
        }
        payload = &payload[bytes..];
    }
    noted_us
}

/// Finds the key of each segment in `dir`.
///
/// # Errors
/// As [`CopyKeys::get`].
pub(super) fn find_keys(segments: &mut [ArchiveFile], keys: &CopyKeys, dir: &Path) -> Result<()> {
    for segment in segments {
        segment.key = keys.get(segment.head.key_id, dir)?.cloned();
    }
    Ok(())
}

/// The segments of a folder, by LSN.
///
/// # Errors
/// [`Error::Usage`] if it holds other files and no segment; [`Error::Corrupt`] names a segment without a sound head.
pub(super) fn list(dir: &Path) -> Result<Vec<ArchiveFile>> {
    let failed = |error| files::failed("look at", dir, error);
    let (mut segments, mut others) = (Vec::new(), 0);
    for entry in std::fs::read_dir(dir).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        match path.file_name().and_then(|name| name.to_str()) {
            Some(name) if name.ends_with(SUFFIX) => segments.push(ArchiveFile::open(path)?),
            Some(name) if name == NEW || KEYS.contains(&name) => {}
            _ => others += 1,
        }
    }
    if segments.is_empty() && others > 0 {
        let what = format!("{} is not an archive of redo, and not empty: name a new folder", dir.display());
        return Err(Error::Usage(what));
    }
    segments.sort_by_key(|segment| segment.head.start);
    Ok(segments)
}
