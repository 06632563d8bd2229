//! The small database: its files and its rows.

use super::damage::Damage;
use super::judge::{Answer, Verdict, judge};
use highwater::config::{Doublewrite, PageStoreKind};
use highwater::inspect;
use highwater::{Database, Options, PageNo, Schema, Table, Type, WriteTxn, values};
use highwater_bench::{Error, Result};
use highwater_storage::{MemoryDevice, StorageSet};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Rows at the beginning.
const ROWS: u64 = 150;
/// Options of the page store: name, value.
pub type Store = &'static [(&'static str, &'static str)];

/// Pages in place, protected by the doublewrite file; by a journal; out of place, compressed; out of place.
pub const STORES: [Store; 4] = [
    &[("page_store", "in-place"), ("doublewrite", "on")],
    &[("page_store", "in-place"), ("doublewrite", "journal")],
    &[("page_store", "out-of-place"), ("page_compression", "lz4")],
    &[("page_store", "out-of-place")],
];

const SMALL: [(&str, &str); 6] = [
    ("page_size", "4K"),
    ("buffer_pool_size", "1M"),
    ("log_file_size", "4M"),
    ("log_buffer_size", "1M"),
    ("segment_size", "256K"),
    ("cleaner_interval_ms", "300"),
];

/// Maximum number of attempts to find a moment with pages newer than the checkpoint.
const TRIES: u64 = 100;
/// Maximum time of an idle log to write the durable LSN to its header.
const MARKED_WITHIN: Duration = Duration::from_secs(20);

/// A file of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum File {
    /// The pages.
    Data,
    /// The redo log.
    Redo,
    /// Copies of pages.
    Doublewrite,
}

impl File {
    /// All three.
    pub const ALL: [File; 3] = [File::Data, File::Redo, File::Doublewrite];

    /// Its name in the database's folder.
    pub fn name(self) -> &'static str {
        match self {
            File::Data => "data",
            File::Redo => "redo",
            File::Doublewrite => "doublewrite",
        }
    }
}

/// The bytes of data, redo and doublewrite.
pub type Files = [Arc<Vec<u8>>; 3];

/// The state in which the database was left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Left {
    /// Closed.
    Closed,
    /// Stopped without closing, with a transaction open and a torn page: the next opening recovers it.
    Stopped,
}

/// A row: name, code, note.
pub(super) type Row = (String, Option<i32>, String);
/// The rows of the table, by their id.
pub(super) type Rows = BTreeMap<u64, Row>;

/// A small database in memory.
pub struct Small {
    /// Options with which it is opened.
    pub options: Options,
    /// The state in which it was left.
    pub left: Left,
    /// Its files.
    pub files: Files,
    /// The files after an earlier close.
    pub older: Files,
    /// The rows after each of the last commits that recovery may end at, oldest first; the last are the present ones.
    pub(super) answers: Vec<Answer>,
    /// The torn page of a stopped database.
    pub torn: Option<u32>,
}

impl Small {
    /// Creates a database with this page store.
    ///
    /// # Errors
    /// The engine's.
    pub fn new(store: Store, left: Left) -> Result<Small> {
        let options = options(store)?;
        let storage = StorageSet::memory();
        let mut rows = Rows::new();
        let db = Database::open_storage(storage.clone(), options.clone())?;
        let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(64));
        let schema = schema.nullable("code", Type::I32).nullable("note", Type::Text(1 << 20));
        let schema = schema.primary_key(&["id"]).index("by_name", &["name"]).unique_index("by_code", &["code"]);
        let table = db.create_table("person", schema)?;
        commit(&db, |txn| (0..ROWS).try_for_each(|id| put(txn, &table, &mut rows, id, 0)))?;
        db.close()?;
        let older = image(&storage)?;
        let db = Database::open_storage(storage.clone(), options.clone())?;
        let table = db.table("person")?;
        commit(&db, |txn| change(txn, &table, &mut rows))?;
        if left == Left::Closed {
            db.close()?;
            let files = image(&storage)?;
            return Ok(Small { options, left, files, older, answers: vec![Answer::of(&rows)], torn: None });
        }
        stopped(&db, &storage, &table, rows, older, options)
    }
}

/// Options of a small database.
///
/// # Errors
/// Never for one of [`STORES`].
pub fn options(store: Store) -> Result<Options> {
    let mut options = Options::default();
    for (name, value) in SMALL.iter().chain(store) {
        options.set(name, value)?;
    }
    Ok(options)
}

/// Continues with the open database until it can be stopped as [`Left::Stopped`] requires.
fn stopped(
    db: &Database,
    storage: &StorageSet,
    table: &Table,
    mut rows: Rows,
    older: Files,
    options: Options,
) -> Result<Small> {
    wait_for_mark(storage)?;
    let mut answers = vec![Answer::of(&rows)];
    for id in 1000..1000 + TRIES {
        // The check flushes every page; soon after, the checkpoint follows, unless this is quicker.
        db.check()?;
        let mut open = db.begin()?;
        change(&mut open, table, &mut rows.clone())?;
        commit(db, |txn| put(txn, table, &mut rows, id, 7))?;
        answers.push(Answer::of(&rows));
        let files = image(storage)?;
        let newer = newer_pages(&files, &options)?;
        if !newer.is_empty() {
            let mut small = Small { options, left: Left::Stopped, files, older, answers, torn: None };
            if has_copies(&small.options) {
                tear(&mut small, &newer);
            }
            return Ok(small);
        }
        open.rollback()?;
    }
    Err(Error::Data("the checkpoint is always too quick".to_string()))
}

