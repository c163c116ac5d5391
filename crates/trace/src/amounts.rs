//! What is added up of a set of allocations.

use std::ops::AddAssign;

/// The amounts of a set of allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Amounts {
    /// Allocations, those by realloc among them.
    pub total_count: u64,
    /// Their bytes.
    pub total_bytes: u64,
    /// How many came out of a realloc.
    pub realloc_count: u64,
    /// How many were temporary: freed by the thread that made them before it allocated again.
    pub temporary_count: u64,
    /// Not freed (inside the range).
    pub outstanding_count: u64,
    /// Their bytes.
    pub outstanding_bytes: u64,
    /// Live at the peak moment.
    pub peak_count: u64,
    /// Their bytes.
    pub peak_bytes: u64,
    /// How uncertain they are.
    pub variances: Variances,
}

/// Variances of [`Amounts`] that are estimates; 0 where all was counted. Those of bytes are in KiB
/// squared, rounded up block by block: in bytes squared a day's traffic would not fit.
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
    /// Of an amount of which nothing is known. (Sums stop there: what is added to it is not known,
    /// either.)
    pub const UNKNOWN: u64 = u64::MAX;
}

/// Of a normal distribution 95 % lie within so many standard deviations.
const DEVIATIONS: f64 = 1.959_964;

/// Half of a 95 % interval (0 of what is not known), from the variance of a count or of bytes (that
/// one in KiB squared).
#[must_use]
pub fn half_interval(is_bytes: bool, variance: u64) -> u64 {
    if variance == Variances::UNKNOWN {
        return 0;
    }
    let unit = if is_bytes { 1024.0 } else { 1.0 };
    ((variance as f64).sqrt() * DEVIATIONS * unit).round() as u64
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
    /// Bytes are a program's word and need not fit: their sum stops at the greatest number.
    #[inline(always)]
    fn add_assign(&mut self, other: &Self) {
        self.total_count += other.total_count;
        self.total_bytes = self.total_bytes.saturating_add(other.total_bytes);
        self.realloc_count += other.realloc_count;
        self.temporary_count += other.temporary_count;
        self.outstanding_count += other.outstanding_count;
        self.outstanding_bytes = self.outstanding_bytes.saturating_add(other.outstanding_bytes);
        self.peak_count += other.peak_count;
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
