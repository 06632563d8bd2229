//! Takes a backup. The rules are those of [`super`].

use super::chain::BackupLink;
use super::files::{self, FileSum, NewFile};
use super::manifest::{self, BackupManifest, Base};
use super::pages::ExtentReader;
use super::until::Target;
use super::{BackupOptions, BackupProgress, OnBackupProgress};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::log::{KeptRedo, Log, RedoReader};
use crate::page::header;
use crate::space::Space;
use crate::space::layout::EXTENT_PAGES;
use crate::store::{self, FileHeader, StoreKind};
use crate::sync::atomic::{AtomicU8, Ordering::SeqCst};
use crate::types::{Lsn, PageNo, unix_us};
use highwater_storage::{CopyKey, StorageSet};
use std::path::Path;
use std::time::{Duration, Instant};

/// Redo is copied once there is this much: a copy after each commit would compete with commits for the device. A
/// smaller amount is copied after [`MAX_PAUSES`] of [`REDO_PAUSE`]: in a small ring writers may wait for it.
const REDO_AT_ONCE_BYTES: u64 = 512 << 10;
const REDO_PAUSE: Duration = Duration::from_millis(10);
const MAX_PAUSES: u32 = 10;

/// Longest pause of a backup that is slow on purpose in which no thread can end it.
const MAX_SLEEP: Duration = Duration::from_millis(50);

/// A database that a backup is taken of.
pub(crate) struct Source<'a> {
    pub ctx: &'a Context,
    pub space: &'a Space,
    pub storage: &'a StorageSet,
}

/// The result of copying the pages.
struct Copied {
    pages: FileSum,
    count: u64,
    damaged: Vec<u32>,
    pages_lsn: Lsn,
    pages_unix_us: u64,
}

/// An order to the thread that copies redo.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    Copy = 0,
    /// Copy what there is now, and end.
    Finish = 1,
    GiveUp = 2,
}

/// Takes a backup into the folder `dest`. After an error there is nothing in it.
///
/// # Errors
/// [`Error::Usage`] for a folder that cannot be one, a base that does not fit: [`Error::Incompatible`], a damaged page:
/// [`Error::CorruptPage`]. An I/O error; [`Error::Open`] if there is no table of an encrypted database's keys. The
/// database continues even if the backup fails.
pub(crate) fn take(
    source: &Source<'_>,
    dest: &Path,
    options: &BackupOptions,
    tell: &mut OnBackupProgress<'_>,
) -> Result<BackupManifest> {
    let file = store::file_header(&source.ctx.pool.fix_s(PageNo(0))?)?;
    let key = source.storage.copy_key()?;
    if options.base.is_some() && options.skip_damaged {
        let what = "a backup that adds to another one leaves no damaged page out: a restore would bring that page as \
                    it was in the other backup; take a full backup";
        return Err(Error::Usage(what.into()));
    }
    let base = options.base.as_deref().map(|base| check_base(source, &file, base)).transpose()?;
    let _pages_stay = source.space.hold_discards();
    // One backup at a time: what is in `dest` after an error is its own.
    let kept = Log::keep(&*source.ctx.log, RedoReader::Backup)?;
    let made = files::make_empty(dest)?;
    let taken = check_outside(source, dest).and_then(|()| {
        key.iter().try_for_each(|(_, table)| table.put_into(dest))?;
        fill(source, &file, base, kept, (dest, key.map(|(key, _)| key)), options, tell)
    });
    if taken.is_err() {
        // No thread wants a part of a backup; if this fails too, it has no manifest.
        for name in [manifest::PAGES, manifest::REDO, manifest::KEYS] {
            let _ = std::fs::remove_file(dest.join(name));
        }
        if made {
            let _ = std::fs::remove_dir(dest);
        }
    }
    taken
}

/// The base's manifest says that an incremental backup of this database can add to it.
fn check_base(source: &Source<'_>, file: &FileHeader, dir: &Path) -> Result<Base> {
    let base = BackupManifest::read(dir)?;
    let name = dir.display();
    if base.id() != Some(file.database_id) {
        let (has, wanted) = (&base.database_id, file.database_id);
        let what = format!("{name} is a backup of database {has}, this is database {wanted:016x}: take a full backup");
        return Err(Error::Incompatible(what));
    }
    if !base.damaged_pages.is_empty() {
        let count = base.damaged_pages.len();
        let what = format!("{name} left {count} damaged pages out, which may be sound by now: take a full backup");
        return Err(Error::Incompatible(what));
    }
    let (end, generation) = (source.ctx.log.end_lsn(), source.ctx.log.generation());
    if base.generation > generation {
        let has = base.generation;
        let what =
            format!("{name} is of generation {has} of the log, this database has {generation}: an older copy of it");
        return Err(Error::Incompatible(what));
    }
    if base.end_lsn > end.0 {
        let what = format!("{name} reaches LSN {}, this database is at LSN {end}: an older copy of it", base.end_lsn);
        return Err(Error::Incompatible(what));
    }
    Ok(Base { backup_id: base.backup_id, end_lsn: base.end_lsn })
}

