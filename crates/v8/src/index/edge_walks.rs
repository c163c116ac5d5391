//! Data of many edges at once: their sources, kinds and names.

use crate::EdgeKind;
use crate::index::layout::Column;
use crate::index::stored_graph::StoredGraph;
use crate::objects::Objects as _;

/// Number of edges or nodes per requested one up to which a scan is faster: one lookup takes as
/// long as reading some hundred numbers.
const DENSE: usize = 256;
/// Number of numbers read at once.
const STEP: u32 = 1 << 16;

impl StoredGraph {
    /// Returns sources and kinds of edges in descending order. Many edges are found with one scan
    /// over the first edges of all nodes.
    pub(super) fn walk_holders(&self, edges: &[u32]) -> Vec<(u32, EdgeKind)> {
        if edges.len().saturating_mul(DENSE) < self.node_count() as usize {
            return edges.iter().map(|&edge| (self.source(edge), self.edge_kind(edge))).collect();
        }
        let (kinds, sources) = std::thread::scope(|scope| {
            let kinds = scope.spawn(|| self.kinds_of(edges));
            let sources = self.sources_of(edges);
            (kinds.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), sources)
        });
        sources.into_iter().zip(kinds).collect()
    }

    fn sources_of(&self, edges: &[u32]) -> Vec<u32> {
        let first_edges = self.blocks.all_numbers(Column::FirstEdges);
        // Last node whose first edge is at most the edge.
        let mut node = first_edges.len();
        let source_of = |&edge: &u32| {
            while node > 0 && first_edges[node - 1] > edge {
                node -= 1;
            }
            node.saturating_sub(1) as u32
        };
        edges.iter().map(source_of).collect()
    }

    fn kinds_of(&self, edges: &[u32]) -> Vec<EdgeKind> {
        let mut kinds = Vec::with_capacity(edges.len());
        let mut read = Vec::new();
        self.in_steps(edges, |(first, end), some| {
            self.blocks.read_bytes(Column::EdgeKinds, first..end, &mut read);
            kinds.extend(some.iter().map(|&edge| EdgeKind(of_step(&read, first, edge))));
        });
        kinds
    }

    /// Returns the names of edges in descending order. Many edges are found with one scan over the
    /// parts of the column that contain them.
    pub(super) fn walk_edge_names(&self, edges: &[u32]) -> Vec<u32> {
        if edges.len().saturating_mul(DENSE) < self.edge_count() as usize {
            return edges.iter().map(|&edge| self.edge_name_index(edge)).collect();
        }
        let walk = |edges: &[u32]| {
            let mut names = Vec::with_capacity(edges.len());
            let mut read = Vec::new();
            self.in_steps(edges, |(first, end), some| {
                self.blocks.read_numbers(Column::EdgeNames, first..end, &mut read);
                names.extend(some.iter().map(|&edge| of_step(&read, first, edge)));
            });
            names
        };
        let (one, other) = edges.split_at(edges.len() / 2);
        std::thread::scope(|scope| {
            let other = scope.spawn(|| walk(other));
            let mut names = walk(one);
            names.extend(other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            names
        })
    }

    /// Visits the edges grouped by the part of a column that contains them, with the bounds of that
    /// part.
    fn in_steps(&self, edges: &[u32], mut visit: impl FnMut((u64, u64), &[u32])) {
        for some in edges.chunk_by(|one, other| one / STEP == other / STEP) {
            let first = some[0] / STEP * STEP;
            let end = first.saturating_add(STEP).min(self.edge_count());
            visit((first.into(), end.into()), some);
        }
    }
}

/// Returns the value read for an edge, or the default if it could not be read, which was reported.
fn of_step<T: Copy + Default>(read: &[T], first: u64, edge: u32) -> T {
    read.get((u64::from(edge) - first) as usize).copied().unwrap_or_default()
}
