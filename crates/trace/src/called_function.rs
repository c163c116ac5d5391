//! The allocation function that the program called, as the innermost frame of a stack.
//!
//! No return address leads into this function. The file represents it by a module whose path is a
//! mark followed by the function's name. The module is mapped at an address in the first page,
//! where no program has code. A reader that does not know the mark shows the module.

use crate::{Mapping, Module, ModuleIndex, ProcessIndex};

const MARK: &str = "called: ";
/// First of the addresses that represent functions.
const FIRST_AVMA: u64 = 0x400;

/// An allocation function that a program called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalledFunction<'a> {
    /// Number of the function; unique within a file.
    pub number: u8,
    /// Name as in the program's source.
    pub name: &'a str,
}

impl CalledFunction<'_> {
    /// The module that represents the function in a file.
    #[must_use]
    pub fn module(self) -> Module {
        Module { path: format!("{MARK}{}", self.name), build_id: Vec::new() }
    }

    /// The mapping of that module into a process.
    #[must_use]
    pub fn mapping(self, process: ProcessIndex, module: ModuleIndex, loaded_ns: u64) -> Mapping {
        let start_avma = FIRST_AVMA + u64::from(self.number);
        Mapping {
            process,
            module,
            start_avma,
            end_avma: start_avma + 1,
            bias_avma: start_avma,
            loaded_ns,
            unloaded_ns: u64::MAX,
        }
    }

    /// The return address of a frame of the function.
    #[must_use]
    pub fn return_address_avma(self) -> u64 {
        FIRST_AVMA + u64::from(self.number) + 1
    }

    /// Name of the function that a module of this path represents; `None` for a real module.
    #[must_use]
    pub fn name_in(module_path: &str) -> Option<&str> {
        module_path.strip_prefix(MARK)
    }
}
