//! Allocators that a program or a library brings itself, in one table: what they are called, how
//! they are recognised, what their functions do. A user adds rows in the same words (`--allocator
//! FILE`).
//!
//! It reads files' tables of symbols; it touches no process.
#![forbid(unsafe_code)]

mod convention;
mod finding;
mod grammar;
mod row;
mod table;
mod texts;

pub use finding::{FoundAllocator, FoundFunction, InsideOf, ModuleKind};
pub use grammar::ParseError;
pub use row::{Allocator, FunctionRow};
pub use table::Table;
