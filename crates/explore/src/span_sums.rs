//! Sums of allocations by stack and by the spans of time in which they begin and end. They answer
//! any range whose ends lie between two spans without the events.
//!
//! ```text
//! spans          0 │ 1 │ 2 │ 3                 range of spans 1 and 2:
//! allocations      a───────┼──>  freed in 3        allocated, outstanding
//!              b───┼─>           freed in 1        allocated before it: no part of it
//!                  c─┼─>         freed in 2        allocated, freed
//! ```

use std::collections::HashMap;

use heapr_query::{Error, Result};
use heapr_trace::StackIndex;

use crate::allocation_walk::CANCEL_INTERVAL;
use crate::event_table::NEVER;
use crate::explorer::Explorer;

/// Allocations of one stack that begin in one span, and end in one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SpanSum {
    /// Stack of the allocations.
    pub stack: StackIndex,
    /// Span of the allocations.
    pub born: u16,
    /// Span of the frees; the number of spans if they were not freed.
    pub freed: u16,
    /// Number of allocations.
    pub count: u64,
    /// Bytes of the allocations.
    pub bytes: u64,
    /// Number of those that came out of a realloc.
    pub realloc_count: u64,
    /// Number of temporary allocations.
    pub temporary_count: u64,
}

/// Sums over all spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpanSums {
    /// Ends of the spans, ascending; the first span begins at 0.
    pub ends_ns: Vec<u64>,
    /// The sums, in the order of stacks and spans.
    pub sums: Vec<SpanSum>,
}

impl Explorer {
    /// Sums by spans of equal length, of which there are at most `spans_max`; fewer if there would
    /// be more than `sums_max` sums. `None` without a table of events, and for samples.
    ///
    /// # Errors
    /// The call was cancelled.
    pub fn span_sums(
        &self,
        spans_max: u16,
        sums_max: usize,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<SpanSums>> {
        if self.trace().is_sampled() || self.table().is_none() {
            return Ok(None);
        }
        let mut spans = spans_max.max(1);
        loop {
            match self.sums_of(spans, sums_max, is_cancelled)? {
                Some(sums) => return Ok(Some(sums)),
                None if spans == 1 => return Ok(None),
                None => spans /= 2,
            }
        }
    }

    /// Sums by a number of spans; `None` if there are more than `sums_max`.
    fn sums_of(
        &self,
        spans: u16,
        sums_max: usize,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<SpanSums>> {
        let Some(table) = self.table() else { return Ok(None) };
        // The last moment of the recording belongs to the last span.
        let whole_ns = u128::from(self.trace().duration_ns()) + 1;
        let end_of = |span: u16| (whole_ns * u128::from(span + 1)).div_ceil(u128::from(spans)) as u64;
        let ends_ns: Vec<u64> = (0..spans).map(end_of).collect();
        let ends: Vec<u32> = ends_ns.iter().map(|&end_ns| table.times.count_before(end_ns)).collect();
        let span_of = |sequence: u32| ends.partition_point(|&end| end <= sequence) as u16;
        let mut sums: HashMap<(StackIndex, u16, u16), SpanSum> = HashMap::new();
        let mut born = 0;
        for allocation in 0..table.allocation_count() {
            if allocation.is_multiple_of(CANCEL_INTERVAL) && is_cancelled() {
                return Err(Error::GivenUp);
            }
            // Births ascend.
            while usize::from(born) + 1 < ends.len() && ends[usize::from(born)] <= table.births[allocation] {
                born += 1;
            }
            let end = table.ends[allocation].sequence();
            let freed = if end == NEVER { spans } else { span_of(end).min(spans) };
            let site = table.sites[table.site_of[allocation] as usize];
            let sum = sums.entry((site.stack, born, freed)).or_insert(SpanSum {
                stack: site.stack,
                born,
                freed,
                count: 0,
                bytes: 0,
                realloc_count: 0,
                temporary_count: 0,
            });
            sum.count += 1;
            sum.bytes = sum.bytes.saturating_add(table.size_bytes(allocation));
            sum.realloc_count += u64::from(site.is_realloc);
            sum.temporary_count += u64::from(table.is_temporary(allocation, 0));
            if sums.len() > sums_max {
                return Ok(None);
            }
        }
        let mut sums: Vec<SpanSum> = sums.into_values().collect();
        sums.sort_unstable_by_key(|sum| (sum.stack.0, sum.born, sum.freed));
        Ok(Some(SpanSums { ends_ns, sums }))
    }
}
