//! CPython's heap.
//!
//! ```text
//! _PyRuntime -> interpreters -> lists of the collector   objects with references
//!                            -> arenas -> pools          all small objects, and raw blocks
//!                            -> modules, threads, frames roots
//! each object -> its references, by its type             objects of any size, static ones
//! ```

mod arenas;
mod block_table;
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
use crate::heap::{ManagedHeap, NativeBlock};
use crate::pages::Pages;
use reader::Reader;
use runtime::Runtime;

/// Number of times that walks may visit each word of the memory, and visits that any memory has.
const VISITS_OF_WORD: u64 = 64;
const VISITS_LEAST: u64 = 1 << 20;

/// Contents of objects that are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Contents {
    /// Names of modules, classes, attributes and variables, and keys of small dicts that could be
    /// such names.
    #[default]
    Names,
    /// Names, and the beginning of each text.
    Strings,
}

/// Input of a reading.
pub struct PythonRequest<'a> {
    /// Memory of the process, or of a copy.
    pub memory: &'a dyn Memory,
    /// Mappings of the process at that moment.
    pub mappings: &'a [Mapping],
    /// Blocks of the C library's heap, by address; empty if they are unknown.
    pub blocks: &'a [NativeBlock],
    /// Contents to be written.
    pub contents: Contents,
    /// Returns whether the reading may continue.
    pub goes_on: &'a dyn Fn() -> bool,
}

impl std::fmt::Debug for PythonRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PythonRequest").field("contents", &self.contents).finish_non_exhaustive()
    }
}

/// Finds a CPython whose heap can be read, without reading it. Returns its version.
///
/// # Errors
/// The reason why it cannot be read.
pub fn check_python(memory: &dyn Memory, mappings: &[Mapping]) -> Result<String> {
    Runtime::find(&Pages::of(memory), mappings).map(|runtime| runtime.version_text)
}

/// Reads the heap of a CPython.
///
/// # Errors
/// The reason why it cannot be read.
pub fn read_python(request: &PythonRequest<'_>) -> Result<ManagedHeap> {
    let pages = Pages::of(request.memory);
    let runtime = Runtime::find(&pages, request.mappings)?;
    let words = reader::word_count(request.mappings);
    pages.limit(words.saturating_mul(VISITS_OF_WORD).saturating_add(VISITS_LEAST));
    let mut reader = Reader::of(&pages, &runtime, request);
    reader.find_objects()?;
    reader.follow_references()?;
    reader.add_roots()?;
    if pages.is_spent() { Err(Error::TooLarge) } else { reader.finish() }
}
