//! Thread-local variables of modules: where a thread has which.
//!
//! ```text
//! descriptor +8 --> vector:  -1: how many | 0: - | 1: where | 2: where ...    (16 bytes each)
//! ```
//! Those of what was loaded at the start lie before the descriptor; others in blocks of the heap,
//! made when a thread first asks for them.

use crate::block_map::BlockMap;
use crate::memory::Memory;

/// A module with thread-local variables.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ThreadModule {
    /// In the vectors of threads.
    pub number: u64,
    /// Its path.
    pub path: String,
    /// Of its variables, for each thread.
    pub bytes: u64,
}

/// How the name of an area begins that is a module's; its path and the thread's name follow, a line
/// each.
pub const OF_MODULE: &str = "module ";
/// More modules than any program has.
const NUMBER_MAX: u64 = 1 << 16;
/// More than any module has for a thread.
const BYTES_MAX: u64 = 1 << 28;
/// A block for variables is larger than they are by what their alignment needs; a stack by far
/// more.
const ALIGNMENT_MAX: u64 = 4096;

/// Where a thread has the variables of a module.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LocalPlace {
    pub(crate) start_avma: u64,
    pub(crate) end_avma: u64,
    /// The block that they are, if they are one.
    pub(crate) block: Option<u32>,
    /// Of the area.
    pub(crate) name: String,
}

/// The variables of a thread by module.
pub(crate) fn local_places(
    modules: &[ThreadModule],
    name: &str,
    thread_pointer: u64,
    map: &BlockMap,
    memory: &impl Memory,
) -> Vec<LocalPlace> {
    let Some(vector_avma) = memory.word(thread_pointer.wrapping_add(8)) else { return Vec::new() };
    let count = memory.word(vector_avma.wrapping_sub(16)).filter(|&count| count <= NUMBER_MAX).unwrap_or(0);
    let known = modules.iter().filter(|module| (1..=count).contains(&module.number));
    let places = known.filter_map(|module| {
        let start_avma = memory.word(vector_avma.wrapping_add(module.number * 16));
        // (All bits: it has not asked for them yet.)
        let start_avma = start_avma.filter(|&start_avma| start_avma != 0 && start_avma % 8 == 0)?;
        let end_avma = start_avma.checked_add(module.bytes.min(BYTES_MAX))?;
        let block = map.find(start_avma).map(|hit| hit.block);
        // A stack that the program has taken from its heap is looked through as such.
        let is_stack = |block| map.asked_bytes(block) > module.bytes.saturating_add(ALIGNMENT_MAX);
        let name = format!("{OF_MODULE}{}\n{name}", module.path);
        (!block.is_some_and(is_stack)).then_some(LocalPlace { start_avma, end_avma, block, name })
    });
    places.collect()
}
