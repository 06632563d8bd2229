//! The checker: it finds the anomalies in a history.
//!
//! Rules
//! 1. The final list of a key has the order of its versions: a list that was read is a prefix of the final list, and
//!    the rest was not seen. So the dependencies need no search.
//! 2. Cycles are searched for in two graphs. In the first a transaction is one node: its cycles are the anomalies of
//!    the literature, by the kinds of edges they need. In the second a transaction has a node for each part that its
//!    level makes atomic (see [`Unit`]): the graph must have no cycle.
//! 3. Rolled-back transactions are also checked for anomalies of one transaction (G1a, G1b, internal).

use super::graph::{Graph, Kind};
use super::history::{Element, History, Key, Op, Transaction};
use crate::isolation::Setting;
use std::collections::{BTreeMap, BTreeSet};

/// An anomaly of a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Anomaly {
    /// Dirty write: a cycle of overwritings.
    G0,
    /// Aborted read: an element of a transaction that was rolled back, or an append that a partial rollback undid.
    G1a,
    /// Intermediate read: a list that its writer continued to change.
    G1b,
    /// Circular information flow: a cycle of overwritings and reads.
    G1c,
    /// Lost update: a transaction appended to another version than the one it had read first.
    P4,
    /// Read skew: a cycle with one anti-dependency.
    GSingle,
    /// Write skew and all other cycles.
    G2,
    /// Two reads of one transaction saw different versions of a list.
    Fuzzy,
    /// A transaction did not see its own appends, or saw them elsewhere than at the end.
    Internal,
    /// A view sees a state that never existed: a cycle among views and writes.
    View,
    /// In a final list a committed append is missing, an aborted one exists, or one exists twice.
    Atomicity,
    /// A list that was read is not a prefix of the final list.
    Order,
}

highwater_storage::names!(Anomaly {
    G0 => "G0",
    G1a => "G1a",
    G1b => "G1b",
    G1c => "G1c",
    P4 => "P4",
    GSingle => "G-single",
    G2 => "G2",
    Fuzzy => "fuzzy read",
    Internal => "internal",
    View => "view",
    Atomicity => "atomicity",
    Order => "order",
});

impl Anomaly {
    /// Whether a setting excludes it.
    pub fn is_forbidden(self, setting: Setting) -> bool {
        use Anomaly::{Atomicity, Fuzzy, G0, G1a, G1b, G1c, G2, GSingle, Internal, Order, P4, View};
        let from = match self {
            G0 | Internal | Atomicity | Order => Setting::ReadUncommitted,
            G1a | G1b | G1c | View => Setting::ReadCommitted,
            P4 | GSingle | Fuzzy => Setting::FirstCommitterWins,
            G2 => Setting::Serializable,
        };
        setting >= from
    }
}

/// An anomaly and its transactions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The anomaly.
    pub anomaly: Anomaly,
    /// Description with the transactions.
    pub what: String,
}

/// The part of a transaction that a level promises to be atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Unit {
    /// All of it.
    Transaction,
    /// Its plain reads together; its writes and locking reads together, not before.
    View,
    /// Each plain read, one after another; its writes and locking reads together.
    Statement,
    /// Its writes and locking reads; its plain reads have no node.
    Writes,
}

impl Unit {
    fn of(setting: Setting) -> Unit {
        match setting {
            Setting::ReadUncommitted => Unit::Writes,
            Setting::ReadCommitted => Unit::Statement,
            // First committer wins writes only what its view shows, but others may change what it has only read.
            Setting::RepeatableRead | Setting::FirstCommitterWins => Unit::View,
            Setting::Serializable => Unit::Transaction,
        }
    }
}

/// A read of a committed transaction: the elements of others that it shows.
struct Seen {
    transaction: usize,
    statement: u32,
    /// Whether it read the newest version: by a lock, or because it is the transaction's own.
    newest: bool,
    key: Key,
    /// Elements of others, a prefix of the list's last state.
    length: usize,
}

