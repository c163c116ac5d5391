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

/// Implements what concerns all counters of [`Amounts`], which are in the order of the file's
/// columns.
macro_rules! counters {
    ($($counter:ident),+) => {
        /// Number of counters of [`Amounts`].
        pub(crate) const COUNTERS: usize = [$(stringify!($counter)),+].len();

        impl Amounts {
            /// Returns the amounts without their variances, in the order of the file's columns.
            pub(crate) fn counters_mut(&mut self) -> [&mut u64; COUNTERS] {
                [$(&mut self.$counter),+]
            }
        }

        impl AddAssign<&Self> for Variances {
            fn add_assign(&mut self, other: &Self) {
                $(self.$counter = self.$counter.saturating_add(other.$counter);)+
            }
        }

        impl AddAssign<&Self> for Amounts {
            /// Adds the other amounts. Sizes come from the program and counts from files, and both
            /// may be huge, so that sums saturate.
            #[inline(always)]
            fn add_assign(&mut self, other: &Self) {
                $(self.$counter = self.$counter.saturating_add(other.$counter);)+
                self.variances += &other.variances;
            }
        }
    };
}

counters!(
    total_count,
    total_bytes,
    realloc_count,
    temporary_count,
    outstanding_count,
    outstanding_bytes,
    peak_count,
    peak_bytes
);

impl Amounts {
    /// Returns the allocations since an earlier moment, and the live blocks of this one. The peak
    /// is 0.
    #[must_use]
    pub fn since(&self, before: &Self) -> Self {
        let (now, then) = (self.variances, before.variances);
        // The variance of what was allocated since is that of all without that of the earlier ones.
        // Of temporary allocations it is unknown, or 0.
        let variances = Variances {
            total_count: now.total_count.saturating_sub(then.total_count),
            total_bytes: now.total_bytes.saturating_sub(then.total_bytes),
            realloc_count: now.realloc_count.saturating_sub(then.realloc_count),
            peak_count: 0,
            peak_bytes: 0,
            ..now
        };
        Self {
            total_count: self.total_count.saturating_sub(before.total_count),
            total_bytes: self.total_bytes.saturating_sub(before.total_bytes),
            realloc_count: self.realloc_count.saturating_sub(before.realloc_count),
            temporary_count: self.temporary_count.saturating_sub(before.temporary_count),
            outstanding_count: self.outstanding_count,
            outstanding_bytes: self.outstanding_bytes,
            variances,
            ..Self::default()
        }
    }

    /// Sets the amounts at the peak to those of other amounts.
    pub fn set_peak(&mut self, held: &Self) {
        (self.peak_count, self.peak_bytes) = (held.peak_count, held.peak_bytes);
        self.variances.peak_count = held.variances.peak_count;
        self.variances.peak_bytes = held.variances.peak_bytes;
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

impl<'a> std::iter::Sum<&'a Self> for Amounts {
    fn sum<I: Iterator<Item = &'a Self>>(parts: I) -> Self {
        parts.fold(Self::default(), |mut sum, part| {
            sum += part;
            sum
        })
    }
}
