//! Owners of objects of packages and of the runtime: the object or variable of the program that
//! holds them.
//!
//! ```text
//! EventLog (program) .entries -> List (package) ._root -> VNode (package) .array -> …
//!                                                         "VNode.array of EventLog.entries"
//! ```

use super::super::modules;
use super::super::scripts::{Place, is_of_a_package};
use super::{Called, MAX_FIELDS_IN_NAME, Naming, Way, joined};
use crate::objects::Objects;
use crate::{EdgeKind, NodeKind};

/// Largest number of holders between an object of the runtime and the program's object that uses
/// it.
const MAX_HOLDERS_OF_THE_RUNTIME: usize = 8;
/// Largest number of holders above a part. Packages nest their objects, with the runtime's
/// listeners between.
const MAX_HOLDERS_OF_A_PART: usize = 16;

/// Program's object or variable that holds a part.
#[derive(Debug)]
pub(super) struct ProgramHolder {
    pub(super) text: String,
    pub(super) place: Option<Place>,
}

/// Holder of a part of a package or of the runtime.
#[derive(Debug)]
pub(super) enum Holder {
    Program(ProgramHolder),
    /// Only the runtime, as far as the path up leads.
    Runtime,
    /// A package, or no known holder.
    Unknown,
}

impl Holder {
    fn of(called: Called) -> Self {
        Self::Program(ProgramHolder { text: called.text, place: called.place })
    }
}

