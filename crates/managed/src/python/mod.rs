//! CPython's heap.
//!
//! ```text
//! _PyRuntime -> interpreters -> lists of the collector   objects with references
//!                            -> arenas -> pools          all small objects, and raw blocks
//!                            -> modules, threads, frames roots
//! each object -> its references, by its type             objects of any size, static ones
//! ```

mod arenas;
mod collector;
mod data_fields;
mod debug_offsets;
mod dict;
mod fields;
mod frames;
mod identity;
mod inside_references;
mod instances;
mod name_cache;
mod names;
mod native_blocks;
mod objects;
mod reader;
mod roots;
mod runtime;
mod slots;
mod text;
mod types;
mod unreached;
mod word_fields;

use heapr_native::Memory;
use heapr_proc::Mapping;

use crate::error::{Error, Result};
use crate::heap::ManagedHeap;
use crate::pages::Pages;
use crate::request::{HeapRequest, visits};
use reader::Reader;
use runtime::Runtime;

/// Finds a CPython whose heap can be read, without reading it. Returns its version.
///
/// # Errors
/// The reason why it cannot be read.
pub(crate) fn check_python(memory: &dyn Memory, mappings: &[Mapping]) -> Result<String> {
    Runtime::find(&Pages::of(memory), mappings).map(|runtime| runtime.version_text)
}

/// Reads the heap of a CPython.
///
/// # Errors
/// The reason why it cannot be read.
pub(crate) fn read_python(request: &HeapRequest<'_>) -> Result<ManagedHeap> {
    let pages = Pages::of(request.memory);
    let runtime = Runtime::find(&pages, request.mappings)?;
    pages.limit(visits(request.mappings));
    let mut reader = Reader::of(&pages, &runtime, request);
    reader.find_objects()?;
    reader.follow_references()?;
    reader.add_roots()?;
    if pages.is_spent() { Err(Error::TooLarge) } else { reader.finish() }
}
