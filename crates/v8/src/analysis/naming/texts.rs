//! Texts of names: classes that say nothing, joined fields, cut names.

use std::borrow::Cow;

/// Whether a class belongs to the language and says nothing about an object's purpose.
pub(in super::super) fn is_generic_class(name: &str) -> bool {
    matches!(
        name,
        "Object"
            | "Array"
            | "Map"
            | "Set"
            | "WeakMap"
            | "WeakSet"
            | "Promise"
            | "Function"
            | ""
            | "Arguments"
            | "ArrayBuffer"
            | "Uint8Array"
            | "Buffer"
            | "FastBuffer"
            | "Generator"
            | "Iterator"
            | "Error"
    ) || name.starts_with('{')
}

/// Whether a class is the global object's: `global` in Node (from 24 on `global (global*)`),
/// `Window / http://…` in a page.
pub(in super::super) fn is_global_class(name: &str) -> bool {
    matches!(name, "global" | "globalThis" | "Window")
        || ["Window ", "global "].iter().any(|start| name.starts_with(start))
}

pub(super) fn joined(fields: &[String]) -> String {
    let mut text = String::new();
    for field in fields {
        if !text.is_empty() && !field.starts_with(['[', '…']) {
            text.push('.');
        }
        text.push_str(field);
    }
    text
}

pub(super) fn shortened(name: &str) -> String {
    const MAX_CHARS: usize = 60;
    if name.chars().count() <= MAX_CHARS {
        return name.to_owned();
    }
    let mut short: String = Cow::Borrowed(name).chars().take(MAX_CHARS - 1).collect();
    short.push('…');
    short
}
