//! Opening and closing: builds the parts in order, recovers, starts threads. Wiring only.
//!
//! Order of opening (each step needs those before)
//! 0. Paths become absolute and lose their links; nothing resolves a path that a user gave after that.
//! 1. Page 0's fixed fields: what the file is, its page size, the database id.
//! 2. Log: find its checkpoint and its end. Check that data and log are of the same age (`file_generations`), otherwise
//!    the opening fails. Store: repair the pages that a crash tore since that checkpoint.
//! 3. Redo: apply it to the pages and make them durable. The archive gets the missing redo. Only then a new log
//!    generation begins (`file_generations`).
//! 4. Space: derive the free pages from the extent maps. The change buffer: find the waiting operations in its tree;
//!    recovery has applied pending changes.
//! 5. Probe: what `auto` means on this device.
//! 6. Threads: cleaner, log.
//!
//! A set opened to be read goes through the same steps, recovery and rollbacks included; what they write stays in
//! memory (see `StorageSet::open_read_only`). It needs no protection from torn writes, and is not written when it
//! closes.
//!
//! Order of creation: redo and doublewrite first, then the extent map, page 0 last. A crash before page 0 is durable
//! leaves files that count as not created (see `creation`) and are created again.

use super::archiving::Archiving;
use super::open_overrides::OpenOverrides;
use super::recovery_report::RecoveryReport;
use super::threads::{Background, ShutdownPhase};
use super::{archiving, creation, file_generations};
use crate::backup::restore;
use crate::change_buffer::ChangeBuffer;
use crate::config::{
    Doublewrite, FlushLog, FlushMethod, FlushNeighbors, Options, PageCompression, PageSize, PageStoreKind,
};
use crate::context::Context;
use crate::error::{Error, Result};
use crate::log::Log;
use crate::pool::cleaner::{checkpoint, checkpoint_target};
use crate::pool::{MIN_FRAMES, Pool};
use crate::probe::{Chosen, ProbeRecord};
use crate::recovery::{self, Losses, Replayed};
use crate::space::{Cut, Space};
use crate::stats::Stats;
use crate::store::{self, FileHeader, PageSource, Protection, StoreKind, bootstrap};
use crate::sync::event::event;
use crate::sync::poison::Poison;
use crate::types::PageNo;
use highwater_storage::{AlignedBuf, Device, SetOptions, StorageSet, is_within, real_path};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// The parts of an open database below transactions.
pub(crate) struct OpenParts {
    pub ctx: Arc<Context>,
    pub space: Arc<Space>,
    pub changes: Arc<ChangeBuffer>,
    /// The options it is open with; see `in_force`.
    pub options: Options,
    /// The result of recovery at the opening.
    pub replayed: Replayed,
    /// Torn pages repaired at opening.
    pub repaired: Vec<PageNo>,
    /// The probe of the device, if an option is `auto` and there is something to measure.
    pub probe: Option<ProbeRecord>,
    /// The archive of its redo, if one is kept.
    pub(super) archiving: Option<Arc<Archiving>>,
    /// Threads; upper layers add theirs.
    pub background: Background,
    /// The threads' clock starts here.
    pub(super) started: Instant,
    storage: StorageSet,
}

impl OpenParts {
    /// The recovery report of the parts below transactions.
    pub(super) fn recovery_report(&self) -> RecoveryReport {
        RecoveryReport {
            redo_bytes: self.replayed.redo_bytes,
            redo_operations: self.replayed.operations as u64,
            redo_pages: self.replayed.pages as u64,
            repaired_pages: self.repaired.len() as u64,
            lost_pages: self.replayed.lost_pages as u64,
            redo_time: Duration::from_micros(self.ctx.stats.recovery_us.get()),
            ..RecoveryReport::default()
        }
    }

    /// Opens the database in folder `dir`; creates it if the options allow it.
    ///
    /// # Errors
    /// As [`OpenParts::open`], and [`Error::Open`] for a folder that is in use, missing or not writable.
    pub(crate) fn open_dir(dir: &Path, options: Options) -> Result<OpenParts> {
        options.validate()?;
        let options = with_real_paths(options);
        // Before a file is made.
        archiving::check_outside(&options, |archive| is_within(archive, dir))?;
        restore::refuse_unfinished(dir)?;
        let set = SetOptions {
            log_dir: options.log_dir.clone(),
            flush_method: options.flush_method,
            cached_redo: options.flush_log_at_trx_commit != FlushLog::Sync,
            create: options.create_if_missing,
            encryption_key: options.read_key()?,
        };
        OpenParts::open(StorageSet::open(dir, &set)?, options)
    }

