//! An external record of acknowledged commits, for the crash test.
//!
//! Rules
//! 1. Each client has a row in `torture_client` and a file of its own. A transaction that writes raises the row's
//!    sequence number; after its commit has returned, and before the next transaction, the number is appended to the
//!    file.
//! 2. Then after any crash each number in the file is at most the row's number (acknowledged commits survive), and the
//!    row's number is at most one more than the file's last number (at most one commit was in flight).
//! 3. A record is four numbers of 8 bytes, little-endian: client, number, and two moments of one clock (`tick`),
//!    before the commit was called and after it returned. A torn last record is ignored: the process died while it
//!    wrote it.
//! 4. Where a mode of the engine may lose the last commits, rule 2 holds for those that remain ([`super::losses`]).

use crate::error::{Error, Result};
use crate::store::{Column, Read, RowChanges, RowView, Session, Store, TableSpec, Transaction, column};
use crate::workload::{key1, open_table};
use highwater::Type;
use highwater::values;
use std::fs::{File, OpenOptions};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::SeqCst};

const TABLE: &str = "torture_client";
const COLUMNS: &[Column] = &[column("client", Type::U64), column("sequence", Type::U64)];
const SEQUENCE: usize = 1;
const EXTENSION: &str = "ack";

/// The clock of all records of a folder: it continues where the newest one ended.
static NOW: AtomicU64 = AtomicU64::new(1);

/// Returns the next moment, later than all previous ones.
pub(super) fn tick() -> u64 {
    NOW.fetch_add(1, SeqCst)
}

/// The record of a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// The client.
    pub client: u64,
    /// The client's commits up to this one.
    pub number: u64,
    /// A moment before the commit was called.
    pub began: u64,
    /// A moment after it returned.
    pub ended: u64,
}

impl Record {
    pub(super) const BYTES: usize = 32;

    fn encode(&self) -> [u8; Self::BYTES] {
        let mut bytes = [0; Self::BYTES];
        let numbers = [self.client, self.number, self.began, self.ended];
        for (to, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            to.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> Record {
        let number = |at: usize| bytes[at * 8..][..8].try_into().map_or(0, u64::from_le_bytes);
        Record { client: number(0), number: number(1), began: number(2), ended: number(3) }
    }
}

/// Appends to the record of a client.
#[derive(Debug)]
pub struct RecordFile {
    file: File,
    path: PathBuf,
}

impl RecordFile {
    /// Opens the file, or creates it; the clock of the records continues where it ended.
    ///
    /// # Errors
    /// The file cannot be read, created or opened.
    pub fn append_to(path: PathBuf) -> Result<RecordFile> {
        if let Some(last) = records(&path)?.last() {
            NOW.fetch_max(last.ended + 1, SeqCst);
        }
        let file = OpenOptions::new().create(true).append(true).open(&path).map_err(|e| Error::file(&path, e))?;
        Ok(RecordFile { file, path })
    }

    /// Appends a record; it survives the process, not a power cut.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn append(&mut self, record: Record) -> Result<()> {
        self.file.write_all(&record.encode()).map_err(|e| Error::file(&self.path, e))
    }
}

/// The complete records of a file, oldest first. Truncates a torn record, so that the next one replaces it.
///
/// # Errors
/// The file cannot be read or truncated.
pub fn records(path: &Path) -> Result<Vec<Record>> {
    let bytes = match std::fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(error) => return Err(Error::file(path, error)),
    };
    let whole = bytes.len() / Record::BYTES * Record::BYTES;
    if whole < bytes.len() {
        cut_to(path, whole as u64)?;
    }
    Ok(bytes[..whole].chunks_exact(Record::BYTES).map(Record::decode).collect())
}

pub(super) fn cut_to(path: &Path, bytes: u64) -> Result<()> {
    let file = OpenOptions::new().write(true).open(path).map_err(|e| Error::file(path, e))?;
    file.set_len(bytes).map_err(|e| Error::file(path, e))
}

/// Numbers a client's commits, in a row of the database and in a file next to the database.
#[derive(Debug)]
pub struct Acknowledger<T> {
    table: T,
    client: u64,
    sequence: u64,
    /// The moment at which the current commit began.
    began: u64,
    file: RecordFile,
}

/// The file of client `client` under `folder`.
pub fn file_path(folder: &Path, client: u64) -> PathBuf {
    folder.join(format!("client-{client}.{EXTENSION}"))
}

