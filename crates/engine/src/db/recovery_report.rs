//! The recovery report of an opening after a crash.
//!
//! Rule: there is a report if redo was replayed, a page repaired or a transaction rolled back. Prepared transactions
//! alone cause no report, because they also survive a clean close.

use std::fmt;
use std::time::Duration;

/// The report of the recovery of a database that had not been closed, or was closed while transactions were open; shown
/// as one line of text.
///
/// ```
/// use highwater::{Database, Options};
/// # let dir = tempfile::tempdir().unwrap();
/// let db = Database::open(dir.path(), Options::default())?;
/// if let Some(report) = db.recovery_report() {
///     eprintln!("{report}");
/// }
/// # assert!(db.recovery_report().is_none());
/// # Ok::<(), highwater::Error>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecoveryReport {
    /// Bytes of redo that were replayed.
    pub redo_bytes: u64,
    /// Changes of pages in them.
    pub redo_operations: u64,
    /// Pages that they change; a page of several windows of the log counts once in each.
    pub redo_pages: u64,
    /// Pages that the crash had torn, repaired from the doublewrite file or the journal.
    pub repaired_pages: u64,
    /// Index pages that could not be read and whose changes are lost: a check names them, and a rebuild repairs them.
    pub lost_pages: u64,
    /// Transactions that had not committed, and were rolled back.
    pub rolled_back: u64,
    /// Transactions whose rollback met a damaged page or needs a collation that the program does not have: their rows
    /// stay locked, and the next opening tries again.
    pub rollbacks_postponed: u64,
    /// Transactions that were prepared and wait for their coordinator.
    pub prepared: u64,
    /// From the start of the log's scan until every page was durable as the log says.
    pub redo_time: Duration,
    /// The rollbacks.
    pub rollback_time: Duration,
}

impl RecoveryReport {
    /// See the rule.
    pub(super) fn filter(self) -> Option<RecoveryReport> {
        let did = [self.redo_bytes, self.repaired_pages, self.rolled_back, self.rollbacks_postponed];
        did.into_iter().any(|count| count > 0).then_some(self)
    }

    /// Total time of the recovery.
    pub fn total_time(&self) -> Duration {
        self.redo_time + self.rollback_time
    }
}

impl fmt::Display for RecoveryReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mib = self.redo_bytes as f64 / f64::from(1 << 20);
        write!(f, "recovered in {:.2} s: {mib:.1} MiB of redo replayed", self.total_time().as_secs_f64())?;
        write!(f, ", {} changed", counted(self.redo_pages, "page"))?;
        for (count, one, what) in [
            (self.repaired_pages, "torn page", "repaired"),
            (self.lost_pages, "page", "lost (highwater check names what is to be rebuilt)"),
            (self.rolled_back, "transaction", "rolled back"),
            (self.rollbacks_postponed, "rollback", "postponed: highwater check names the damage"),
            (self.prepared, "transaction", "prepared, to be committed or rolled back (highwater prepared)"),
        ] {
            if count > 0 {
                write!(f, ", {} {what}", counted(count, one))?;
            }
        }
        Ok(())
    }
}

fn counted(count: u64, one: &str) -> String {
    format!("{count} {one}{}", if count == 1 { "" } else { "s" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_says_what_was_done_and_nothing_else() {
        let report = RecoveryReport {
            redo_bytes: 3 << 20,
            redo_pages: 1,
            repaired_pages: 2,
            rolled_back: 1,
            redo_time: Duration::from_millis(400),
            rollback_time: Duration::from_millis(100),
            ..RecoveryReport::default()
        };
        let text = "recovered in 0.50 s: 3.0 MiB of redo replayed, 1 page changed, 2 torn pages repaired, \
                    1 transaction rolled back";
        assert_eq!(report.to_string(), text);
        assert_eq!(report.clone().filter(), Some(report));
        assert_eq!(RecoveryReport { prepared: 1, ..RecoveryReport::default() }.filter(), None);
    }
}
