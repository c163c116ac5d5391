//! Names of nodes in lists.

use std::borrow::Cow;

use crate::devtools::Heap;
use crate::devtools::cons_texts::ConsTexts;
use crate::devtools::interfaces::format_property_name;
use crate::format::utf16_length;
use crate::objects::{EdgeName, Objects};
use crate::{EdgeKind, NodeKind};

/// Length from which no more pieces are added to an assembled string, in UTF-16 units.
const STRING_LIMIT: usize = 1024;
/// Largest length of a plain object's name, in UTF-16 units; the first property may exceed it.
const OBJECT_LIMIT: usize = 100;

impl Heap {
    /// Returns the name that DevTools shows, as WTF-8: the text of a concatenated string, or the
    /// properties of a plain object.
    pub fn display_name(&self, node: u32) -> Cow<'_, [u8]> {
        display_name(self, node)
    }

    /// Returns [`Self::display_name`] as a `String`, invalid parts replaced.
    pub fn display_text(&self, node: u32) -> String {
        display_text(self, node)
    }
}

/// Returns the name that DevTools shows, as WTF-8.
pub fn display_name<H: Objects + ?Sized>(heap: &H, node: u32) -> Cow<'_, [u8]> {
    DisplayNames::default().of(heap, node)
}

/// Maker of names for many nodes, which reuses the pieces of strings.
#[derive(Debug)]
pub(crate) struct DisplayNames(ConsTexts);

impl Default for DisplayNames {
    fn default() -> Self {
        Self(ConsTexts::up_to(STRING_LIMIT))
    }
}

impl DisplayNames {
    /// Returns the name that DevTools shows, as WTF-8.
    pub(crate) fn of<'a, H: Objects + ?Sized>(&mut self, heap: &'a H, node: u32) -> Cow<'a, [u8]> {
        let name = heap.string_bytes(heap.name_index(node));
        match heap.kind(node) {
            NodeKind::CONS_STRING => Cow::Owned(self.0.text(heap, node)),
            NodeKind::OBJECT if *name == *b"Object" => Cow::Owned(plain_object(heap, node)),
            _ => name,
        }
    }
}

/// Returns [`display_name`] as a `String`, invalid parts replaced.
pub fn display_text<H: Objects + ?Sized>(heap: &H, node: u32) -> String {
    display_text_up_to(heap, node, STRING_LIMIT)
}

/// Returns [`display_text`], with concatenated strings assembled only up to `units` UTF-16 units or
/// the piece that crosses them.
pub(crate) fn display_text_up_to<H: Objects + ?Sized>(heap: &H, node: u32, units: usize) -> String {
    let mut names = DisplayNames(ConsTexts::up_to(units.min(STRING_LIMIT)));
    String::from_utf8_lossy(&names.of(heap, node)).into_owned()
}

fn plain_object<H: Objects + ?Sized>(heap: &H, node: u32) -> Vec<u8> {
    let mut edges = heap.edges(node);
    let (mut begin, mut begin_units) = (b"{".to_vec(), 1);
    let (mut end, mut end_units) = (b"}".to_vec(), 1);
    let mut is_from_end = false;
    let mut is_cut = false;
    // Adds properties from both ends towards the middle.
    while !edges.is_empty() {
        let edge = if is_from_end { edges.end - 1 } else { edges.start };
        let property = heap.string_bytes(heap.edge_name_index(edge));
        let is_shown = heap.edge_kind(edge) == EdgeKind::PROPERTY && *property != *b"__proto__";
        let formatted = if is_shown { format_property_name(&property) } else { Vec::new() };
        let units = utf16_length(&formatted);
        if is_shown && begin_units > 1 && begin_units + end_units + units > OBJECT_LIMIT {
            is_cut = true;
            break;
        }
        if is_from_end {
            edges.end -= 1;
        } else {
            edges.start += 1;
        }
        if !is_shown {
            continue;
        }
        if is_from_end {
            let comma: &[u8] = if end_units > 1 { b", " } else { b"" };
            end = [&formatted, comma, &end].concat();
            end_units += units + comma.len();
        } else {
            let comma: &[u8] = if begin_units > 1 { b", " } else { b"" };
            begin.extend_from_slice(comma);
            begin.extend_from_slice(&formatted);
            begin_units += units + comma.len();
        }
        is_from_end = !is_from_end;
    }
    if is_cut {
        begin.extend_from_slice(", …".as_bytes());
    }
    if end_units > 1 {
        begin.extend_from_slice(b", ");
    }
    begin.extend_from_slice(&end);
    begin
}

/// Formats an edge as DevTools does: `.name`, `[3]`, `->variable`, `{internal}`, `[[weak]]`.
pub(crate) fn edge_text<H: Objects + ?Sized>(heap: &H, edge: u32) -> String {
    let name = match heap.edge_name(edge) {
        EdgeName::Index(index) => Cow::Owned(index.to_string()),
        EdgeName::Name(name) => name,
    };
    match heap.edge_kind(edge) {
        EdgeKind::CONTEXT => format!("->{name}"),
        EdgeKind::ELEMENT => format!("[{name}]"),
        EdgeKind::WEAK => format!("[[{name}]]"),
        EdgeKind::PROPERTY | EdgeKind::SHORTCUT if !name.contains(' ') => format!(".{name}"),
        EdgeKind::PROPERTY | EdgeKind::SHORTCUT => format!("[\"{name}\"]"),
        EdgeKind::INTERNAL | EdgeKind::HIDDEN | EdgeKind::INVISIBLE => format!("{{{name}}}"),
        _ => format!("?{name}?"),
    }
}
