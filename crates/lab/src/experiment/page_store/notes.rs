//! Notes: the settings, and the differences from the publication.

use super::plan::{BASE, THREADS, VARIED, log_of, pool_bytes, segment_bytes, transactions, warehouses};
use crate::experiment::{Plan, SubjectKind};

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let scale = plan.scale;
    let (own, servers) =
        [SubjectKind::Highwater, SubjectKind::Mysql].map(|subject| transactions(scale, subject)).into();
    vec![
        format!(
            "TPC-C, {} warehouses (published: 15,000), {THREADS} client threads, data about ten times the pool of {} \
             MiB; redo log {} MiB, every commit durable. {own} transactions measured after as many; on a server \
             {servers}.",
            warehouses(scale),
            pool_bytes(scale) >> 20,
            log_of(scale) >> 20
        ),
        format!(
            "Base: pages of {}, fill {}, {} % spare flash, streams, the device's clock. One thing is varied at a time: \
             the store at each page size; fill, spare flash and streams for {}. The scale quick has the base setting, \
             fill 0.5 without compression, and the machine's clock.",
            BASE.page,
            BASE.fill,
            BASE.spare,
            VARIED.join(", ")
        ),
        "Fill is what the pages in use take in place, uncompressed, at the end of the run, over the room for data. The \
         device is as large as that asks for, and the same for all stores of a page size. What a store leaves free of \
         it is the SSD's slack if it is discarded, and the cleaner's if the store uses it: an out-of-place store takes \
         the whole room before it cleans."
            .into(),
        format!(
            "The device is filled and once overwritten at random, then discarded whole, before the data are copied \
             onto it; discards stay on. Its erase units are smaller than the whole device's by as much as it is \
             smaller, segments have {} KiB. Writes of 16 KiB are atomic on it, for all stores; only atomic relies on \
             it.",
            segment_bytes(scale) >> 10
        ),
        "With streams, placements (redo, doublewrite, undo, inner pages) and the groups of an out-of-place store go to \
         streams of their own; without, all writes go to one."
            .into(),
        "The device's clock adds up what the device takes, without the processors' time: bytes do not depend on what \
         else the machine does, and TPS on this clock is no throughput of many clients. On the machine's clock every \
         request takes its time; processors, clients and the emulated device share the machine."
            .into(),
        "Servers run on a mounted device: ext4 with discards, one stream, real time. Highwater in MariaDB is not \
         measured with atomic: a file system promises no atomic write. InnoDB's page compression in MariaDB is \
         zlib, with doublewrite on; it punches holes behind compressed pages in steps of 4 KiB, so a page of 8 KiB \
         saves a half or nothing. A server counts pages before compression, so only the device knows what it writes of \
         them."
            .into(),
        "Published figures are of all techniques together, on an SSD with placement by the host (FDP)."
            .into(),
    ]
}
