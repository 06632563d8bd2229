//! The history of a run: the appends and the reads of each transaction.
//!
//! Lists make a history easy to check (Kingsbury and Alvaro, *Elle: Inferring Isolation Anomalies from Experimental
//! Observations*, 2020): an element is appended once in the whole history, so a list has the order of the transactions
//! that appended to it.

use std::collections::BTreeMap;

/// Names a list.
pub type Key = u64;
/// An element of a list; no other element of the history is equal.
pub type Element = u32;

/// An operation of a transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Op {
    /// It read a list; empty if there was none.
    Read {
        /// The list.
        key: Key,
        /// Its elements.
        list: Vec<Element>,
        /// Numbers the statements of the transaction: a scan reads several lists in one.
        statement: u32,
        /// Whether the row was locked: then the newest version was read, whatever the level.
        locked: bool,
    },
    /// It appended an element.
    Append {
        /// The list.
        key: Key,
        /// The element.
        element: Element,
    },
    /// A rollback to a savepoint undid this many of its last appends.
    Undo(usize),
}

/// A transaction.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Transaction {
    /// Its thread. Transactions of a thread are in the history in the order in which they ran.
    pub thread: usize,
    /// Its operations, in order.
    pub ops: Vec<Op>,
    /// Whether its commit was acknowledged; otherwise it was rolled back.
    pub committed: bool,
    /// A time before it began, and one after its commit was acknowledged, on a counter that all threads share.
    pub begun: u64,
    /// See `begun`.
    pub ended: u64,
}

/// Transactions and the final lists.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct History {
    /// All of them.
    pub transactions: Vec<Transaction>,
    /// The final lists.
    pub last: BTreeMap<Key, Vec<Element>>,
}

impl Transaction {
    /// The appends that it has not undone.
    pub fn appends(&self) -> Vec<(Key, Element)> {
        let mut kept = Vec::new();
        for op in &self.ops {
            match op {
                Op::Append { key, element } => kept.push((*key, *element)),
                Op::Undo(count) => kept.truncate(kept.len().saturating_sub(*count)),
                Op::Read { .. } => {}
            }
        }
        kept
    }

    /// One line of text.
    pub fn describe(&self, number: usize) -> String {
        let end = if self.committed { "" } else { ", rolled back" };
        let mut text = format!("T{number} (thread {}{end}):", self.thread);
        for op in &self.ops {
            text += &match op {
                Op::Read { key, list, locked, .. } => {
                    let how = if *locked { " locked" } else { "" };
                    format!(" read{how} {key} {}", tail(list))
                }
                Op::Append { key, element } => format!(" append {key} {element}"),
                Op::Undo(count) => format!(" undo {count}"),
            };
            text.push(';');
        }
        text
    }
}

/// The end of a list.
fn tail(list: &[Element]) -> String {
    const SHOWN: usize = 4;
    let dots = if list.len() > SHOWN { format!("({} elements) .. ", list.len()) } else { String::new() };
    let last: Vec<String> = list[list.len().saturating_sub(SHOWN)..].iter().map(u32::to_string).collect();
    format!("[{dots}{}]", last.join(" "))
}
