//! Purge: removes what no snapshot can see any more.
//!
//! Terms. The *purge view* is a copy of the oldest open view (or a view of the moment if none is open). A transaction
//! whose commit number is below the view's `low_limit_no` had ended for every open view: the versions that its changes
//! replaced can be removed.
//!
//! Rules
//! 1. Each stream is purged in the order in which it was written, by one thread at a time: the thread that pops the
//!    stream from `ended` owns its front until it puts it back. Streams are independent: several threads purge several
//!    of them concurrently, those with the smallest numbers first.
//! 2. The purge view only advances, and only while no thread uses it: a purge thread holds it shared for a step, and so
//!    does rollback, which needs it unchanged. So all threads purge with one view, and a version walk, which ends at
//!    the first version that the view sees, meets no record that another thread may purge.
//! 3. A secondary entry is removed iff it is delete-marked and no version from the newest down to the first that the
//!    purge view sees has it. The entry's leaf must not change between this check and the removal; its page LSN shows
//!    that. The versions of a row that has many are walked once for all its records under a view
//!    (`read::entry_history`), so the work of purge grows with the records, however many of them one row has.
//! 4. A row is removed iff its newest version is the deletion being purged; its entries go first.
//! 5. An overflow chain is freed with the last version that has it: with the Update record of the change that replaced
//!    it, or with the removed row. Both records name the chains.
//! 6. Every step may be repeated: after a crash purge starts again at the front of each stream, at the first
//!    transaction that was not known to be done when pages were last freed.
//! 7. Damage does not stop the rest of purge. A record whose pages cannot be read is counted, reported and skipped, so
//!    the rows and entries that it should have removed remain (delete-marked, invisible). A stream whose own pages
//!    cannot be read is skipped as a whole: its later records remain, and the stream is not bound again. After a failed
//!    read the rest of the step is first retried once, because the read may succeed then.
//!
//! Crash: a half-freed chain is found again by the undo record, which is kept until its whole transaction is purged.
//!
//! | file | concept |
//! |---|---|
//! | `steps.rs` | the choice of the next stream and record; damage |
//! | `record.rs` | purge of one record |
//! | `lag.rs` | the lag of purge, and the delay of writers |

mod ended;
mod lag;
mod record;
mod steps;

pub(crate) use ended::EndedTxns;
pub(crate) use lag::LagLimits;
pub(super) use lag::LagLimitsInForce;
pub(crate) use lag::PurgeDamage;
pub use lag::{PurgeState, PurgeWatch};
