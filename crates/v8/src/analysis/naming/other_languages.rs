//! Names of objects in heaps of other languages than JavaScript.
//!
//! A name has the module, class, frame or thread of an object, the attributes down to it, and its
//! class.
//!
//! ```text
//! module pricing: _quotes (dict)      class __main__.Basket: items (list)
//! ```

use super::texts::{joined, shortened};
use super::{Called, MAX_FIELDS_IN_NAME, MAX_HOLDERS_OF_A_NAME, Naming, Way};
use crate::format::Dialect;
use crate::objects::{EdgeName, Objects};
use crate::{EdgeKind, NodeKind};

impl<H: Objects + ?Sized> Naming<'_, H> {
    pub(super) fn call_in_other_language(&self, node: u32) -> Called {
        let mut way = Way { at: node, fields: Vec::new(), context: None };
        let mut passed = Vec::new();
        for _ in 0..MAX_HOLDERS_OF_A_NAME {
            let is_named = way.at != node && self.begins_names(way.at);
            if is_named || way.fields.len() >= MAX_FIELDS_IN_NAME || passed.contains(&way.at) {
                break;
            }
            passed.push(way.at);
            let Some(edge) = self.naming_edge(way.at) else { break };
            way.fields.extend(self.field_in_other_language(edge));
            way.at = self.heap.source(edge);
        }
        let is_root = self.begins_names(node);
        let Way { at, mut fields, .. } =
            if is_root { Way { at: node, fields: Vec::new(), context: None } } else { way };
        fields.reverse();
        let base = self.own_name(at);
        let text = match fields.is_empty() {
            true if at == node || is_root => base.clone(),
            true => format!("{base}: {}", self.own_name(node)),
            false => format!("{base}: {}", joined(&fields)),
        };
        Called {
            text,
            fields,
            base,
            is_variable: false,
            base_node: at,
            place: self.place(at),
            part_of: None,
            class: Some(self.own_name(node)),
            is_held_by_the_runtime: false,
        }
    }

    /// Whether a node begins the names of what it holds. (A text's name is what the program wrote.)
    fn begins_names(&self, node: u32) -> bool {
        self.heap.kind(node) != NodeKind::STRING && Dialect::is_named(&self.heap.name(node))
    }

    /// Returns a field as it appears in a name; `None` for plumbing.
    fn field_in_other_language(&self, edge: u32) -> Option<String> {
        match (self.heap.edge_kind(edge), self.heap.edge_name(edge)) {
            (EdgeKind::ELEMENT, _) => Some("[…]".to_owned()),
            (EdgeKind::INTERNAL, EdgeName::Name(name)) => {
                Dialect::internal_field(&name).map(ToOwned::to_owned)
            }
            (_, EdgeName::Name(name)) => Some(shortened(&name)),
            (_, EdgeName::Index(_)) => None,
        }
    }
}