/// A history being checked.
struct Checker<'h> {
    history: &'h History,
    unit: Unit,
    /// For each element its transaction, and whether its append was committed.
    writers: BTreeMap<Element, (usize, bool)>,
    seen: Vec<Seen>,
    findings: Vec<Finding>,
}

/// All anomalies of a history; `setting` is the setting of its transactions.
pub fn check(history: &History, setting: Setting) -> Vec<Finding> {
    let unit = Unit::of(setting);
    let mut checker = Checker { history, unit, writers: BTreeMap::new(), seen: Vec::new(), findings: Vec::new() };
    checker.note_writers();
    checker.last_states();
    for (number, transaction) in history.transactions.iter().enumerate() {
        checker.reads_of(number, transaction);
    }
    checker.cycles();
    checker.views();
    checker.findings
}

impl<'h> Checker<'h> {
    fn found(&mut self, anomaly: Anomaly, transactions: &[usize], what: &str) {
        let all = transactions.iter().map(|number| self.history.transactions[*number].describe(*number));
        let lines: Vec<String> = all.collect();
        self.findings.push(Finding { anomaly, what: format!("{what}\n  {}", lines.join("\n  ")) });
    }

    fn note_writers(&mut self) {
        for (number, transaction) in self.history.transactions.iter().enumerate() {
            let kept: BTreeSet<Element> = transaction.appends().into_iter().map(|(_, element)| element).collect();
            for op in &transaction.ops {
                if let Op::Append { element, .. } = op {
                    self.writers.insert(*element, (number, transaction.committed && kept.contains(element)));
                }
            }
        }
    }

