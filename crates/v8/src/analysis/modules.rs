//! Exports of modules. For ES modules V8 has cells by name, for CommonJS modules Node has objects.
//!
//! ```text
//!  Context .extension -> SourceTextModule -> exports: (array) [5] "store"  [6] Cell .value -> exported value
//! ```

use super::storage::is_of_the_engine;
use crate::objects::{EdgeName, Objects};
use crate::{EdgeKind, NodeKind};

/// Largest number of retainers that are searched. An exported object has few holders besides the
/// program's own, and its cell is among the first.
const MAX_RETAINERS_LOOKED_AT: usize = 512;

/// Returns the name under which an ES module exports `node`, and the module's context.
pub(super) fn export_of<H: Objects + ?Sized>(heap: &H, node: u32) -> Option<(String, u32)> {
    let retainers = heap.edges_into(node, MAX_RETAINERS_LOOKED_AT);
    let cells =
        retainers.iter().filter(|&&edge| is_internal(heap, edge, b"value")).map(|&edge| heap.source(edge));
    cells.filter(|&cell| is_engines(heap, cell, b"system / Cell")).find_map(|cell| exported_from(heap, cell))
}

fn exported_from<H: Objects + ?Sized>(heap: &H, cell: u32) -> Option<(String, u32)> {
    heap.edges_into(cell, MAX_RETAINERS_LOOKED_AT).iter().find_map(|&edge| {
        let exports = heap.source(edge);
        let value_at = position(heap, edge)?;
        if heap.kind(exports) != NodeKind::ARRAY {
            return None;
        }
        let key = heap
            .edges(exports)
            .find(|&key| position(heap, key).is_some_and(|at| at + 1 == value_at))
            .map(|key| heap.target(key))
            .filter(|&key| heap.kind(key).is_string())?;
        let module = heap
            .edges_into(exports, MAX_RETAINERS_LOOKED_AT)
            .iter()
            .map(|&edge| heap.source(edge))
            .find(|&module| is_engines(heap, module, b"system / SourceTextModule"))?;
        let retainers = heap.edges_into(module, MAX_RETAINERS_LOOKED_AT);
        let context = retainers.iter().find(|&&edge| is_internal(heap, edge, b"extension"))?;
        Some((heap.name(key).into_owned(), heap.source(*context)))
    })
}

/// Returns the script of the ES module whose variables a context holds, from Node's `ModuleWrap`.
pub(super) fn script_of_context<H: Objects + ?Sized>(heap: &H, context: u32) -> Option<String> {
    let extension = heap.edges(context).find(|&edge| is_internal(heap, edge, b"extension"))?;
    let module = heap.target(extension);
    let retainers = heap.edges_into(module, MAX_RETAINERS_LOOKED_AT);
    let wraps =
        retainers.iter().map(|&edge| heap.source(edge)).filter(|&wrap| is_object(heap, wrap, b"ModuleWrap"));
    let url = wraps.into_iter().find_map(|wrap| text_field(heap, wrap, b"url"))?;
    Some(url.strip_prefix("file://").unwrap_or(&url).to_owned())
}

/// Returns the file of a CommonJS module, or `None` if the node is not such a module.
pub(super) fn script_of_common_module<H: Objects + ?Sized>(heap: &H, node: u32) -> Option<String> {
    if is_object(heap, node, b"Module") { text_field(heap, node, b"filename") } else { None }
}

/// Returns the name of Node's built-in module (`fs`) whose exports a node is. Internal modules are
/// left out, because programs cannot load them.
pub(super) fn builtin_of_exports<H: Objects + ?Sized>(heap: &H, node: u32) -> Option<String> {
    if !matches!(heap.kind(node), NodeKind::OBJECT | NodeKind::CLOSURE) {
        return None;
    }
    heap.edges_into(node, MAX_RETAINERS_LOOKED_AT)
        .iter()
        .filter(|&&edge| heap.edge_kind(edge) == EdgeKind::PROPERTY)
        .filter(|&&edge| *heap.string_bytes(heap.edge_name_index(edge)) == *b"exports")
        .map(|&edge| heap.source(edge))
        .find(|&module| is_object(heap, module, b"BuiltinModule"))
        .and_then(|module| text_field(heap, module, b"id"))
        .filter(|id| !id.starts_with("internal/"))
}

/// Whether a node is the exports of a CommonJS or built-in module: its fields have names that a
/// programmer gave.
pub(super) fn is_exports<H: Objects + ?Sized>(heap: &H, node: u32) -> bool {
    heap.edges_into(node, MAX_RETAINERS_LOOKED_AT).iter().any(|&edge| {
        let module = heap.source(edge);
        heap.edge_kind(edge) == EdgeKind::PROPERTY
            && *heap.string_bytes(heap.edge_name_index(edge)) == *b"exports"
            && (is_object(heap, module, b"BuiltinModule") || is_object(heap, module, b"Module"))
    })
}

fn text_field<H: Objects + ?Sized>(heap: &H, node: u32, name: &[u8]) -> Option<String> {
    heap.edges(node)
        .filter(|&edge| heap.edge_kind(edge) == EdgeKind::PROPERTY)
        .find(|&edge| *heap.string_bytes(heap.edge_name_index(edge)) == *name)
        .map(|edge| heap.target(edge))
        .filter(|&text| heap.kind(text) == NodeKind::STRING)
        .map(|text| heap.name(text).into_owned())
}

fn is_object<H: Objects + ?Sized>(heap: &H, node: u32, class: &[u8]) -> bool {
    heap.kind(node) == NodeKind::OBJECT && *heap.string_bytes(heap.name_index(node)) == *class
}

fn is_engines<H: Objects + ?Sized>(heap: &H, node: u32, name: &[u8]) -> bool {
    is_of_the_engine(heap, node) && *heap.string_bytes(heap.name_index(node)) == *name
}

fn is_internal<H: Objects + ?Sized>(heap: &H, edge: u32, name: &[u8]) -> bool {
    heap.edge_kind(edge) == EdgeKind::INTERNAL && *heap.string_bytes(heap.edge_name_index(edge)) == *name
}

/// Position of an edge in a store.
fn position<H: Objects + ?Sized>(heap: &H, edge: u32) -> Option<u32> {
    match heap.edge_name(edge) {
        EdgeName::Index(index) => Some(index),
        EdgeName::Name(name) => name.parse().ok(),
    }
}