    /// Opens the database in folder `dir` to read it only: not a byte in it is written.
    ///
    /// # Errors
    /// As [`OpenParts::open`], and [`Error::Open`] for a folder that is in use, missing or not readable.
    pub(crate) fn open_dir_read_only(dir: &Path, options: Options) -> Result<OpenParts> {
        options.validate()?;
        let options = with_real_paths(options);
        restore::refuse_unfinished(dir)?;
        let key = options.read_key()?;
        OpenParts::open(StorageSet::open_read_only(dir, options.log_dir.as_deref(), key.as_ref())?, options)
    }

    /// Opens the database in `storage`, creating it in a new set.
    ///
    /// # Errors
    /// [`Error::Incompatible`], [`Error::Corrupt`], [`Error::BadOption`], an I/O error.
    pub(crate) fn open(storage: StorageSet, options: Options) -> Result<OpenParts> {
        OpenParts::open_in(storage, options, &OpenOverrides::default())
    }

    /// As [`OpenParts::open`], in another manner than users' databases.
    ///
    /// # Errors
    /// As [`OpenParts::open`].
    pub(crate) fn open_in(storage: StorageSet, options: Options, overrides: &OpenOverrides) -> Result<OpenParts> {
        options.validate()?;
        let options = without_secret(with_real_paths(options), &storage)?;
        if !storage.is_read_only() {
            archiving::check_outside(&options, |archive| storage.encloses(archive))?;
        }
        create_if_new(&storage, &options, overrides)?;
        let found = bootstrap::find_by(&storage, overrides.finding_threads)?;
        let file = found.header();
        check_page_size(&options, file.page_bytes)?;
        let chosen = chosen_at_creation(&*found.pages(), file.kind)?;
        let options = with_store(options, file, chosen.map(|chosen| chosen.page_compression), &*storage.data)?;
        check_pool_size(&options, file.page_bytes)?;
        let Recovered { ctx, archiving, repaired, replayed } = recover(&storage, &options, found, overrides)?;
        debug_assert_eq!(ctx.pool.page_bytes(), file.page_bytes, "step 1: the pool has pages of another size");
        let space = Space::open(&ctx, overrides.group_extents)?;
        if space.is_small() && !storage.is_read_only() {
            space.reserve_after_rest(&ctx)?;
            ctx.log.reserve_ring()?;
        }
        let changes = ChangeBuffer::open(&ctx, &space, &options, storage.is_read_only())?;
        let probe = super::probe::choose_for_device(&ctx, &options)?;
        let options = in_force(options, &ctx);
        let background = Background::default();
        Ok(OpenParts {
            ctx,
            space,
            changes,
            options,
            replayed,
            repaired,
            probe,
            archiving,
            background,
            started: Instant::now(),
            storage,
        })
    }

    /// Stops the threads, writes every dirty page and a final checkpoint. A database that has failed, or is only read,
    /// is just stopped.
    ///
    /// # Errors
    /// The database was poisoned, or an I/O error.
    pub(crate) fn close(&mut self) -> Result<()> {
        // While the threads run: merging may need more redo than fits between two checkpoints.
        let merged = self.merge_at_close();
        self.background.stop(ShutdownPhase::First);
        self.background.stop(ShutdownPhase::Second);
        let cut = self.cut_at_close();
        self.ctx.pool.set_threads(false);
        self.background.stop(ShutdownPhase::Last);
        self.ctx.poison.check()?;
        if self.storage.is_read_only() {
            return Ok(());
        }
        merged?;
        cut?;
        self.ctx.pool.flush_all()?;
        let target = checkpoint_target(&self.ctx.pool, &self.ctx.log);
        // The pending changes are after it.
        self.ctx.log.begin_closing();
        self.ctx.log.flush_to(self.ctx.log.end_lsn())?;
        checkpoint(&self.ctx.pool, &self.ctx.log, target)?;
        debug_assert!(self.ctx.log.checkpoint_lsn() >= target, "a close ends before its checkpoint at {target}");
        self.space.discard_step(&self.ctx);
        while self.space.discard_found_step(&self.ctx) {}
        let keep_bytes = creation::log_bytes_at_rest(self.storage.data.len_bytes()?);
        let ended = file_generations::finish(&self.ctx.pool, &self.ctx.log, keep_bytes)?;
        if let Some(end) = ended.filter(|_| self.space.is_small()) {
            self.space.release_at_rest()?;
            self.ctx.log.release_ring(end);
        }
        self.archiving.as_ref().map_or(Ok(()), |archiving| archiving.finish())
    }

