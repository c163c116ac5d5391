//! Pages of lists, and their lines.

use crate::NodeKind;
use crate::devtools::{display_text_up_to, edge_text};
use crate::objects::Objects;

/// Some lines of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// Lines of the page.
    pub rows: Vec<T>,
    /// Length of the whole list.
    pub total_count: u64,
}

/// Object in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRow {
    /// Number of the node, for further queries.
    pub node: u32,
    /// Id, which stays the same in all snapshots of an isolate.
    pub id: u64,
    /// Name that DevTools shows: the text of a string, the properties of a plain object.
    pub name: String,
    /// Name of the class.
    pub class: String,
    /// V8's name of the node type.
    pub kind: String,
    /// DevTools' distance.
    pub distance: i32,
    /// Self size in bytes.
    pub self_bytes: u64,
    /// Bytes that would be freed with the object.
    pub retained_bytes: u64,
    /// Number of fields, which shows whether the object can be opened.
    pub field_count: u32,
}

/// Field of an object, or field that refers to an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRow {
    /// Number of the edge.
    pub edge: u32,
    /// Name that DevTools writes: `.name`, `[3]`, `->variable`, `{internal}`, `[[weak]]`.
    pub field: String,
    /// V8's name of the edge type.
    pub edge_kind: &'static str,
    /// Distance by which retainers are sorted; for a field, that of its object.
    pub distance: i32,
    /// Object at the other end.
    pub object: ObjectRow,
}

/// Number of lines from which several threads make them, so that their disk reads overlap.
const MANY: usize = 32;
/// Number of threads.
const THREADS: usize = 4;

/// Maker of lines.
#[derive(Clone, Copy)]
pub(super) struct RowMaker<'a> {
    pub(super) objects: &'a dyn Objects,
    /// Least number of UTF-16 units of a concatenated string's text, if it has as many.
    pub(super) name_units: usize,
}

impl RowMaker<'_> {
    /// Returns the line of a node.
    pub(super) fn object(self, node: u32) -> ObjectRow {
        let objects = self.objects;
        let class = objects.class_list().get(objects.class_of(node) as usize);
        ObjectRow {
            node,
            id: objects.id(node),
            name: display_text_up_to(objects, node, self.name_units),
            class: class.map_or_else(String::new, |class| class.name_text().into_owned()),
            kind: kind_name(objects, objects.kind(node)),
            distance: objects.devtools_distance(node),
            self_bytes: objects.self_bytes(node),
            retained_bytes: objects.retained_bytes(node),
            field_count: objects.edges(node).len() as u32,
        }
    }

    /// Returns the line of an edge with its target.
    pub(super) fn field(self, edge: u32) -> FieldRow {
        self.edge(edge, self.objects.target(edge))
    }

    /// Returns the line of an edge with its source.
    pub(super) fn retainer(self, edge: u32) -> FieldRow {
        self.edge(edge, self.objects.source(edge))
    }

    fn edge(self, edge: u32, node: u32) -> FieldRow {
        let object = self.object(node);
        FieldRow {
            edge,
            field: edge_text(self.objects, edge),
            edge_kind: self.objects.meta().edge_kind_name(self.objects.edge_kind(edge)),
            distance: object.distance,
            object,
        }
    }
}

/// Makes a line for each number. The data of each line is in many places of the file.
pub(super) fn lines<R: Send>(of: &[u32], line: impl Fn(u32) -> R + Sync) -> Vec<R> {
    if of.len() < MANY {
        return of.iter().map(|&one| line(one)).collect();
    }
    let line = &line;
    std::thread::scope(|scope| {
        let parts: Vec<_> = of
            .chunks(of.len().div_ceil(THREADS))
            .map(|part| scope.spawn(move || part.iter().map(|&one| line(one)).collect::<Vec<_>>()))
            .collect();
        let joined = parts
            .into_iter()
            .map(|part| part.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
        joined.flatten().collect()
    })
}

/// V8's name of a kind.
pub(super) fn kind_name(objects: &dyn Objects, kind: NodeKind) -> String {
    objects.meta().node_kind_name(kind).to_owned()
}
