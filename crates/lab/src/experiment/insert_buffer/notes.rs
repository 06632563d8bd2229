//! Notes: the parts of the paper's setup that are kept, and the differences.

use super::plan::{HDD, SECONDARY_INDEXES, THREADS, data_to_pool, log_of, media, pool_bytes, transactions};
use crate::experiment::{Plan, SubjectKind};

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let scale = plan.scale;
    let pool = pool_bytes(scale);
    let ratio = data_to_pool(scale);
    let mut notes = vec![
        format!(
            "Pool {} MiB, data {ratio} times as much, {} MiB (paper: 1 GB and 100 GB, 100 times); redo log {} MiB; \
             the buffer may take a quarter of the pool (InnoDB's default).",
            pool >> 20,
            (pool * ratio) >> 20,
            log_of(scale) >> 20
        ),
        format!(
            "sysbench read-write, 18 requests a transaction as in the paper, two tables, {THREADS} client threads \
             (paper: 50; two processors serve no more at once), {SECONDARY_INDEXES} secondary indexes that are not \
             unique on columns of random numbers. Row numbers and keys are uniform: in the paper 18 requests read 16 \
             index pages, so nearly every request missed the pool."
        ),
        "off, disk and memory are one word for all subjects. With InnoDB disk is innodb_change_buffering=all, memory \
         the same with the system tablespace on a file system in memory (the paper's ramdisk), which a crash of the \
         machine empties. Undo pages are in the system tablespace too, so memory also saves their I/O there. \
         Highwater's memory loses nothing in a crash: its operations are in the redo log."
            .into(),
        "InnoDB's doublewrite buffer is in the system tablespace; it is off in all of its settings, so that memory \
         does not save it as well. Highwater's doublewrite stays on. So InnoDB's settings are compared with each \
         other, not with Highwater's. flush_neighbors is 0: a page is written for its own sake. \
         old_blocks_time is 1 ms for all. The servers need it: through a pool this small a page crosses the old part \
         of the LRU list in milliseconds, and with the default, a second, no inner page of theirs would ever become \
         young. Highwater's LRU list has a second rule: a page becomes young also when it is used again after as many \
         pages have come in as half of the old part has."
            .into(),
        format!(
            "Highwater's seconds are those of the device, by its virtual clock: one request after the other, without \
             the processors' time. They do not depend on what else the machine does. On the hard disk that is the \
             speed with any number of clients, on the SSD that of one at a time, so Highwater's TPS there are no \
             throughput of {THREADS} clients; the ratios are what counts. max_purge_lag is 100, so that purge's work \
             is done within the time. A server's seconds are the machine's: other work on it slows them."
        ),
        "Pages are counted by type: Highwater's by itself, InnoDB's by the mounted device that recognises them as \
         they pass. The copies in doublewrite are not in the counts."
            .into(),
    ];
    notes.extend(media(&plan.device).into_iter().map(|medium| of_medium(plan, medium)));
    notes
}

fn of_medium(plan: &Plan, medium: &str) -> String {
    let (own, servers) =
        [SubjectKind::Highwater, SubjectKind::Mysql].map(|s| transactions(plan.scale, medium, s)).into();
    let work = format!(
        "{medium}: {} transactions measured after {} that fill the buffer; a server {} after {}.",
        own.1, own.0, servers.1, servers.0
    );
    match medium {
        HDD => format!(
            "{work} A server waits for the disk in real time, a fraction of a second for each transaction, so its \
             buffer does not fill, and nearly no merge is forced; in the paper it did not fill in an hour either, as \
             its 780 reads of buffer pages show."
        ),
        _ => work,
    }
}
