//! The rows that a database must hold after a load or a workload, computed from the settings and from the inserts that
//! its clients saw acknowledged.
//!
//! Rules
//! 1. A load leaves as many rows as the settings say.
//! 2. Read-only workloads leave the number of rows and their digest unchanged. Workloads that update rows, or delete a
//!    row and insert it again, leave the number unchanged. Workloads that insert add one row for each acknowledged
//!    insert, the warm-up's included.
//! 3. TPC-C and redb's benchmark have no expected number: TPC-C has consistency conditions of its own, and redb's
//!    benchmark checks the rows that it reads.

use super::{Contents, PeerWorkload, Request, Task};
use crate::result::{Condition, RunResult};
use crate::workload::{Load, ycsb};

pub(super) struct Expected<'r> {
    rows: u64,
    /// `None` if the workload changes rows, or the digest of the loaded rows is not known.
    digest: Option<&'r str>,
}

/// Inserts of a run that were acknowledged.
fn inserts(run: &RunResult) -> u64 {
    run.kinds.get(ycsb::INSERT).map_or(0, |kind| kind.transactions)
}

/// The rows expected after `runs` of the requested workload; none for those of rule 3.
pub(super) fn expected<'r>(request: &'r Request, load: &Load, runs: &[&RunResult]) -> Option<Expected<'r>> {
    if matches!(request.workload, PeerWorkload::Tpcc | PeerWorkload::Redb) {
        return None;
    }
    let inserted: u64 = runs.iter().map(|run| inserts(run)).sum();
    let is_kept = request.task == Task::Run && !request.workload.writes();
    Some(Expected { rows: load.units() + inserted, digest: request.loaded_digest.as_deref().filter(|_| is_kept) })
}

impl Expected<'_> {
    /// Compares the contents of the database with the expected ones.
    pub(super) fn conditions(&self, found: &Contents) -> Vec<Condition> {
        let condition = |condition: &str, text: &str, found: &str, wanted: &str| Condition {
            condition: condition.into(),
            text: text.into(),
            holds: found == wanted,
            detail: if found == wanted { String::new() } else { format!("{found} found, {wanted} expected") },
        };
        let text = "as many rows as were loaded, and one more for each acknowledged insert";
        let mut conditions = vec![condition("rows", text, &found.rows.to_string(), &self.rows.to_string())];
        let same = |digest: &str| condition("digest", "every row is as it was loaded", &found.digest, digest);
        conditions.extend(self.digest.map(same));
        conditions
    }
}