fn commit(db: &Database, work: impl FnOnce(&mut WriteTxn) -> Result<()>) -> Result<()> {
    let mut txn = db.begin()?;
    work(&mut txn)?;
    Ok(txn.commit()?)
}

fn name(n: u64) -> String {
    format!("name {:05}", n.wrapping_mul(7919) % 10_007)
}

fn put(txn: &mut WriteTxn, table: &Table, rows: &mut Rows, id: u64, version: u64) -> Result<()> {
    let long = if id % 30 == 7 { 9000 } else { 40 };
    let code = (!id.is_multiple_of(5)).then_some((id * 10 + version) as i32);
    let row = (name(id + version * 1000), code, format!("{id} {version} {}", "x".repeat(long)));
    if rows.contains_key(&id) {
        let changes = [(1, row.0.as_str().into()), (2, code.into()), (3, row.2.as_str().into())];
        txn.update(table, &values![id], &changes)?;
    } else {
        txn.insert(table, &values![id, row.0.as_str(), code, row.2.as_str()])?;
    }
    rows.insert(id, row);
    Ok(())
}

/// Updates that move entries and change overflow rows, deletions, insertions.
fn change(txn: &mut WriteTxn, table: &Table, rows: &mut Rows) -> Result<()> {
    for id in (0..ROWS).step_by(7).chain(ROWS..ROWS + 40) {
        put(txn, table, rows, id, 3)?;
    }
    // A short column of rows with overflow pages, which these keep.
    for (id, row) in rows.range_mut(..).filter(|(id, _)| **id % 30 == 7) {
        let code = Some((id * 10 + 9) as i32);
        txn.update(table, &values![*id], &[(2, code.into())])?;
        row.1 = code;
    }
    for id in (0..ROWS).step_by(11) {
        txn.delete(table, &values![id])?;
        rows.remove(&id);
    }
    Ok(())
}

/// The contents of the files. The data file is copied first, so that the log has all its changes.
fn image(storage: &StorageSet) -> Result<Files> {
    let devices = storage.memory_devices().ok_or_else(|| Error::Usage("the devices are no memory".to_string()))?;
    let [data, redo, doublewrite] = devices;
    let (data, doublewrite) = (data.image(), doublewrite.image());
    Ok([data, redo.image(), doublewrite].map(Arc::new))
}

/// Waits until the log's header has the durable LSN of the log's end, which an idle log writes.
fn wait_for_mark(storage: &StorageSet) -> Result<()> {
    let since = Instant::now();
    loop {
        let look = inspect::look(&*storage.redo)?;
        let newest = look.newest.and_then(|slot| look.headers[slot].as_ref().ok());
        if let (Some(scan), Some(header)) = (&look.scan, newest)
            && header.durable_lsn >= scan.end_lsn
        {
            return Ok(());
        }
        if since.elapsed() > MARKED_WITHIN {
            return Err(Error::Data("the idle log does not say what is durable".to_string()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn has_copies(options: &Options) -> bool {
    options.page_store == PageStoreKind::InPlace && options.doublewrite == Doublewrite::On
}

/// The pages in the data file that are newer than the log's checkpoint, and have a copy in the doublewrite file if they
/// are in place.
fn newer_pages(files: &Files, options: &Options) -> Result<Vec<usize>> {
    let redo = MemoryDevice::holding(files[1].to_vec());
    let Some(scan) = inspect::look(&redo)?.scan else { return Ok(Vec::new()) };
    let word = |bytes: &[u8], at: usize| u64::from_le_bytes(std::array::from_fn(|i| bytes[at + i]));
    let is_copied = |page: &[u8]| files[2].chunks_exact(4096).any(|copy| copy == page);
    let data = MemoryDevice::holding(files[0].to_vec());
    let file = inspect::RawFile::open(&data)?;
    let is_newer = |number: &usize| {
        let page = file.page(PageNo(*number as u32)).unwrap_or_default();
        page.len() == 4096 && word(&page, 8) > scan.checkpoint_lsn.0 && (!has_copies(options) || is_copied(&page))
    };
    Ok((2..file.page_count() as usize).filter(is_newer).collect())
}

/// Tears one of these pages: its second half becomes zeros, so that it is unreadable without its copy.
fn tear(small: &mut Small, pages: &[usize]) {
    let whole = Arc::clone(&small.files[0]);
    let doublewrite = small.files[2].len();
    for &page in pages {
        let mut data = whole.to_vec();
        data[page * 4096 + 2048..][..2048].fill(0);
        small.files[0] = Arc::new(data);
        let without_copy = Damage { file: File::Doublewrite, offset: 0, bytes: vec![0; doublewrite] };
        if matches!(judge(small, &[without_copy]), Verdict::Reported(_)) && judge(small, &[]) == Verdict::Silent {
            small.torn = Some(page as u32);
            return;
        }
    }
    small.files[0] = whole;
}
