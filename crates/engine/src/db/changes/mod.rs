//! The change log: the rows that committed transactions have changed, in an order in which they can be applied.
//!
//! | file | what |
//! |---|---|
//! | `sequences` | the numbers of transactions in the log, and up to which it can be read |
//! | `entry` | changes as bytes |
//! | `change_log` | the log: its table, and writes to it |
//! | `logging` | writers of the log: transactions before they end, changes of tables |
//! | `stream` | reading it: [`Database::changes`](super::Database::changes) |
//! | `trim` | removal of old changes, on request or by age |
//!
//! Rules
//! 1. The log is a table of the database, [`CHANGE_LOG`], which users do not see. A transaction inserts its changes
//!    there as its last row operations, before its commit record or before it is prepared: so they exist exactly if it
//!    is committed. Undo has the rows that it has changed (`txn/changed_rows.rs`).
//! 2. A transaction takes its sequence number while it holds the locks of all rows that it has changed, and changes
//!    nothing afterwards. So of two transactions that changed one row, the later one has the higher number.
//! 3. A number is open until its transaction has ended. A reader reads up to the number before the smallest open one,
//!    with a view that it opens after it has read the open numbers. So no transaction appears later with a lower number
//!    than one that was read.
//! 4. A reader makes the redo log durable before it reads, so delivered changes survive any crash. So a delivered
//!    number is never assigned again: after an opening numbers continue after the last one in the table and the trim
//!    position.
//! 5. Before a table is changed, truncated or dropped, while no transaction uses it, a change of the kind
//!    `TableChanged` is committed. Row changes of a table that no longer exists are left out, because such a change
//!    follows.
//! 6. The first row of the table, with number 0, has the number up to which the log was trimmed. It is written before
//!    any deletion.

mod change_log;
mod entry;
mod logging;
mod sequences;
mod stream;
mod trim;

pub(crate) use change_log::CHANGE_LOG;
pub(super) use change_log::{ChangeLog, OpenSequence, check_not_change_log};
pub(super) use logging::finish_opening;
pub use stream::{Change, ChangeKind, ChangeStream};
