//! The subjects: Highwater, MySQL 5.6, MariaDB 10.11 with InnoDB, MyRocks or Highwater, all with the same interface;
//! and other engines, which a separate program measures.
//!
//! Rules
//! 1. [`Settings`] mean the same for every subject; a setting that a subject does not support is an error.
//! 2. No server keeps running after this process, however it ends ([`Guard`](highwater_device::guard::Guard)).
//! 3. A result has the exact configuration of its subject.
//! 4. The same workload code runs on all of them, except that on servers the real sysbench runs sysbench's profiles.

mod cgroup;
mod config;
mod copy;
mod install;
pub mod peer;
mod running;
mod server;
mod server_cell;
mod settings;
mod sysbench;

pub use cgroup::MemoryGroup;
pub(crate) use copy::{copy_apart, copy_file, copy_folder, copy_sparse};
pub use highwater_bench::workload::Load;
pub use install::{Installed, Missing};
pub use running::Running;
pub use server::Server;
pub use settings::{Files, Settings};

use highwater_bench::Error;
use highwater_bench::peers::Request;
use peer::PeerResult;
use serde::{Deserialize, Serialize};
use std::fmt;
use std::path::Path;
use std::str::FromStr;

/// A storage engine under test.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SubjectKind {
    /// This project's engine, in this process.
    Highwater,
    /// MySQL 5.6 with InnoDB, a server.
    Mysql,
    /// MariaDB 10.11 with InnoDB, a server.
    Mariadb,
    /// MariaDB 10.11 with MyRocks, a server.
    Myrocks,
    /// MariaDB 10.11 with Highwater's plugin, a server.
    #[serde(rename = "mariadb-highwater")]
    MariadbHighwater,
    /// RocksDB.
    Rocksdb,
    /// WiredTiger.
    Wiredtiger,
    /// LMDB.
    Lmdb,
    /// SQLite.
    Sqlite,
    /// redb.
    Redb,
    /// fjall.
    Fjall,
}

highwater_storage::names!(SubjectKind {
    Highwater => "highwater",
    Mysql => "mysql",
    Mariadb => "mariadb",
    Myrocks => "myrocks",
    MariadbHighwater => "mariadb-highwater",
    Rocksdb => "rocksdb",
    Wiredtiger => "wiredtiger",
    Lmdb => "lmdb",
    Sqlite => "sqlite",
    Redb => "redb",
    Fjall => "fjall",
});

impl SubjectKind {
    /// The subjects of the source documents' experiments, which the laboratory itself starts.
    pub const OF_LAB: [SubjectKind; 3] = [SubjectKind::Highwater, SubjectKind::Mysql, SubjectKind::Mariadb];
    /// With Highwater in the server of MariaDB, on request: under the same SQL.
    pub const WITH_PLUGIN: [SubjectKind; 4] =
        [SubjectKind::Highwater, SubjectKind::Mysql, SubjectKind::Mariadb, SubjectKind::MariadbHighwater];
    /// The subjects that the program `highwater-peers` measures.
    pub const OF_COMPARE: [SubjectKind; 7] = [
        SubjectKind::Highwater,
        SubjectKind::Rocksdb,
        SubjectKind::Wiredtiger,
        SubjectKind::Lmdb,
        SubjectKind::Sqlite,
        SubjectKind::Redb,
        SubjectKind::Fjall,
    ];
    /// Servers.
    pub const SERVERS: [SubjectKind; 4] =
        [SubjectKind::Mysql, SubjectKind::Mariadb, SubjectKind::Myrocks, SubjectKind::MariadbHighwater];

    /// Whether it is a server, with a process of its own.
    pub fn is_server(self) -> bool {
        SubjectKind::SERVERS.contains(&self)
    }

    /// Whether its storage engine is Highwater, in this process or in a server.
    pub fn is_highwater(self) -> bool {
        matches!(self, SubjectKind::Highwater | SubjectKind::MariadbHighwater)
    }

    /// The name of an option of Highwater there.
    pub(crate) fn option_of_highwater(self, name: &str) -> String {
        match self {
            SubjectKind::MariadbHighwater => format!("highwater_{name}"),
            _ => name.to_string(),
        }
    }

    /// Whether only `highwater-peers` can measure it.
    pub fn is_peer(self) -> bool {
        self != SubjectKind::Highwater && !self.is_server()
    }

    /// Measures another engine, in a memory group of this many bytes; the requests to and the answers of the program
    /// `highwater-peers` are kept in `folder`.
    ///
    /// # Errors
    /// [`Error::Usage`] for what is not installed; the subject's.
    pub fn compare(self, request: &Request, limit_bytes: Option<u64>, folder: &Path) -> Result<PeerResult, Error> {
        match self.is_server() {
            true => server_cell::measure(self, request, limit_bytes),
            false => peer::measure(request, limit_bytes, folder),
        }
    }

    /// Finds its installation.
    ///
    /// # Errors
    /// [`Missing`], whose text says how to get it.
    pub fn find(self) -> Result<Installed, Missing> {
        install::find(self)
    }
}

impl fmt::Display for SubjectKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for SubjectKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<SubjectKind, Error> {
        let what = || format!("{text:?} is not one of {}", SubjectKind::names());
        SubjectKind::named(text).ok_or_else(|| Error::Usage(what()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_read_back() {
        for kind in SubjectKind::ALL {
            assert_eq!(kind.to_string().parse::<SubjectKind>().unwrap(), kind);
        }
        assert!("oracle".parse::<SubjectKind>().is_err());
    }
}
