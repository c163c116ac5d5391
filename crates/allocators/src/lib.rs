//! Table of embedded allocators: their names, how they are recognised, and the effects of their
//! functions. Users add rows in the same language (`--allocator FILE`).
//!
//! The crate reads the symbol tables of files, and accesses no process.
#![forbid(unsafe_code)]

mod arch;
mod branch;
mod convention;
mod finding;
mod grammar;
mod name_filter;
mod row;
mod table;
mod texts;

pub use finding::{FoundAllocator, FoundFunction, InsideOf, ModuleKind, Sought};
pub use grammar::ParseError;
pub use row::{Allocator, FunctionRow};
pub use table::Table;
