//! Strongly connected components: groups of nodes that all lead to each other.

use crate::Graph;

/// Component of each node. Components are numbered from 0 in the order in which the walk completes
/// them: one that leads to another has the greater number.
#[derive(Debug, Clone)]
pub struct Components {
    component: Vec<u32>,
    count: u32,
}

const NONE: u32 = u32::MAX;

impl Components {
    /// Finds the components by Tarjan's algorithm, without recursion.
    pub fn of(graph: &Graph) -> Self {
        let node_count = graph.node_count() as usize;
        let mut walk = Walk {
            index: vec![NONE; node_count],
            low: vec![NONE; node_count],
            component: vec![NONE; node_count],
            open: Vec::new(),
            next_index: 0,
            count: 0,
        };
        // Nodes on the current path, each with its next edge.
        let mut way: Vec<(u32, u32)> = Vec::new();
        for start in 0..graph.node_count() {
            if walk.index[start as usize] != NONE {
                continue;
            }
            walk.begin(start);
            way.push((start, graph.edges(start).start));
            while let Some((node, edge)) = way.last_mut() {
                let node = *node;
                if *edge < graph.edges(node).end {
                    let target = graph.target(*edge);
                    *edge += 1;
                    if walk.index[target as usize] == NONE {
                        walk.begin(target);
                        way.push((target, graph.edges(target).start));
                    } else if walk.component[target as usize] == NONE {
                        let index = walk.index[target as usize];
                        walk.lower(node, index);
                    }
                    continue;
                }
                way.pop();
                let low = walk.low[node as usize];
                if let Some(&(above, _)) = way.last() {
                    walk.lower(above, low);
                }
                if low == walk.index[node as usize] {
                    walk.close(node);
                }
            }
        }
        Self { component: walk.component, count: walk.count }
    }

    /// Number of components.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// Component of a node.
    pub fn of_node(&self, node: u32) -> u32 {
        self.component[node as usize]
    }
}

struct Walk {
    index: Vec<u32>,
    low: Vec<u32>,
    component: Vec<u32>,
    /// Nodes whose component is still unknown.
    open: Vec<u32>,
    next_index: u32,
    count: u32,
}

impl Walk {
    fn begin(&mut self, node: u32) {
        self.index[node as usize] = self.next_index;
        self.low[node as usize] = self.next_index;
        self.next_index += 1;
        self.open.push(node);
    }

    fn lower(&mut self, node: u32, index: u32) {
        let low = &mut self.low[node as usize];
        *low = (*low).min(index);
    }

    fn close(&mut self, first: u32) {
        while let Some(node) = self.open.pop() {
            self.component[node as usize] = self.count;
            if node == first {
                break;
            }
        }
        self.count += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::reachable;

    fn graph(rows: &[Vec<u32>]) -> Graph {
        let mut first = vec![0];
        let mut targets = Vec::new();
        for row in rows {
            targets.extend(row);
            first.push(targets.len() as u32);
        }
        Graph::new(first, targets).unwrap()
    }

    proptest! {
        #[test]
        fn two_nodes_are_together_if_each_leads_to_the_other(
            rows in (1_u32..12).prop_flat_map(|count| {
                prop::collection::vec(prop::collection::vec(0..count, 0..4), count as usize)
            })
        ) {
            let graph = graph(&rows);
            let components = Components::of(&graph);
            let reach: Vec<Vec<bool>> = (0..graph.node_count())
                .map(|node| {
                    let found = reachable(&graph, [node], |_, _, _| true);
                    (0..graph.node_count()).map(|other| found[other as usize]).collect()
                })
                .collect();
            for (one, of_one) in reach.iter().enumerate() {
                for (other, of_other) in reach.iter().enumerate() {
                    let together = of_one[other] && of_other[one];
                    let (first, second) = (components.of_node(one as u32), components.of_node(other as u32));
                    prop_assert_eq!(one == other || together, first == second);
                    if one != other && of_one[other] {
                        prop_assert!(first >= second);
                    }
                }
            }
        }
    }
}
