//! Joint holders: sets of holders that reach a block together, when no single one dominates it.
//!
//! ```text
//!  root --> server --> db <-- client <-- list <-- lctx     db and all below: held by lctx and server
//! ```
//! For each block that only the root dominates, the search goes up to the nearest holders. It ends
//! at each block that a single holder dominates.

use std::collections::{HashSet, VecDeque};

use heapr_graph::{Graph, Retainers};

/// Blocks that the same holders hold together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JointHolder {
    /// Numbers of the holders, ascending.
    pub(crate) holders: Vec<u32>,
    /// Nodes that nothing but the root dominates.
    pub(crate) tops: Vec<u32>,
}

/// Largest number of blocks visited on the search up from one block.
const VISITED_MAX: usize = 20_000;

/// Finds the joint holders of `tops`. `holder_of`: for each node the holder that holds it alone; a
/// holder's node names itself.
pub(crate) fn joint_holders(
    graph: &Graph,
    tops: impl Iterator<Item = u32>,
    holder_of: &[Option<u32>],
) -> Vec<JointHolder> {
    let mut tops = tops.peekable();
    if tops.peek().is_none() {
        return Vec::new();
    }
    let referring = Retainers::of(graph);
    let mut joint: Vec<JointHolder> = Vec::new();
    for top in tops {
        let holders = holders_above(graph, &referring, top, holder_of);
        match joint.iter_mut().find(|known| known.holders == holders) {
            Some(known) => known.tops.push(top),
            None => joint.push(JointHolder { holders, tops: vec![top] }),
        }
    }
    joint
}

fn holders_above(graph: &Graph, referring: &Retainers, top: u32, holder_of: &[Option<u32>]) -> Vec<u32> {
    let mut holders: HashSet<u32> = HashSet::new();
    let mut visited: HashSet<u32> = HashSet::from([top]);
    let mut next = VecDeque::from([top]);
    while let Some(node) = next.pop_front() {
        for source in referring.sources(graph, node) {
            match holder_of[source as usize] {
                Some(holder) => drop(holders.insert(holder)),
                None if visited.len() < VISITED_MAX && visited.insert(source) => next.push_back(source),
                None => {}
            }
        }
    }
    let mut holders: Vec<u32> = holders.into_iter().collect();
    holders.sort_unstable();
    holders
}
