//! Names of objects in heaps of other languages than JavaScript.
//!
//! A name has what the language begins names with, the fields down to the object, and its class.
//!
//! ```text
//! module pricing: _quotes (dict)      class StaticMap: REGISTRY.byId (HashMap)
//! ```

use super::texts::{joined, shortened};
use super::{Called, MAX_FIELDS_IN_NAME, MAX_HOLDERS_OF_A_NAME, Naming, Way};
use crate::NodeKind;
use crate::languages::Step;
use crate::objects::{EdgeName, Objects};

/// Fields at the begin of a name that is too long, which say whose it is.
const FIELDS_BEFORE: usize = 3;

/// Leaves fields in the middle of a long name out: its begin says whose an object is, its end what.
fn elide(fields: &mut Vec<String>) {
    if fields.len() > MAX_FIELDS_IN_NAME {
        let behind = fields.len() - (MAX_FIELDS_IN_NAME - FIELDS_BEFORE);
        fields.drain(FIELDS_BEFORE..behind);
        fields[FIELDS_BEFORE].insert(0, '…');
    }
}

impl<H: Objects + ?Sized> Naming<'_, H> {
    pub(super) fn call_in_other_language(&self, node: u32) -> Called {
        let mut way = Way { at: node, fields: Vec::new(), context: None };
        let mut passed = Vec::new();
        // Name of a reference that the name begins with.
        let mut by_reference = None;
        let is_root = self.begins_names(node);
        let begins_at_objects = self.heap.meta().language().begins_at_program_objects();
        // Nearest holder of a class of the program, and the number of fields from there.
        let mut of_program = None;
        for _ in 0..MAX_HOLDERS_OF_A_NAME {
            let is_named = way.at != node && self.begins_names(way.at);
            let is_full = begins_at_objects && way.fields.len() >= MAX_FIELDS_IN_NAME;
            if is_root || is_named || is_full || passed.contains(&way.at) {
                break;
            }
            if of_program.is_none() && way.at != node && self.is_of_program_class(way.at) {
                of_program = Some((way.at, way.fields.len()));
            }
            passed.push(way.at);
            let Some(edge) = self.naming_edge(way.at) else { break };
            by_reference = self.reference_that_begins(edge);
            if by_reference.is_some() {
                break;
            }
            way.fields.extend(self.field_in_other_language(edge));
            way.at = self.heap.source(edge);
        }
        if begins_at_objects
            && by_reference.is_none()
            && !is_root
            && !self.begins_names(way.at)
            && let Some((at, count)) = of_program
        {
            way.at = at;
            way.fields.truncate(count);
        }
        let Way { at, mut fields, .. } = way;
        fields.reverse();
        elide(&mut fields);
        let is_by_reference = by_reference.is_some();
        let base = by_reference.unwrap_or_else(|| self.own_name(at));
        let text = match fields.is_empty() {
            true if at == node || is_by_reference => base.clone(),
            true => format!("{base}: {}", self.own_name(node)),
            false => format!("{base}: {}", joined(&fields)),
        };
        let dialect = self.heap.meta().dialect.as_ref();
        let class = self.own_name(node);
        Called {
            text,
            fields,
            is_of_program_class: dialect.is_some_and(|it| it.is_of_the_program(&base)),
            base,
            is_variable: false,
            base_node: at,
            place: self.place(at),
            part_of: None,
            class: Some(self.heap.meta().language().class_in_name(&class).to_owned()),
            is_held_by_the_runtime: false,
        }
    }

    /// Whether an object is of a class of the program.
    pub(crate) fn is_of_program_class(&self, node: u32) -> bool {
        let dialect = self.heap.meta().dialect.as_ref();
        dialect.is_some_and(|dialect| dialect.is_of_the_program(&self.heap.name(node)))
    }

    /// Whether a node begins the names of what it holds. (A text's name is what the program wrote.)
    fn begins_names(&self, node: u32) -> bool {
        self.heap.kind(node) != NodeKind::STRING
            && self.heap.meta().language().begins_names(&self.heap.name(node))
    }

    /// Returns the name of a reference that begins names.
    pub(crate) fn reference_that_begins(&self, edge: u32) -> Option<String> {
        match self.heap.edge_name(edge) {
            EdgeName::Name(name) if self.heap.meta().language().reference_begins_names(&name) => {
                Some(name.into_owned())
            }
            _ => None,
        }
    }

    /// Returns a field as it appears in a name; `None` for plumbing.
    fn field_in_other_language(&self, edge: u32) -> Option<String> {
        let name = match self.heap.edge_name(edge) {
            EdgeName::Name(name) => Some(name),
            EdgeName::Index(_) => None,
        };
        let step = Step {
            kind: self.heap.edge_kind(edge),
            name: name.as_deref(),
            holder: self.heap.kind(self.heap.source(edge)),
            target: self.heap.kind(self.heap.target(edge)),
        };
        self.heap.meta().language().field(step).map(|field| shortened(&field))
    }
}
