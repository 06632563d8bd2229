//! A database with pages of every kind of [`super::declared`], most of them cold: two tables with indexes and overflow
//! rows, changes that wait in the change buffer, undo of transactions that are not purged, and one that
//! is still open and has undone its change.

use super::declared::{PageKind, kind_of};
use highwater::config::PageStoreKind;
use highwater::inspect::RawFile;
use highwater::{Database, Options, PageNo, RowRef, Schema, Table, Type, WriteTxn, values};
use highwater_bench::{Error, Result};
use highwater_storage::{MemoryDevice, StorageSet};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

pub(super) const TABLES: [&str; 2] = ["one", "two"];
/// Ways of reading a table.
pub(super) const INDEXES: [&str; 3] = ["PRIMARY", "by_name", "by_code"];
/// Rows of a table at the beginning.
pub(super) const ROWS: u64 = 5000;

const OPTIONS: [(&str, &str); 7] = [
    ("page_size", "4K"),
    ("buffer_pool_size", "1M"),
    ("log_file_size", "4M"),
    ("log_buffer_size", "1M"),
    ("segment_size", "256K"),
    ("cleaner_interval_ms", "20"),
    ("change_buffer_max_size", "50"),
];

/// The rows of a table: the version of each, by its id.
pub(super) type Model = BTreeMap<u64, u64>;

/// The columns of a row.
type Columns = (u64, String, u64, String);

/// The database, at rest.
pub struct Whole {
    /// Its options.
    pub options: Options,
    /// Its devices, in memory.
    pub storage: StorageSet,
    /// Its rows, by table.
    pub(super) models: [Model; 2],
}

impl Whole {
    /// Creates a database with these options, and with options that keep it small.
    ///
    /// # Errors
    /// The engine's.
    pub fn new(own: &[(&str, &str)]) -> Result<Whole> {
        let mut options = Options::default();
        OPTIONS.iter().chain(own).try_for_each(|(name, value)| options.set(name, value))?;
        let storage = StorageSet::memory();
        let db = Database::open_storage(storage.clone(), options.clone())?;
        let mut models = [Model::new(), Model::new()];
        for (table, model) in TABLES.iter().zip(&mut models) {
            let table = db.create_table(table, schema())?;
            for first in (0..ROWS).step_by(500) {
                let mut txn = db.begin()?;
                (first..first + 500).try_for_each(|id| put(&mut txn, &table, false, id, 0))?;
                txn.commit()?;
                model.extend((first..first + 500).map(|id| (id, 0)));
            }
        }
        let (mut open, table) = (db.begin()?, db.table(TABLES[0])?);
        let nothing = open.savepoint();
        put(&mut open, &table, false, ROWS, 0)?;
        open.rollback_to(nothing)?;
        let mut random = fastrand::Rng::with_seed(5);
        // An old snapshot keeps the undo of what follows; it begins with its first read.
        let mut snapshot = db.snapshot()?;
        snapshot.get(&db.table(TABLES[0])?, &values![0])?;
        for version in 1..60 {
            for (table, model) in TABLES.iter().zip(&mut models) {
                let (table, mut txn) = (db.table(table)?, db.begin()?);
                let ids: Vec<u64> = (0..25).map(|_| random.u64(..ROWS)).collect();
                ids.iter().try_for_each(|id| put(&mut txn, &table, true, *id, version))?;
                txn.commit()?;
                model.extend(ids.into_iter().map(|id| (id, version)));
            }
        }
        db.close()?;
        drop((snapshot, open));
        Ok(Whole { options, storage: storage.cut(0), models })
    }

    /// Whether its page store is out of place.
    pub fn is_out_of_place(&self) -> bool {
        self.options.page_store == PageStoreKind::OutOfPlace
    }

    /// Its pages by kind.
    ///
    /// # Errors
    /// The engine's.
    pub fn pages(&self) -> Result<BTreeMap<PageKind, Vec<PageNo>>> {
        pages(data(&self.storage)?)
    }
}

