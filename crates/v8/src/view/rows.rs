//! Lists by the page, and the lines in them.

use crate::NodeKind;
use crate::devtools::{display_text_up_to, edge_text};
use crate::objects::Objects;

/// Some lines of a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed<T> {
    /// The lines of the page.
    pub rows: Vec<T>,
    /// How long the whole list is.
    pub total_count: u64,
}

/// An object in a list.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectRow {
    /// Its node, to ask on with.
    pub node: u32,
    /// The number that it keeps in all snapshots of its isolate.
    pub id: u64,
    /// As DevTools shows it: the text of a string, the properties of a plain object.
    pub name: String,
    /// Its class.
    pub class: String,
    /// V8's name of its type.
    pub kind: String,
    /// DevTools' distance.
    pub distance: i32,
    /// Bytes of its own.
    pub self_bytes: u64,
    /// Bytes that would be freed with it.
    pub retained_bytes: u64,
    /// How many fields it has: whether it can be opened.
    pub field_count: u32,
}

/// A field of an object, or a field that refers to one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldRow {
    /// The edge.
    pub edge: u32,
    /// As DevTools writes it: `.name`, `[3]`, `->variable`, `{internal}`, `[[weak]]`.
    pub field: String,
    /// V8's name of its type.
    pub edge_kind: &'static str,
    /// The distance by which retainers are sorted; of a field that of its object.
    pub distance: i32,
    /// The object at the other end.
    pub object: ObjectRow,
}

/// From so many lines on they are made by several threads, which wait for the disk at the same
/// time.
const MANY: usize = 32;
/// So many threads.
const THREADS: usize = 4;

/// Makes lines.
#[derive(Clone, Copy)]
pub(super) struct RowMaker<'a> {
    pub(super) objects: &'a dyn Objects,
    /// Of the text of a concatenated string at least so many UTF-16 units, if it has them.
    pub(super) name_units: usize,
}

impl RowMaker<'_> {
    /// The line of a node.
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

    /// The line of an edge with the object that it goes to.
    pub(super) fn field(self, edge: u32) -> FieldRow {
        self.edge(edge, self.objects.target(edge))
    }

    /// The line of an edge with the object that it comes from.
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

/// A line of each; what each one needs is in many places of the file.
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
