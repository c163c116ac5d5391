//! All allocations of a trace and their ends, in columns: the result of one replay.
//!
//! ```text
//! moves  (by sequence number)   time ns | allocation << 1 | is an end
//! allocations (in order of birth)  site | size | sequence number of birth | of end << 1 | temporary
//! sites                          stack, process, heap, thread, by realloc
//! ```
//! A move is a birth or an end; a realloc is an end and then a birth at the same time. A move takes
//! 8 bytes, an allocation 16, and the sums that are cached later take 4 to 6 more per move. Six
//! million events take some 130 MB, a hundred million 2.0 GB. Beyond a limit no table is made, and
//! queries replay events.

use heapr_trace::{Damage, HeapId, ProcessIndex, ThreadIndex, Weight};

use crate::site_table::Site;
use crate::size_column::SizeColumn;
use crate::time_column::TimeColumn;

/// Largest sequence number: one bit is a flag.
pub(crate) const SEQUENCE_MAX: u32 = (1 << 31) - 1;
/// Sequence number of an end that did not come.
pub(crate) const NEVER: u32 = SEQUENCE_MAX;
/// Largest memory in bytes per event: a free is a move, an allocation a move and an allocation, a
/// realloc both.
const BYTES_PER_EVENT_MAX: u64 = 48;
/// Memory in bytes of a sample's weight: count and variances.
const BYTES_PER_SAMPLE: u64 = 20;

/// Limit of a table's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TableLimit {
    /// Limit in bytes.
    pub memory_bytes: u64,
}

impl TableLimit {
    /// Whether a table of this many events surely fits. `is_sampled`: each may be a sample with a
    /// weight.
    #[must_use]
    pub fn allows(self, event_count: u64, is_sampled: bool) -> bool {
        let bytes_per_event = BYTES_PER_EVENT_MAX + if is_sampled { BYTES_PER_SAMPLE } else { 0 };
        event_count.saturating_mul(bytes_per_event) <= self.memory_bytes
            && event_count.saturating_mul(2) < u64::from(SEQUENCE_MAX)
    }
}

/// End of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct End(u32);

impl End {
    pub(crate) const NEVER: Self = Self(NEVER << 1);

    pub(crate) fn new(sequence: u32, is_temporary: bool) -> Self {
        Self(sequence << 1 | u32::from(is_temporary))
    }

    /// Sequence number of the end; [`NEVER`] if the allocation did not end.
    #[inline(always)]
    pub(crate) fn sequence(self) -> u32 {
        self.0 >> 1
    }

    #[inline(always)]
    pub(crate) fn is_temporary(self) -> bool {
        self.0 & 1 != 0
    }
}

/// A birth or an end of an allocation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Move(u32);

impl Move {
    pub(crate) fn birth(allocation: u32) -> Self {
        Self(allocation << 1)
    }

    pub(crate) fn end(allocation: u32) -> Self {
        Self(allocation << 1 | 1)
    }

    #[inline(always)]
    pub(crate) fn allocation(self) -> usize {
        (self.0 >> 1) as usize
    }

    #[inline(always)]
    pub(crate) fn is_end(self) -> bool {
        self.0 & 1 != 0
    }
}

/// A call that concerns no known block: its time, process, heap and thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Stray {
    pub(crate) time_ns: u64,
    pub(crate) process: ProcessIndex,
    pub(crate) heap: HeapId,
    pub(crate) thread: ThreadIndex,
}

/// A failed call, which is only counted.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Failure {
    pub(crate) call: Stray,
    pub(crate) size_bytes: u64,
}

/// A free of an unknown address.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UnknownFree {
    pub(crate) call: Stray,
    pub(crate) is_inherited: bool,
}

