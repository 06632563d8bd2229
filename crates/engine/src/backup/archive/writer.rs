//! The archive thread: copies durable redo from the log into the archive. The rules are those of [`super`].

use super::super::files;
use super::segment::{self, ArchiveFile, ArchivePosition, Head};
use crate::error::{Error, Result};
use crate::log::format::FRAME_BYTES;
use crate::log::{KeptRedo, Log, RecoveryScan, RedoReader, whole_groups};
use crate::stats::Stats;
use crate::types::Lsn;
use highwater_storage::{CopyKey, CopyKeys, FolderLock, KeyTable, OpenError, Sealer, forget_cached, lock_alone};
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A segment that has this many bytes of redo is not continued.
const SEGMENT_BYTES: u64 = 64 << 20;
/// Reads of the log between two syncs.
const READS: usize = 16;
/// Rule 4: a gap begins when this part of the log waits for an archive that cannot be written.
const GAP_PART: (u64, u64) = (3, 4);

/// Writes the archive of an open database.
pub(crate) struct Archiver {
    dir: PathBuf,
    database_id: u64,
    /// The end of what is durable in the archive; `None` if there is nothing, or a gap follows.
    end: Option<ArchivePosition>,
    /// The position that the empty segment at the archive's end follows; the segment will be replaced.
    empty_follows: Option<Option<ArchivePosition>>,
    open: Option<Open>,
    kept: Option<Following>,
    problem: Option<String>,
    /// The latest time in the archive.
    noted_us: u64,
    /// With which segments are encrypted, if they are.
    key: Option<CopyKey>,
    _lock: Option<FolderLock>,
}

/// The segment that is appended to.
struct Open {
    file: File,
    path: PathBuf,
    redo_bytes: u64,
    sealer: Option<Sealer>,
    /// The last record.
    record: Vec<u8>,
}

/// The log that is followed.
struct Following {
    log: Arc<Log>,
    kept: KeptRedo<Arc<Log>>,
    stats: Arc<Stats>,
    generation: u64,
    /// Read, and not written: the begin of a group.
    rest: Vec<u8>,
    bytes: Vec<u8>,
}