fn check_outside(source: &Source<'_>, dest: &Path) -> Result<()> {
    match source.storage.folders().filter(|_| source.storage.encloses(dest)) {
        None => Ok(()),
        Some((folder, _)) => Err(Error::Usage(format!(
            "{} is in the database's folder {}; name a folder outside of it",
            dest.display(),
            folder.display()
        ))),
    }
}

fn fill(
    source: &Source<'_>,
    file: &FileHeader,
    base: Option<Base>,
    kept: KeptRedo<&Log>,
    (dest, key): (&Path, Option<CopyKey>),
    options: &BackupOptions,
    tell: &mut OnBackupProgress<'_>,
) -> Result<BackupManifest> {
    let (start_lsn, generation) = (kept.at(), source.ctx.log.generation());
    let since = base.as_ref().map(|base| Lsn(base.end_lsn));
    let create = |name| NewFile::create(dest, name, key.as_ref());
    let new_files = (create(manifest::PAGES)?, create(manifest::REDO)?);
    let (copied, redo, end_lsn) = copy(source, kept, new_files, since, options, tell)?;
    let pages_lsn = copied.pages_lsn;
    debug_assert!(start_lsn <= pages_lsn, "the log began to keep redo at {start_lsn}, behind the pages, {pages_lsn}");
    debug_assert!(pages_lsn <= end_lsn, "step 5: the pages are of {pages_lsn}, the redo ends at {end_lsn}");
    debug_assert!(since.is_none_or(|since| since <= end_lsn), "a backup up to {end_lsn} ends before its base");
    debug_assert!(options.skip_damaged || copied.damaged.is_empty(), "damaged pages were left out unasked");
    let manifest = BackupManifest {
        format: manifest::FORMAT,
        backup_id: format!("{:016x}", crate::types::random_id()),
        database_id: format!("{:016x}", file.database_id),
        base,
        page_bytes: file.page_bytes as u64,
        segment_bytes: match file.kind {
            StoreKind::InPlace => 0,
            StoreKind::OutOfPlace { segment_bytes } => segment_bytes,
        },
        log_file_bytes: source.ctx.log.size_bytes(),
        generation,
        start_lsn: start_lsn.0,
        pages_lsn: pages_lsn.0.max(start_lsn.0),
        pages_unix_us: copied.pages_unix_us,
        end_lsn: end_lsn.0,
        page_count: source.space.stable_page_count(),
        pages_copied: copied.count,
        damaged_pages: copied.damaged,
        finished_unix_s: unix_us() / 1_000_000,
        key_id: key.as_ref().map(|key| format!("{:016x}", key.id())),
        files: [copied.pages, redo],
    };
    files::sync_folder(dest)?;
    // The copied redo is verified only here: a backup that cannot be restored must be an error.
    let link = BackupLink { dir: dest.to_path_buf(), manifest, key };
    link.follow_redo(&mut Target::new(None))?;
    link.manifest.write(dest)?;
    Ok(link.manifest)
}

/// Ends the thread that copies redo, unless it was ordered to finish; also when the progress callback panics.
struct GiveUp<'a>(&'a AtomicU8);

impl Drop for GiveUp<'_> {
    fn drop(&mut self) {
        let _ = self.0.compare_exchange(Order::Copy as u8, Order::GiveUp as u8, SeqCst, SeqCst);
    }
}

/// Copies pages and, on a thread of its own, redo; returns where the redo ends.
fn copy(
    source: &Source<'_>,
    kept: KeptRedo<&Log>,
    (pages, redo): (NewFile, NewFile),
    since: Option<Lsn>,
    options: &BackupOptions,
    tell: &mut OnBackupProgress<'_>,
) -> Result<(Copied, FileSum, Lsn)> {
    let order = AtomicU8::new(Order::Copy as u8);
    std::thread::scope(|scope| {
        let give_up = GiveUp(&order);
        let copier = std::thread::Builder::new().name("hw-backup".into());
        let copier = copier.spawn_scoped(scope, || copy_redo(source.ctx, kept, redo, &order));
        let copier = copier.map_err(|error| Error::Usage(format!("cannot start thread backup: {error}")))?;
        let copied = copy_pages(source, pages, since, options, tell, &|| copier.is_finished());
        let is_redo_first = copier.is_finished();
        if copied.is_ok() {
            let before = order.swap(Order::Finish as u8, SeqCst);
            debug_assert_eq!(before, Order::Copy as u8, "step 5: the redo ends before the pages are copied");
        }
        drop(give_up);
        let redo = copier.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        match (copied, redo) {
            // Pages are given up when the redo's thread has failed, and the other way round.
            (Err(_), Err(error)) if is_redo_first => Err(error),
            (Err(error), _) | (_, Err(error)) => Err(error),
            (Ok(copied), Ok((redo, end_lsn))) => Ok((copied, redo, end_lsn)),
        }
    })
}