impl<H: Objects + ?Sized> Naming<'_, H> {
    pub(super) fn is_of_the_runtime(&self, way: &Way) -> bool {
        way.context.is_none()
            && matches!(self.heap.kind(way.at), NodeKind::OBJECT | NodeKind::NATIVE)
            && !self.is_context(way.at)
            && !self.is_global(way.at)
            && self.place(way.at).is_none_or(|place| place.is_of_the_runtime())
    }

    /// Returns the name that begins with the nearest object, variable or module of the program
    /// further up.
    pub(super) fn called_by_the_program(&self, way: &Way) -> Option<Called> {
        let mut way = way.clone();
        let mut passed = Vec::new();
        for _ in 0..MAX_HOLDERS_OF_THE_RUNTIME {
            if let Some(script) = modules::script_of_common_module(self.heap, way.at) {
                return self.called_in_module(way, script);
            }
            passed.push(way.at);
            if !self.go_up(&mut way) || passed.contains(&way.at) {
                return None;
            }
            let is_end = match self.heap.kind(way.at) {
                NodeKind::OBJECT | NodeKind::CLOSURE if way.context.is_none() => {
                    self.has_own_name(way.at) && !self.is_of_the_runtime(&way)
                }
                NodeKind::SYNTHETIC => return None,
                _ => way.context.is_some(),
            };
            if is_end || self.is_global(way.at) {
                way.fields.truncate(MAX_FIELDS_IN_NAME + MAX_HOLDERS_OF_THE_RUNTIME);
                let called = self.called(way);
                let is_told = called.place.as_ref().is_some_and(|place| !place.is_of_the_runtime());
                return Some(called).filter(|_| is_told);
            }
        }
        None
    }

    /// Names an object below the exports of a CommonJS module.
    fn called_in_module(&self, way: Way, script: String) -> Option<Called> {
        let Way { at, mut fields, .. } = way;
        fields.reverse();
        let place = Place::of_module(script);
        if fields.is_empty() || place.is_of_the_runtime() {
            return None;
        }
        let text = format!("{} (module {})", joined(&fields), place.script);
        Some(Called {
            text,
            fields,
            base: place.script.clone(),
            is_variable: false,
            base_node: at,
            place: Some(place),
            part_of: None,
            is_of_program_class: false,
            class: None,
            is_held_by_the_runtime: false,
        })
    }

    /// Returns the holder of the base of `way`, if the base belongs to a package or to the runtime.
    /// A base in a package's own variable belongs to the package: its holder is unknown.
    pub(super) fn holder_of_base(&self, way: &Way) -> Holder {
        let is_of_a_package = self.is_of_a_package(way.at);
        if way.context.is_some() || !(is_of_a_package || self.is_of_the_runtime(way)) {
            return Holder::Unknown;
        }
        match self.holder_above(way.at) {
            Holder::Runtime => {}
            holder => return holder,
        }
        // The nearest holder is the runtime, but a variable of the program may refer to the base as
        // well.
        if let Some(variable) = self.variable_of_the_program(way.at) {
            return Holder::of(self.called(variable));
        }
        // Without a source location it is uncertain whose the object is. Well-known objects of the
        // runtime have the names that programs use.
        let is_certain = self.place(way.at).is_some_and(|place| place.is_of_the_runtime());
        if is_certain && !self.is_known_of_the_runtime(way.at) { Holder::Runtime } else { Holder::Unknown }
    }

    fn holder_above(&self, node: u32) -> Holder {
        let base = self.own_name(node);
        let mut way = Way { at: node, fields: Vec::new(), context: None };
        let mut passed = Vec::new();
        // True after a variable of a runtime function: the holder of that function does not own the
        // variable's value.
        let mut is_by_variable = false;
        for _ in 0..MAX_HOLDERS_OF_A_PART {
            if let Some(script) = modules::script_of_common_module(self.heap, way.at) {
                let is_own = !is_of_a_package(&script);
                let called = self.called_in_module(outermost(way), script).filter(|_| is_own);
                return called.map_or(Holder::Unknown, Holder::of);
            }
            passed.push(way.at);
            if !self.go_up(&mut way) || passed.contains(&way.at) {
                return Holder::Unknown;
            }
            if way.context.is_some() {
                let Some(place) = self.place_of_context(way.at) else { return Holder::Unknown };
                // A variable of the program may also refer to an object that a package's variable
                // holds.
                let is_of_a_module = place.is_of_the_runtime() && self.is_of_a_module(way.at);
                if is_of_a_package(&place.script) || is_of_a_module {
                    let variable = passed.last().and_then(|&held| self.variable_of_the_program(held));
                    let otherwise = if is_of_a_module { Holder::Runtime } else { Holder::Unknown };
                    return variable.map_or(otherwise, |variable| Holder::of(self.called(variable)));
                }
                if place.is_of_the_runtime() {
                    is_by_variable = true;
                    way.context = None;
                    continue;
                }
            } else if self.is_known_of_the_runtime(way.at) {
                let called = self.called(outermost(way));
                if is_by_variable {
                    return Holder::Runtime;
                }
                // The path only repeats the object's own name: `console` of `globalThis.console`.
                let is_more = !called.fields.is_empty() && called.fields.last() != Some(&base);
                let holder = ProgramHolder { text: called.text, place: None };
                return if is_more { Holder::Program(holder) } else { Holder::Unknown };
            } else {
                let is_end = match self.heap.kind(way.at) {
                    NodeKind::SYNTHETIC => return Holder::Runtime,
                    NodeKind::OBJECT | NodeKind::CLOSURE => {
                        self.has_own_name(way.at)
                            && !self.is_of_the_runtime(&way)
                            && !self.is_of_a_package(way.at)
                    }
                    _ => false,
                };
                if !is_end {
                    is_by_variable |= self.is_context(way.at)
                        && self.place_of_context(way.at).is_none_or(|place| place.is_of_the_runtime());
                    continue;
                }
            }
            let called = self.called(outermost(way));
            return if called.is_of_the_program() { Holder::of(called) } else { Holder::Unknown };
        }
        Holder::Unknown
    }

    /// Returns the nearest variable of the program that refers to `node`.
    fn variable_of_the_program(&self, node: u32) -> Option<Way> {
        const MAX_HOLDERS: usize = 512;
        let heap = self.heap;
        let holders = heap.edges_into(node, MAX_HOLDERS);
        let variables = holders.iter().copied().filter(|&edge| {
            let is_of_the_program = |place: Place| {
                !place.is_of_the_runtime() && !is_of_a_package(&place.script) && place.has_path
            };
            heap.edge_kind(edge) == EdgeKind::CONTEXT
                && self.place_of_context(heap.source(edge)).is_some_and(is_of_the_program)
        });
        let nearest = variables.min_by_key(|&edge| (heap.distance(heap.source(edge)), edge))?;
        let context = heap.source(nearest);
        let fields = self.field_name(nearest).into_iter().collect();
        Some(Way { at: context, fields, context: Some(context) })
    }

    /// Whether a node is one of the runtime's objects to which programs add properties: the global
    /// object, `process`, `console`, exports of a Node module.
    pub(super) fn is_known_of_the_runtime(&self, node: u32) -> bool {
        let is_one = |name: &str| matches!(name, "process" | "console");
        self.is_global(node)
            || self.heap.kind(node) == NodeKind::OBJECT && is_one(&self.heap.name(node))
            || modules::builtin_of_exports(self.heap, node).is_some()
    }

    /// Whether a context holds the variables of a whole module, rather than those of one call.
    fn is_of_a_module(&self, context: u32) -> bool {
        let heap = self.heap;
        heap.edges(context)
            .filter(|&edge| heap.edge_kind(edge) == EdgeKind::INTERNAL)
            .filter(|&edge| *heap.string_bytes(heap.edge_name_index(edge)) == *b"previous")
            .any(|edge| heap.name(heap.target(edge)) == "system / NativeContext")
    }

    fn is_of_a_package(&self, node: u32) -> bool {
        matches!(self.heap.kind(node), NodeKind::OBJECT | NodeKind::CLOSURE)
            && !self.is_context(node)
            && self.place(node).is_some_and(|place| is_of_a_package(&place.script))
    }
}

/// Reduces a path to its outermost field and the positions in it. Fields further in belong to the
/// package.
fn outermost(mut way: Way) -> Way {
    let positions = way.fields.iter().rev().skip(1).take_while(|field| field.starts_with('[')).count();
    let kept = way.fields.len().min(1 + positions);
    way.fields.drain(..way.fields.len() - kept);
    way
}
