//! WiredTiger, from the library that `cargo xtask peers-build` makes.
//!
//! Rules
//! 1. A tree is a table of raw keys and values. Transactions read a snapshot; after a write conflict the client retries
//!    the transaction.
//! 2. Durable commits wait for the sync of the log (`transaction_sync`), in groups. Relaxed ones are written to the
//!    operating system, and the log is synced every second. A checkpoint is taken every minute or GiB of log.
//! 3. A client keeps two cursors open for each tree: one that overwrites, and one that refuses a key that is there.

mod library;

use crate::failure::failed;
use crate::kv::{Kv, KvClient, KvRead, KvWrite, Range};
use crate::settings::{EverySecond, Settings};
use highwater_bench::Result;
use library::{Connection, Cursor, Session};
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

const CHECKPOINT: &str = "checkpoint=(wait=60,log_size=1GB)";
const TABLE: &str = "key_format=u,value_format=u";

/// An open database.
#[derive(Clone)]
pub(crate) struct WiredTiger {
    connection: Arc<Connection>,
    syncs: Option<Arc<EverySecond>>,
}

impl Kv for WiredTiger {
    type Tree = Arc<str>;
    type Client = Client;

    fn open(folder: &Path, settings: &Settings) -> Result<WiredTiger> {
        std::fs::create_dir_all(folder).map_err(|e| failed("wiredtiger", e))?;
        let sync = if settings.durable { "(enabled=true,method=fsync)" } else { "(enabled=true,method=none)" };
        let config = format!(
            "create,cache_size={},session_max={},log=(enabled=true),transaction_sync={sync},{CHECKPOINT}",
            settings.cache_bytes,
            settings.clients + 64
        );
        let connection = Arc::new(Connection::open(&folder.to_string_lossy(), &config)?);
        let syncs = match settings.durable {
            true => None,
            false => {
                let mut session = Session::open(&connection)?;
                Some(Arc::new(EverySecond::start(move || session.sync_log())))
            }
        };
        Ok(WiredTiger { connection, syncs })
    }

    fn tree(&self, name: &str) -> Result<Arc<str>> {
        let uri = format!("table:{name}");
        Session::open(&self.connection)?.create(&uri, TABLE)?;
        Ok(uri.into())
    }

    fn client(&self) -> Result<Client> {
        Ok(Client { cursors: Vec::new(), session: Session::open(&self.connection)? })
    }

    fn close(self) -> Result<()> {
        drop(self.syncs);
        let connection = Arc::try_unwrap(self.connection).map_err(|_| failed("wiredtiger", "is still in use"))?;
        connection.close()
    }

    fn version() -> String {
        library::version()
    }
}

struct Cursors {
    tree: Arc<str>,
    overwriting: Cursor,
    /// Opened when it is first needed.
    refusing: Option<Cursor>,
}

/// One thread's access. Cursors are declared before their session: they are not used after it closes.
pub(crate) struct Client {
    cursors: Vec<Cursors>,
    session: Session,
}

impl Client {
    fn at(&mut self, tree: &Arc<str>) -> Result<&mut Cursors> {
        let at = match self.cursors.iter().position(|cursors| Arc::ptr_eq(&cursors.tree, tree)) {
            Some(at) => at,
            None => {
                let overwriting = self.session.cursor(tree, "overwrite=true")?;
                self.cursors.push(Cursors { tree: tree.clone(), overwriting, refusing: None });
                self.cursors.len() - 1
            }
        };
        Ok(&mut self.cursors[at])
    }

    fn refusing(&mut self, tree: &Arc<str>) -> Result<&mut Cursor> {
        if self.at(tree)?.refusing.is_none() {
            let cursor = self.session.cursor(tree, "overwrite=false")?;
            self.at(tree)?.refusing = Some(cursor);
        }
        self.at(tree)?.refusing.as_mut().ok_or_else(|| failed("wiredtiger", "no cursor"))
    }
}

impl KvClient for Client {
    type Tree = Arc<str>;
    type Write<'c> = Txn<'c>;
    type Read<'c> = Txn<'c>;

    fn write(&mut self) -> Result<Txn<'_>> {
        self.session.begin()?;
        Ok(Txn { client: self, is_open: true })
    }

    fn read(&mut self) -> Result<Txn<'_>> {
        self.write()
    }
}

/// A transaction: what it reads is a snapshot. It is rolled back unless it is finished.
pub(crate) struct Txn<'c> {
    client: &'c mut Client,
    is_open: bool,
}

impl Drop for Txn<'_> {
    fn drop(&mut self) {
        if self.is_open {
            let _ = self.client.session.rollback();
        }
    }
}

impl KvRead for Txn<'_> {
    type Tree = Arc<str>;

    fn get<R>(&mut self, tree: &Arc<str>, key: &[u8], look: impl FnOnce(&[u8]) -> R) -> Result<Option<R>> {
        self.client.at(tree)?.overwriting.get(key, look)
    }

    fn scan(
        &mut self,
        tree: &Arc<str>,
        range: &Range<'_>,
        visit: impl FnMut(&[u8], &[u8]) -> ControlFlow<()>,
    ) -> Result<()> {
        self.client.at(tree)?.overwriting.scan((range.from, range.to), range.reverse, visit)
    }

    /// A failed commit has rolled the transaction back.
    fn finish(mut self) -> Result<()> {
        self.is_open = false;
        self.client.session.commit()
    }
}

impl KvWrite for Txn<'_> {
    fn insert(&mut self, tree: &Arc<str>, key: &[u8], value: &[u8]) -> Result<bool> {
        self.client.refusing(tree)?.insert(key, value)
    }

    fn put(&mut self, tree: &Arc<str>, key: &[u8], value: &[u8]) -> Result<()> {
        self.client.at(tree)?.overwriting.insert(key, value).map(drop)
    }

    fn delete(&mut self, tree: &Arc<str>, key: &[u8]) -> Result<()> {
        self.client.at(tree)?.overwriting.remove(key)
    }

    fn rollback(mut self) -> Result<()> {
        self.is_open = false;
        self.client.session.rollback()
    }
}
