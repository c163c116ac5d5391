//! Sums over a set of allocations, with their variances where the sums are estimates.

use std::ops::AddAssign;

/// The amounts of a set of allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amounts {
    /// Number of allocations, reallocations included.
    pub total_count: u64,
    /// Bytes of these allocations.
    pub total_bytes: u64,
    /// Number of allocations that came out of a realloc.
    pub realloc_count: u64,
    /// Number of temporary allocations: freed before the next allocation of the same thread.
    pub temporary_count: u64,
    /// Number of blocks that are not freed inside the range.
    pub outstanding_count: u64,
    /// Bytes of the blocks that are not freed inside the range.
    pub outstanding_bytes: u64,
    /// Number of blocks that are live at the peak moment.
    pub peak_count: u64,
    /// Bytes of the blocks that are live at the peak moment.
    pub peak_bytes: u64,
    /// Variances of the amounts above.
    pub variances: Variances,
}

/// Number of counters of [`Amounts`].
pub(crate) const COUNTERS: usize = 8;

impl Amounts {
    /// Returns the amounts without their variances, in the order of the file's columns.
    pub(crate) fn counters_mut(&mut self) -> [&mut u64; COUNTERS] {
        [
            &mut self.total_count,
            &mut self.total_bytes,
            &mut self.realloc_count,
            &mut self.temporary_count,
            &mut self.outstanding_count,
            &mut self.outstanding_bytes,
            &mut self.peak_count,
            &mut self.peak_bytes,
        ]
    }

    /// Returns the allocations since an earlier moment, and the live blocks of this one. The peak
    /// and all variances are 0.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        Self {
            total_count: self.total_count.saturating_sub(before.total_count),
            total_bytes: self.total_bytes.saturating_sub(before.total_bytes),
            realloc_count: self.realloc_count.saturating_sub(before.realloc_count),
            temporary_count: self.temporary_count.saturating_sub(before.temporary_count),
            outstanding_count: self.outstanding_count,
            outstanding_bytes: self.outstanding_bytes,
            ..Self::default()
        }
    }
}

/// Variances of [`Amounts`] that are estimates; 0 where everything was counted. The variances of
/// bytes are in KiB squared, rounded up block by block: in bytes squared a day's traffic would
/// overflow 64 bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[allow(missing_docs, reason = "named as what they are of")]
pub struct Variances {
    pub total_count: u64,
    pub total_bytes: u64,
    pub realloc_count: u64,
    pub temporary_count: u64,
    pub outstanding_count: u64,
    pub outstanding_bytes: u64,
    pub peak_count: u64,
    pub peak_bytes: u64,
}

impl Variances {
    /// Variance of an amount that is unknown. Sums saturate at this value, so that a sum with an
    /// unknown part is unknown, too.
    pub const UNKNOWN: u64 = u64::MAX;
}

impl AddAssign<&Self> for Variances {
    fn add_assign(&mut self, other: &Self) {
        self.total_count = self.total_count.saturating_add(other.total_count);
        self.total_bytes = self.total_bytes.saturating_add(other.total_bytes);
        self.realloc_count = self.realloc_count.saturating_add(other.realloc_count);
        self.temporary_count = self.temporary_count.saturating_add(other.temporary_count);
        self.outstanding_count = self.outstanding_count.saturating_add(other.outstanding_count);
        self.outstanding_bytes = self.outstanding_bytes.saturating_add(other.outstanding_bytes);
        self.peak_count = self.peak_count.saturating_add(other.peak_count);
        self.peak_bytes = self.peak_bytes.saturating_add(other.peak_bytes);
    }
}

impl AddAssign<&Self> for Amounts {
    /// Adds the other amounts. Sizes come from the program and counts from files, and both may be
    /// huge, so that sums saturate.
    #[inline(always)]
    fn add_assign(&mut self, other: &Self) {
        self.total_count = self.total_count.saturating_add(other.total_count);
        self.total_bytes = self.total_bytes.saturating_add(other.total_bytes);
        self.realloc_count = self.realloc_count.saturating_add(other.realloc_count);
        self.temporary_count = self.temporary_count.saturating_add(other.temporary_count);
        self.outstanding_count = self.outstanding_count.saturating_add(other.outstanding_count);
        self.outstanding_bytes = self.outstanding_bytes.saturating_add(other.outstanding_bytes);
        self.peak_count = self.peak_count.saturating_add(other.peak_count);
        self.peak_bytes = self.peak_bytes.saturating_add(other.peak_bytes);
        self.variances += &other.variances;
    }
}

impl<'a> std::iter::Sum<&'a Self> for Amounts {
    fn sum<I: Iterator<Item = &'a Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum += part;
            sum
        })
    }
}
