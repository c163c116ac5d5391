//! Who holds together what no one holds alone.
//!
//! ```text
//!  root --> server --> db <-- client <-- list <-- lctx     db and all below: held by lctx and server
//! ```
//! Of each block that no other block and no holder dominates, the nearest holders on the ways up:
//! beyond a block that one holds alone nothing is asked.

use std::collections::{HashSet, VecDeque};

use heapr_graph::{Graph, Retainers};

/// Blocks that the same holders hold together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct JointHolder {
    /// By number, ascending.
    pub(crate) holders: Vec<u32>,
    /// Nodes that nothing but the root dominates.
    pub(crate) tops: Vec<u32>,
}

/// Blocks that are looked at on the ways up from one.
const VISITED_MAX: usize = 20_000;

/// `tops`: the nodes that are asked for; `holder_of`: by node the holder that holds it alone, of a
/// holder itself.
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
