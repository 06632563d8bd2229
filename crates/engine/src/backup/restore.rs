//! Creates a database from a chain of backups. The rules are those of [`super`].

use super::archive::{self, Archive};
use super::chain::{self, BackupLink};
use super::plan::{self, RedoPiece, ReplaySpan};
use super::{BackupProgress, OnBackupProgress, RestoreOptions, RestoreReport, files};
use crate::config::{FlushLog, Options, PageCompression};
use crate::error::{Error, Result};
use crate::log::Log;
use crate::log::format::LogHeader;
use crate::page::{header, lost};
use crate::pool::Pool;
use crate::probe::Chosen;
use crate::recovery::{self, Losses};
use crate::space::header::{LogMark, MarkState, put_log_mark};
use crate::stats::Stats;
use crate::store::{self, BATCH_PAGES, FlushLane, PageBatch, PageStore, Protection, Settings, bootstrap};
use crate::sync::poison::Poison;
use crate::types::{Lsn, PageNo, random_id};
use highwater_storage::{
    AlignedBuf, CopyKeys, CopyReader, EncryptionKey, FolderLock, SetOptions, StorageSet, is_lock_file, lock_alone,
};
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read, Take};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Subfolder of the target in which the database is made.
const WORK: &str = "restoring";
/// The marker: the first file that is created in that folder and the last one that is removed. It distinguishes the
/// folder from a folder of the user.
const MARKER: &str = "made-by-highwater-restore";
/// In the order in which they are moved up.
const FILES: [&str; 4] = ["keys", "doublewrite", "redo", "data"];

/// A restored database that waits for its plain opening.
pub(crate) struct Restored {
    target: PathBuf,
    _lock: FolderLock,
    /// The folder it is in.
    pub work: PathBuf,
    key: Option<EncryptionKey>,
    database_id: u64,
    log_file_bytes: u64,
    pub report: RestoreReport,
}

/// Verifies a chain, and the archived redo after it.
///
/// # Errors
/// As [`restore`].
pub(crate) fn verify(
    dirs: &[PathBuf],
    archive: Option<&Path>,
    key: Option<&EncryptionKey>,
    tell: &mut OnBackupProgress<'_>,
) -> Result<RestoreReport> {
    let keys = keys_of(dirs, archive, key);
    let links = chain::open(dirs, &keys)?;
    let archive = open_archive(&links, archive, &keys)?;
    chain::verify(&links, tell)?;
    Ok(plan::plan(&links, archive.as_ref(), None, tell)?.report())
}

/// The keys of the copies. All are of one database, but the user's key may have been rotated between backups: one copy
/// that it opens is enough.
fn keys_of(dirs: &[PathBuf], archive: Option<&Path>, key: Option<&EncryptionKey>) -> CopyKeys {
    CopyKeys::of(dirs.iter().map(PathBuf::as_path).chain(archive), key)
}

fn open_archive(links: &[BackupLink], dir: Option<&Path>, keys: &CopyKeys) -> Result<Option<Archive>> {
    let id = links[0].manifest.id().unwrap_or_default();
    dir.map(|dir| Archive::open(dir, id, keys)).transpose()
}

