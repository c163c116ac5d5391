//! Interpreters whose heaps are read from memory.

use heapr_native::Memory;
use heapr_proc::Mapping;

use crate::error::Result;
use crate::heap::ManagedHeap;
use crate::request::HeapRequest;
use crate::{python, ruby};

/// Interpreter whose heap is read from memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Interpreter {
    /// CPython.
    #[default]
    Python,
    /// Ruby, the implementation in C.
    Ruby,
}

impl Interpreter {
    /// Name of its language.
    #[must_use]
    pub const fn language(self) -> &'static str {
        match self {
            Self::Python => "python",
            Self::Ruby => "ruby",
        }
    }

    /// Finds one whose heap can be read, without reading it. Returns its version.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn check(self, memory: &dyn Memory, mappings: &[Mapping]) -> Result<String> {
        match self {
            Self::Python => python::check_python(memory, mappings),
            Self::Ruby => ruby::check_ruby(memory, mappings),
        }
    }

    /// Reads the heap.
    ///
    /// # Errors
    /// The reason why it cannot be read.
    pub fn read(self, request: &HeapRequest<'_>) -> Result<ManagedHeap> {
        match self {
            Self::Python => python::read_python(request),
            Self::Ruby => ruby::read_ruby(request),
        }
    }
}
