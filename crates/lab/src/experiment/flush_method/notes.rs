//! Notes: the parts of the document's setup that are kept, and the differences.

use super::plan::*;
use crate::experiment::judge::number;
use crate::experiment::measurement::log_bytes;
use crate::experiment::outcome::title_of;
use crate::experiment::{DeviceChoice, Plan, SubjectKind};

pub(super) fn notes(plan: &Plan) -> Vec<String> {
    let by = divisor(plan);
    let megabytes = |mebibytes: u64| number((mebibytes << 20) as f64 / by as f64 / 1e6);
    let log = log_bytes(LOG_BYTES / by);
    let mut notes = vec![
        format!(
            "Data, pools and memory are the document's divided by {by}: {} MB of values, pools of {} MB to {} MB (a \
             thirty-second to half of the data).",
            (DATA_BYTES / by) >> 20,
            megabytes(16),
            megabytes(256)
        ),
        format!(
            "The operating system's cache is limited by a memory control group of {} MiB, in which the subject runs: \
             the document's 4 GB of RAM in the same ratio to its data. The memory that the server itself allocates \
             counts too.",
            (MEMORY_BYTES / by) >> 20
        ),
        format!(
            "{THREADS} clients, {ROWS_PER_TRANSACTION} rows a transaction, every commit synced; redo log {} MiB, {} \
             % of the data (MySQL 5.5's default of 10 MiB would be 2 %, but no subject takes less than 4 MiB). The \
             document states none of these.",
            log >> 20,
            number(percent(log, DATA_BYTES / by))
        ),
        "fsync is what the document calls fdatasync, MySQL's default then: buffered writes, then fsync. O_DSYNC \
         opens the log with O_SYNC and syncs the data files."
            .into(),
        "The document shows its result as a figure without numbers, so no column of it can be compared with ours."
            .into(),
    ];
    notes.extend(plan.subjects.iter().filter_map(|subject| min_pool_note(plan, *subject)));
    if !is_disk(&plan.device) {
        notes.push(
            "Why a small pool may not favour fdatasync here: on the document's disk a page that the operating \
             system's cache still holds saves a seek, 8 ms or more; on flash it saves a read of a tenth of a \
             millisecond or less, about what copying the page through that cache costs at each write. --device \
             sata-7200rpm-500gb has the document's disk."
                .into(),
        );
    }
    if plan.device != DeviceChoice::Local {
        notes.push(
            "The emulated device is mounted with ext4 for every subject, Highwater too, so that all have the operating \
             system's cache."
                .into(),
        );
    }
    notes
}

/// A note about the pools that are smaller than the subject's smallest.
fn min_pool_note(plan: &Plan, subject: SubjectKind) -> Option<String> {
    let (least, by) = (min_pool_bytes(subject), divisor(plan));
    let (distinct, same) = distinct_pools(plan, subject);
    let smallest = distinct.first()?;
    if pool_bytes(smallest, by, subject) > least {
        return None;
    }
    let (name, mib) = (title_of(subject.name()), least >> 20);
    let share = number(percent(least, DATA_BYTES / by));
    let mut note = format!(
        "{name} takes no pool below {mib} MiB, here {share} % of the data: it gets that one for the document's \
         {smallest}."
    );
    if !same.is_empty() {
        note += &format!(" Left out, because it would be the same pool: {}.", same.join(", "));
    }
    Some(note)
}
