//! Making a database of a chain of backups. The rules are those of [`super`].

use super::chain::{self, Link};
use super::{BackupProgress, OnBackupProgress, RestoreOptions, files};
use crate::config::{FlushLog, Options, PageCompression};
use crate::error::{Error, Result};
use crate::log::Log;
use crate::log::format::Header as LogHeader;
use crate::page::header;
use crate::pool::Pool;
use crate::probe::Chosen;
use crate::recovery;
use crate::stats::Stats;
use crate::store::{self, BATCH_PAGES, Batch, Lane, PageStore, Protection, Settings, bootstrap};
use crate::sync::poison::Poison;
use crate::types::{Lsn, PageNo, random_id};
use highwater_storage::{SetOptions, StorageSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Where the database is made, within the target.
const WORK: &str = "restoring";
/// In the order in which they are moved up.
const FILES: [&str; 3] = ["doublewrite", "redo", "data"];

/// A restored database that waits for its plain opening.
pub struct Restored {
    target: PathBuf,
    /// The folder it lies in.
    pub work: PathBuf,
    database_id: u64,
    log_file_bytes: u64,
    /// Where it is restored to.
    pub end_lsn: Lsn,
}

/// Verifies a chain.
///
/// # Errors
/// As [`restore`].
pub fn verify(dirs: &[PathBuf], tell: &mut OnBackupProgress<'_>) -> Result<()> {
    chain::verify(&chain::open(dirs)?, None, tell).map(drop)
}

/// Makes a database of the chain in `target`; it is as a crash at the end of the chain would leave it.
///
/// # Errors
/// [`Error::Usage`] if the target is not empty, [`Error::Incompatible`] for backups that do not follow each other,
/// [`Error::Corrupt`] for a damaged one: nothing was written then. An I/O error.
pub fn restore(
    dirs: &[PathBuf],
    target: &Path,
    options: &RestoreOptions,
    tell: &mut OnBackupProgress<'_>,
) -> Result<Restored> {
    let links = chain::open(dirs)?;
    chain::check_apart(&links, target)?;
    let end_lsn = chain::verify(&links, options.to_lsn.map(Lsn), tell)?;
    files::make_empty(target)?;
    let work = target.join(WORK);
    std::fs::create_dir(&work).map_err(|error| files::failed("create", &work, error))?;
    files::sync_folder(target)?;
    let set = SetOptions { flush_method: options.database.flush_method, create: true, ..SetOptions::default() };
    let storage = StorageSet::open(&work, &set)?;
    let (options, database_id) = (&options.database, random_id());
    let mut maker = Maker { storage: &storage, database_id, options, compression: options.page_compression };
    maker.create(&links[0])?;
    for (number, link) in links.iter().enumerate() {
        let is_last = number + 1 == links.len();
        maker.write_pages(link, tell)?;
        maker.make_log(link, if is_last { end_lsn } else { link.redo_lsns().end })?;
        if !is_last {
            maker.replay()?;
        }
    }
    let log_file_bytes = links[links.len() - 1].manifest.log_file_bytes;
    Ok(Restored { target: target.to_path_buf(), work, database_id: maker.database_id, log_file_bytes, end_lsn })
}

/// A database being made.
struct Maker<'a> {
    storage: &'a StorageSet,
    database_id: u64,
    options: &'a Options,
    compression: PageCompression,
}

impl Maker<'_> {
    /// Creates the store with the backup's first two pages; page 0 says what the compression `auto` is.
    fn create(&mut self, link: &Link) -> Result<()> {
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
        bootstrap::create(self.storage, link.manifest.page_count, first, second)
    }

    /// Page 0 gets the new database's id.
    fn adapt(&self, page_no: PageNo, page: &mut [u8]) {
        if page_no == PageNo(0) {
            store::put_database_id(page, self.database_id);
            header::seal(page, page_no);
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

    fn write_pages(&self, link: &Link, tell: &mut OnBackupProgress<'_>) -> Result<()> {
        let store = self.open_store()?;
        store.reserve(0..link.manifest.page_count)?;
        store.sync()?;
        let mut batch = Batch::new(BATCH_PAGES, store.page_bytes());
        let (mut pages, total) = (0, link.manifest.pages_copied);
        link.pages(|page_no, page| {
            self.adapt(page_no, page);
            batch.push(page, page_no);
            pages += 1;
            if batch.entries().len() == BATCH_PAGES || pages == total {
                store.write(&mut batch, Lane::FlushList)?;
                batch.clear();
            }
            match tell(BackupProgress { step: "restoring", pages, total }).is_break() {
                true => Err(super::interrupted()),
                false => Ok(()),
            }
        })
    }

    /// The redo log, with the backup's redo up to `end`.
    fn make_log(&self, link: &Link, end: Lsn) -> Result<()> {
        let (mut redo, lsns, manifest) = (link.redo()?, link.redo_lsns().start..end, &link.manifest);
        let header = LogHeader {
            database_id: self.database_id,
            size_bytes: Log::size_for(&lsns, manifest.log_file_bytes),
            generation: manifest.generation,
            sequence: 0,
            checkpoint_lsn: lsns.start,
            durable_lsn: lsns.end,
            // The store is written without protection: it has noted nothing.
            store_mark: 0,
        };
        Log::rebuild(&*self.storage.redo, header, |bytes| redo.read_all(bytes))
    }

    /// Brings every page to the end of the log; the log itself stays.
    fn replay(&self) -> Result<()> {
        let (stats, poison) = (Arc::new(Stats::default()), Arc::new(Poison::default()));
        let redo = self.storage.redo.clone();
        let buffer_bytes = self.options.log_buffer_size as usize;
        let (log, scan) =
            Log::open(redo, buffer_bytes, FlushLog::Sync, self.database_id, stats.clone(), poison.clone())?;
        let pool = Pool::new(self.options, self.open_store()?, log.clone(), stats, poison)?;
        recovery::replay(&pool, &log, &scan, recovery::THREADS).map(drop)
    }
}

impl Restored {
    /// The database was opened and closed: gives its redo log the size of its source's and moves the files to the
    /// target, `data` last. Durable on return.
    ///
    /// # Errors
    /// An I/O error.
    pub fn finish(self) -> Result<()> {
        let storage = StorageSet::open(&self.work, &SetOptions::default())?;
        let header = Log::header(&*storage.redo, self.database_id)?;
        if header.size_bytes != Log::size_created(self.log_file_bytes) {
            let (size_bytes, durable_lsn) = (self.log_file_bytes, header.checkpoint_lsn);
            Log::rebuild(&*storage.redo, LogHeader { size_bytes, durable_lsn, ..header }, |_| Ok(()))?;
        }
        drop(storage);
        files::sync_folder(&self.work)?;
        for name in FILES {
            let (from, to) = (self.work.join(name), self.target.join(name));
            std::fs::rename(&from, &to).map_err(|error| files::failed("move", &from, error))?;
            files::sync_folder(&self.target)?;
        }
        std::fs::remove_dir(&self.work).map_err(|error| files::failed("remove", &self.work, error))?;
        files::sync_folder(&self.target)?;
        files::sync_parent(&self.target)
    }
}