/// Restores the chain into a database in `target`, in the state that a crash at the requested time would leave.
///
/// # Errors
/// [`Error::Usage`] if the target is not empty, or for a moment that cannot be reached;
/// [`InUse`](highwater_storage::OpenError::InUse) if another restore makes a database there;
/// [`Error::Incompatible`] for backups that do not follow each other, [`Error::Corrupt`] for damaged ones,
/// [`Error::Open`] for encrypted ones that the options' key does not open: nothing was written then. An I/O error.
pub(crate) fn restore(
    dirs: &[PathBuf],
    target: &Path,
    options: &RestoreOptions,
    tell: &mut OnBackupProgress<'_>,
) -> Result<Restored> {
    let key = options.database.read_key()?;
    let keys = keys_of(dirs, options.redo.as_deref(), key.as_ref());
    let links = chain::open(dirs, &keys)?;
    chain::check_apart(&links, target)?;
    let archive = open_archive(&links, options.redo.as_deref(), &keys)?;
    let plan = plan::plan(&links, archive.as_ref(), options.until, tell)?;
    let links = &links[..plan.links];
    let page_counts = chain::verify(links, tell)?;
    debug_assert_eq!(page_counts.len(), links.len(), "a backup of the chain was not verified");
    let lock = make_target(target)?;
    let work = make_work(target)?;
    let set = SetOptions {
        flush_method: options.database.flush_method,
        create: true,
        encryption_key: key.clone(),
        ..SetOptions::default()
    };
    let storage = StorageSet::open(&work, &set)?;
    let (options, database_id) = (&options.database, random_id());
    let mut maker = RestoreTarget { storage: &storage, database_id, options, compression: options.page_compression };
    maker.create(&links[0], page_counts[0])?;
    for (number, link) in links.iter().enumerate() {
        let is_last = number + 1 == links.len();
        maker.write_pages(link, page_counts[number], tell)?;
        maker.make_log(link, if is_last { plan.link_end } else { link.redo_lsns().end })?;
        if !is_last || !plan.spans.is_empty() {
            maker.replay()?;
        }
    }
    let log_file_bytes = links[links.len() - 1].manifest.log_file_bytes;
    for (number, span) in plan.spans.iter().enumerate() {
        let (at, total) = (number as u64, plan.spans.len() as u64);
        if tell(BackupProgress { step: "replaying redo", pages: at, total }).is_break() {
            return Err(super::interrupted());
        }
        maker.prepare(span)?;
        maker.make_log_of(span, log_file_bytes)?;
        if number + 1 < plan.spans.len() {
            maker.replay()?;
        }
    }
    let report = plan.report();
    let (target, database_id) = (target.to_path_buf(), maker.database_id);
    Ok(Restored { target, _lock: lock, work, key, database_id, log_file_bytes, report })
}

/// Makes the folder, or removes from it what an interrupted restore has left. It is locked until the restore ends.
fn make_target(target: &Path) -> Result<FolderLock> {
    if !is_unfinished(target) {
        files::make_empty(target)?;
    }
    let lock = lock_alone(target)?;
    if is_unfinished(target) {
        take_away(target)?;
    }
    files::make_empty(target)?;
    Ok(lock)
}

/// Takes what an unfinished restore has left away, the marker last.
fn take_away(target: &Path) -> Result<()> {
    let work = target.join(WORK);
    for name in &FILES[..FILES.len() - 1] {
        remove(&target.join(name))?;
    }
    let failed = |error| files::failed("look at", &work, error);
    for entry in std::fs::read_dir(&work).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        if entry.file_name() != MARKER {
            remove(&entry.path())?;
        }
    }
    // The marker goes when nothing else is left, also after a power cut.
    files::sync_folder(target)?;
    files::sync_folder(&work)?;
    remove(&work.join(MARKER))?;
    std::fs::remove_dir(&work).map_err(|error| files::failed("remove", &work, error))?;
    files::sync_folder(target)
}

/// Removes a file, if it is there.
fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != ErrorKind::NotFound => Err(files::failed("remove", path, error)),
        _ => Ok(()),
    }
}

/// Creates the folder in which the database is made, with its marker.
fn make_work(target: &Path) -> Result<PathBuf> {
    let work = target.join(WORK);
    std::fs::create_dir(&work).map_err(|error| files::failed("create", &work, error))?;
    let marker = work.join(MARKER);
    File::create(&marker).and_then(|file| file.sync_all()).map_err(|error| files::failed("create", &marker, error))?;
    files::sync_folder(&work)?;
    files::sync_folder(target)?;
    Ok(work)
}

/// Refuses a folder with an interrupted restore, which is neither a database nor a place for a new one. A running
/// restore has it locked.
pub(crate) fn refuse_unfinished(dir: &Path) -> Result<()> {
    if !is_unfinished(dir) {
        return Ok(());
    }
    lock_alone(dir)?;
    Err(Error::Incompatible(format!(
        "{} holds no database: a restore into it was cut short; restore again, or remove the folder",
        dir.display()
    )))
}

/// Whether a restore into this folder was interrupted: the folder has the subfolder in which the database was being
/// made, and otherwise only files that the restore has moved up from there.
pub(crate) fn is_unfinished(target: &Path) -> bool {
    let Ok(entries) = std::fs::read_dir(target) else { return false };
    let mut has_work = false;
    for entry in entries {
        let Ok(entry) = entry else { return false };
        let name = entry.file_name();
        match name.to_str() {
            Some(WORK) => has_work = is_work(&entry.path()),
            Some(name) if name == FILES[0] || name == FILES[1] || is_lock_file(name) => {}
            _ => return false,
        }
    }
    has_work
}

