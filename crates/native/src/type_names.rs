//! Names of types as a graph keeps them, and what told them.

/// What told the type of a block from the program's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToldBy {
    /// Its table of virtual functions.
    VirtualFunctions,
    /// The type that CPython keeps in each object.
    Python,
    /// What refers to it, and how.
    Shape,
}

/// How a name begins that a shape told; no compiler writes such.
const OF_SHAPE: char = '~';
/// How a name of CPython's begins.
const OF_PYTHON: char = '%';

/// The name that is kept.
pub(crate) fn kept_name(told_by: ToldBy, name: &str) -> String {
    match told_by {
        ToldBy::VirtualFunctions => name.to_owned(),
        ToldBy::Python => format!("{OF_PYTHON}{name}"),
        ToldBy::Shape => format!("{OF_SHAPE}{name}"),
    }
}

/// The name of a type in a graph, and what told it. (That of virtual functions is as the compiler
/// wrote it: `3Foo`.)
pub fn told_type(kept: &str) -> (&str, ToldBy) {
    let of_shape = kept.strip_prefix(OF_SHAPE).map(|name| (name, ToldBy::Shape));
    let of_python = || kept.strip_prefix(OF_PYTHON).map(|name| (name, ToldBy::Python));
    of_shape.or_else(of_python).unwrap_or((kept, ToldBy::VirtualFunctions))
}