    fn merge_at_close(&self) -> Result<()> {
        let wanted = self.options.change_buffer_merge_at_close.applies_to(self.changes.mode());
        let possible = !self.ctx.poison.is_set() && !self.storage.is_read_only();
        if wanted && possible { self.changes.end_buffering() } else { Ok(()) }
    }

    /// Cuts the end of the file off that is not needed. The threads that make redo space run.
    fn cut_at_close(&self) -> Result<()> {
        if self.ctx.poison.is_set() || self.storage.is_read_only() {
            return Ok(());
        }
        if self.space.can_cut(Cut::AtClosing) {
            self.ctx.pool.flush_all()?;
            checkpoint(&self.ctx.pool, &self.ctx.log, checkpoint_target(&self.ctx.pool, &self.ctx.log))?;
        }
        while self.space.cut_step(&self.ctx, Cut::AtClosing)? {}
        Ok(())
    }

    pub(crate) fn storage(&self) -> &StorageSet {
        &self.storage
    }
}

/// The options without the key, which is not needed any more (rule 2 of `encryption.rs`), if they suit the set: a key
/// that would have no effect is an error.
///
/// # Errors
/// [`Error::BadOption`].
fn without_secret(options: Options, storage: &StorageSet) -> Result<Options> {
    if (options.key_file.is_some() || options.encryption_key.is_some()) && !storage.is_encrypted() {
        let reason = "devices are encrypted by StorageSet::encrypted, and memory is not encrypted".to_string();
        return Err(Error::BadOption { option: "key-file".into(), reason });
    }
    Ok(Options { encryption_key: None, ..options })
}

/// Creates the database if `storage` holds none.
fn create_if_new(storage: &StorageSet, options: &Options, overrides: &OpenOverrides) -> Result<()> {
    if !creation::is_uncreated(storage)? {
        return Ok(());
    }
    creation::check_never_used(storage)?;
    if !options.create_if_missing || storage.is_read_only() {
        return Err(Error::Incompatible(format!("{} holds no database yet", storage.data.name())));
    }
    let plan = creation::plan(storage, options, overrides)?;
    with_store(options.clone(), plan.header, None, &*storage.data)?;
    check_pool_size(options, plan.header.page_bytes)?;
    creation::create(storage, &plan)
}

/// A database whose pages have the redo of its log.
struct Recovered {
    ctx: Arc<Context>,
    archiving: Option<Arc<Archiving>>,
    repaired: Vec<PageNo>,
    replayed: Replayed,
}

/// Opens log, store and pool, repairs torn pages and replays the redo.
fn recover(
    storage: &StorageSet,
    options: &Options,
    found: bootstrap::FoundStore,
    overrides: &OpenOverrides,
) -> Result<Recovered> {
    let (file, stats, poison) = (found.header(), Arc::new(Stats::default()), Arc::new(Poison::default()));
    let (is_read_only, scan_start) = (storage.is_read_only(), Instant::now());
    let (log, scan) = Log::open(
        storage.redo.clone(),
        options.log_buffer_size as usize,
        options.flush_log_at_trx_commit,
        file.database_id,
        if is_read_only { None } else { Some(options.log_file_size) },
        stats.clone(),
        poison.clone(),
    )
    .map_err(|error| blame_page_0(error, &found))?;
    let redo_name = storage.redo.name();
    let found = found.expect(log.store_mark())?;
    file_generations::check(&*found.pages(), &redo_name, &log, &scan)?;
    let repaired = found.repair(scan.checkpoint_lsn..scan.end_lsn)?;
    file_generations::check(&*found.pages(), &redo_name, &log, &scan)?;
    let store = found.open(&store_settings(options, is_read_only), stats.clone())?;
    let pool = Pool::new(options, store, log.clone(), stats.clone(), poison.clone())?;
    let losses = if is_read_only { Losses::All } else { Losses::IndexLeaves };
    let replayed = recovery::replay(&pool, &log, &scan, overrides.recovery_threads, losses)?;
    let archiving = match is_read_only {
        true => None,
        false => Archiving::open(options, &log, &scan, file.database_id, &stats, storage)?,
    };
    note_replayed(&stats, &replayed, scan_start);
    file_generations::start(&pool, &log, scan.end_lsn)?;
    let ctx = Arc::new(Context::new(pool, log, stats, poison));
    let archiving = archiving.map(Arc::new);
    if let Some(archiving) = &archiving {
        archiving.follow(&ctx.log, &ctx.stats)?;
        ctx.note_times_from(archiving.noted_us());
    }
    Ok(Recovered { ctx, archiving, repaired, replayed })
}

