//! Ruby's heap, read from its pages.
//!
//! ```text
//! pages of slots           all objects
//! each object -> its references, by its kind: variables, constants, items, members
//! library's data           classes, global variables, names of ids
//! threads                  running methods with their variables
//! other memory             objects that only native code holds
//! ```
//! Names and kinds are those of a dump (`ruby_dump`). The names of variables are added, which a
//! dump lacks.

mod class_names;
mod classes;
mod fields;
mod ids;
mod layout;
mod naming;
mod native;
mod procs;
mod reader;
mod roots;
mod runtime;
mod sizes;
mod slots;
mod threads;
mod values;

use heapr_native::Memory;
use heapr_proc::Mapping;

use crate::error::{Error, Result};
use crate::heap::ManagedHeap;
use crate::pages::Pages;
use crate::request::{HeapRequest, visits};
use reader::Reader;
use runtime::Runtime;

/// Finds a Ruby whose heap can be read, without reading it. Returns its version.
///
/// # Errors
/// The reason why it cannot be read.
pub(crate) fn check_ruby(memory: &dyn Memory, mappings: &[Mapping]) -> Result<String> {
    Runtime::find(&Pages::of(memory), mappings).map(|runtime| runtime.version_text)
}

/// Reads the heap of a Ruby.
///
/// # Errors
/// The reason why it cannot be read.
pub(crate) fn read_ruby(request: &HeapRequest<'_>) -> Result<ManagedHeap> {
    let pages = Pages::of(request.memory);
    let runtime = Runtime::find(&pages, request.mappings)?;
    pages.limit(visits(request.mappings));
    let mut reader = Reader::of(&pages, &runtime, request)?;
    reader.follow_references()?;
    reader.add_roots()?;
    if pages.is_spent() { Err(Error::TooLarge) } else { Ok(reader.finish()) }
}
