//! Graph of the objects of a .NET heap, for the runtime's events and for files alike.

use std::collections::BTreeSet;

use heapr_v8::{EdgeKind, GraphColumns, NODE_KINDS, NodeKind, Snapshot, snapshot_header};
use rustc_hash::FxHashMap;
use serde_json::json;

use super::type_names::is_part;
use crate::dump::edges::Edges;
use crate::dump::rows::{Row, with_rows};
use crate::dump::texts::Texts;
use crate::dump_error::Result;

/// Row of objects that nothing leads to.
const GARBAGE: &str = "(garbage, or held by the runtime)";

/// Size of a slot of a store. Entries have sizes of their own: no store is as large as this, and so
/// no fill is told.
const SLOT_BYTES: u64 = 1 << 62;

/// Class of objects.
#[derive(Debug, Clone, Default)]
pub(super) struct Class {
    pub(super) name: String,
    /// True if its objects are arrays of something that can have references.
    pub(super) is_store: bool,
    /// True if its objects hold contents by position or key.
    pub(super) is_collection: bool,
    /// True if it comes with .NET.
    pub(super) is_of_dotnet: bool,
}

/// Objects with their references.
#[derive(Debug)]
pub(super) struct Objects {
    pub(super) classes: Vec<Class>,
    /// Index of each object's class.
    pub(super) class_of: Vec<u32>,
    pub(super) own_bytes: Vec<u64>,
    pub(super) columns: GraphColumns,
    pub(super) texts: Texts,
    /// Numbers of the names of references that are named by the classes that they lead to.
    by_class: FxHashMap<u32, u32>,
    /// Objects whose references are in no order that their class could have.
    pub(super) contradictions: u64,
    pub(super) rows: Vec<Row>,
}

impl Objects {
    pub(super) fn new(classes: Vec<Class>, class_of: Vec<u32>, own_bytes: Vec<u64>) -> Result<Self> {
        let mut texts = Texts::new()?;
        let mut columns = GraphColumns::default();
        let mut shown = Vec::with_capacity(classes.len());
        for class in &classes {
            let is_storage = class.is_store || class.is_of_dotnet && is_part(&class.name);
            let kind = if is_storage { NodeKind::ARRAY } else { NodeKind::OBJECT };
            shown.push((kind, texts.number(&class.name)?));
        }
        for &class in &class_of {
            let (kind, name) = shown[class as usize];
            columns.kinds.push(kind);
            columns.names.push(name);
        }
        Ok(Self {
            classes,
            class_of,
            own_bytes,
            columns,
            texts,
            by_class: FxHashMap::default(),
            contradictions: 0,
            rows: Vec::new(),
        })
    }

    /// Adds the references of the next object: their targets, and the numbers of their names.
    /// Others are named by the classes that they lead to.
    pub(super) fn push_edges(
        &mut self,
        object: usize,
        targets: impl Iterator<Item = (u32, Option<u32>)>,
    ) -> Result<()> {
        let holder = self.columns.kinds[object];
        self.columns.first_edges.push(self.columns.targets.len() as u32);
        for (position, (target, field)) in (0..).zip(targets) {
            let (kind, name) = if holder == NodeKind::ARRAY {
                (EdgeKind::ELEMENT, position)
            } else {
                let class = self.class_of[target as usize];
                let name = match (field, self.by_class.get(&class)) {
                    (Some(field), _) => field,
                    (None, Some(&known)) => known,
                    (None, None) => {
                        let number =
                            self.texts.number(&format!("({})", self.classes[class as usize].name))?;
                        *self.by_class.entry(class).or_insert(number)
                    }
                };
                let leads_to_store = self.columns.kinds[target as usize] == NodeKind::ARRAY;
                let is_own = self.classes[self.class_of[object] as usize].is_of_dotnet && leads_to_store;
                (if is_own { EdgeKind::INTERNAL } else { EdgeKind::PROPERTY }, name)
            };
            self.push_edge(kind, name, target);
        }
        Ok(())
    }

    fn push_edge(&mut self, kind: EdgeKind, name: u32, target: u32) {
        self.columns.edge_kinds.push(kind);
        self.columns.edge_names.push(name);
        self.columns.targets.push(target);
    }

    /// Adds a node that stands for a class, with its static variables. Returns its number.
    pub(super) fn push_class(&mut self, class: &str, variables: &[(String, u32)]) -> Result<u32> {
        let node = self.columns.kinds.len() as u32;
        self.columns.kinds.push(NodeKind::OBJECT);
        let name = self.texts.number(&format!("class {class}"))?;
        self.columns.names.push(name);
        self.columns.first_edges.push(self.columns.targets.len() as u32);
        self.own_bytes.push(0);
        for (variable, target) in variables {
            let name = self.texts.number(variable)?;
            self.push_edge(EdgeKind::PROPERTY, name, *target);
        }
        Ok(node)
    }

    /// Adds what nothing leads to, and builds the snapshot.
    pub(super) fn snapshot(mut self, runtime: &str) -> Result<Snapshot> {
        let columns = &mut self.columns;
        let edges =
            Edges { first: &columns.first_edges, targets: &columns.targets, kinds: &columns.edge_kinds };
        let roots = self.rows.iter().flat_map(|row| row.targets.iter().copied());
        let (garbage, idle) = edges.garbage(roots);
        for edge in idle {
            columns.edge_kinds[edge] = EdgeKind::WEAK;
        }
        if !garbage.is_empty() {
            let (name, kind) = (GARBAGE.to_owned(), NodeKind::NATIVE);
            self.rows.push(Row { name, kind, is_owner: false, targets: garbage });
        }
        let columns = std::mem::take(&mut self.columns);
        let mut heap = with_rows(&mut self.texts, &self.rows, columns, self.own_bytes.into_iter())?;
        // Objects move: their numbers say nothing of other snapshots.
        heap.ids = (1..).take(heap.names.len()).collect();
        heap.strings = self.texts.strings;
        let mut header = snapshot_header(&NODE_KINDS, heap.names.len() as u64, heap.targets.len() as u64);
        let names = |is_one: fn(&Class) -> bool| -> BTreeSet<&str> {
            self.classes.iter().filter(|class| is_one(class)).map(|class| &*class.name).collect()
        };
        header["heapr"] = json!({
            "runtime": runtime,
            "language": "dotnet",
            "ids": "positions",
            "table": { "header_bytes": 0, "slot_bytes": SLOT_BYTES },
            "collections": names(|class| class.is_collection),
            "program": names(|class| !class.is_of_dotnet),
        });
        Ok(Snapshot::of_columns(&header, heap)?)
    }
}
