//! What the table says of an allocator.

use heapr_wire::Signature;

/// A function of an allocator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FunctionRow {
    /// Its symbol, without the prefix.
    pub name: String,
    /// What it does.
    pub signature: Signature,
    /// Called in its place: it answers null where this one throws.
    pub instead: Option<String>,
}

/// An allocator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Allocator {
    /// What it is called.
    pub name: String,
    /// Symbols that tell by what comes before them which prefix the functions have.
    pub any_prefix: Vec<String>,
    /// Symbols that must be there.
    pub needs: Vec<String>,
    /// Symbols that must not be there.
    pub absent: Vec<String>,
    /// It is there only if one of each of these is.
    pub any_of: Vec<Vec<String>>,
    /// Only where nothing else is found.
    pub is_last: bool,
    /// Only where its blocks are not those of another file's allocator, which is recorded.
    pub is_alone: bool,
    /// It has no blocks that could be recorded: what is mapped there is called by its name.
    pub is_named: bool,
    /// The heap that its blocks belong to; empty: the program's main heap.
    pub heap: String,
    /// Its functions.
    pub functions: Vec<FunctionRow>,
}
