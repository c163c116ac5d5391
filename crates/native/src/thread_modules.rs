//! Thread-local variables of modules: where a thread has which.
//!
//! ```text
//! descriptor +8 --> vector:  -1: how many | 0: - | 1: where | 2: where ...    (16 bytes each)
//! ```
//! Those of what was loaded at the start lie before the descriptor; others in blocks of the heap,
//! made when a thread first asks for them.

use heapr_trace::RootClass;

use crate::areas::Area;
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
/// A block for variables is larger than they are by what their alignment needs; a stack by far more.
const ALIGNMENT_MAX: u64 = 4096;

/// The areas of a thread's variables by module.
pub(crate) fn areas_of(
    modules: &[ThreadModule],
    (tid, name, thread_pointer): (u32, &str, u64),
    map: &BlockMap,
    memory: &impl Memory,
) -> Vec<Area> {
    let Some(vector_avma) = memory.word(thread_pointer.wrapping_add(8)) else { return Vec::new() };
    let count = memory.word(vector_avma.wrapping_sub(16)).filter(|&count| count <= NUMBER_MAX).unwrap_or(0);
    let mut areas = Vec::new();
    for module in modules.iter().filter(|module| (1..=count).contains(&module.number)) {
        let start_avma = memory.word(vector_avma.wrapping_add(module.number * 16));
        // (All bits: it has not asked for them yet.)
        let Some(start_avma) = start_avma.filter(|&start_avma| start_avma != 0 && start_avma % 8 == 0) else {
            continue;
        };
        let Some(end_avma) = start_avma.checked_add(module.bytes.min(BYTES_MAX)) else { continue };
        let name = format!("{OF_MODULE}{}\n{name}", module.path);
        let mut area = Area::new(RootClass::ThreadLocal, (start_avma, end_avma), &name);
        area.root.tid = tid;
        if let Some(hit) = map.find(start_avma) {
            // A stack that the program has taken from its heap: it is looked through as such.
            if map.asked_bytes(hit.block) > module.bytes.saturating_add(ALIGNMENT_MAX) {
                continue;
            }
            // The block is the variables: who has them has it.
            area.block = Some(hit.block);
            let mut holds = Area::new(RootClass::ThreadLocal, (start_avma, start_avma), &name);
            holds.root.tid = tid;
            holds.pieces.clear();
            holds.words = vec![map.start_avma(hit.block as usize)];
            areas.push(holds);
        }
        areas.push(area);
    }
    areas
}