/// Notes the result of the recovery that began at `scan_start` in the counters and events.
fn note_replayed(stats: &Stats, replayed: &Replayed, scan_start: Instant) {
    let Replayed { redo_bytes, lost_pages, .. } = *replayed;
    stats.recovery_redo_bytes.set(redo_bytes);
    stats.recovery_pages_read.set(stats.pages_read.get());
    stats.pages_lost.add(lost_pages as u64);
    stats.recovery_us.set(scan_start.elapsed().as_micros() as u64);
    if redo_bytes > 0 {
        let ms = scan_start.elapsed().as_millis();
        event!(INFO, redo_bytes = redo_bytes, lost_pages = lost_pages, ms = ms, "redo was replayed");
    }
}

/// The options with absolute paths without links: the process may change its working directory later.
fn with_real_paths(options: Options) -> Options {
    let Options { log_dir, redo_archive, .. } = &options;
    let [log_dir, redo_archive] = [log_dir, redo_archive].map(|path| path.as_deref().map(real_path));
    Options { log_dir, redo_archive, ..options }
}

/// A log that seems to be another database's may be the right one: the number of the database is read from page 0.
fn blame_page_0(error: Error, found: &bootstrap::FoundStore) -> Error {
    match (error, found.doubt()) {
        (Error::Incompatible(text), Some(doubt)) => Error::Incompatible(format!("{doubt}; {text}")),
        (error, _) => error,
    }
}

fn check_page_size(options: &Options, page_bytes: usize) -> Result<()> {
    match options.page_size.bytes().filter(|asked| *asked != page_bytes as u64) {
        Some(asked) => {
            let reason = format!(
                "{asked} bytes asked for, but the database was created with {page_bytes}; leave the option out or \
                 create a new database"
            );
            Err(Error::BadOption { option: "page-size".into(), reason })
        }
        None => Ok(()),
    }
}

/// An option that differs from its default must be what the database has.
fn check_kind(asked: &Options, kind: StoreKind) -> Result<()> {
    let refuse = |option: &str, asked: String, has: String| {
        let reason = format!(
            "{asked} asked for, but the database was created with {has}; leave the option out or create a new database"
        );
        Err(Error::BadOption { option: option.into(), reason })
    };
    match kind {
        StoreKind::InPlace if asked.page_store == PageStoreKind::OutOfPlace => {
            refuse("page-store", "out-of-place".into(), "in-place".into())
        }
        StoreKind::OutOfPlace { segment_bytes }
            if asked.segment_size != segment_bytes && asked.segment_size != Options::default().segment_size =>
        {
            refuse("segment-size", format!("{} bytes", asked.segment_size), format!("{segment_bytes}"))
        }
        _ => Ok(()),
    }
}

fn check_pool_size(options: &Options, page_bytes: usize) -> Result<()> {
    if (options.buffer_pool_size as usize) < MIN_FRAMES * page_bytes {
        let least = (MIN_FRAMES * page_bytes) >> 10;
        let reason = format!("too small: {MIN_FRAMES} pages of {page_bytes} bytes need {least}KiB");
        return Err(Error::BadOption { option: "buffer-pool-size".into(), reason });
    }
    Ok(())
}

