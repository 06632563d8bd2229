//! Reading the archive from the end of a backup on.
//!
//! Rules
//! 1. Groups are returned without a gap from the begin on: a segment that does not follow the previous one is an error
//!    that names the missing redo. Segments that are not requested are not read.
//! 2. Bytes after the groups of the last segment that do not verify are an error, not an end; a caller that stops
//!    before them passes its end.
//! 3. Where archive and backup both have redo, it is the same: the last group of the backup's redo is compared.

use super::segment::{self, ArchiveFile, ArchivePosition, SegmentGroups};
use super::writer::check_owner;
use crate::error::{Error, Result};
use crate::log::format;
use crate::types::Lsn;
use highwater_storage::{CopyKey, CopyKeys};
use std::path::{Path, PathBuf};

/// The start of the reading: the end of a backup.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Begin {
    pub position: ArchivePosition,
    /// The frame of the group that ends there, if the backup has redo.
    pub frame: Option<[u8; 8]>,
}

/// The archive of a database.
#[derive(Debug)]
pub(crate) struct Archive {
    dir: PathBuf,
    segments: Vec<ArchiveFile>,
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct RedoGroup<'g> {
    pub generation: u64,
    pub start: Lsn,
    pub end: Lsn,
    pub payload: &'g [u8],
    /// The segment it is in, with its key, and the bytes of redo before it there.
    pub file: &'g Path,
    pub key: Option<&'g CopyKey>,
    pub skipped_bytes: u64,
}

/// Groups, one after another.
pub(crate) struct RedoGroups<'a> {
    archive: &'a Archive,
    begin: Begin,
    /// Number of the segment that is read.
    number: usize,
    stream: SegmentGroups,
    /// The begin is at the end of a group, or of all.
    has_begun: bool,
}

impl Archive {
    /// Opens the archive of a database.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if it is another database's or there is none; [`Error::Corrupt`] for a damaged segment;
    /// [`Error::Open`] if none of `keys` is that of an encrypted one.
    pub(crate) fn open(dir: &Path, database_id: u64, keys: &CopyKeys) -> Result<Archive> {
        let mut segments = segment::list(dir)?;
        if segments.is_empty() {
            return Err(Error::Incompatible(format!("{} has no redo: it is not an archive, or empty", dir.display())));
        }
        check_owner(dir, &segments, database_id)?;
        segment::find_keys(&mut segments, keys, dir)?;
        Ok(Archive { dir: dir.to_path_buf(), segments })
    }

    /// The groups from `begin` on.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if the archive begins later, an I/O error.
    pub(crate) fn groups(&self, begin: Begin) -> Result<RedoGroups<'_>> {
        let from = begin.position.lsn;
        let Some(number) = self.segments.iter().rposition(|segment| segment.head.start <= from) else {
            let first = self.segments[0].head.start;
            return Err(Error::Incompatible(format!(
                "{} begins at LSN {first}: the redo from LSN {from} to there is missing",
                self.dir.display()
            )));
        };
        let stream = self.segments[number].groups()?;
        Ok(RedoGroups { archive: self, begin, number, has_begun: stream.at() == from, stream })
    }
}