/// Table of the allocations of a trace.
#[derive(Debug, Default, Clone)]
pub struct EventTable {
    pub(crate) times: TimeColumn,
    pub(crate) moves: Vec<Move>,
    pub(crate) site_of: Vec<u32>,
    pub(crate) sizes: SizeColumn,
    /// Number of allocations that each one stands for; empty if each stands for itself.
    counts: Vec<u32>,
    /// Variances of the bytes (in KiB squared) and of the number that each one stands for; empty if
    /// each stands for itself.
    variances: Vec<(u64, u64)>,
    /// Sequence numbers of births, ascending.
    pub(crate) births: Vec<u32>,
    pub(crate) ends: Vec<End>,
    pub(crate) sites: Vec<Site>,
    /// Temporary blocks of other heaps than malloc, with the allocation since which they count as
    /// temporary; in order.
    pub(crate) temporary_since: Vec<(u32, u32)>,
    pub(crate) failures: Vec<Failure>,
    pub(crate) unknown_frees: Vec<UnknownFree>,
    /// Allocations of ended processes that were not freed, with the move after which they are not
    /// live. In order of allocations after [`Self::finish`].
    pub(crate) left: Vec<(u32, u32)>,
    /// Allocations with an implied end; few.
    pub(crate) implied_ends: Vec<u32>,
    pub(crate) damage: Vec<Damage>,
}

impl EventTable {
    /// Reserves memory, so that the columns are not copied as they grow: usually half of the events
    /// are allocations. Unused memory is never touched, and freed at the end. If it cannot be
    /// reserved, the columns grow as needed.
    pub(crate) fn reserve(&mut self, event_count: u64) {
        let events = usize::try_from(event_count).unwrap_or(0);
        let allocations = events / 2 + events / 16;
        let _ = self.moves.try_reserve(events);
        self.times.reserve(events);
        for column in [&mut self.site_of, &mut self.births] {
            let _ = column.try_reserve(allocations);
        }
        self.sizes.reserve(allocations);
        let _ = self.ends.try_reserve(allocations);
    }

    /// Appends an allocation, whose birth is the next move.
    pub(crate) fn push_allocation(&mut self, site: u32, size_bytes: u64) {
        let allocation = self.site_of.len() as u32;
        self.births.push(self.moves.len() as u32);
        self.moves.push(Move::birth(allocation));
        self.site_of.push(site);
        self.ends.push(End::NEVER);
        self.sizes.push(size_bytes);
    }

    /// Appends a sample with its weight.
    pub(crate) fn push_sample(&mut self, site: u32, weight: Weight) {
        self.push_allocation(site, weight.bytes);
        self.counts.push(u32::try_from(weight.count).unwrap_or(u32::MAX));
        self.variances.push((weight.bytes_variance_kib2, weight.count_variance));
    }

    /// Variances of the bytes (in KiB squared) and of the number that an allocation stands for.
    #[inline(always)]
    pub(crate) fn variances(&self, allocation: usize) -> (u64, u64) {
        self.variances.get(allocation).copied().unwrap_or_default()
    }

    /// Variances by allocation. Their sums are variances of this table's sums.
    pub(crate) fn variance_column(&self, variance: impl Fn((u64, u64)) -> u64) -> SizeColumn {
        (0..self.allocation_count()).map(|allocation| variance(self.variances(allocation))).collect()
    }

    /// Number of allocations that one stands for.
    #[inline(always)]
    pub(crate) fn count(&self, allocation: usize) -> u64 {
        self.counts.get(allocation).map_or(1, |&count| u64::from(count))
    }

    /// Sorts and trims the columns; called after the last allocation.
    pub(crate) fn finish(&mut self) {
        self.temporary_since.sort_unstable();
        self.left.sort_unstable();
        self.times.shrink_to_fit();
        self.moves.shrink_to_fit();
        self.site_of.shrink_to_fit();
        self.sizes.shrink_to_fit();
        self.counts.shrink_to_fit();
        self.variances.shrink_to_fit();
        self.births.shrink_to_fit();
        self.ends.shrink_to_fit();
    }

