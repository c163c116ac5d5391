//! Rows of the table.

use heapr_wire::Signature;

/// A function of an allocator.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct FunctionRow {
    /// Symbol of the function, without the prefix.
    pub name: String,
    /// Effect and arguments of the function.
    pub signature: Signature,
    /// Symbol of the function that is called in its place: it returns null where this one throws.
    pub instead: Option<String>,
}

/// An allocator.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct Allocator {
    /// Name of the allocator.
    pub name: String,
    /// Symbols from which the functions' prefix is derived.
    pub any_prefix: Vec<String>,
    /// Symbols that must exist.
    pub needs: Vec<String>,
    /// Symbols that must not exist.
    pub absent: Vec<String>,
    /// Groups of symbols of which at least one each must exist.
    pub any_of: Vec<Vec<String>>,
    /// Whether the row applies only if no other allocator is found in the module.
    pub is_last: bool,
    /// Whether the row applies only if its blocks do not come from another file's recorded
    /// allocator.
    pub is_alone: bool,
    /// Whether the allocator has no recordable blocks, so that its name only labels mappings.
    pub is_named: bool,
    /// Heap that its blocks belong to; empty for the program's main heap.
    pub heap: String,
    /// Functions of the allocator.
    pub functions: Vec<FunctionRow>,
}
