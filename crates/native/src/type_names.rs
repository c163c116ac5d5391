//! Names of types in a graph, with their evidence.

/// Evidence of a block's type in the program's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToldBy {
    /// Table of virtual functions of the object.
    VirtualFunctions,
    /// Type that a CPython object points to.
    Python,
    /// References to the block.
    Shape,
}

/// Prefix of a name found by shape; no compiler writes it.
const OF_SHAPE: char = '~';
/// Prefix of the name of a CPython type.
const OF_PYTHON: char = '%';

/// Name as it is stored.
pub(crate) fn kept_name(told_by: ToldBy, name: &str) -> String {
    match told_by {
        ToldBy::VirtualFunctions => name.to_owned(),
        ToldBy::Python => format!("{OF_PYTHON}{name}"),
        ToldBy::Shape => format!("{OF_SHAPE}{name}"),
    }
}

/// Splits a stored name into the type's name and its evidence. Names from virtual functions are
/// mangled: `3Foo`.
pub fn told_type(kept: &str) -> (&str, ToldBy) {
    let of_shape = kept.strip_prefix(OF_SHAPE).map(|name| (name, ToldBy::Shape));
    let of_python = || kept.strip_prefix(OF_PYTHON).map(|name| (name, ToldBy::Python));
    of_shape.or_else(of_python).unwrap_or((kept, ToldBy::VirtualFunctions))
}