/// Creates the table, unless it is there, and a row for each of `clients` that has none.
pub(crate) fn prepare<S: Store>(store: &S, clients: u64) -> Result<()> {
    let spec = TableSpec {
        name: TABLE.into(),
        columns: COLUMNS,
        auto_increment: None,
        primary_key: &["client"],
        indexes: &[],
    };
    let table = match store.table(TABLE)? {
        Some(table) => table,
        None => store.create_table(&spec)?,
    };
    let mut session = store.session()?;
    let mut read = session.snapshot()?;
    let mut missing = Vec::new();
    for client in 0..clients {
        if read.get(&table, &key1(client), |_| ())?.is_none() {
            missing.push(client);
        }
    }
    read.finish()?;
    let mut txn = session.begin()?;
    for client in missing {
        txn.insert(&table, &values![client, 0])?;
    }
    txn.finish()
}

/// Removes the records under `folder`, whose database was removed.
///
/// # Errors
/// A file cannot be removed.
pub fn forget(folder: &Path) -> Result<()> {
    for entry in std::fs::read_dir(folder).map_err(|e| Error::file(folder, e))? {
        let path = entry.map_err(|e| Error::file(folder, e))?.path();
        if path.extension().is_some_and(|extension| extension == EXTENSION) {
            std::fs::remove_file(&path).map_err(|e| Error::file(&path, e))?;
        }
    }
    Ok(())
}

pub(super) fn stored_sequence<S: Store>(store: &S, client: u64) -> Result<u64> {
    let table = open_table(store, TABLE)?;
    let mut session = store.session()?;
    let mut read = session.snapshot()?;
    let sequence = read.get(&table, &key1(client), |row| row.u64(SEQUENCE))?;
    read.finish()?;
    sequence.ok_or_else(|| Error::Data(format!("client {client} has no row in {TABLE}")))
}

impl<T: Clone + Send + Sync + 'static> Acknowledger<T> {
    /// Continues a client's record. A commit that survived although the process died before it could record it is
    /// recorded now.
    ///
    /// # Errors
    /// [`Error::Data`] when record and database contradict each other; the store's.
    pub fn open<S: Store<Table = T>>(store: &S, folder: &Path, client: u64) -> Result<Acknowledger<T>> {
        let path = file_path(folder, client);
        let (recorded, stored) = (last_acknowledged(&path, client)?, stored_sequence(store, client)?);
        if let Some(problem) = contradiction(client, recorded, stored) {
            return Err(Error::Data(problem));
        }
        let (table, file) = (open_table(store, TABLE)?, RecordFile::append_to(path)?);
        let mut acknowledger = Acknowledger { table, client, sequence: recorded, began: tick(), file };
        if stored > recorded {
            acknowledger.acknowledged()?;
        }
        Ok(acknowledger)
    }

    /// Raises the number within the transaction. It must be that of the last commit that returned, so a commit that is
    /// lost while the process runs is detected.
    ///
    /// # Errors
    /// [`Error::Data`] if the row has another number or is missing; the store's.
    pub fn mark<X: Transaction<Table = T>>(&mut self, txn: &mut X) -> Result<()> {
        self.began = tick();
        let mut stored = None;
        txn.modify(&self.table, &key1(self.client), |row, set| {
            stored = Some(row.u64(SEQUENCE));
            set.put(SEQUENCE, (self.sequence + 1).into());
        })?;
        match stored {
            Some(stored) if stored == self.sequence => Ok(()),
            Some(stored) => {
                let (client, sequence) = (self.client, self.sequence);
                Err(Error::Data(format!("client {client}: commit {sequence} has returned, its row says {stored}")))
            }
            None => Err(Error::Data(format!("client {} has no row in {TABLE}", self.client))),
        }
    }

    /// Records that the commit has returned.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn acknowledged(&mut self) -> Result<()> {
        self.sequence += 1;
        let Acknowledger { client, sequence: number, began, .. } = *self;
        self.file.append(Record { client, number, began, ended: tick() })
    }
}

/// The number of the last whole record of a file; 0 when there is none.
fn last_acknowledged(path: &Path, client: u64) -> Result<u64> {
    let last = records(path)?.last().copied();
    match last {
        Some(record) if record.client != client => {
            Err(Error::Data(format!("{} is the record of another client", path.display())))
        }
        last => Ok(last.map_or(0, |record| record.number)),
    }
}

