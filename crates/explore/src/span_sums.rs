//! Sums of allocations by stack and by the spans of time in which they begin and end. They answer
//! any range whose ends lie between two spans without the events.
//!
//! ```text
//! spans          0 │ 1 │ 2 │ 3                 range of spans 1 and 2:
//! allocations      a───────┼──>  freed in 3        allocated, outstanding
//!              b───┼─>           freed in 1        allocated before it: no part of it
//!                  c─┼─>         freed in 2        allocated, freed
//! ```

use hashbrown::HashMap;
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
    /// Sums by spans of equal length, of which there are at most `spans_max`. There are half as
    /// many, and so on, if there would be more than `sums_max` sums. `None` without a table of
    /// events, and for samples.
    ///
    /// # Errors
    /// The call was cancelled.
    pub fn span_sums(
        &self,
        spans_max: u16,
        sums_max: usize,
        is_cancelled: &(dyn Fn() -> bool + Sync),
    ) -> Result<Option<SpanSums>> {
        let Some(table) = self.table().filter(|_| !self.trace().is_sampled()) else { return Ok(None) };
        let spans = spans_max.max(1);
        // The last moment of the recording belongs to the last span.
        let whole_ns = u128::from(self.trace().duration_ns()) + 1;
        let end_of = |span: u16| (whole_ns * u128::from(span + 1)).div_ceil(u128::from(spans)) as u64;
        let mut ends_ns: Vec<u64> = (0..spans).map(end_of).collect();
        let ends: Vec<u32> = ends_ns.iter().map(|&end_ns| table.times.count_before(end_ns)).collect();
        let span_of = |sequence: u32| ends.partition_point(|&end| end <= sequence) as u16;
        let mut sums: HashMap<(StackIndex, u16, u16), SpanSum> = HashMap::new();
        // Number of times that two neighbouring spans became one.
        let mut halvings = 0;
        for allocation in 0..table.allocation_count() {
            if allocation.is_multiple_of(CANCEL_INTERVAL) && is_cancelled() {
                return Err(Error::GivenUp);
            }
            let end = table.ends[allocation].sequence();
            let is_freed = end != NEVER && usize::from(span_of(end)) < ends.len();
            let site = table.sites[table.site_of[allocation] as usize];
            let one = SpanSum {
                stack: site.stack,
                born: span_of(table.births[allocation]).min(spans - 1) >> halvings,
                freed: if is_freed { span_of(end) >> halvings } else { NOT_FREED },
                count: 1,
                bytes: table.size_bytes(allocation),
                realloc_count: u64::from(site.is_realloc),
                temporary_count: u64::from(table.is_temporary(allocation, 0)),
            };
            add(&mut sums, one);
            while sums.len() > sums_max && ends_ns.len() > 1 {
                halvings += 1;
                let last_ns = ends_ns.last().copied();
                ends_ns = ends_ns.chunks_exact(2).map(|two| two[1]).collect();
                ends_ns.extend(last_ns.filter(|last_ns| ends_ns.last() != Some(last_ns)));
                for mut sum in std::mem::take(&mut sums).into_values() {
                    sum.born >>= 1;
                    if sum.freed != NOT_FREED {
                        sum.freed >>= 1;
                    }
                    add(&mut sums, sum);
                }
            }
        }
        let mut sums: Vec<SpanSum> = sums.into_values().collect();
        let count = ends_ns.len() as u16;
        sums.iter_mut().for_each(|sum| sum.freed = sum.freed.min(count));
        sums.sort_unstable_by_key(|sum| (sum.stack.0, sum.born, sum.freed));
        Ok(Some(SpanSums { ends_ns, sums }))
    }
}

/// Stands for the span of a free that did not come.
const NOT_FREED: u16 = u16::MAX;

fn add(sums: &mut HashMap<(StackIndex, u16, u16), SpanSum>, one: SpanSum) {
    let known = sums.entry((one.stack, one.born, one.freed));
    known
        .and_modify(|sum| {
            sum.count += one.count;
            sum.bytes = sum.bytes.saturating_add(one.bytes);
            sum.realloc_count += one.realloc_count;
            sum.temporary_count += one.temporary_count;
        })
        .or_insert(one);
}