/// Copies all pages, or those that changed after `since`.
fn copy_pages(
    source: &Source<'_>,
    mut file: NewFile,
    since: Option<Lsn>,
    options: &BackupOptions,
    tell: &mut OnBackupProgress<'_>,
    stopped: &dyn Fn() -> bool,
) -> Result<Copied> {
    // Of a growth that the redo to copy does not have, the pages are copied.
    let (ctx, total) = (source.ctx, source.space.stable_page_count());
    let mut reader = ExtentReader::new(ctx, source.space);
    let (mut count, mut damaged, mut next) = (0, Vec::new(), 0);
    let (started, mut read_bytes) = (Instant::now(), 0);
    for extent in 0..total / EXTENT_PAGES {
        reader.read(extent, |page_no, page| {
            debug_assert!(next <= page_no.0 && page_no.0 < total, "page {page_no} of {total} is copied behind {next}");
            next = page_no.0 + 1;
            read_bytes += ctx.pool.page_bytes() as u64;
            match page {
                Ok(page) if page_no == PageNo(0) || since.is_none_or(|since| header::lsn(page) > since) => {
                    file.write(&page_no.0.to_le_bytes())?;
                    file.write(page)?;
                    count += 1;
                }
                Ok(_) => {}
                Err(Error::CorruptPage { .. }) if options.skip_damaged => damaged.push(page_no.0),
                Err(error) => return Err(error),
            }
            Ok(())
        })?;
        let pages = u64::from((extent + 1) * EXTENT_PAGES);
        let due = match options.max_bytes_per_s {
            0 => Duration::ZERO,
            rate => Duration::from_secs_f64(read_bytes as f64 / rate as f64),
        };
        loop {
            if stopped() || tell(BackupProgress { step: "copying", pages, total: total.into() }).is_break() {
                return Err(super::interrupted());
            }
            let left = due.saturating_sub(started.elapsed());
            if left.is_zero() {
                break;
            }
            crate::sync::thread::sleep(left.min(MAX_SLEEP));
        }
    }
    let pages = file.finish()?;
    // A page may have come from the pool: what it has is durable here too.
    let pages_lsn = ctx.log.end_lsn();
    // No commit before this LSN notes a later time.
    let pages_unix_us = ctx.time_us();
    ctx.log.flush_to(pages_lsn)?;
    Ok(Copied { pages, count, damaged, pages_lsn, pages_unix_us })
}

/// Copies redo until it is ordered to end; returns the LSN where it ended.
fn copy_redo(ctx: &Context, mut kept: KeptRedo<&Log>, mut file: NewFile, order: &AtomicU8) -> Result<(FileSum, Lsn)> {
    let (mut bytes, mut end, mut pauses) = (Vec::new(), None, 0);
    loop {
        ctx.poison.check()?;
        match order.load(SeqCst) {
            order if order == Order::GiveUp as u8 => return Err(super::interrupted()),
            order if order == Order::Finish as u8 && end.is_none() => {
                // No copied page is after it.
                let last = ctx.log.end_lsn();
                ctx.log.flush_to(last)?;
                end = Some(last);
            }
            _ if end.is_none() && pauses < MAX_PAUSES && is_little(ctx, &kept) => {
                crate::sync::thread::sleep(REDO_PAUSE);
                pauses += 1;
                continue;
            }
            _ => pauses = 0,
        }
        let begun = kept.at();
        kept.read(end.unwrap_or(Lsn(u64::MAX)), &mut bytes)?;
        let (at, durable) = (kept.at(), ctx.log.durable_lsn());
        debug_assert_eq!(at.0 - begun.0, bytes.len() as u64, "redo from {begun} to {at} is copied with a gap");
        debug_assert!(at <= durable, "step 3: redo to {at} is copied, and is durable to {durable}");
        file.write(&bytes)?;
        kept.release(kept.at());
        if end == Some(kept.at()) {
            let end = kept.at();
            drop(kept);
            return Ok((file.finish()?, end));
        }
    }
}

fn is_little(ctx: &Context, kept: &KeptRedo<&Log>) -> bool {
    ctx.log.durable_lsn().0.saturating_sub(kept.at().0) < REDO_AT_ONCE_BYTES
}

#[cfg(test)]
#[path = "take_test.rs"]
mod tests;
