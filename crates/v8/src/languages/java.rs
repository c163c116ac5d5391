//! Java, as a heap dump shows it.
//!
//! ```text
//! class StaticMap: REGISTRY.byId (HashMap)      thread-local PoolLocal.AUDIT: lines (ArrayList)
//! class loader /shop (org.apache.catalina.loader.ParallelWebappClassLoader)
//! ```
//! Tables, nodes and links of collections, and all arrays of objects, are stores: kind `array`.

use super::{Language, Step, internal};
use crate::{EdgeKind, NodeKind};

/// Row of Java.
#[derive(Debug)]
pub(crate) struct Java;

/// Row of Java.
pub(crate) static JAVA: Java = Java;

/// Beginnings of the names of nodes by which objects are named.
const NAMED: [&str; 4] = ["class ", "thread ", "frame ", "("];
/// Name of the root of objects that nothing in a dump refers to.
const GARBAGE: &str = "(garbage, or held by the virtual machine)";
/// Beginning of references to thread-local values.
const THREAD_LOCAL: &str = "thread-local ";
/// Beginning of the names of class loaders of the program.
const LOADER: &str = "class loader ";
/// Packages whose classes are known without them.
const KNOWN_PACKAGES: [&str; 3] = ["java.util.concurrent.", "java.util.", "java.lang."];

impl Language for Java {
    fn name(&self) -> &'static str {
        "java"
    }

    fn is_passing(&self, root: &str) -> bool {
        ["thread ", "frame ", "(monitors)"].iter().any(|start| root.starts_with(start))
    }

    fn begins_names(&self, node: &str) -> bool {
        node.is_empty() || NAMED.iter().any(|start| node.starts_with(start))
    }

    fn reference_begins_names(&self, reference: &str) -> bool {
        reference.starts_with(THREAD_LOCAL)
    }

    fn field(&self, step: Step<'_>) -> Option<String> {
        let leads_to_store = step.target == NodeKind::ARRAY;
        match (step.holder, step.kind, step.name) {
            (NodeKind::ARRAY, ..) if leads_to_store => None,
            (_, EdgeKind::INTERNAL, Some(name)) if internal(name).is_none() => None,
            (NodeKind::ARRAY, ..) | (_, EdgeKind::ELEMENT, _) => Some("[…]".to_owned()),
            (_, EdgeKind::INTERNAL, _) if leads_to_store => None,
            (_, _, name) => name.map(ToOwned::to_owned),
        }
    }

    fn class_in_name<'c>(&self, class: &'c str) -> &'c str {
        let simple = KNOWN_PACKAGES.iter().find_map(|package| class.strip_prefix(package));
        simple.filter(|simple| !simple.contains('.')).unwrap_or(class)
    }

    fn class_of_kind(&self, kind: NodeKind) -> Option<&'static str> {
        match kind {
            NodeKind::STRING => Some("java.lang.String"),
            NodeKind::SYNTHETIC => Some("(synthetic)"),
            _ => None,
        }
    }

    fn is_one_thing(&self, node: &str) -> bool {
        node.starts_with(LOADER)
    }

    fn class_of_base<'b>(&self, base: &'b str) -> &'b str {
        if base.starts_with(LOADER) {
            return base;
        }
        if let Some(class) = base.strip_prefix("class ") {
            return class;
        }
        let member = base
            .strip_prefix(THREAD_LOCAL)
            .or_else(|| base.strip_prefix("frame ").map(|it| it.split(" (").next().unwrap_or(it)));
        match member.and_then(|member| member.rsplit_once('.')) {
            Some((class, _)) => class,
            None => base,
        }
    }

    fn no_leak(&self, root: &str) -> Option<&'static str> {
        match root {
            root if root.starts_with(GARBAGE) => {
                Some("is garbage, or held by the virtual machine alone: nothing in the dump refers to it")
            }
            "(held by soft references alone)" => {
                Some("is held by soft references alone, which give way when memory is needed")
            }
            "(waiting for their finalizers)" => Some("is let go when its finalizer has run"),
            _ => None,
        }
    }
}