/// Whether a restore created this folder: it has the marker, or is empty.
fn is_work(folder: &Path) -> bool {
    let has_marker = folder.join(MARKER).is_file();
    has_marker || std::fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

/// The database that a restore makes.
struct RestoreTarget<'a> {
    storage: &'a StorageSet,
    database_id: u64,
    options: &'a Options,
    compression: PageCompression,
}

impl RestoreTarget<'_> {
    /// Creates the store with the backup's first two pages; page 0 says what the compression `auto` is.
    fn create(&mut self, link: &BackupLink, page_count: u32) -> Result<()> {
        let mut first = Vec::with_capacity(2);
        link.pages(|page_no, page| {
            if page_no.0 < 2 {
                self.adapt(page_no, page);
                first.push(page.to_vec());
            }
            Ok(())
        })?;
        let [first, second] = &first[..] else {
            return Err(Error::Corrupt(format!("{} lacks page 0 or page 1", link.dir.display())));
        };
        if self.compression == PageCompression::Auto {
            self.compression = Chosen::decode(first).map_or(PageCompression::Off, |chosen| chosen.page_compression);
        }
        bootstrap::create(self.storage, page_count, first, second)
    }

    /// Page 0 gets the new database's id.
    fn adapt(&self, page_no: PageNo, page: &mut [u8]) {
        if page_no == PageNo(0) {
            store::put_database_id(page, self.database_id);
            header::stamp(page, page_no);
        }
    }

    /// Opens the store: nothing is torn, and what is being written needs no protection.
    fn open_store(&self) -> Result<Arc<dyn PageStore>> {
        let settings = Settings {
            protection: Protection::None,
            compression: self.compression,
            segment_fill_pct: self.options.segment_fill_pct,
            is_read_only: false,
        };
        bootstrap::find(self.storage)?.expect(0)?.open(&settings, Arc::new(Stats::default()))
    }

    fn write_pages(&self, link: &BackupLink, page_count: u32, tell: &mut OnBackupProgress<'_>) -> Result<()> {
        let store = self.open_store()?;
        store.reserve(0..page_count)?;
        store.sync()?;
        let mut batch = PageBatch::new(BATCH_PAGES, store.page_bytes());
        let (mut pages, total) = (0, link.manifest.pages_copied);
        link.pages(|page_no, page| {
            self.adapt(page_no, page);
            batch.push(page, page_no);
            pages += 1;
            if batch.entries().len() == BATCH_PAGES || pages == total {
                store.write(&mut batch, FlushLane::FlushList)?;
                batch.clear();
            }
            match tell(BackupProgress { step: "restoring", pages, total }).is_break() {
                true => Err(super::interrupted()),
                false => Ok(()),
            }
        })?;
        debug_assert!(batch.entries().is_empty(), "{} pages are not written", batch.entries().len());
        self.write_lost(link, page_count, &*store, &mut batch)
    }

    /// Writes lost pages in place of the pages that the backup left out: their redo is skipped.
    fn write_lost(
        &self,
        link: &BackupLink,
        page_count: u32,
        store: &dyn PageStore,
        batch: &mut PageBatch,
    ) -> Result<()> {
        let mut page = AlignedBuf::zeroed(store.page_bytes());
        let left_out: Vec<u32> = link.manifest.damaged_pages.iter().copied().filter(|no| *no < page_count).collect();
        for pages in left_out.chunks(BATCH_PAGES) {
            batch.clear();
            for page_no in pages {
                lost::format(&mut page, 0, link.redo_lsns().start, "it was damaged, and a backup left it out");
                batch.push(&page, PageNo(*page_no));
            }
            store.write(batch, FlushLane::FlushList)?;
        }
        Ok(())
    }

    /// Reserves space for the pages that a span changes, and gives the store the log generation of the span (see
    /// `db::file_generations`).
    fn prepare(&self, span: &ReplaySpan) -> Result<()> {
        let store = self.open_store()?;
        store.reserve(0..span.page_count)?;
        store.sync()?;
        let mut page = AlignedBuf::zeroed(store.page_bytes());
        store.read(PageNo(0), &mut page)?;
        header::verify(&page, PageNo(0))?;
        let mark = LogMark { state: MarkState::Open, generation: span.generation, lsn: span.lsns.start };
        put_log_mark(&mut page, mark);
        header::count_unlogged_change(&mut page);
        header::stamp(&mut page, PageNo(0));
        let mut batch = PageBatch::new(BATCH_PAGES, store.page_bytes());
        batch.push(&page, PageNo(0));
        store.write(&mut batch, FlushLane::FlushList)
    }

    /// The redo log, with the redo of a span.
    fn make_log_of(&self, span: &ReplaySpan, min_bytes: u64) -> Result<()> {
        let mut pieces = RedoPieces { left: span.pieces.iter(), open: None };
        let log_header = self.log_header(&span.lsns, min_bytes, span.generation);
        Log::rebuild(&*self.storage.redo, log_header, |bytes| pieces.read_all(bytes))
    }

    fn log_header(&self, lsns: &Range<Lsn>, min_bytes: u64, generation: u64) -> LogHeader {
        LogHeader {
            database_id: self.database_id,
            size_bytes: Log::size_for(lsns, min_bytes),
            generation,
            sequence: 0,
            checkpoint_lsn: lsns.start,
            durable_lsn: lsns.end,
            // The store is written without protection: it has noted nothing.
            store_mark: 0,
            ring_base: Lsn(0),
        }
    }

    /// The redo log, with the backup's redo up to `end`.
    fn make_log(&self, link: &BackupLink, end: Lsn) -> Result<()> {
        let (mut redo, lsns, manifest) = (link.redo()?, link.redo_lsns().start..end, &link.manifest);
        let header = self.log_header(&lsns, manifest.log_file_bytes, manifest.generation);
        Log::rebuild(&*self.storage.redo, header, |bytes| redo.read_all(bytes))
    }

    /// Brings every page to the end of the log; the log itself stays.
    fn replay(&self) -> Result<()> {
        let (stats, poison) = (Arc::new(Stats::default()), Arc::new(Poison::default()));
        let redo = self.storage.redo.clone();
        let buffer_bytes = self.options.log_buffer_size as usize;
        let (log, scan) =
            Log::open(redo, buffer_bytes, FlushLog::Sync, self.database_id, None, stats.clone(), poison.clone())?;
        let pool = Pool::new(self.options, self.open_store()?, log.clone(), stats, poison)?;
        recovery::replay(&pool, &log, &scan, recovery::THREADS, Losses::IndexLeaves).map(drop)
    }
}

