//! Deadlocks: cycles in the wait-for graph. Pure functions on slots.

/// A cycle through `start`: its members in order, `start` first. `edges` appends the slots that a slot waits for.
pub(crate) fn find_cycle(start: u32, edges: impl Fn(u32, &mut Vec<u32>)) -> Option<Vec<u32>> {
    let mut path: Vec<u32> = Vec::new();
    let mut seen = std::collections::HashSet::new();
    // (depth at which to put the slot, slot); depth-first.
    let mut todo = vec![(0usize, start)];
    let mut next = Vec::new();
    while let Some((depth, slot)) = todo.pop() {
        if depth > 0 && slot == start {
            path.truncate(depth);
            return Some(path);
        }
        if !seen.insert(slot) {
            continue;
        }
        path.truncate(depth);
        path.push(slot);
        next.clear();
        edges(slot, &mut next);
        todo.extend(next.iter().map(|slot| (depth + 1, *slot)));
    }
    None
}

/// The member whose rollback costs least; among equals the first, which closed the cycle.
pub(crate) fn choose_victim(cycle: &[u32], weight: impl Fn(u32) -> u64) -> u32 {
    cycle.iter().copied().min_by_key(|member| weight(*member)).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn graph(edges: &[(u32, u32)]) -> impl Fn(u32, &mut Vec<u32>) + '_ {
        move |slot, out| out.extend(edges.iter().filter(|(from, _)| *from == slot).map(|(_, to)| *to))
    }

    #[test]
    fn cycles_through_the_start_are_found() {
        assert_eq!(find_cycle(1, graph(&[(1, 2), (2, 3)])), None);
        assert_eq!(find_cycle(1, graph(&[(1, 2), (2, 1)])), Some(vec![1, 2]));
        assert_eq!(find_cycle(1, graph(&[(1, 4), (1, 2), (4, 5), (2, 3), (3, 1)])), Some(vec![1, 2, 3]));
        // A cycle elsewhere is not ours.
        assert_eq!(find_cycle(1, graph(&[(1, 2), (2, 3), (3, 2)])), None);
    }

    #[test]
    fn the_cheapest_member_is_the_victim() {
        assert_eq!(choose_victim(&[1, 2, 3], |m| [0, 5, 3, 4][m as usize]), 2);
        assert_eq!(choose_victim(&[1, 2, 3], |_| 7), 1);
    }
}