    /// Whether an allocation counts as temporary in a replay that begins with allocation `first`.
    #[inline(always)]
    pub(crate) fn is_temporary(&self, allocation: usize, first: usize) -> bool {
        self.ends[allocation].is_temporary()
            && (self.temporary_since.is_empty() || self.is_temporary_since(allocation, first))
    }

    #[cold]
    fn is_temporary_since(&self, allocation: usize, first: usize) -> bool {
        let place = self.temporary_since.binary_search_by_key(&(allocation as u32), |&(number, _)| number);
        place.map_or(true, |place| self.temporary_since[place].1 as usize >= first)
    }

    /// Size of an allocation.
    #[inline(always)]
    pub(crate) fn size_bytes(&self, allocation: usize) -> u64 {
        self.sizes.get(allocation)
    }

    /// Move after which an allocation is not live: its end, or that of its process. [`NEVER`] if
    /// there is neither.
    #[inline(always)]
    pub(crate) fn last_move(&self, allocation: usize) -> u32 {
        let end = self.ends[allocation].sequence();
        if end != NEVER || self.left.is_empty() { end } else { self.left_at(allocation) }
    }

    #[cold]
    fn left_at(&self, allocation: usize) -> u32 {
        let place = self.left.binary_search_by_key(&(allocation as u32), |&(number, _)| number);
        place.map_or(NEVER, |place| self.left[place].1)
    }

    /// Whether a move is a free. The other ends belong to ended processes.
    #[inline(always)]
    pub(crate) fn is_free(&self, one: Move) -> bool {
        one.is_end() && (self.left.is_empty() || self.ends[one.allocation()].sequence() != NEVER)
    }

    /// Lifetime of an allocation that ended at the move `end`.
    #[inline(always)]
    pub(crate) fn lifetime_ns(&self, allocation: usize, end: u32) -> u64 {
        self.times.get(end).saturating_sub(self.times.get(self.births[allocation]))
    }

    /// Number of moves.
    pub(crate) fn move_count(&self) -> u32 {
        self.moves.len() as u32
    }

    /// The allocations that are born in moves `from..to`.
    pub(crate) fn born_in(&self, from: u32, to: u32) -> std::ops::Range<usize> {
        let place = |sequence| self.births.partition_point(|&birth| birth < sequence);
        place(from)..place(to).max(place(from))
    }

    /// Sum of the sizes of all allocations.
    pub(crate) fn total_bytes(&self) -> u128 {
        self.sizes.sum()
    }

    /// Number of allocations.
    #[must_use]
    pub fn allocation_count(&self) -> usize {
        self.site_of.len()
    }

    /// Memory of the table in bytes.
    #[must_use]
    pub fn memory_bytes(&self) -> usize {
        self.times.memory_bytes()
            + self.sizes.memory_bytes()
            + (self.moves.capacity() + self.site_of.capacity() + self.counts.capacity()) * 4
            + self.variances.capacity() * size_of::<(u64, u64)>()
            + (self.births.capacity() + self.ends.capacity()) * 4
            + self.left.capacity() * size_of::<(u32, u32)>()
            + self.sites.capacity() * size_of::<Site>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_of_samples_takes_more_memory_and_its_limit_knows_that() {
        let weight = Weight { count: 3, bytes: 100, count_variance: 1, bytes_variance_kib2: 2 };
        let (mut exact, mut sampled) = (EventTable::default(), EventTable::default());
        for _ in 0..1000 {
            exact.push_allocation(0, weight.bytes);
            sampled.push_sample(0, weight);
        }
        exact.finish();
        sampled.finish();
        let more = (sampled.memory_bytes() - exact.memory_bytes()) as u64;
        assert_eq!(more, 1000 * BYTES_PER_SAMPLE);
        let limit = TableLimit { memory_bytes: 1000 * BYTES_PER_EVENT_MAX };
        assert!(limit.allows(1000, false) && !limit.allows(1000, true));
    }
}
