//! Notes: the parts of the paper's setup that are kept, and the differences.

use super::plan::{LOG_BYTES, POOL_BYTES, REQUESTS, TABLES, THREADS, divisor, requests};
use crate::experiment::Plan;
use crate::experiment::measurement::log_bytes;

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let by = divisor(plan.scale);
    vec![
        format!(
            "Sizes and pool are the paper's divided by {by}: pool {} MiB. A cell is {} requests; the paper's divided \
             by {by} would be {}.",
            (POOL_BYTES / by) >> 20,
            requests(plan.scale),
            REQUESTS / by
        ),
        "At quick the sizes 1 and 20 GB are left out. A 128th of 1 GB is 500 pages in eight extents: one batch cleans \
         nearly all of it, whatever the option."
            .into(),
        "The paper does not state its buffer pool. Its TPS stay from 1 to 5 GB and fall at 10 GB, so the pool lay \
         between; half of its 8 GB of memory is taken, 4 GB."
            .into(),
        format!(
            "The redo log is {} MiB in all: MySQL 5.6's default, 96 MiB for 1 to 50 GB, divided by {by}, but at \
             least the 4 MiB that every subject takes. At quick that is more in proportion, so more requests are \
             made: the log goes round, and every size flushes pages.",
            log_bytes(LOG_BYTES / by) >> 20
        ),
        format!(
            "{THREADS} client threads; sysbench's default distribution (special); {TABLES} tables. The paper states \
             none of these."
        ),
        "lru_scan_depth is MySQL's default, 1,024, at every scale, but no more than a quarter of the pool: what \
         InnoDB frees once a second is not divided, because seconds are not. User threads that find no free frame \
         flush single pages, which have no neighbors; a table of its own shows their share (– where a subject does \
         not count them)."
            .into(),
        "Pages are counted over the same number of transactions for every option, from the first to the last of them. \
         pages_flushed_to_clean adds the pages still dirty then: the cost to the same, clean, end state."
            .into(),
        "The paper's TPS differ by 0.3 to 2.6 %, less than the difference between two runs of the same setting here. \
         So TPS are compared in the mean over all sizes, and a difference below the spread, or below 3 %, counts as \
         none. Each run is compared with the runs of the other options of its size and repetition, taken just before \
         and after it; the spread is half of the 95 % confidence interval of the mean of all these ratios. Above 10 % \
         the claim is too small to tell. So are counts of pages that differ by less than 2 %, are below 1,000, or \
         whose runs overlap. On servers they must also differ by more than the speeds do: InnoDB flushes by \
         the second, so a slower run flushes more."
            .into(),
        format!(
            "Repetitions: Highwater {}, a server {}. At standard a server's run takes about eight times as long.",
            plan.repetitions, plan.server_repetitions
        ),
        "The options of a size are measured directly after one another, repetition after repetition (A B C A B C), \
         each on a fresh copy of the same loaded data, with cold caches."
            .into(),
    ]
}
