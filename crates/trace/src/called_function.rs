//! The function that the program called for memory, as the innermost frame of a stack.
//!
//! No return address leads to it: it stands in the file as a module whose path is its name behind a
//! mark, mapped at an address in the first page, where no program has code. A reader that does not
//! know the mark shows the module.

use crate::{Mapping, Module, ModuleIndex, ProcessIndex};

const MARK: &str = "called: ";
/// First of the addresses.
const FIRST_AVMA: u64 = 0x400;

/// A function that is called for memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CalledFunction<'a> {
    /// Tells the functions of a file apart.
    pub number: u8,
    /// As the program's source has it.
    pub name: &'a str,
}

impl CalledFunction<'_> {
    /// The module that stands for it.
    #[must_use]
    pub fn module(self) -> Module {
        Module { path: format!("{MARK}{}", self.name), build_id: Vec::new() }
    }

    /// That module in a process.
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

    /// What a frame of it returns to.
    #[must_use]
    pub fn return_address_avma(self) -> u64 {
        FIRST_AVMA + u64::from(self.number) + 1
    }

    /// The name, if a module of this path is none but stands for a function.
    #[must_use]
    pub fn name_in(module_path: &str) -> Option<&str> {
        module_path.strip_prefix(MARK)
    }
}