/// The choices for options that were `auto` when the database was created, from page 0. In place a crash may have torn
/// page 0, and nothing depends on the choices.
fn chosen_at_creation(pages: &dyn PageSource, kind: StoreKind) -> Result<Option<Chosen>> {
    if kind == StoreKind::InPlace {
        return Ok(None);
    }
    let mut page = AlignedBuf::zeroed(pages.page_bytes());
    pages.read(PageNo(0), &mut page)?;
    Ok(Chosen::decode(&page))
}

/// The options with the kind of store that the database was created with, and what that implies; `packing` is what the
/// compression `auto` means, if that was chosen.
///
/// # Errors
/// [`Error::BadOption`] for an option that this kind, or the device, does not have.
fn with_store(
    asked: Options,
    FileHeader { kind, page_bytes, .. }: FileHeader,
    packing: Option<PageCompression>,
    data: &dyn Device,
) -> Result<Options> {
    let refuse = |option: &str, reason: &str| Err(Error::BadOption { option: option.into(), reason: reason.into() });
    let is_auto = asked.page_compression == PageCompression::Auto;
    check_kind(&asked, kind)?;
    let StoreKind::OutOfPlace { segment_bytes } = kind else {
        if !is_auto && asked.page_compression != PageCompression::Off {
            let reason = "the pages of this database are in place and cannot be compressed; create a database with \
                          page-store out-of-place";
            return refuse("page-compression", reason);
        }
        if asked.doublewrite == Doublewrite::Atomic
            && let Err(reason) = data.write_untorn(page_bytes)
        {
            let reason = format!("atomic needs a device that tears no page of {page_bytes} bytes; {reason}");
            return refuse("doublewrite", &reason);
        }
        let doublewrite = match asked.doublewrite {
            Doublewrite::Auto if data.write_untorn(page_bytes).is_ok() => Doublewrite::Atomic,
            Doublewrite::Auto => Doublewrite::On,
            given => given,
        };
        let page_compression = PageCompression::Off;
        return Ok(Options { page_store: PageStoreKind::InPlace, page_compression, doublewrite, ..asked });
    };
    if asked.flush_method == FlushMethod::DirectNoFsync {
        let reason = "O_DIRECT_NO_FSYNC leaves syncs out that a page store out of place needs before it uses a segment \
                      again; take O_DIRECT";
        return refuse("flush-method", reason);
    }
    if let Some(feature) = packing.filter(|_| is_auto).and_then(PageCompression::missing_feature) {
        return Err(Error::Incompatible(format!(
            "the pages of this database are compressed with {feature}, and this program was built without the feature \
             `{feature}` of the crate highwater"
        )));
    }
    Ok(Options {
        page_store: PageStoreKind::OutOfPlace,
        page_compression: if is_auto { packing.unwrap_or(PageCompression::Off) } else { asked.page_compression },
        segment_size: segment_bytes,
        doublewrite: Doublewrite::Off,
        flush_neighbors: FlushNeighbors::Off,
        ..asked
    })
}

fn store_settings(options: &Options, is_read_only: bool) -> store::Settings {
    store::Settings {
        protection: protection(options),
        compression: options.page_compression,
        segment_fill_pct: options.segment_fill_pct,
        is_read_only,
    }
}

/// The store's protection from torn pages.
fn protection(options: &Options) -> Protection {
    match options.doublewrite {
        Doublewrite::On | Doublewrite::Auto => Protection::Doublewrite,
        Doublewrite::Journal => Protection::Journal { bytes: options.journal_size },
        Doublewrite::Off | Doublewrite::Atomic => Protection::None,
    }
}

/// The options as they are in force: pages have the size they were created with, a log keeps what it has, the pool
/// holds whole pages, and a small pool is scanned less deep.
fn in_force(asked: Options, ctx: &Context) -> Options {
    let (pool, page_bytes) = (&ctx.pool, ctx.pool.page_bytes());
    debug_assert!(pool.frame_count() >= MIN_FRAMES, "a pool of {} frames was accepted", pool.frame_count());
    Options {
        page_size: PageSize::Bytes(page_bytes as u64),
        log_file_size: ctx.log.max_bytes(),
        buffer_pool_size: (pool.frame_count() * page_bytes) as u64,
        lru_scan_depth: pool.lru_scan_depth() as u64,
        ..asked
    }
}
