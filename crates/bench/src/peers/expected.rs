//! What a database must hold after it was loaded or a workload ran: as the settings and its clients say.
//!
//! Rules
//! 1. What is loaded is as many rows as the settings say.
//! 2. Workloads that only read leave every row as it was loaded: their number and their digest. Those that change rows,
//!    or delete one and insert it again, leave their number. Those that insert leave one row more for each insert that
//!    was acknowledged, in the warm-up too.
//! 3. TPC-C inserts and deletes as it goes, and has conditions of its own. redb's benchmark looks at what it reads.

use super::{Contents, PeerWorkload, Request, Task};
use crate::result::{Condition, RunResult};
use crate::workload::{Load, ycsb};

/// What it must hold.
pub(super) struct Expected<'r> {
    rows: u64,
    /// None where rows are changed, or what was loaded is not known.
    digest: Option<&'r str>,
}

/// Inserts of a run that were acknowledged.
fn inserts(run: &RunResult) -> u64 {
    run.kinds.get(ycsb::INSERT).map_or(0, |kind| kind.transactions)
}

/// Of a workload after these runs; none if it has conditions of its own.
pub(super) fn expected<'r>(request: &'r Request, load: &Load, runs: &[&RunResult]) -> Option<Expected<'r>> {
    if matches!(request.workload, PeerWorkload::Tpcc | PeerWorkload::Redb) {
        return None;
    }
    let inserted: u64 = runs.iter().map(|run| inserts(run)).sum();
    let is_kept = request.task == Task::Run && !request.workload.writes();
    Some(Expected { rows: load.units() + inserted, digest: request.loaded_digest.as_deref().filter(|_| is_kept) })
}

impl Expected<'_> {
    /// Whether that is what was found.
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