impl Archiver {
    /// Opens the archive in `dir`, or makes it; with a key it is encrypted. A record at its end that a crash left
    /// incomplete is cut off.
    ///
    /// # Errors
    /// [`Error::Usage`] for a folder with other files, [`Error::Incompatible`] for the archive of another database,
    /// [`OpenError::InUse`] if a copy of this one writes it, [`Error::Corrupt`] for a damaged one, an I/O error.
    pub(crate) fn open(dir: &Path, database_id: u64, key: Option<(CopyKey, KeyTable)>) -> Result<Archiver> {
        match std::fs::create_dir_all(dir) {
            Ok(()) => files::sync_parent(dir)?,
            Err(error) if matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::NotADirectory) => {
                return Err(Error::Usage(format!("{} is not a folder", dir.display())));
            }
            Err(error) => return Err(files::failed("create", dir, error)),
        }
        let (key, table) = key.unzip();
        let keys = CopyKeys::one(key.clone());
        let mut archiver = Archiver {
            dir: dir.to_path_buf(),
            database_id,
            end: None,
            empty_follows: None,
            open: None,
            kept: None,
            problem: None,
            noted_us: 0,
            key,
            _lock: lock(dir)?,
        };
        let mut segments = segment::list(dir)?;
        check_owner(dir, &segments, database_id)?;
        segment::find_keys(&mut segments, &keys, dir)?;
        table.iter().try_for_each(|table| archiver.put_keys(table))?;
        let Some(last) = segments.last() else { return Ok(archiver) };
        last.sync_all()?;
        files::sync_folder(dir)?;
        let end = last.end()?;
        archiver.noted_us = latest_time(end.noted_us, &segments)?;
        if end.stored_bytes < last.stored_bytes {
            last.cut(&end)?;
        }
        archiver.end = Some(ArchivePosition { generation: last.head.generation, lsn: end.lsn });
        archiver.empty_follows = (end.lsn == last.head.start).then_some(last.head.follows);
        Ok(archiver)
    }

    /// Makes this the folder's table of keys (rule 9).
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn put_keys(&self, table: &KeyTable) -> Result<()> {
        Ok(table.put_into(&self.dir)?)
    }

    /// Archives what the log still has of the redo before this opening (rule 3). The log was opened and not started.
    ///
    /// # Errors
    /// [`Error::Incompatible`] if the archive is ahead of the log, an I/O error.
    pub(crate) fn catch_up(&mut self, log: &Log, scan: &RecoveryScan, stats: &Stats) -> Result<()> {
        let Some(end) = self.end else { return Ok(()) };
        if self.is_of_a_generation_to_begin(log.next_generation(scan.end_lsn), scan.end_lsn) {
            return Ok(());
        }
        if end.lsn > scan.end_lsn || end.generation > log.generation() {
            return Err(Error::Incompatible(format!(
                "the archive {} has redo up to LSN {}, this database ends at LSN {}: it is an older copy; name a new \
                 folder for its redo",
                self.dir.display(),
                end.lsn,
                scan.end_lsn
            )));
        }
        let is_closed = scan.checkpoint_lsn == scan.end_lsn;
        let is_next = end.generation == log.generation() || (end.generation + 1 == log.generation() && is_closed);
        let lsns = end.lsn..scan.end_lsn;
        let all = is_next
            && lsns.end.0 - lsns.start.0 <= log.capacity_bytes()
            && log.copy_groups(lsns.clone(), end.generation, |_, _| Ok(()))? == lsns.end;
        if !all {
            self.begin_gap(stats, &format!("the redo from LSN {} to {} was not archived", lsns.start, lsns.end));
            return Ok(());
        }
        if lsns.is_empty() {
            return Ok(());
        }
        self.start_segment(end)?;
        let lsn = log.copy_groups(lsns, end.generation, |_, group| {
            self.noted_us = self.noted_us.max(segment::time_noted_in(&group[FRAME_BYTES..]));
            self.write(group)
        })?;
        self.sync()?;
        self.open = None;
        self.reached(ArchivePosition { lsn, ..end });
        Ok(())
    }

    /// Whether a crash came between the segment of a generation and the generation itself, which is `next` still: what
    /// the segment follows was whole up to `log_end` before the segment was made (rule 3), and the padding in front of
    /// the generation is not redo.
    fn is_of_a_generation_to_begin(&self, next: (u64, Lsn), log_end: Lsn) -> bool {
        let is_next = self.end.is_some_and(|end| (end.generation, end.lsn) == next);
        is_next && self.empty_follows.is_some_and(|follows| follows.is_none_or(|follows| follows.lsn <= log_end))
    }

    /// Makes the first segment of the generation that the log is about to begin at `start`.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn begin(&mut self, start: ArchivePosition) -> Result<()> {
        self.start_segment(start)
    }

    /// Follows the log, which has begun its generation and appended nothing yet.
    ///
    /// # Errors
    /// [`Error::Usage`]: it is followed already.
    pub(crate) fn follow(&mut self, log: Arc<Log>, stats: Arc<Stats>) -> Result<()> {
        let kept = Log::keep(log.clone(), RedoReader::Archive)?;
        debug_assert_eq!(self.end.map(|end| end.lsn), Some(kept.at()), "rule 2: redo behind the archive is not kept");
        debug_assert!(self.open.is_some(), "rule 3: a generation begins without its first segment");
        let generation = log.generation();
        let begun = self.end.map(|end| end.generation);
        debug_assert_eq!(begun, Some(generation), "rule 3: the segment that is open is of another generation");
        self.kept = Some(Following { log, kept, stats, generation, rest: Vec::new(), bytes: Vec::new() });
        Ok(())
    }

    /// The latest time that the archive has, 0 for none.
    pub(crate) fn noted_us(&self) -> u64 {
        self.noted_us
    }

    /// The last problem since the opening: a failed write of the archive, or a gap.
    pub(crate) fn problem(&self) -> Option<&str> {
        self.problem.as_deref()
    }

    /// Archives some of what is durable; returns whether there is more. A failure is noted and tried again (rule 4).
    pub(crate) fn step(&mut self) -> bool {
        let Some(mut following) = self.kept.take() else { return false };
        let copied = self.copy(&mut following);
        let is_more = match copied {
            Ok(is_more) => is_more,
            Err(error) => {
                self.fail(&mut following, &error);
                false
            }
        };
        let durable = following.log.durable_lsn().0;
        following.stats.redo_archive_lag_bytes.set(durable.saturating_sub(self.end.map_or(durable, |end| end.lsn.0)));
        self.kept = Some(following);
        is_more
    }

    /// Archives the rest and follows the log no longer. Nothing is appended any more.
    ///
    /// # Errors
    /// That of the archive: the next opening archives the rest.
    pub(crate) fn finish(&mut self) -> Result<()> {
        let Some(mut following) = self.kept.take() else { return Ok(()) };
        while self.copy(&mut following)? {}
        Ok(())
    }

    /// Copies some of what is durable; returns whether there is more. After an error the archive's end is where it was.
    fn copy(&mut self, following: &mut Following) -> Result<bool> {
        let generation = following.generation;
        let mut lsn = self.end.map_or(following.kept.at(), |end| end.lsn);
        let mut is_more = false;
        for read in 1..=READS {
            let Following { kept, rest, bytes, log, stats, .. } = following;
            kept.read(Lsn(u64::MAX), bytes)?;
            if bytes.is_empty() {
                break;
            }
            rest.extend_from_slice(bytes);
            self.make_room(ArchivePosition { generation, lsn })?;
            let whole = whole_groups(rest, lsn, generation, log.capacity_bytes()).map_err(Error::Corrupt)?;
            self.write(&rest[..whole])?;
            rest.drain(..whole);
            stats.redo_archived_bytes.add(whole as u64);
            lsn.0 += whole as u64;
            is_more = read == READS;
        }
        if self.open.is_some() && self.end.is_some_and(|end| end.lsn < lsn) {
            self.sync()?;
            self.reached(ArchivePosition { generation, lsn });
            let durable = following.log.durable_lsn();
            debug_assert!(lsn <= durable, "rule 1: the archive ends at {lsn}, the durable redo at {durable}");
            following.kept.release(lsn);
        }
        Ok(is_more)
    }

    /// There is a segment to append to, which is not full.
    fn make_room(&mut self, at: ArchivePosition) -> Result<()> {
        if self.open.as_ref().is_some_and(|open| open.redo_bytes < SEGMENT_BYTES) {
            return Ok(());
        }
        if self.end.is_some_and(|end| end.lsn < at.lsn) {
            self.sync()?;
            self.reached(at);
        }
        self.open.iter().for_each(|full| forget_cached(&full.file));
        self.start_segment(at)
    }

    /// Everything before this is durable in the archive.
    fn reached(&mut self, end: ArchivePosition) {
        let goes_on = |before: ArchivePosition| (before.generation, before.lsn) <= (end.generation, end.lsn);
        debug_assert!(self.end.is_none_or(goes_on), "the archive goes back from {:?} to {end:?}", self.end);
        if self.end != Some(end) {
            (self.end, self.empty_follows) = (Some(end), None);
        }
    }

    fn fail(&mut self, following: &mut Following, error: &Error) {
        following.stats.redo_archive_failures.inc();
        self.problem = Some(format!("the archive of redo cannot be written: {error}"));
        self.open = None;
        following.rest.clear();
        let durable = following.log.durable_lsn();
        if let Some(ArchivePosition { lsn: from, .. }) = self.end {
            debug_assert!(from <= durable, "rule 1: the archive ends at {from}, the durable redo at {durable}");
            following.kept.go_to(from);
            if (durable.0 - from.0) * GAP_PART.1 <= following.log.capacity_bytes() * GAP_PART.0 {
                return;
            }
            self.begin_gap(&following.stats, &format!("{error}; the redo from LSN {from} to {durable} is not in it"));
        }
        // The archive continues after a gap, wherever it can be written again: until then it keeps nothing.
        following.kept.release(durable);
        following.kept.go_to(durable);
    }

    fn begin_gap(&mut self, stats: &Stats, what: &str) {
        stats.redo_archive_gaps.inc();
        self.problem = Some(format!("the archive {} has a gap: {what}", self.dir.display()));
        (self.end, self.empty_follows) = (None, None);
    }

    /// Begins a segment at `start`; it follows the archive's end.
    fn start_segment(&mut self, start: ArchivePosition) -> Result<()> {
        debug_assert!(start.generation > 0, "a segment of generation 0, which its head takes for none");
        let replaces_empty = self.end.is_some_and(|end| end.lsn == start.lsn);
        let follows = match self.empty_follows {
            Some(follows) if replaces_empty => follows,
            _ => self.end,
        };
        let is_before = |before: ArchivePosition| before.lsn <= start.lsn && before.generation <= start.generation;
        debug_assert!(follows.is_none_or(is_before), "a segment from {start:?} follows {follows:?}");
        let head = Head {
            database_id: self.database_id,
            generation: start.generation,
            start: start.lsn,
            follows,
            key_id: self.key.as_ref().map_or(0, CopyKey::id),
        };
        let (file, sealer) = head.create(&self.dir, self.key.as_ref())?;
        let path = self.dir.join(segment::name(start.lsn));
        self.open = Some(Open { file, path, redo_bytes: 0, sealer, record: Vec::new() });
        (self.end, self.empty_follows) = (Some(start), Some(follows));
        Ok(())
    }

    fn write(&mut self, groups: &[u8]) -> Result<()> {
        let Open { file, path, redo_bytes, sealer, record } =
            self.open.as_mut().expect("a segment is begun before it is written");
        let bytes = match sealer {
            Some(sealer) if !groups.is_empty() => {
                record.clear();
                sealer.seal(groups, record);
                &*record
            }
            _ => groups,
        };
        file.write_all(bytes).map_err(|error| files::failed("write", path, error))?;
        *redo_bytes += groups.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        let Some(open) = &self.open else { return Ok(()) };
        open.file.sync_data().map_err(|error| files::failed("sync", &open.path, error))
    }
}

