//! Notes: the settings, and caveats.

use super::plan::{BEYOND, DURABLE, IN_MEMORY, Point, cache, data, memory, seconds};
use crate::experiment::{DeviceChoice, Plan, SubjectKind};
use highwater_bench::peers::PeerWorkload;

const MIB: u64 = 1 << 20;

/// Of runs with servers.
const SERVERS: &str = "A server pays a round trip over its socket for each statement: compare with it by bytes to the \
                       device, space, and speed beyond memory. Its processor time is that of the server and of its \
                       clients together; its memory, its limit and its bytes dirtied are the server's alone, the bytes \
                       until it is stopped. Redb's benchmark is not for servers.";

/// Of runs on this machine's disk.
const BLOCK_COUNTERS: &str = "Bytes written are those that the device took, by the kernel's block counters: other \
                              processes' too. They are no flash bytes.";

/// Of runs on an emulated SSD.
const EMULATED: &str = "The device is emulated, new, in memory (above 4 GiB in a file), under ext4, which discards \
                        what it frees. It is as large for every engine: one that needs less space leaves it more \
                        room. Where fewer than about two capacities were written it had hardly begun to copy, and \
                        its write amplification would still grow. It takes no time but the processor's, so the \
                        speeds are of no real device; what is compared is bytes. Bytes are counted by the device, \
                        from the opening of the database until it is closed and verified.";

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let size = |workload, class| {
        let point = Point { workload, data: class, commits: DURABLE, clients: "1" };
        let cache = cache(plan.scale, &point, SubjectKind::Highwater);
        let memory = memory(plan.scale, &point, SubjectKind::Highwater);
        let [data, cache, memory] = [data(plan.scale, &point), cache, memory].map(|bytes| bytes / MIB);
        format!("{data} MiB of rows, {memory} MiB of memory, of which Highwater's cache is {cache}")
    };
    let (warmup_s, seconds) = seconds(plan);
    let is_local = plan.device == DeviceChoice::Local;
    let mut notes = vec![
        format!(
            "In memory: {}; of TPC-C at least one warehouse, about 100 MiB. Beyond: {}. redb's benchmark: {}.",
            size(PeerWorkload::YcsbA, IN_MEMORY),
            size(PeerWorkload::YcsbA, BEYOND),
            size(PeerWorkload::Redb, IN_MEMORY)
        ),
        format!(
            "{warmup_s} s of warm-up, {seconds} s measured, on a fresh copy of the loaded data. In memory every row \
             was read before; beyond memory nothing is cached at the start."
        ),
        "Each measurement is a process of its own, in a memory group that counts the page cache; where no group could \
         be made, memory_limit in the configuration says so. Beyond memory all have the same: an engine that reads \
         past the operating system all but 48 MiB of it as its cache, one that reads through the operating system a \
         quarter, and what is left as more cache there."
            .into(),
        "Durable: a commit that returned survives a power cut. Relaxed: it survives the end of the process, and a \
         power cut loses about a second. SQLite then loses more, and LMDB may lose the file. redb has no such level: \
         it keeps a relaxed commit in its own memory until it syncs, once a second, so the end of the process loses it."
            .into(),
        "Data that are larger than memory are loaded with 1 GiB of cache and without a limit, but for the bulk load \
         that is measured. Its rate is that of rows until the database is closed."
            .into(),
        "Highwater, RocksDB and WiredTiger run writers side by side, and a transaction that cannot continue is tried \
         again (retries); the others have one writer at a time."
            .into(),
        if is_local { BLOCK_COUNTERS } else { EMULATED }.into(),
    ];
    if plan.subjects.iter().any(|subject| subject.is_server()) {
        notes.push(SERVERS.into());
    }
    notes
}
