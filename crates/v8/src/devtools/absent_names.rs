//! Names outside of the string table, as in a truncated file: they get a placeholder before any
//! string is added to the table.

use crate::format::NOT_IN_FILE;
use crate::{EdgeKind, Result, Snapshot};

/// Gives the placeholder to nodes and edges whose string number is too large.
pub(crate) fn name_absent(snapshot: &mut Snapshot) -> Result<()> {
    let count = snapshot.strings.count();
    let is_absent = |&number: &u32| number >= count;
    let of_nodes = snapshot.nodes.names.iter().any(is_absent);
    // An edge's name may be an index of any size.
    if !of_nodes && !(0..snapshot.edge_count()).any(|edge| is_absent_of_edge(snapshot, edge, count)) {
        return Ok(());
    }
    let name = snapshot.strings.push(NOT_IN_FILE)?;
    for number in snapshot.nodes.names.iter_mut().filter(|number| **number >= count) {
        *number = name;
    }
    let graph = &snapshot.graph;
    snapshot.edge_names.replace(|edge, number| {
        let is_absent = number >= count && EdgeKind(graph.tag(edge) as u8).has_string_name();
        is_absent.then_some(name)
    });
    Ok(())
}

/// Whether an edge's name is a string outside of the table.
fn is_absent_of_edge(snapshot: &Snapshot, edge: u32, count: u32) -> bool {
    snapshot.edge_name_number(edge) >= count && snapshot.edge_kind(edge).has_string_name()
}

/// Whether a text contains the placeholder.
pub(crate) fn has_absent(text: &[u8]) -> bool {
    text.windows(NOT_IN_FILE.len()).any(|part| part == NOT_IN_FILE)
}
