//! Input of the readings of memory, and their bounds.

use heapr_native::Memory;
use heapr_proc::Mapping;

use crate::heap::NativeBlock;

/// Number of times that walks may visit each word of the memory, and visits that any memory has.
const VISITS_OF_WORD: u64 = 64;
const VISITS_LEAST: u64 = 1 << 20;
/// Largest number of references for each word of the memory.
const EDGES_OF_WORD: u64 = 4;
/// Largest number of nodes, and of references.
pub(crate) const COUNT_MAX: usize = u32::MAX as usize - 1;

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
pub struct HeapRequest<'a> {
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

impl std::fmt::Debug for HeapRequest<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("HeapRequest").field("contents", &self.contents).finish_non_exhaustive()
    }
}

/// Number of words in readable mappings.
fn word_count(mappings: &[Mapping]) -> u64 {
    let readable = mappings.iter().filter(|mapping| mapping.is_readable);
    let bytes = readable
        .map(|mapping| mapping.end_avma.saturating_sub(mapping.start_avma))
        .fold(0, u64::saturating_add);
    bytes / 8
}

/// Number of words that walks may visit.
pub(crate) fn visits(mappings: &[Mapping]) -> u64 {
    word_count(mappings).saturating_mul(VISITS_OF_WORD).saturating_add(VISITS_LEAST)
}

/// Largest number of references that mappings can hold. A word is one reference, and more than one
/// only where a dict's entries are shown in several ways.
pub(crate) fn edges_max(mappings: &[Mapping]) -> usize {
    let count = word_count(mappings).saturating_mul(EDGES_OF_WORD);
    usize::try_from(count).map_or(COUNT_MAX, |count| count.min(COUNT_MAX))
}
