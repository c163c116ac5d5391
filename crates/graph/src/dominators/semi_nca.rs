//! Semi-NCA algorithm (Georgiadis 2005). Semidominators are computed as in Lengauer and Tarjan's
//! algorithm. Each immediate dominator is the nearest common ancestor in the dominator tree built
//! so far. The algorithm is simpler than Lengauer-Tarjan, has no buckets, and is faster on heap
//! graphs.

use super::preorder::Joins;

/// Node of the forest of numbers above the current one, with compressed paths.
#[derive(Clone, Copy)]
struct Link {
    ancestor: u32,
    /// Least semidominator on the path from this node up to, but not including, `ancestor`.
    least_semi: u32,
}

/// Returns the immediate dominator of each number. Numbers from `walked_count` on retain their
/// parent.
pub(super) fn immediate_dominators(
    parent: Vec<u32>,
    mut semi: Vec<u32>,
    joins: Joins,
    walked_count: u32,
) -> Vec<u32> {
    let mut links: Vec<Link> = parent[..walked_count as usize]
        .iter()
        .map(|&ancestor| Link { ancestor, least_semi: u32::MAX })
        .collect();
    let mut path = Vec::new();
    for number in (1..walked_count).rev() {
        let mut least = semi[number as usize];
        let from = joins.first[number as usize] as usize;
        let to = joins.first[number as usize + 1] as usize;
        for &source in &joins.sources[from..to] {
            least = least.min(least_semi_above(&mut links, &mut path, source, number));
        }
        semi[number as usize] = least;
        links[number as usize].least_semi = least;
    }
    drop(joins);
    drop(links);

    let mut idom = parent;
    for number in 1..walked_count {
        let semi = semi[number as usize];
        let mut candidate = idom[number as usize];
        while candidate > semi {
            candidate = idom[candidate as usize];
        }
        idom[number as usize] = candidate;
    }
    idom
}

/// Returns the least semidominator among `number` and those of its tree ancestors whose number is
/// higher than `current`.
fn least_semi_above(links: &mut [Link], path: &mut Vec<u32>, number: u32, current: u32) -> u32 {
    let mut at = number;
    let mut link = links[at as usize];
    while link.ancestor > current {
        path.push(at);
        at = link.ancestor;
        link = links[at as usize];
    }
    // Compresses the path from the top down: each node on it gets the top's ancestor.
    let (ancestor, mut least) = (link.ancestor, link.least_semi);
    while let Some(below) = path.pop() {
        let link = &mut links[below as usize];
        least = least.min(link.least_semi);
        *link = Link { ancestor, least_semi: least };
    }
    least
}
