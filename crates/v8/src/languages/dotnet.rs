//! .NET, as its runtime tells the objects.
//!
//! ```text
//! class Shop.Registry: ById (Dictionary)      [static var System.Object[].cache]: (Shop.Line)
//! ```
//! References have the names of fields, as far as these are known. Others are named by the class
//! that they lead to. Arrays of objects, and the parts of collections, are stores: kind `array`.

use super::{Language, Step};
use crate::{EdgeKind, NodeKind};

/// Row of .NET.
#[derive(Debug)]
pub(crate) struct Dotnet;

/// Row of .NET.
pub(crate) static DOTNET: Dotnet = Dotnet;

/// Beginnings of the names of nodes by which objects are named.
const NAMED: [&str; 3] = ["class ", "(", "["];
/// Name of the root of objects that nothing leads to.
const GARBAGE: &str = "(garbage, or held by the runtime)";

/// Reference that is named by a class, without the namespaces: `(List<Shop.Line>)` is
/// `(List<Line>)`.
fn without_namespaces(name: &str) -> String {
    if !name.starts_with('(') {
        return name.to_owned();
    }
    let mut short = String::with_capacity(name.len());
    let mut begin = 0;
    for letter in name.chars() {
        match letter {
            '.' => short.truncate(begin),
            _ => short.push(letter),
        }
        if matches!(letter, '(' | '<' | ',' | ' ' | '[' | '+') {
            begin = short.len();
        }
    }
    short
}

impl Language for Dotnet {
    fn name(&self) -> &'static str {
        "dotnet"
    }

    fn is_passing(&self, root: &str) -> bool {
        root == "(stack)"
    }

    fn begins_names(&self, node: &str) -> bool {
        node.is_empty() || NAMED.iter().any(|start| node.starts_with(start))
    }

    fn field(&self, step: Step<'_>) -> Option<String> {
        let leads_to_store = step.target == NodeKind::ARRAY;
        match (step.holder, step.kind, step.name) {
            (NodeKind::ARRAY, ..) if leads_to_store => None,
            (NodeKind::ARRAY, ..) | (_, EdgeKind::ELEMENT, _) => Some("[…]".to_owned()),
            (_, EdgeKind::INTERNAL, _) => None,
            (_, _, name) => name.map(without_namespaces),
        }
    }

    fn class_in_name<'c>(&self, class: &'c str) -> &'c str {
        if !class.starts_with("System.") {
            return class;
        }
        let outer = class.find('<').filter(|_| class.ends_with('>')).map_or(class, |end| &class[..end]);
        let begin = outer.split('<').next().and_then(|name| name.rfind('.')).map_or(0, |dot| dot + 1);
        &outer[begin..]
    }

    fn class_of_kind(&self, kind: NodeKind) -> Option<&'static str> {
        (kind == NodeKind::SYNTHETIC).then_some("(synthetic)")
    }

    fn class_of_base<'b>(&self, base: &'b str) -> &'b str {
        base.strip_prefix("class ").unwrap_or(base)
    }

    fn no_leak(&self, root: &str) -> Option<&'static str> {
        match root {
            GARBAGE => Some("is garbage, or held by the runtime alone: nothing that it tells leads to it"),
            "(waiting for their finalizers)" => Some("is let go when its finalizer has run"),
            _ => None,
        }
    }
}