impl RedoGroups<'_> {
    /// The next group; `None` at the end of the archive.
    ///
    /// # Errors
    /// [`Error::Corrupt`] or [`Error::Incompatible`] names the segment, and the LSNs of what is missing.
    pub(crate) fn next(&mut self) -> Result<Option<RedoGroup<'_>>> {
        loop {
            if self.is_followed_here() && self.next_segment(None)? {
                continue;
            }
            let start = self.stream.at();
            let found = match self.stream.next() {
                Ok(Some(end)) => end,
                Ok(None) if self.next_segment(None)? => continue,
                Ok(None) if self.has_begun || self.ends_at_the_backup() => return Ok(None),
                Ok(None) => return Err(self.early()),
                Err(what) => match self.next_segment(Some(&what))? {
                    true => continue,
                    false => return Ok(None),
                },
            };
            if found <= self.begin.position.lsn {
                self.compare(found)?;
                continue;
            }
            if !self.has_begun {
                return Err(self.foreign());
            }
            let segment = &self.archive.segments[self.number];
            return Ok(Some(RedoGroup {
                generation: segment.head.generation,
                start,
                end: found,
                payload: self.stream.payload(),
                file: &segment.path,
                key: segment.key.as_ref(),
                skipped_bytes: start.0 - segment.head.start.0,
            }));
        }
    }

    /// Whether the next segment continues from here, wherever this one ends: a write into it may have failed (rule 4 of
    /// [`super`]).
    fn is_followed_here(&self) -> bool {
        let next = self.archive.segments.get(self.number + 1);
        next.is_some_and(|next| next.head.follows == Some(self.here()))
    }

    /// Up to there the archive is known to lack nothing: the end of the last group, or the start of a generation after
    /// it of which nothing is archived yet.
    pub(crate) fn at(&self) -> Lsn {
        self.stream.at()
    }

    /// Behind the last group.
    fn here(&self) -> ArchivePosition {
        ArchivePosition { generation: self.archive.segments[self.number].head.generation, lsn: self.stream.at() }
    }

    /// Whether there is no redo after the backup: it is of a closed database whose log ends in the block in which the
    /// archive ends. (A read-only opening of such a database begins at the next block.)
    fn ends_at_the_backup(&self) -> bool {
        format::block_ceil(self.stream.at().0) == self.begin.position.lsn.0
    }

    /// Rule 3.
    fn compare(&mut self, end: Lsn) -> Result<()> {
        let Begin { position, frame } = self.begin;
        let generation = self.archive.segments[self.number].head.generation;
        let is_same = frame.is_none_or(|frame| frame == self.stream.frame()) && generation <= position.generation;
        self.has_begun = end == position.lsn;
        if !self.has_begun || is_same { Ok(()) } else { Err(self.foreign()) }
    }

    fn early(&self) -> Error {
        let (dir, at, wanted) = (self.archive.dir.display(), self.stream.at(), self.begin.position.lsn);
        Error::Incompatible(format!("{dir} ends at LSN {at}, before the end of the backup, LSN {wanted}"))
    }

    fn foreign(&self) -> Error {
        let segment = &self.archive.segments[self.number];
        Error::Incompatible(format!(
            "{} has other redo at LSN {} than the backup: it is of another history of this database",
            segment.path.display(),
            self.begin.position.lsn
        ))
    }

    /// Continues with the segment after this one, of which the rest does not verify if `wrong` says why. False at the
    /// end of the archive.
    fn next_segment(&mut self, wrong: Option<&str>) -> Result<bool> {
        let (segments, here) = (&self.archive.segments, self.here());
        let at = here.lsn;
        let this = &segments[self.number];
        let damaged = |what: &str| Err(Error::Corrupt(format!("{} is damaged: {what}", this.path.display())));
        let Some(next) = segments.get(self.number + 1) else {
            return match wrong {
                None => Ok(false),
                Some(what) => {
                    let left = self.stream.left_bytes();
                    damaged(&format!("{what}, {left} bytes before its end; what is before LSN {at} can be restored"))
                }
            };
        };
        let begins = if next.head.generation == here.generation { at } else { Lsn(format::block_ceil(at.0)) };
        if next.head.follows != Some(here) || next.head.start != begins {
            let is_within = next.head.follows.is_some_and(|follows| follows.generation == here.generation);
            if let Some(what) = wrong.filter(|_| is_within) {
                return damaged(what);
            }
            let (dir, to) = (self.archive.dir.display(), next.head.start);
            let why = match next.head.follows {
                None => "it was not archived",
                Some(_) if is_within => "a segment was removed, or cut",
                Some(_) => "a segment was removed",
            };
            return Err(Error::Corrupt(format!("{dir} lacks the redo from LSN {at} to LSN {to}: {why}")));
        }
        self.stream = next.groups()?;
        self.number += 1;
        Ok(true)
    }
}
