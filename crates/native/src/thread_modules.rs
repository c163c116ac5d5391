//! Thread-local variables of modules: their addresses for each thread.
//!
//! ```text
//! a word of the descriptor --> vector:  -1: how many | 0: - | 1: where | 2: where ...    (16 bytes each)
//! ```
//! Variables of modules that were loaded at the start lie beside the descriptor. Others lie in heap
//! blocks, allocated at a thread's first access.

use crate::block_map::BlockMap;
use crate::memory::Memory;

/// A module with thread-local variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadModule {
    /// Index in the threads' vectors.
    pub number: u64,
    /// Path of the module's file.
    pub path: String,
    /// Bytes of its variables per thread.
    pub bytes: u64,
}

/// Prefix of the name of an area with a module's variables; the path and the thread's name follow,
/// a line each.
pub const OF_MODULE: &str = "module ";
/// Largest module number that is believed.
const NUMBER_MAX: u64 = 1 << 16;
/// Largest number of bytes per thread that is believed of a module.
const BYTES_MAX: u64 = 1 << 28;
/// Largest excess of a block for variables over their size, for alignment. A stack exceeds it by
/// far.
const ALIGNMENT_MAX: u64 = 4096;

/// Location of a module's variables for one thread.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalPlace {
    pub(crate) start_avma: u64,
    pub(crate) end_avma: u64,
    /// The heap block that the variables lie in, if they lie in one.
    pub(crate) block: Option<u32>,
    /// Name of the area.
    pub(crate) name: String,
}

/// Locations of a thread's variables, by module. `vector_at_avma`: address of the word with the
/// vector's address.
pub(crate) fn local_places(
    modules: &[ThreadModule],
    name: &str,
    vector_at_avma: u64,
    map: &BlockMap,
    memory: &impl Memory,
) -> Vec<LocalPlace> {
    let Some(vector_avma) = memory.word(vector_at_avma) else { return Vec::new() };
    let count = memory.word(vector_avma.wrapping_sub(16)).filter(|&count| count <= NUMBER_MAX).unwrap_or(0);
    let known = modules.iter().filter(|module| (1..=count).contains(&module.number));
    let places = known.filter_map(|module| {
        let start_avma = memory.word(vector_avma.wrapping_add(module.number * 16));
        // The vector's word has all bits set before the thread's first access.
        let start_avma = start_avma.filter(|&start_avma| start_avma != 0 && start_avma % 8 == 0)?;
        let end_avma = start_avma.checked_add(module.bytes.min(BYTES_MAX))?;
        let block = map.find(start_avma).map(|hit| hit.block);
        // A stack that the program allocated on its heap is scanned as a stack.
        let is_stack = |block| map.asked_bytes(block) > module.bytes.saturating_add(ALIGNMENT_MAX);
        let name = format!("{OF_MODULE}{}\n{name}", module.path);
        (!block.is_some_and(is_stack)).then_some(LocalPlace { start_avma, end_avma, block, name })
    });
    places.collect()
}
