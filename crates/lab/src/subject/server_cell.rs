//! A cell of the comparison with embedded engines on a server that the laboratory starts.
//!
//! Rules
//! 1. The server alone is in the memory group, with everything that it starts; its clients are threads of this process.
//!    The group exists for the whole cell: a server that the kernel killed in it has no result.
//! 2. The settings are those of the embedded engines: cache, durability. The rest is as the servers' documentation says
//!    for flash (`docs/results/peers/settings.md`).

use super::peer::PeerResult;
use super::{Files, Installed, MemoryGroup, Server, Settings, SubjectKind};
use highwater_bench::peers::{self, Database, Request, sync_folder};
use highwater_bench::store::mysql::MysqlStore;
use highwater_bench::{Error, Result};
use std::collections::BTreeMap;
use std::sync::Arc;

const MIB: u64 = 1 << 20;
/// InnoDB's whole redo log: as large as Highwater's.
const LOG_BYTES: u64 = 256 * MIB;
/// Pages a second that InnoDB may write in the background, on an SSD.
const IO_CAPACITY: u64 = 10_000;
const MAX_DIRTY_PAGES_PCT: u64 = 90;
/// For engines of the server that hold no data here.
const OTHER_CACHES: &str = "1M";

/// Takes one measurement; the server may use `limit_bytes` of memory, page cache included.
pub(super) fn measure(kind: SubjectKind, request: &Request, limit_bytes: Option<u64>) -> Result<PeerResult> {
    let installed = kind.find().map_err(|missing| Error::Usage(missing.to_string()))?;
    let (group, memory_limit) = MemoryGroup::where_possible(limit_bytes);
    let group = group.map(Arc::new);
    let mut served = Served { installed, request, group: group.clone(), server: None };
    let answer = peers::measure(request, &mut served);
    drop(served);
    match (answer, group) {
        (Err(_), Some(group)) if group.has_ended_a_member() => Ok(PeerResult { answer: None, memory_limit }),
        (answer, _) => Ok(PeerResult { answer: Some(answer?), memory_limit }),
    }
}

struct Served<'r> {
    installed: Installed,
    request: &'r Request,
    group: Option<Arc<MemoryGroup>>,
    server: Option<Server>,
}

impl Database for Served<'_> {
    type Store = MysqlStore;

    fn version(&self) -> String {
        self.installed.version.clone()
    }

    fn open(&mut self) -> Result<MysqlStore> {
        let files = Files::in_folder(&self.request.folder);
        let settings = settings(self.installed.kind, self.request);
        let server = Server::start_in(&self.installed, &files, &settings, self.group.clone())?;
        // What making the data folder left to be written is not the engine's.
        sync_folder(&self.request.folder);
        Ok(self.server.insert(server).store().clone())
    }

    fn close(&mut self, store: MysqlStore) -> Result<()> {
        drop(store);
        self.server.take().map_or(Ok(()), Server::stop)
    }

    fn pid(&self) -> u32 {
        self.server.as_ref().map_or_else(std::process::id, Server::pid)
    }
}

fn settings(kind: SubjectKind, request: &Request) -> Settings {
    let pages = request.cache_bytes / Settings::default().page_bytes;
    let sort_buffer = (request.cache_bytes / 32).clamp(MIB, 64 * MIB).to_string();
    let folder = request.folder.display().to_string();
    let mut extra = vec![("tmpdir", folder.as_str()), ("key_buffer_size", OTHER_CACHES)];
    match kind {
        SubjectKind::Myrocks => extra.extend([
            ("aria_pagecache_buffer_size", OTHER_CACHES),
            ("rocksdb_merge_buf_size", sort_buffer.as_str()),
            ("rocksdb_merge_combine_read_size", sort_buffer.as_str()),
        ]),
        SubjectKind::Mariadb | SubjectKind::MariadbHighwater => {
            extra.push(("aria_pagecache_buffer_size", OTHER_CACHES))
        }
        _ => extra.push(("innodb_checksum_algorithm", "crc32")),
    }
    if matches!(kind, SubjectKind::Mysql | SubjectKind::Mariadb) {
        // Counting costs; of the counters only few are looked at here.
        extra.extend([("innodb_monitor_enable", "module_log"), ("innodb_sort_buffer_size", sort_buffer.as_str())]);
    }
    Settings {
        buffer_pool_bytes: request.cache_bytes,
        log_bytes: LOG_BYTES,
        flush_neighbors: "0".into(),
        flush_log_at_trx_commit: if request.durable { 1 } else { 2 },
        lru_scan_depth: (pages / 16).clamp(100, 1024),
        max_dirty_pages_pct: MAX_DIRTY_PAGES_PCT,
        io_capacity: IO_CAPACITY,
        extra: extra.into_iter().map(|(name, value)| (name.into(), value.into())).collect::<BTreeMap<_, _>>(),
        ..Settings::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use highwater_bench::peers::{PeerWorkload as Workload, Task, Verify};

    fn request(cache_bytes: u64, durable: bool) -> Request {
        Request {
            subject: "mariadb".into(),
            workload: Workload::Tpcc,
            task: Task::Run,
            folder: "/d".into(),
            data_bytes: 0,
            cache_bytes,
            beyond_memory: false,
            durable,
            clients: 4,
            warmup_s: 0.0,
            seconds: 1.0,
            verify: Verify::Rows,
            seed: 1,
            options: BTreeMap::new(),
            loaded_digest: None,
        }
    }

    #[test]
    fn a_server_gets_the_cache_and_the_durability_of_the_others() {
        let small = settings(SubjectKind::Mariadb, &request(32 * MIB, true));
        assert_eq!((small.buffer_pool_bytes, small.flush_log_at_trx_commit), (32 * MIB, 1));
        assert_eq!((small.lru_scan_depth, small.extra["innodb_sort_buffer_size"].as_str()), (128, "1048576"));
        let large = settings(SubjectKind::Mysql, &request(8 << 30, false));
        assert_eq!((large.lru_scan_depth, large.flush_log_at_trx_commit), (1024, 2));
        assert_eq!(large.extra["innodb_sort_buffer_size"], (64 * MIB).to_string());
        let rocks = settings(SubjectKind::Myrocks, &request(32 * MIB, true));
        assert!(rocks.extra.keys().all(|name| !name.starts_with("innodb")), "{:?}", rocks.extra);
        let plugin = settings(SubjectKind::MariadbHighwater, &request(32 * MIB, true));
        assert!(plugin.extra.keys().all(|name| !name.starts_with("innodb")), "{:?}", plugin.extra);
    }
}
