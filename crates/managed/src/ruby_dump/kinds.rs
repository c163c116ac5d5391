//! Kinds of objects, and names of groups of roots.

use super::lines::Line;

/// Largest number of characters of a name of a root.
const ROOT_CHARACTERS_MAX: usize = 64;

/// Kind of an object, as far as names and references differ by it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Class,
    Module,
    /// Module in the chain of superclasses of a class.
    Included,
    /// Object of the virtual machine: code, method tables, caches, variables of blocks.
    Internal,
    /// Array, Hash or Struct: contents by position or key.
    Collection,
    Text,
    /// Object with a native structure.
    Native,
    Plain,
}

impl Kind {
    /// Kind of a line's object. `None`: the line has no object.
    pub(super) fn of(line: &Line<'_>) -> Option<Self> {
        Some(match &*line.kind {
            "CLASS" => Self::Class,
            "MODULE" => Self::Module,
            "ICLASS" => Self::Included,
            "IMEMO" => Self::Internal,
            "ARRAY" | "HASH" | "STRUCT" => Self::Collection,
            "STRING" => Self::Text,
            "DATA" => Self::Native,
            // Layouts of objects, and slots without an object.
            "SHAPE" | "NONE" | "ZOMBIE" | "MOVED" => return None,
            _ => Self::Plain,
        })
    }

    /// Whether contents are told by their position.
    pub(super) fn holds_by_position(self) -> bool {
        self == Self::Collection
    }
}

/// Name of a group of roots as it is shown.
pub(super) fn shown_root(name: &str) -> String {
    let shown = match name {
        "machine_context" => "stack",
        "vm" => "virtual machine",
        "global_tbl" => "global variables",
        "global_list" => "native references",
        other => other,
    };
    format!("({})", shown.replace('_', " ").chars().take(ROOT_CHARACTERS_MAX).collect::<String>())
}
