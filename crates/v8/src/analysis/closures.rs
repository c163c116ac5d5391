//! Variables that functions keep alive.

use super::heap_view::{EdgeName, HeapView};
use super::naming::Naming;
use super::scripts::Place;
use crate::{EdgeKind, NodeKind};
use heapr_table::SortRows as _;

/// Context of a function call or a module: the variables that nested functions use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ContextOfVariables {
    /// The context's node.
    pub node: u32,
    /// Source location of the first function in the text that uses the context.
    pub place: Option<Place>,
    /// Number of functions that share the context.
    pub function_count: u64,
    /// Bytes that would be freed with the context.
    pub retained_bytes: u64,
    /// Variables of the context that retain most, by descending retained bytes.
    pub variables: Vec<Variable>,
}

/// A variable of a context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Variable {
    /// The variable's name.
    pub name: String,
    /// Node that the variable refers to.
    pub node: u32,
    /// Bytes that would be freed with that node.
    pub retained_bytes: u64,
}

/// Largest number of variables listed per context.
const MAX_VARIABLES: usize = 8;

/// Returns the `top` contexts that retain most.
pub(crate) fn contexts_of_variables<H: HeapView>(
    heap: &H,
    naming: &Naming<'_, H>,
    top: usize,
) -> Vec<ContextOfVariables> {
    let mut contexts: Vec<(u64, u32)> = (0..heap.graph().node_count())
        .filter(|&node| naming.is_context(node))
        .map(|node| (heap.retained_bytes(node), node))
        .collect();
    contexts.sort_by_key(|&(bytes, node)| (std::cmp::Reverse(bytes), node));
    contexts.truncate(top);
    contexts
        .into_iter()
        .map(|(retained_bytes, node)| {
            let graph = heap.graph();
            let functions = heap.retainers().edges_into(node).iter();
            let function_count =
                functions.filter(|&&edge| heap.kind(graph.source(edge)) == NodeKind::CLOSURE).count() as u64;
            let mut variables: Vec<Variable> = graph
                .edges(node)
                .filter(|&edge| heap.edge_kind(edge) == EdgeKind::CONTEXT)
                .filter_map(|edge| match heap.edge_name(edge) {
                    EdgeName::Name(name) => Some(Variable {
                        name: name.into_owned(),
                        node: graph.target(edge),
                        retained_bytes: heap.retained_bytes(graph.target(edge)),
                    }),
                    EdgeName::Index(_) => None,
                })
                .collect();
            variables.sort_rows_by(|a, b| {
                b.retained_bytes.cmp(&a.retained_bytes).then_with(|| a.name.cmp(&b.name))
            });
            variables.truncate(MAX_VARIABLES);
            let place = naming.place_of_context(node);
            ContextOfVariables { node, place, function_count, retained_bytes, variables }
        })
        .collect()
}
