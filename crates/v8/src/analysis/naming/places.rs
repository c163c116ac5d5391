//! Source locations of objects, functions, and the variables of contexts.

use std::borrow::Cow;
use std::sync::PoisonError;

use super::super::modules;
use super::super::scripts::{Place, is_of_the_runtime, place_of};
use super::Naming;
use crate::objects::Objects;
use crate::{EdgeKind, Location, NodeKind};

/// Largest number of users of a context that are searched for its functions. They may come after as
/// many contexts of calls.
const MAX_CONTEXT_USERS_LOOKED_AT: usize = 1 << 16;

/// Source location that the variables of a context belong to.
#[derive(Debug, Clone)]
pub(super) struct ContextPlace {
    /// Location of a function that uses the variables, in its script.
    location: Option<Location>,
    place: Place,
}

impl<H: Objects + ?Sized> Naming<'_, H> {
    /// Returns the original name of a context's variable that a minifier renamed, if that is
    /// certain.
    pub(in super::super) fn variable_in_sources<'n>(&self, context: u32, name: Cow<'n, str>) -> Cow<'n, str> {
        if !self.scripts.has_maps() {
            return name;
        }
        let location = self.belongs(context).and_then(|belongs| belongs.location);
        let original = location.and_then(|location| self.scripts.original_variable(location, &name));
        original.map_or(name, Cow::Owned)
    }

    /// Returns the source location of the first function that uses a context's variables. It stands
    /// for the function that the variables belong to.
    pub(crate) fn place_of_context(&self, context: u32) -> Option<Place> {
        self.belongs(context).map(|belongs| belongs.place)
    }

    fn belongs(&self, context: u32) -> Option<ContextPlace> {
        let mut places = self.places_of_contexts.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(place) = places.get(&context) {
            return place.clone();
        }
        let place = self.first_function_of(context).or_else(|| {
            let script = modules::script_of_context(self.heap, context)?;
            Some(ContextPlace { location: None, place: Place::of_module(script) })
        });
        places.insert(context, place.clone());
        place
    }

    fn first_function_of(&self, context: u32) -> Option<ContextPlace> {
        let heap = self.heap;
        // Several functions share a context; the first in the text is closest to its beginning.
        let mut best: Option<ContextPlace> = None;
        for &edge in heap.edges_into(context, MAX_CONTEXT_USERS_LOOKED_AT).iter() {
            let source = heap.source(edge);
            if heap.kind(source) != NodeKind::CLOSURE || heap.edge_kind(edge) != EdgeKind::INTERNAL {
                continue;
            }
            let Some(location) = heap.location(source) else { continue };
            let place = place_of(&self.scripts, location);
            let is_earlier =
                |best: &ContextPlace| (place.line, place.column) < (best.place.line, best.place.column);
            if best.as_ref().is_none_or(is_earlier) {
                best = Some(ContextPlace { location: Some(location), place });
            }
        }
        best
    }

    /// Returns where an object was constructed, where a function is defined, or where a context's
    /// variables belong.
    pub fn place(&self, node: u32) -> Option<Place> {
        if self.is_context(node) {
            return self.place_of_context(node);
        }
        self.heap.location(node).map(|location| place_of(&self.scripts, location))
    }

    /// Returns a function or object of the program's own code near `node`, with its source
    /// location. Examples: a timer's callback, a listener's handler.
    pub(crate) fn place_within(&self, node: u32) -> Option<(String, Place)> {
        const MAX_NODES: usize = 64;
        let heap = self.heap;
        let mut seen = vec![node];
        let mut head = 0;
        while head < seen.len() && head < MAX_NODES {
            let at = seen[head];
            head += 1;
            if let Some(place) = heap.location(at).map(|location| place_of(&self.scripts, location))
                && !is_of_the_runtime(&place.script)
                && place.has_path
            {
                return Some((self.own_name(at), place));
            }
            for edge in heap.edges(at) {
                let target = heap.target(edge);
                let is_of_the_object = heap.dominator(target) == at || heap.kind(target) == NodeKind::CLOSURE;
                let is_strong = heap.edge_kind(edge) != EdgeKind::WEAK;
                if is_of_the_object && is_strong && seen.len() < MAX_NODES && !seen.contains(&target) {
                    seen.push(target);
                }
            }
        }
        None
    }
}
