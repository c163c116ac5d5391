//! Breadth-first walks.

use crate::Graph;

/// Distance of a node that the walks did not reach.
pub const UNREACHED: u32 = u32::MAX;

/// Returns the least number of edges from a seed to each node, plus the seed's own distance.
///
/// `phases` are walked one after another: a later phase gives distances only to nodes that the
/// earlier ones did not reach. `is_followed(edge, from, to)` is called once for each edge of a
/// reached source, in the order of the walk. The calls include edges to targets that already have a
/// distance, so the closure may have state.
pub fn distances<'a>(
    graph: &Graph,
    phases: impl IntoIterator<Item = &'a [(u32, u32)]>,
    mut is_followed: impl FnMut(u32, u32, u32) -> bool,
) -> Vec<u32> {
    let mut distance = vec![UNREACHED; graph.node_count() as usize];
    let mut queue: Vec<u32> = Vec::new();
    for seeds in phases {
        queue.clear();
        for &(node, at) in seeds {
            if distance[node as usize] == UNREACHED {
                distance[node as usize] = at;
                queue.push(node);
            }
        }
        let mut head = 0;
        while head < queue.len() {
            let node = queue[head];
            head += 1;
            let next = distance[node as usize].saturating_add(1).min(UNREACHED - 1);
            for edge in graph.edges(node) {
                let target = graph.target(edge);
                if is_followed(edge, node, target) && distance[target as usize] == UNREACHED {
                    distance[target as usize] = next;
                    queue.push(target);
                }
            }
        }
    }
    distance
}

/// Returns for each node whether a walk from `seeds` reaches it along the edges that
/// `is_followed(edge, from, to)` allows.
///
/// To find the nodes that only certain nodes retain, let the closure refuse the edges into these.
/// Unreached nodes are retained by them, or are unreachable anyway.
pub fn reachable(
    graph: &Graph,
    seeds: impl IntoIterator<Item = u32>,
    mut is_followed: impl FnMut(u32, u32, u32) -> bool,
) -> Vec<bool> {
    let mut reached = vec![false; graph.node_count() as usize];
    let mut stack: Vec<u32> = Vec::new();
    for seed in seeds {
        if !std::mem::replace(&mut reached[seed as usize], true) {
            stack.push(seed);
        }
    }
    while let Some(node) = stack.pop() {
        for edge in graph.edges(node) {
            let target = graph.target(edge);
            if !reached[target as usize] && is_followed(edge, node, target) {
                reached[target as usize] = true;
                stack.push(target);
            }
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;

    fn diamond() -> Graph {
        // 0 -> 1 -> 3, 0 -> 2 -> 3, 3 -> 4; 5 -> 4 alone.
        Graph::new(vec![0, 2, 3, 4, 5, 5, 6], vec![1, 2, 3, 3, 4, 4]).unwrap()
    }

    #[test]
    fn a_later_phase_reaches_only_what_is_left() {
        let found = distances(&diamond(), [[(1, 1)].as_slice(), &[(0, 100), (1, 7)]], |_, _, _| true);
        assert_eq!(found, [100, 1, 101, 2, 3, UNREACHED]);
    }

    #[test]
    fn edges_that_are_not_followed_do_not_count() {
        let found = distances(&diamond(), [[(0, 0)].as_slice()], |_, from, _| from != 1);
        assert_eq!(found, [0, 1, 1, 2, 3, UNREACHED]);
    }

    #[test]
    fn what_a_walk_around_a_node_misses_is_retained_by_it() {
        let around = |avoided: u32| reachable(&diamond(), [0], |_, _, to| to != avoided);
        assert_eq!(around(3), [true, true, true, false, false, false]);
        assert_eq!(around(1), [true, false, true, true, true, false]);
    }
}
