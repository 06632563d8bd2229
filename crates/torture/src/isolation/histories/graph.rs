//! Dependencies between nodes, and cycles among them.

use std::collections::{BTreeSet, VecDeque};

/// The kind of a dependency between two nodes (Adya).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    /// It wrote the version before that of the other.
    Ww,
    /// It wrote the version that the other read.
    Wr,
    /// It read the version before that of the other.
    Rw,
    /// It was over when the other began.
    Order,
}

/// A directed graph.
#[derive(Clone, Debug, Default)]
pub(super) struct Graph {
    edges: Vec<BTreeSet<(usize, Kind)>>,
}

impl Graph {
    /// Adds a node.
    pub(super) fn node(&mut self) -> usize {
        self.edges.push(BTreeSet::new());
        self.edges.len() - 1
    }

    /// Adds an edge, unless it leads back to its node.
    pub(super) fn edge(&mut self, from: usize, kind: Kind, to: usize) {
        if from != to {
            self.edges[from].insert((to, kind));
        }
    }

    /// Edges of one kind.
    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = (usize, usize)> + '_ {
        let from = self.edges.iter().enumerate();
        from.flat_map(move |(from, to)| to.iter().filter(move |(_, k)| *k == kind).map(move |(to, _)| (from, *to)))
    }

    fn next(&self, from: usize, kinds: &[Kind]) -> impl Iterator<Item = usize> + '_ {
        let kinds = kinds.to_vec();
        self.edges[from].iter().filter(move |(_, kind)| kinds.contains(kind)).map(|(to, _)| *to)
    }

    /// A shortest path along edges of these kinds, both ends included.
    pub(super) fn path(&self, from: usize, to: usize, kinds: &[Kind]) -> Option<Vec<usize>> {
        let mut before = vec![usize::MAX; self.edges.len()];
        let mut queue = VecDeque::from([from]);
        while let Some(at) = queue.pop_front() {
            for next in self.next(at, kinds) {
                if before[next] == usize::MAX {
                    before[next] = at;
                    if next == to {
                        let mut path = vec![to];
                        let mut at = to;
                        while before[at] != from {
                            at = before[at];
                            path.push(at);
                        }
                        path.push(from);
                        path.reverse();
                        return Some(path);
                    }
                    queue.push_back(next);
                }
            }
        }
        None
    }

    /// A cycle along edges of these kinds, a short one, without its first node at the end; none if there is no cycle.
    pub(super) fn cycle(&self, kinds: &[Kind]) -> Option<Vec<usize>> {
        let on_cycle = self.on_cycle(kinds)?;
        let mut cycle = self.path(on_cycle, on_cycle, kinds)?;
        cycle.pop();
        Some(cycle)
    }

    /// A node on a cycle: a node that remains when nodes without incoming or without outgoing edges are removed
    /// repeatedly.
    fn on_cycle(&self, kinds: &[Kind]) -> Option<usize> {
        let mut incoming = vec![0usize; self.edges.len()];
        (0..self.edges.len()).for_each(|at| self.next(at, kinds).for_each(|next| incoming[next] += 1));
        let mut free: Vec<usize> = (0..self.edges.len()).filter(|at| incoming[*at] == 0).collect();
        let mut left: BTreeSet<usize> = (0..self.edges.len()).collect();
        while let Some(at) = free.pop() {
            left.remove(&at);
            for next in self.next(at, kinds) {
                incoming[next] -= 1;
                if incoming[next] == 0 {
                    free.push(next);
                }
            }
        }
        // Every node left has one before it that is left: going back from any of them comes to a cycle.
        let mut seen = BTreeSet::new();
        let mut at = *left.first()?;
        while seen.insert(at) {
            at = *left.iter().find(|from| self.next(**from, kinds).any(|to| to == at))?;
        }
        Some(at)
    }
}

#[cfg(test)]
mod tests {
    use super::Kind::{Order, Rw, Wr, Ww};
    use super::*;

    #[test]
    fn cycles_are_found_along_the_kinds_asked_for() {
        let mut graph = Graph::default();
        let nodes: Vec<usize> = (0..6).map(|_| graph.node()).collect();
        for (from, kind, to) in [(0, Ww, 1), (1, Wr, 2), (2, Rw, 3), (3, Order, 1), (3, Ww, 4), (5, Ww, 0), (4, Ww, 4)]
        {
            graph.edge(nodes[from], kind, nodes[to]);
        }
        assert_eq!(graph.cycle(&[Ww, Wr, Rw]), None);
        let mut cycle = graph.cycle(&[Wr, Rw, Order]).unwrap();
        cycle.sort_unstable();
        assert_eq!(cycle, [1, 2, 3]);
        assert_eq!(graph.path(5, 4, &[Ww, Wr, Rw]), Some(vec![5, 0, 1, 2, 3, 4]));
        assert_eq!(graph.path(4, 5, &[Ww, Wr, Rw, Order]), None);
        assert_eq!(graph.of_kind(Rw).collect::<Vec<_>>(), [(2, 3)]);
    }
}
