//! A database in a folder, on a device that can be made slow, so that calls are long; and one whose redo can fail.

use highwater::config::PageSize;
use highwater::{BackupOptions, Database, Options, Schema, Table, Type, values};
use highwater_storage::{Device, Faults, Request, SetOptions, StorageSet, TestDevice};
use std::ops::ControlFlow::Continue;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::sync::{Arc, OnceLock};
use std::thread;
use std::time::{Duration, Instant};
use tempfile::TempDir;

pub(crate) const ROWS: u64 = 3_000;
/// Of a read of the slow device.
const PAUSE: Duration = Duration::from_millis(2);

#[derive(Default)]
pub(crate) struct Reads {
    is_slow: AtomicBool,
    slow_ones: AtomicU64,
}

impl Reads {
    pub(crate) fn slow_down(&self) {
        self.is_slow.store(true, SeqCst);
    }

    pub(crate) fn speed_up(&self) {
        self.is_slow.store(false, SeqCst);
    }

    /// The device, slow while it is to be.
    fn over(self: &Arc<Reads>, inner: Arc<dyn Device>) -> Arc<dyn Device> {
        let reads = self.clone();
        Arc::new(TestDevice::over(inner).before(move |request| {
            if matches!(request, Request::Read { .. }) {
                reads.pause();
            }
            Ok(())
        }))
    }

    fn pause(&self) {
        if self.is_slow.load(SeqCst) {
            self.slow_ones.fetch_add(1, SeqCst);
            thread::sleep(PAUSE);
        }
    }
}

fn options() -> Options {
    Options {
        page_size: PageSize::Bytes(4096),
        buffer_pool_size: 2 << 20,
        log_file_size: 4 << 20,
        lock_wait_timeout_ms: 600_000,
        ..Options::default()
    }
}

/// A closed database with the tables `rows` (of `ROWS` rows on several hundred pages) and `others`, in `database`, and
/// a backup of it, in `backup`.
fn template() -> &'static Path {
    static TEMPLATE: OnceLock<TempDir> = OnceLock::new();
    let made = TEMPLATE.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let db = Database::open(folder.path().join("database"), options()).unwrap();
        let schema = || Schema::new().column("id", Type::U64).column("n", Type::U64).primary_key(&["id"]);
        let rows = schema().column("text", Type::Text(400)).index("by_n", &["n"]);
        let rows = db.create_table("rows", rows).unwrap();
        db.create_table("others", schema()).unwrap();
        let text = "x".repeat(400);
        db.transact(|txn| txn.insert_many(&rows, (0..ROWS).map(|id| values![id, id * 7 % ROWS, &*text]))).unwrap();
        db.backup(folder.path().join("backup"), &BackupOptions::default(), &mut |_| Continue(())).unwrap();
        db.close().unwrap();
        folder
    });
    made.path()
}

/// What a call uses.
#[derive(Clone)]
pub(crate) struct Shared {
    pub db: Database,
    pub rows: Table,
    pub others: Table,
    /// A folder for what calls make.
    pub folder: PathBuf,
    pub backup: PathBuf,
}

pub(crate) struct World {
    handles: Option<(Shared, StorageSet)>,
    pub reads: Arc<Reads>,
    /// Of the redo log's device.
    pub faults: Faults,
    /// Rows of `others` that were acknowledged.
    pub acknowledged: u64,
    folder: TempDir,
}

impl World {
    pub(crate) fn new() -> World {
        let folder = tempfile::tempdir().unwrap();
        let database = folder.path().join("database");
        std::fs::create_dir(&database).unwrap();
        for file in std::fs::read_dir(template().join("database")).unwrap() {
            let file = file.unwrap();
            std::fs::copy(file.path(), database.join(file.file_name())).unwrap();
        }
        let (reads, faults) = (Arc::new(Reads::default()), Faults::new());
        let set = StorageSet::open(&database, &SetOptions::default()).unwrap();
        let (redo, mut nth) = (faults.wrap(set.redo.clone()), 0);
        let storage = set.map(|device| {
            nth += 1;
            match nth {
                1 => reads.over(device),
                2 => redo.clone(),
                _ => device,
            }
        });
        let db = Database::open_storage(storage.clone(), options()).unwrap();
        let [rows, others] = ["rows", "others"].map(|name| db.table(name).unwrap());
        let backup = template().join("backup");
        let shared = Shared { db, rows, others, folder: folder.path().to_path_buf(), backup };
        World { handles: Some((shared, storage)), reads, faults, acknowledged: 0, folder }
    }

    fn handles(&self) -> &(Shared, StorageSet) {
        self.handles.as_ref().expect("only a child drops them, and `verify`")
    }

    pub(crate) fn shared(&self) -> &Shared {
        &self.handles().0
    }

    pub(crate) fn storage(&self) -> &StorageSet {
        &self.handles().1
    }

    pub(crate) fn drop_handles(&mut self) {
        self.handles = None;
    }

    pub(crate) fn share(&self) -> Shared {
        self.shared().clone()
    }

    /// Returns when the call that was begun has read something, or has had time to begin to wait.
    pub(crate) fn await_progress(&self) {
        let begin = Instant::now();
        while self.reads.slow_ones.load(SeqCst) < 3 && begin.elapsed() < Duration::from_millis(200) {
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Commits a row of `others`.
    pub(crate) fn commit(&mut self) -> highwater::Result<()> {
        let (Shared { db, others, .. }, id) = (self.shared(), self.acknowledged);
        // What bars it does so for long.
        db.with_lock_wait_timeout(Duration::from_millis(100))
            .transact(|txn| txn.insert(others, &values![id, id]).map(drop))?;
        self.acknowledged += 1;
        Ok(())
    }

    /// Opens the database again and looks whether it is what was acknowledged. The last handle is dropped first.
    pub(crate) fn verify(mut self) {
        self.drop_handles();
        let World { acknowledged, folder, .. } = self;
        let db = Database::open(folder.path().join("database"), options()).unwrap();
        let report = db.check().unwrap();
        assert!(report.is_sound(), "{:?}", report.findings);
        let mut read = db.snapshot().unwrap();
        let [rows, others] = ["rows", "others"].map(|name| db.table(name).unwrap());
        assert_eq!(read.scan(&rows).count().unwrap(), ROWS);
        let found = read.scan(&others).count().unwrap();
        // A commit that failed may have happened.
        assert!((acknowledged..=acknowledged + 1).contains(&found), "{found} of {acknowledged}");
        drop(read);
        db.close().unwrap();
    }
}