/// Reads the bytes of a span from its files.
struct RedoPieces<'l> {
    left: std::slice::Iter<'l, RedoPiece>,
    open: Option<(Take<CopyReader<BufReader<File>>>, &'l RedoPiece)>,
}

impl RedoPieces<'_> {
    fn read_all(&mut self, mut bytes: &mut [u8]) -> Result<()> {
        while !bytes.is_empty() {
            let Some((file, piece)) = &mut self.open else {
                let piece =
                    self.left.next().ok_or_else(|| Error::Corrupt("a leg has less redo than planned".into()))?;
                let redo = archive::redo_of(&piece.file, piece.skipped_bytes, piece.key.as_ref())?;
                self.open = Some((redo.take(piece.bytes), piece));
                continue;
            };
            match file.read(bytes).map_err(|error| files::read_failed(&piece.file, error))? {
                0 => self.open = None,
                read => bytes = &mut bytes[read..],
            }
        }
        Ok(())
    }
}

impl Restored {
    /// The database was opened and closed: gives its redo log the size of its source's and moves the files to the
    /// target, `data` last. Durable on return.
    ///
    /// # Errors
    /// An I/O error.
    pub(crate) fn finish(self) -> Result<()> {
        let set = SetOptions { encryption_key: self.key, ..SetOptions::default() };
        let storage = StorageSet::open(&self.work, &set)?;
        let header = Log::header(&*storage.redo, self.database_id)?;
        if header.size_bytes != Log::size_created(self.log_file_bytes) {
            let (size_bytes, durable_lsn) = (self.log_file_bytes, header.checkpoint_lsn);
            Log::rebuild(&*storage.redo, LogHeader { size_bytes, durable_lsn, ..header }, |_| Ok(()))?;
        }
        drop(storage);
        files::sync_folder(&self.work)?;
        for name in FILES {
            let (from, to) = (self.work.join(name), self.target.join(name));
            if name == FILES[0] && !highwater_storage::is_encrypted(&self.work) {
                continue;
            }
            std::fs::rename(&from, &to).map_err(|error| files::failed("move", &from, error))?;
            files::sync_folder(&self.target)?;
        }
        remove(&self.work.join(MARKER))?;
        std::fs::remove_dir(&self.work).map_err(|error| files::failed("remove", &self.work, error))?;
        files::sync_folder(&self.target)?;
        files::sync_parent(&self.target)
    }
}
