//! JavaScript as V8 keeps it. Names of its objects are made by rules of their own.

use super::Language;
use crate::NodeKind;
use crate::kinds::group_name;

/// Row of JavaScript.
#[derive(Debug)]
pub(crate) struct JavaScript;

/// Row of JavaScript.
pub(crate) static JAVASCRIPT: JavaScript = JavaScript;

impl Language for JavaScript {
    fn name(&self) -> &'static str {
        "javascript"
    }

    fn is_passing(&self, root: &str) -> bool {
        matches!(root, "(Handle scope)" | "(Stack roots)" | "(GC roots)")
    }

    fn class_of_kind(&self, kind: NodeKind) -> Option<&'static str> {
        match kind {
            NodeKind::OBJECT | NodeKind::NATIVE | NodeKind::WASM_OBJECT => None,
            kind => Some(group_name(kind)),
        }
    }

    fn is_untelling(&self, field: &str) -> bool {
        matches!(field, "__proto__" | "map" | "constructor" | "prototype")
    }

    fn counts_store_for_owner(&self) -> bool {
        true
    }

    fn has_kinds_of_v8(&self) -> bool {
        true
    }

    fn no_leak(&self, _root: &str) -> Option<&'static str> {
        None
    }

    fn left_out(&self) -> Option<&'static str> {
        Some("code of the engine apart")
    }
}
