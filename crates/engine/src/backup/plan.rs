//! The plan of a restore: the backups of a chain, and the archived redo after them.
//!
//! Rules
//! 1. The restore uses the last backup whose pages are not later than the requested moment; then its redo, then the
//!    archive's.
//! 2. Archived redo is replayed in *spans*: a span has redo of one generation of the log, because a ring holds only
//!    one, and a bounded size, because it is written into a ring again. Each span is verified here, and again when it
//!    is replayed.

use super::archive::{Archive, ArchivePosition, Begin, RedoGroup};
use super::chain::BackupLink;
use super::until::{Commit, Target, Until};
use super::{BackupProgress, OnBackupProgress, RestoreReport};
use crate::error::{Error, Result};
use crate::space::layout::EXTENT_PAGES;
use crate::table::DateTime;
use crate::types::Lsn;
use highwater_storage::CopyKey;
use std::cell::Cell;
use std::ops::Range;
use std::path::PathBuf;

/// Maximum bytes of a span, unless a single group is longer.
const SPAN_BYTES: u64 = 256 << 20;
/// Groups between two reports of progress.
const GROUPS_PER_WORD: u64 = 10_000;

/// The backups and the archived redo that a restore applies.
#[derive(Debug)]
pub(super) struct RestorePlan {
    /// Number of backups of the chain that are used.
    pub links: usize,
    /// End LSN of the last of these backups.
    pub link_end: Lsn,
    /// Archived redo after that LSN.
    pub spans: Vec<ReplaySpan>,
    /// The last commit in the redo after the last backup's pages, if it has one.
    pub last_commit: Option<Commit>,
    /// The archive ends before the requested time.
    pub ends_before_until: bool,
}

/// Consecutive archived redo that is replayed as one log.
#[derive(Clone, Debug)]
pub(super) struct ReplaySpan {
    pub generation: u64,
    pub lsns: Range<Lsn>,
    /// Exceeds the number of every page that the redo changes.
    pub page_count: u32,
    pub pieces: Vec<RedoPiece>,
}

/// Redo in a segment of the archive.
#[derive(Clone, Debug)]
pub(super) struct RedoPiece {
    pub file: PathBuf,
    /// The key of an encrypted segment.
    pub key: Option<CopyKey>,
    /// Bytes of redo before it in the segment.
    pub skipped_bytes: u64,
    pub bytes: u64,
}

impl RestorePlan {
    /// The LSN at which the restored database ends.
    pub(super) fn end(&self) -> Lsn {
        self.spans.last().map_or(self.link_end, |span| span.lsns.end)
    }

    /// The report of a restore by this plan.
    pub(super) fn report(&self) -> RestoreReport {
        RestoreReport {
            end_lsn: self.end().0,
            backups: self.links,
            last_commit: self.last_commit,
            ends_before_until: self.ends_before_until,
            prepared: Vec::new(),
        }
    }

    /// Rule 2: each span is redo of one generation, in order and without a gap, and is not longer than a ring can be.
    fn check(&self) {
        for span in &self.spans {
            let Range { start, end } = span.lsns;
            debug_assert!(self.link_end <= start && start < end, "a span from {start} to {end}");
            let bytes: u64 = span.pieces.iter().map(|piece| piece.bytes).sum();
            debug_assert_eq!(bytes, end.0 - start.0, "the pieces of the span from {start} to {end}");
            let is_long = span.pieces.len() > 1 && bytes > SPAN_BYTES;
            debug_assert!(!is_long, "a span of {bytes} bytes");
        }
        let follows =
            |two: &[ReplaySpan]| two[0].lsns.end <= two[1].lsns.start && two[0].generation <= two[1].generation;
        debug_assert!(self.spans.windows(2).all(follows), "the spans are out of order");
    }

    fn add(&mut self, group: &RedoGroup<'_>, pages: u32) {
        debug_assert!(group.start < group.end, "a group from {} to {}", group.start, group.end);
        debug_assert!(self.end() <= group.start, "the group at {} is behind {}", group.start, self.end());
        let bytes = group.end.0 - group.start.0;
        let continues = self.spans.last().is_some_and(|span| {
            (span.generation, span.lsns.end) == (group.generation, group.start)
                && span.lsns.end.0 - span.lsns.start.0 + bytes <= SPAN_BYTES
        });
        if !continues {
            let (generation, lsns) = (group.generation, group.start..group.start);
            self.spans.push(ReplaySpan { generation, lsns, page_count: 0, pieces: Vec::new() });
        }
        let Some(span) = self.spans.last_mut() else { return };
        span.lsns.end = group.end;
        span.page_count = span.page_count.max(pages.next_multiple_of(EXTENT_PAGES));
        match span.pieces.last_mut().filter(|piece| piece.file == group.file) {
            Some(piece) => piece.bytes += bytes,
            None => span.pieces.push(RedoPiece {
                file: group.file.to_path_buf(),
                key: group.key.cloned(),
                skipped_bytes: group.skipped_bytes,
                bytes,
            }),
        }
    }
}

