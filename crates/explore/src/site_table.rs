//! The distinct origins of allocations: (stack, thread, heap, by realloc or not). An allocation
//! names its site by number.

use heapr_query::engine::Choice;
use heapr_trace::{Block, HeapId, ProcessIndex, StackIndex, ThreadIndex};

/// Stands for no site.
const NONE: u32 = u32::MAX;

/// An origin of allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Site {
    pub(crate) stack: StackIndex,
    pub(crate) process: ProcessIndex,
    pub(crate) heap: HeapId,
    pub(crate) thread: ThreadIndex,
    pub(crate) is_realloc: bool,
}

impl Site {
    /// Whether a filter's processes, heaps and threads include this site.
    pub(crate) fn is_chosen(&self, choice: &Choice) -> bool {
        choice.has_origin(self.process, self.heap, self.thread)
    }
}

/// Numbers sites; each stack has a short chain of them.
#[derive(Debug, Default)]
pub(crate) struct SiteTable {
    sites: Vec<Site>,
    /// First site of each stack.
    first: Vec<u32>,
    /// Next site of the same stack, for each site.
    next: Vec<u32>,
}

impl SiteTable {
    /// Number of the site of a block; a new site is added if needed.
    pub(crate) fn number(&mut self, block: &Block) -> u32 {
        let stack = block.stack.0 as usize;
        if stack >= self.first.len() {
            self.first.resize(stack + 1, NONE);
        }
        let wanted = Site {
            stack: block.stack,
            process: block.process,
            heap: block.heap,
            thread: block.thread,
            is_realloc: block.is_realloc,
        };
        let mut number = self.first[stack];
        while number != NONE {
            if self.sites[number as usize] == wanted {
                return number;
            }
            number = self.next[number as usize];
        }
        let number = self.sites.len() as u32;
        self.sites.push(wanted);
        self.next.push(self.first[stack]);
        self.first[stack] = number;
        number
    }

    /// The sites, by number.
    pub(crate) fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// Returns the sites, by number, and frees the index.
    pub(crate) fn into_sites(self) -> Vec<Site> {
        self.sites
    }
}
