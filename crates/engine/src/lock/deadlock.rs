//! Deadlocks: cycles in the wait-for graph. Pure functions on the transactions' numbers.

use super::holder::OwnerId;
use std::collections::HashSet;

/// A cycle through `start`: its members in order, `start` first. `edges` appends those that a transaction waits for.
/// Each transaction is looked at once at most.
pub(crate) fn find_cycle(start: OwnerId, mut edges: impl FnMut(OwnerId, &mut Vec<OwnerId>)) -> Option<Vec<OwnerId>> {
    let mut path: Vec<OwnerId> = Vec::new();
    let mut seen = HashSet::new();
    // (depth at which to put it, transaction); depth-first.
    let mut todo = vec![(0usize, start)];
    let mut next = Vec::new();
    while let Some((depth, member)) = todo.pop() {
        if depth > 0 && member == start {
            path.truncate(depth);
            return Some(path);
        }
        if !seen.insert(member) {
            continue;
        }
        path.truncate(depth);
        path.push(member);
        next.clear();
        edges(member, &mut next);
        todo.extend(next.iter().map(|member| (depth + 1, *member)));
    }
    None
}

/// The member whose rollback costs least; among equals the first, which closed the cycle.
pub(crate) fn choose_victim(cycle: &[OwnerId], weight: impl Fn(OwnerId) -> u64) -> Option<OwnerId> {
    cycle.iter().copied().min_by_key(|member| weight(*member))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(edges: &[(u64, u64)]) -> Option<Vec<u64>> {
        let edges = |member: OwnerId, out: &mut Vec<OwnerId>| {
            out.extend(edges.iter().filter(|(from, _)| *from == member.0).map(|(_, to)| OwnerId(*to)));
        };
        find_cycle(OwnerId(1), edges).map(|cycle| cycle.into_iter().map(|member| member.0).collect())
    }

    #[test]
    fn cycles_through_the_start_are_found() {
        assert_eq!(cycle(&[(1, 2), (2, 3)]), None);
        assert_eq!(cycle(&[(1, 2), (2, 1)]), Some(vec![1, 2]));
        assert_eq!(cycle(&[(1, 4), (1, 2), (4, 5), (2, 3), (3, 1)]), Some(vec![1, 2, 3]));
        // A cycle elsewhere is not ours.
        assert_eq!(cycle(&[(1, 2), (2, 3), (3, 2)]), None);
    }

    #[test]
    fn the_cheapest_member_is_the_victim() {
        let members = [1, 2, 3].map(OwnerId);
        assert_eq!(choose_victim(&members, |m| [0, 5, 3, 4][m.0 as usize]), Some(OwnerId(2)));
        assert_eq!(choose_victim(&members, |_| 7), Some(OwnerId(1)));
    }
}