/// The result of the comparison after a crash.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Acknowledged {
    /// Commits acknowledged since the database was loaded, all clients.
    pub commits: u64,
    /// Commits that were acknowledged and lost, as a mode of the engine allows.
    pub lost: u64,
    /// Problems, one line each; empty if every acknowledged commit survived.
    pub problems: Vec<String>,
}

/// Compares the record under `folder` with the database.
///
/// # Errors
/// The store's, or an unreadable record.
pub fn verify<S: Store>(store: &S, folder: &Path, clients: u64) -> Result<Acknowledged> {
    let mut result = Acknowledged::default();
    for client in 0..clients {
        let acknowledged = last_acknowledged(&file_path(folder, client), client)?;
        let stored = stored_sequence(store, client)?;
        result.commits += acknowledged;
        result.problems.extend(contradiction(client, acknowledged, stored));
    }
    Ok(result)
}

/// The problem with a client's last recorded number and its row's number, if they contradict each other.
pub(super) fn contradiction(client: u64, recorded: u64, stored: u64) -> Option<String> {
    if stored < recorded {
        Some(format!("client {client}: commit {recorded} was acknowledged, the database has only {stored}"))
    } else if stored > recorded + 1 {
        Some(format!(
            "client {client}: the database has {stored}, but {recorded} were acknowledged and one was under way"
        ))
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::model::Model;

    fn commit(store: &Model, ack: &mut Acknowledger<usize>, acknowledge: bool) {
        let mut session = store.session().unwrap();
        let mut txn = session.begin().unwrap();
        ack.mark(&mut txn).unwrap();
        txn.finish().unwrap();
        if acknowledge {
            ack.acknowledged().unwrap();
        }
    }

    #[test]
    fn finds_lost_and_invented_commits() {
        let folder = tempfile::tempdir().unwrap();
        let store = Model::default();
        prepare(&store, 2).unwrap();
        let mut ack = Acknowledger::open(&store, folder.path(), 1).unwrap();
        (0..3).for_each(|_| commit(&store, &mut ack, true));
        commit(&store, &mut ack, false);
        let found = verify(&store, folder.path(), 2).unwrap();
        assert_eq!((found.commits, found.problems.len()), (3, 0));

        let mut ack = Acknowledger::open(&store, folder.path(), 1).unwrap();
        commit(&store, &mut ack, true);
        let found = verify(&store, folder.path(), 2).unwrap();
        assert_eq!((found.commits, found.problems.len()), (5, 0));

        ack.acknowledged().unwrap();
        let found = verify(&store, folder.path(), 2).unwrap();
        assert!(found.problems[0].contains("commit 6 was acknowledged"), "{found:?}");
        // It shows at the next commit, too.
        let mut session = store.session().unwrap();
        let error = ack.mark(&mut session.begin().unwrap()).unwrap_err().to_string();
        assert!(error.contains("commit 6 has returned, its row says 5"), "{error}");
    }

    #[test]
    fn more_clients_get_their_rows_and_a_new_database_no_old_record() {
        let folder = tempfile::tempdir().unwrap();
        let store = Model::default();
        prepare(&store, 1).unwrap();
        let mut ack = Acknowledger::open(&store, folder.path(), 0).unwrap();
        commit(&store, &mut ack, true);
        prepare(&store, 2).unwrap();
        assert_eq!(verify(&store, folder.path(), 2).unwrap(), Acknowledged { commits: 1, ..Acknowledged::default() });
        let store = Model::default();
        prepare(&store, 2).unwrap();
        assert_eq!(verify(&store, folder.path(), 2).unwrap().problems.len(), 1);
        forget(folder.path()).unwrap();
        assert_eq!(verify(&store, folder.path(), 2).unwrap(), Acknowledged::default());
    }

    #[test]
    fn a_torn_record_is_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let store = Model::default();
        prepare(&store, 1).unwrap();
        let mut ack = Acknowledger::open(&store, folder.path(), 0).unwrap();
        commit(&store, &mut ack, true);
        ack.file.file.write_all(&[7; 5]).unwrap();
        assert_eq!(verify(&store, folder.path(), 1).unwrap(), Acknowledged { commits: 1, ..Acknowledged::default() });
        commit(&store, &mut ack, true);
        assert_eq!(verify(&store, folder.path(), 1).unwrap(), Acknowledged { commits: 2, ..Acknowledged::default() });
    }
}
