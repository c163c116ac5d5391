//! Single blocks that stand for many: the oldest, the largest and the newest of those that live.

use heapr_query::engine::Choice;
use heapr_query::{Filter, Result};
use heapr_trace::{StackIndex, ThreadIndex};

use crate::explorer::Explorer;

/// A live block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ExampleBlock {
    /// Stack of the allocation.
    pub stack: StackIndex,
    /// Allocating thread.
    pub thread: ThreadIndex,
    /// Requested bytes.
    pub size_bytes: u64,
    /// Time of the allocation.
    pub born_ns: u64,
}

impl Explorer {
    /// The oldest, the largest and the newest block of a filter, each once, in order of their
    /// times. Blocks are outstanding at the end of the filter's range; with `is_of_living` those of
    /// ended processes are left out. Empty without a table of events.
    ///
    /// # Errors
    /// The errors of [`Explorer::select`].
    pub fn example_blocks(
        &self,
        filter: &Filter,
        is_of_living: bool,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Vec<ExampleBlock>> {
        filter.check()?;
        let Some(table) = self.table() else { return Ok(Vec::new()) };
        let choice = Choice::new(filter, self.trace().processes(), self.trace().threads())?;
        let has_required = self.has_required(filter);
        let has_required = has_required.as_deref().map(Vec::as_slice);
        let scan = self.timeless_scan(table, filter, &choice, has_required, is_cancelled)?;
        let mut found: Option<[(usize, u64, u64); 3]> = None;
        scan.for_each_outstanding(is_of_living, |site, size_bytes, born_ns| {
            let block = (site, size_bytes, born_ns);
            let [oldest, largest, newest] = found.get_or_insert([block; 3]);
            if born_ns < oldest.2 {
                *oldest = block;
            }
            if size_bytes > largest.1 {
                *largest = block;
            }
            if born_ns >= newest.2 {
                *newest = block;
            }
        })?;
        let mut blocks: Vec<(usize, u64, u64)> = found.into_iter().flatten().collect();
        blocks.sort_unstable_by_key(|&(site, size_bytes, born_ns)| (born_ns, site, size_bytes));
        blocks.dedup();
        let example = |(site, size_bytes, born_ns): (usize, u64, u64)| {
            let site = table.sites.get(site)?;
            Some(ExampleBlock { stack: site.stack, thread: site.thread, size_bytes, born_ns })
        };
        Ok(blocks.into_iter().filter_map(example).collect())
    }
}