    fn last(&self, key: Key) -> &'h [Element] {
        self.history.last.get(&key).map(Vec::as_slice).unwrap_or_default()
    }

    fn writer(&self, element: Element) -> Option<usize> {
        self.writers.get(&element).map(|(number, _)| *number)
    }

    fn last_states(&mut self) {
        let history = self.history;
        let mut there = BTreeSet::new();
        for (key, element) in history.last.iter().flat_map(|(key, list)| list.iter().map(move |e| (*key, *e))) {
            if !there.insert((key, element)) {
                self.found(Anomaly::Atomicity, &[], &format!("list {key} has {element} twice"));
            }
            match self.writers.get(&element) {
                Some((_, true)) => {}
                Some((number, false)) => {
                    let number = *number;
                    self.found(Anomaly::Atomicity, &[number], &format!("list {key} has {element}, taken back"));
                }
                None => self.found(Anomaly::Atomicity, &[], &format!("list {key} has {element} of no transaction")),
            }
        }
        for (number, transaction) in history.transactions.iter().enumerate().filter(|(_, one)| one.committed) {
            for (key, element) in transaction.appends() {
                if !there.contains(&(key, element)) {
                    self.found(Anomaly::Atomicity, &[number], &format!("list {key} lacks {element}, committed"));
                }
            }
        }
    }

    /// Checks the reads of one transaction, each alone and with the earlier ones.
    fn reads_of(&mut self, number: usize, transaction: &Transaction) {
        let mut own: Vec<(Key, Element)> = Vec::new();
        let mut before: BTreeMap<Key, usize> = BTreeMap::new();
        for op in &transaction.ops {
            match op {
                Op::Append { key, element } => {
                    if before.get(key).is_some_and(|length| self.own_place(*key, *element, &own) != Some(*length))
                        && transaction.committed
                        && own.iter().all(|(other, _)| other != key)
                        && self.writers[element].1
                    {
                        self.found(Anomaly::P4, &[number], &format!("{element} of list {key} follows another version"));
                    }
                    own.push((*key, *element));
                }
                Op::Undo(count) => own.truncate(own.len().saturating_sub(*count)),
                Op::Read { key, list, statement, locked } => {
                    let mine: Vec<Element> = own.iter().filter(|(k, _)| k == key).map(|(_, e)| *e).collect();
                    let Some(length) = self.read(number, *key, list, &mine) else { continue };
                    if *before.entry(*key).or_insert(length) != length {
                        self.found(Anomaly::Fuzzy, &[number], &format!("two versions of list {key}"));
                    }
                    if transaction.committed {
                        // Appends that are taken back lock nothing afterwards, unless the level keeps locks.
                        let own = |e: &Element| self.unit != Unit::Statement || self.writers[e].1;
                        let newest = *locked || mine.iter().any(own);
                        self.seen.push(Seen { transaction: number, statement: *statement, newest, key: *key, length });
                    }
                }
            }
        }
    }

    /// Position of a transaction's first element in its list.
    fn own_place(&self, key: Key, element: Element, own: &[(Key, Element)]) -> Option<usize> {
        let first = own.iter().find(|(other, _)| *other == key).map_or(element, |(_, first)| *first);
        self.last(key).iter().position(|one| *one == first)
    }

    /// Checks one list that was read; returns the number of elements of others, if it is a version of the list.
    fn read(&mut self, number: usize, key: Key, list: &[Element], mine: &[Element]) -> Option<usize> {
        let others = list.strip_suffix(mine);
        let Some(others) = others.filter(|others| others.iter().all(|e| !mine.contains(e))) else {
            self.found(Anomaly::Internal, &[number], &format!("list {key} was read without the own appends {mine:?}"));
            return None;
        };
        for element in others {
            match self.writers.get(element) {
                Some((_, true)) => {}
                Some((writer, false)) => {
                    let writer = *writer;
                    self.found(Anomaly::G1a, &[number, writer], &format!("{element} of list {key} was taken back"));
                    return None;
                }
                None => {
                    self.found(
                        Anomaly::Order,
                        &[number],
                        &format!("list {key} was read with {element} of no transaction"),
                    );
                    return None;
                }
            }
        }
        let last = self.last(key);
        if !last.starts_with(others) {
            self.found(Anomaly::Order, &[number], &format!("list {key} became {last:?}"));
            return None;
        }
        if let (Some(seen), Some(next)) = (others.last(), last.get(others.len()))
            && let writer @ Some(other) = self.writer(*seen)
            && writer == self.writer(*next)
            && other != number
        {
            self.found(Anomaly::G1b, &[number, other], &format!("list {key} was read up to {seen}, before {next}"));
        }
        Some(others.len())
    }

    // ---- cycles

    /// Adds the dependencies; `writes` are the nodes of transactions as writers, `readers` those of the reads.
    fn add_edges(&self, graph: &mut Graph, writes: &[usize], readers: &[Option<usize>]) {
        let node_of = |element: &Element| self.writer(*element).map(|number| writes[number]);
        for list in self.history.last.values() {
            for pair in list.windows(2) {
                if let (Some(from), Some(to)) = (node_of(&pair[0]), node_of(&pair[1])) {
                    graph.edge(from, Kind::Ww, to);
                }
            }
        }
        for (seen, reader) in self.seen.iter().zip(readers) {
            let (Some(reader), last) = (*reader, self.last(seen.key)) else { continue };
            if let Some(from) = seen.length.checked_sub(1).and_then(|at| node_of(&last[at])) {
                graph.edge(from, Kind::Wr, reader);
            }
            if let Some(to) = last.get(seen.length).and_then(node_of) {
                graph.edge(reader, Kind::Rw, to);
            }
        }
    }

    /// The anomalies of the literature.
    fn cycles(&mut self) {
        use Kind::{Rw, Wr, Ww};
        let mut graph = Graph::default();
        let nodes: Vec<usize> = self.history.transactions.iter().map(|_| graph.node()).collect();
        let readers: Vec<_> = self.seen.iter().map(|seen| Some(nodes[seen.transaction])).collect();
        self.add_edges(&mut graph, &nodes, &readers);
        let mut explained = false;
        for (anomaly, kinds) in [(Anomaly::G0, &[Ww][..]), (Anomaly::G1c, &[Ww, Wr])] {
            if let Some(cycle) = graph.cycle(kinds).filter(|_| !explained) {
                self.found(anomaly, &cycle, "a cycle");
                explained = true;
            }
        }
        let single = graph.of_kind(Rw).find_map(|(from, to)| graph.path(to, from, &[Ww, Wr]));
        if let Some(cycle) = single {
            self.found(Anomaly::GSingle, &cycle, "a cycle with one anti-dependency");
            explained = true;
        }
        if let Some(cycle) = graph.cycle(&[Ww, Wr, Rw]).filter(|_| !explained) {
            self.found(Anomaly::G2, &cycle, "a cycle with several anti-dependencies");
        }
    }

    /// Checks the atomic parts of transactions: they must have an order that includes the order of each thread, and
    /// real time (a transaction that begins after another one's commit was acknowledged comes after it).
    fn views(&mut self) {
        let unit = self.unit;
        let mut graph = Graph::default();
        let mut owners = Vec::new();
        let mut add = |number: usize| {
            owners.push(number);
            graph.node()
        };
        let writes: Vec<usize> = (0..self.history.transactions.len()).map(&mut add).collect();
        let mut views: BTreeMap<(usize, u32), usize> = BTreeMap::new();
        let mut readers = Vec::new();
        for seen in &self.seen {
            let statement = if unit == Unit::Statement { seen.statement } else { 0 };
            readers.push(match unit {
                _ if seen.newest => Some(writes[seen.transaction]),
                Unit::Transaction => Some(writes[seen.transaction]),
                Unit::Writes => None,
                Unit::View | Unit::Statement => {
                    Some(*views.entry((seen.transaction, statement)).or_insert_with(|| add(seen.transaction)))
                }
            });
        }
        self.add_edges(&mut graph, &writes, &readers);
        let mut ended: BTreeMap<usize, usize> = BTreeMap::new();
        let mut firsts = BTreeMap::new();
        for (number, transaction) in self.history.transactions.iter().enumerate().filter(|(_, one)| one.committed) {
            let own = views.range((number, 0)..=(number, u32::MAX)).map(|(_, view)| *view);
            let in_order: Vec<usize> = own.chain([writes[number]]).collect();
            in_order.windows(2).for_each(|pair| graph.edge(pair[0], Kind::Order, pair[1]));
            firsts.insert(number, in_order[0]);
            if let Some(before) = ended.insert(transaction.thread, writes[number]) {
                graph.edge(before, Kind::Order, in_order[0]);
            }
        }
        add_time(&mut graph, &self.history.transactions, &firsts, &writes);
        if let Some(cycle) = graph.cycle(&[Kind::Ww, Kind::Wr, Kind::Rw, Kind::Order]) {
            // Moments have no owner.
            let mut numbers: Vec<usize> = cycle.into_iter().filter_map(|node| owners.get(node).copied()).collect();
            numbers.dedup();
            self.found(Anomaly::View, &numbers, "no order of views and writes");
        }
    }
}

/// Adds the order of real time: a node for each moment at which a transaction had ended, after the previous such node.
fn add_time(graph: &mut Graph, transactions: &[Transaction], firsts: &BTreeMap<usize, usize>, writes: &[usize]) {
    let begins = firsts.keys().map(|number| (transactions[*number].begun, false, *number));
    let ends = firsts.keys().map(|number| (transactions[*number].ended, true, *number));
    let mut events: Vec<_> = begins.chain(ends).collect();
    events.sort_unstable();
    let mut newest: Option<usize> = None;
    for (_, is_end, number) in events {
        match (is_end, newest) {
            (true, before) => {
                let moment = graph.node();
                before.into_iter().chain([writes[number]]).for_each(|from| graph.edge(from, Kind::Order, moment));
                newest = Some(moment);
            }
            (false, Some(moment)) => graph.edge(moment, Kind::Order, firsts[&number]),
            (false, None) => {}
        }
    }
}

#[cfg(test)]
#[path = "check_test.rs"]
mod tests;