/// Rule 8: `last_us` is what the last segment notes; if it notes nothing, one before it does.
fn latest_time(last_us: u64, segments: &[ArchiveFile]) -> Result<u64> {
    let mut before = segments.iter().rev().skip(1);
    let mut noted_us = last_us;
    while let (0, Some(segment)) = (noted_us, before.next()) {
        noted_us = segment.end()?.noted_us;
    }
    Ok(noted_us)
}

/// Rule 7. Not every file system that archives are on can lock (NFS cannot lock folders): there only the ids protect.
fn lock(dir: &Path) -> Result<Option<FolderLock>> {
    match lock_alone(dir) {
        Err(error @ OpenError::InUse { .. }) => Err(error.into()),
        locked => Ok(locked.ok()),
    }
}

/// All segments are of this database.
pub(super) fn check_owner(dir: &Path, segments: &[ArchiveFile], database_id: u64) -> Result<()> {
    match segments.iter().find(|segment| segment.head.database_id != database_id) {
        None => Ok(()),
        Some(segment) => Err(Error::Incompatible(format!(
            "{} has the redo of database {:016x}, this is database {database_id:016x}: name another folder",
            dir.display(),
            segment.head.database_id
        ))),
    }
}

#[cfg(test)]
#[path = "writer_test.rs"]
mod tests;
