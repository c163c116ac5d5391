//! Sums of allocations by stack and by the spans of time in which they begin and end. They answer
//! any range whose ends lie between two spans without the events.
//!
//! ```text
//! spans          0 │ 1 │ 2 │ 3                 range of spans 1 and 2:
//! allocations      a───────┼──>  freed in 3        allocated, outstanding
//!              b───┼─>           freed in 1        allocated before it: no part of it
//!                  c─┼─>         freed in 2        allocated, freed
//! ```

use std::ops::Range;

use heapr_query::{Error, Result};
use heapr_trace::StackIndex;

use crate::event_table::{EventTable, NEVER};
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
    /// Bytes of the temporary allocations.
    pub temporary_bytes: u64,
}

impl SpanSum {
    fn key(&self) -> (u32, u16, u16) {
        (self.stack.0, self.born, self.freed)
    }

    fn add(&mut self, more: &Self) {
        self.count += more.count;
        self.bytes = self.bytes.saturating_add(more.bytes);
        self.realloc_count += more.realloc_count;
        self.temporary_count += more.temporary_count;
        self.temporary_bytes = self.temporary_bytes.saturating_add(more.temporary_bytes);
    }
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
        let mut sums: Vec<SpanSum> = Vec::new();
        // Number of times that two neighbouring spans became one.
        let mut halvings = 0;
        let mut merge = |sums: &mut Vec<SpanSum>| {
            add_equal(sums);
            while sums.len() > sums_max && ends_ns.len() > 1 {
                halvings += 1;
                let last_ns = ends_ns.last().copied();
                ends_ns = ends_ns.chunks_exact(2).map(|two| two[1]).collect();
                ends_ns.extend(last_ns.filter(|last_ns| ends_ns.last() != Some(last_ns)));
                sums.iter_mut().for_each(|sum| halve(sum, 1));
                add_equal(sums);
            }
            halvings
        };
        let mut of_span = SpanAllocations::new(table, &ends);
        let (mut first, mut halved) = (0, 0);
        for span in 0..spans {
            if is_cancelled() {
                return Err(Error::GivenUp);
            }
            // The last span has what is born at the very end, too.
            let last_birth = if span + 1 == spans { u32::MAX } else { ends[usize::from(span)] };
            let last = table.births.partition_point(|&birth| birth < last_birth).max(first);
            let known = sums.len();
            of_span.add_to(&mut sums, span, first..last);
            sums[known..].iter_mut().for_each(|sum| halve(sum, halved));
            first = last;
            if sums.len() > sums_max.saturating_mul(UNMERGED) {
                halved = merge(&mut sums);
            }
        }
        merge(&mut sums);
        let count = ends_ns.len() as u16;
        sums.iter_mut().for_each(|sum| sum.freed = sum.freed.min(count));
        Ok(Some(SpanSums { ends_ns, sums }))
    }
}

/// Stands for the span of a free that did not come.
const NOT_FREED: u16 = u16::MAX;
/// Sums that may wait to be merged, as a multiple of those that are wanted.
const UNMERGED: usize = 4;

/// Makes one span of each `2^times` spans of a sum.
fn halve(sum: &mut SpanSum, times: u16) {
    sum.born >>= times;
    if sum.freed != NOT_FREED {
        sum.freed >>= times;
    }
}

/// Sorts sums, and adds up those of one stack and of the same spans.
fn add_equal(sums: &mut Vec<SpanSum>) {
    sums.sort_unstable_by_key(SpanSum::key);
    sums.dedup_by(|sum, kept| {
        let is_equal = sum.key() == kept.key();
        if is_equal {
            kept.add(sum);
        }
        is_equal
    });
}

/// Adds up the allocations of one span after the other. Those of a site come together, so that the
/// sums need no table of all sites and spans.
struct SpanAllocations<'a> {
    table: &'a EventTable,
    /// Moves at which the spans end.
    ends: &'a [u32],
    /// Number of a site's first allocation in `order`, and then of the next one.
    place_of: Vec<u32>,
    /// Allocations of a span in the order of their sites.
    order: Vec<u32>,
    /// Sums of a site by the span of the free; those of blocks that were not freed are last.
    by_end: Vec<SpanSum>,
}

impl<'a> SpanAllocations<'a> {
    fn new(table: &'a EventTable, ends: &'a [u32]) -> Self {
        Self { table, ends, place_of: Vec::new(), order: Vec::new(), by_end: vec![NOTHING; ends.len() + 1] }
    }

    /// Appends the sums of allocations that are born in a span.
    fn add_to(&mut self, sums: &mut Vec<SpanSum>, span: u16, allocations: Range<usize>) {
        self.sort_by_site(&allocations);
        let mut at = 0;
        while let Some(&first) = self.order.get(at) {
            let number = self.table.site_of[allocations.start + first as usize];
            let site = self.table.sites[number as usize];
            // Sites with one allocation are many.
            let (mut least, mut most) = (self.ends.len(), 0);
            while let Some(&next) = self.order.get(at) {
                let allocation = allocations.start + next as usize;
                if self.table.site_of[allocation] != number {
                    break;
                }
                let end = self.span_of_end(allocation, span);
                (least, most) = (least.min(end), most.max(end));
                let sum = &mut self.by_end[end];
                let bytes = self.table.size_bytes(allocation);
                sum.count += 1;
                sum.bytes = sum.bytes.saturating_add(bytes);
                if self.table.is_temporary(allocation, 0) {
                    sum.temporary_count += 1;
                    sum.temporary_bytes = sum.temporary_bytes.saturating_add(bytes);
                }
                at += 1;
            }
            for end in least..=most {
                let mut sum = std::mem::replace(&mut self.by_end[end], NOTHING);
                if sum.count > 0 {
                    sum.stack = site.stack;
                    sum.born = span;
                    sum.freed = if end == self.ends.len() { NOT_FREED } else { end as u16 };
                    sum.realloc_count = if site.is_realloc { sum.count } else { 0 };
                    sums.push(sum);
                }
            }
        }
    }

    /// Sorts the allocations by site, by counting.
    fn sort_by_site(&mut self, allocations: &Range<usize>) {
        let sites = &self.table.site_of[allocations.clone()];
        self.place_of.clear();
        self.place_of.resize(self.table.sites.len() + 1, 0);
        for &site in sites {
            self.place_of[site as usize + 1] += 1;
        }
        let mut before = 0;
        for place in &mut self.place_of {
            before += *place;
            *place = before;
        }
        self.order.clear();
        self.order.resize(sites.len(), 0);
        for (number, &site) in (0..).zip(sites) {
            let place = &mut self.place_of[site as usize];
            self.order[*place as usize] = number;
            *place += 1;
        }
    }

    /// Span of an allocation's end, not before that of its birth; their number without an end.
    fn span_of_end(&self, allocation: usize, span: u16) -> usize {
        let end = self.table.ends[allocation].sequence();
        if end == NEVER {
            return self.ends.len();
        }
        let from = usize::from(span);
        // Most blocks end in the span in which they begin.
        if self.ends.get(from).is_some_and(|&border| end < border) {
            return from;
        }
        from + self.ends[from..].partition_point(|&border| border <= end)
    }
}

/// A sum of no allocations.
const NOTHING: SpanSum = SpanSum {
    stack: StackIndex(0),
    born: 0,
    freed: NOT_FREED,
    count: 0,
    bytes: 0,
    realloc_count: 0,
    temporary_count: 0,
    temporary_bytes: 0,
};
