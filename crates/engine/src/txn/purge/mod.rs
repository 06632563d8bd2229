//! Purge: removes what no snapshot can see any more.
//!
//! Terms. The *purge view* is a copy of the oldest open view (or a view of the moment if none is open). A transaction
//! whose commit number is below the view's `low_limit_no` had ended for every open view: what its changes replaced can
//! go.
//!
//! Rules
//! 1. What each stream holds is purged in the order it was written, by one thread at a time: the thread that pops the
//!    stream from `ended` owns its front until it puts it back. Streams are independent, several threads purge several
//!    of them concurrently, those with the smallest numbers first.
//! 2. The purge view only advances, and only when no thread purges by it: a thread that purges holds it shared for a
//!    step, as does a thread that must keep it still (rollback). So all threads purge by one view, and a version walk,
//!    which ends at the first version that view sees, meets no record that another thread may purge.
//! 3. A secondary entry is removed iff it is delete-marked and no version from the newest down to the first that the
//!    purge view sees has it. Between the question and the removal the entry's leaf must not have changed (its page LSN
//!    says so).
//!    The versions of a row that has many are walked once for all its records under a view (`read::entry_history`), so
//!    the work of purge grows with the records, however many of them one row has.
//! 4. A row is removed iff its newest version is the deletion being purged; its entries go first.
//! 5. An overflow chain goes with the last version that has it: with the Update record of the change that replaced it,
//!    or with the removed row. Both name the chains that go.
//! 6. Every step may be repeated: after a crash purge starts again at the front of each stream, at the first
//!    transaction that was not known to be done when pages were last freed.
//! 7. Damage does not stop the rest of purge. A record whose pages cannot be read is skipped: counted, reported, and
//!    passed over, so that what it should have removed stays (delete-marked, invisible). A stream whose own pages
//!    cannot be read is skipped as a whole: what is behind the damage stays, and the stream is not bound again. When
//!    the device fails to read, the rest of the step is tried once more first: a read may succeed then.
//!
//! Crash: a half-freed chain is found again by the undo record, which is kept until its whole transaction is purged.
//!
//! | file | concept |
//! |---|---|
//! | `steps.rs` | which streams and records come next; damage |
//! | `record.rs` | what one record leaves behind |
//! | `lag.rs` | how far purge is behind, how writers are slowed for it |

mod ended;
mod lag;
mod record;
mod steps;

pub(crate) use ended::EndedTxns;
pub(super) use lag::LagLimitsInForce;
pub(crate) use lag::PurgeDamage;
pub use lag::{LagLimits, PurgeState, PurgeWatch};
