//! Semi-NCA algorithm (Georgiadis 2005). Semidominators are computed as in Lengauer and Tarjan's
//! algorithm. Each immediate dominator is the nearest common ancestor in the dominator tree built
//! so far. The algorithm is simpler than Lengauer-Tarjan, has no buckets, and is faster on heap
//! graphs.

use super::preorder::Link;

/// Returns the immediate dominator of each number. Numbers from `walked_count` on retain their
/// parent.
///
/// The links become a forest of the numbers above the current one, with compressed paths. `value`
/// is the least semidominator on the path from a number up to, but not including, its ancestor.
pub(super) fn immediate_dominators(
    mut links: Vec<Link>,
    mut semi: Vec<u32>,
    join_sources: Vec<u32>,
    walked_count: u32,
) -> Vec<u32> {
    let parent: Vec<u32> = links.iter().map(|link| link.ancestor).collect();
    let mut path = Vec::new();
    for number in (1..walked_count).rev() {
        let mut least = semi[number as usize];
        // Lower numbers have their borders still.
        let from = links[number as usize - 1].value as usize;
        let to = links[number as usize].value as usize;
        for &source in &join_sources[from..to] {
            least = least.min(least_semi_above(&mut links, &mut path, source, number));
        }
        semi[number as usize] = least;
        links[number as usize].value = least;
    }
    drop(join_sources);
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
    let (ancestor, mut least) = (link.ancestor, link.value);
    while let Some(below) = path.pop() {
        let link = &mut links[below as usize];
        least = least.min(link.value);
        *link = Link { ancestor, value: least };
    }
    least
}