/// The data device of a set in memory.
pub(super) fn data(storage: &StorageSet) -> Result<&MemoryDevice> {
    let devices = storage.memory_devices();
    devices.map(|devices| &devices[0]).ok_or_else(|| Error::Usage("the devices are no memory".to_string()))
}

/// The pages of a data file by kind.
pub(super) fn pages(data: &MemoryDevice) -> Result<BTreeMap<PageKind, Vec<PageNo>>> {
    pages_of(&RawFile::open(data)?)
}

/// As [`pages`], of an opened file.
pub(super) fn pages_of(file: &RawFile<'_>) -> Result<BTreeMap<PageKind, Vec<PageNo>>> {
    let mut pages = BTreeMap::<_, Vec<PageNo>>::new();
    for page in (0..file.page_count() as u32).map(PageNo) {
        if let Some(kind) = kind_of(file, page)? {
            pages.entry(kind).or_default().push(page);
        }
    }
    Ok(pages)
}

/// The bytes of a data file in which a page is stored; `None` beyond the end.
pub(super) fn place_of(data: &MemoryDevice, page: PageNo) -> Result<Option<Range<usize>>> {
    place_in(&RawFile::open(data)?, page)
}

/// As [`place_of`], of an opened file.
pub(super) fn place_in(file: &RawFile<'_>, page: PageNo) -> Result<Option<Range<usize>>> {
    Ok(file.place(page)?.map(|place| place.offset as usize..(place.offset + place.bytes) as usize))
}

fn schema() -> Schema {
    let schema = Schema::new().column("id", Type::U64).column("name", Type::Text(40)).column("code", Type::U64);
    let schema = schema.column("note", Type::Text(1 << 20)).primary_key(&["id"]);
    schema.index("by_name", &["name"]).index("by_code", &["code"])
}

/// The columns of a row at a version.
fn columns(id: u64, version: u64) -> Columns {
    let mixed = (id << 20 | version).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let long = if id % 200 == 7 { 9000 } else { 60 };
    (id, format!("name {:08x}", mixed >> 32), mixed % 1_000_003, format!("{id} {version} {}", "x".repeat(long)))
}

/// Inserts a row into a table, or updates it if it `is_there`.
pub(super) fn put(txn: &mut WriteTxn, table: &Table, is_there: bool, id: u64, version: u64) -> highwater::Result<()> {
    let (_, name, code, note) = columns(id, version);
    if is_there {
        let changes = [(1, name.as_str().into()), (2, code.into()), (3, note.as_str().into())];
        txn.update(table, &values![id], &changes)?;
    } else {
        txn.insert(table, &values![id, name.as_str(), code, note.as_str()])?;
    }
    Ok(())
}

/// Reads a table by an index; returns whether the rows are those of the model.
pub(super) fn reads_right(db: &Database, table: &str, index: &str, model: &Model) -> highwater::Result<bool> {
    reads_right_but(db, table, index, model, &BTreeSet::new())
}

/// As [`reads_right`], with any contents of some rows.
pub(super) fn reads_right_but(
    db: &Database,
    table: &str,
    index: &str,
    model: &Model,
    doubtful: &BTreeSet<u64>,
) -> highwater::Result<bool> {
    let sure = model.iter().filter(|(id, _)| !doubtful.contains(id));
    let mut expected: Vec<Columns> = sure.map(|(id, version)| columns(*id, *version)).collect();
    match index {
        "by_name" => expected.sort_by(|a, b| (&a.1, a.0).cmp(&(&b.1, b.0))),
        "by_code" => expected.sort_by_key(|row| (row.2, row.0)),
        _ => {}
    }
    let handle = db.table(table)?;
    let mut snapshot = db.snapshot()?;
    let (mut expected, mut is_right) = (expected.into_iter(), true);
    for row in snapshot.scan(&handle).index(index).iter()? {
        let row = row?;
        if doubtful.contains(&row.u64(0)) {
            continue;
        }
        is_right &= expected.next().is_some_and(|expected| expected == columns_of(row.as_ref()));
    }
    Ok(is_right && expected.next().is_none())
}

fn columns_of(row: RowRef<'_>) -> Columns {
    (row.u64(0), row.str(1).to_string(), row.u64(2), row.str(3).to_string())
}