/// Plans the restore of a chain, with the archive of redo if there is one.
///
/// # Errors
/// [`Error::Usage`] if the moment cannot be reached; [`Error::Corrupt`] and [`Error::Incompatible`] name what is
/// damaged, missing or of another history.
pub(super) fn plan(
    links: &[BackupLink],
    archive: Option<&Archive>,
    until: Option<Until>,
    tell: &mut OnBackupProgress<'_>,
) -> Result<RestorePlan> {
    let (mut missed, is_interrupted) = (None, Cell::new(false));
    let mut tell = |progress: BackupProgress| {
        let flow = tell(progress);
        is_interrupted.set(is_interrupted.get() || flow.is_break());
        flow
    };
    for count in (1..=links.len()).rev() {
        let link = &links[count - 1];
        if is_before(link, until) {
            continue;
        }
        match plan_from(link, archive, until, count, &mut tell) {
            // Its commit may be before the pages of this backup, whatever is missing after them.
            Err(error) if matches!(until, Some(Until::Transaction(_))) && !is_interrupted.get() => {
                missed = Some(more_telling(missed, error));
            }
            planned => return planned,
        }
    }
    Err(missed.unwrap_or_else(|| unreachable_moment(links, archive, until)))
}

/// Of the reasons why a transaction was not found: what is damaged or missing may have its commit; else the first one.
fn more_telling(first: Option<Error>, second: Error) -> Error {
    match (first, second) {
        (Some(Error::Usage(_)) | None, second @ (Error::Corrupt(_) | Error::Incompatible(_))) => second,
        (first, second) => first.unwrap_or(second),
    }
}

/// Whether the moment is before the one at which the backup's last page was copied.
fn is_before(link: &BackupLink, until: Option<Until>) -> bool {
    match until {
        Some(Until::Lsn(lsn)) => lsn < link.manifest.pages_lsn,
        Some(Until::Time(time)) => time < pages_time(link),
        Some(Until::Transaction(_)) | None => false,
    }
}

fn pages_time(link: &BackupLink) -> DateTime {
    DateTime::from_unix_us(i64::try_from(link.manifest.pages_unix_us).unwrap_or(i64::MAX))
}

fn unreachable_moment(links: &[BackupLink], archive: Option<&Archive>, until: Option<Until>) -> Error {
    let (first, last) = (&links[0], &links[links.len() - 1]);
    let wanted = until.map_or(String::new(), |until| until.to_string());
    let end = match archive {
        Some(_) => "the end of the archived redo".to_string(),
        None => format!("LSN {}", last.manifest.end_lsn),
    };
    let (dir, lsn, time) = (first.dir.display(), first.manifest.pages_lsn, pages_time(first));
    Error::Usage(format!("{dir} can be restored to moments from LSN {lsn}, {time}Z, to {end}, not to {wanted}"))
}

fn plan_from(
    link: &BackupLink,
    archive: Option<&Archive>,
    until: Option<Until>,
    links: usize,
    tell: &mut OnBackupProgress<'_>,
) -> Result<RestorePlan> {
    let mut target = Target::new(until);
    let (link_end, frame) = link.follow_redo(&mut target)?;
    let mut plan =
        RestorePlan { links, link_end, spans: Vec::new(), last_commit: target.last_commit, ends_before_until: false };
    if target.is_reached() || until == Some(Until::Lsn(link_end.0)) {
        return Ok(plan);
    }
    let about_the_link = |what: String| Error::Usage(format!("{}: {what}", link.dir.display()));
    let Some(archive) = archive else {
        return target.end_at(link_end).map(|()| plan).map_err(|what| {
            let what = format!("{what}; later redo is in the archive, if one is kept (see --redo)");
            about_the_link(what)
        });
    };
    let begin = Begin { position: ArchivePosition { generation: link.manifest.generation, lsn: link_end }, frame };
    let (mut groups, mut count) = (archive.groups(begin)?, 0);
    while !target.is_reached() {
        let Some(group) = groups.next()? else {
            plan.ends_before_until = target.archive_ends_at(groups.at()).map_err(about_the_link)?;
            break;
        };
        if !target.admits(group.end, group.payload)? {
            break;
        }
        plan.add(&group, target.pages);
        count += 1;
        if count % GROUPS_PER_WORD == 0 {
            let word = BackupProgress { step: "reading redo", pages: count, total: count };
            if tell(word).is_break() {
                return Err(super::interrupted());
            }
        }
    }
    plan.last_commit = target.last_commit;
    plan.check();
    Ok(plan)
}
