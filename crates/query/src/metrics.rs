//! What is added up, and what results are sorted by.

use heapr_trace::{StackTotals, Totals};

/// Amounts of a set of allocations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Metrics {
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
}

impl Metrics {
    /// Adds another set's amounts.
    pub fn add(&mut self, other: &Self) {
        self.total_count += other.total_count;
        self.total_bytes = self.total_bytes.saturating_add(other.total_bytes);
        self.realloc_count += other.realloc_count;
        self.temporary_count += other.temporary_count;
        self.outstanding_count += other.outstanding_count;
        self.outstanding_bytes = self.outstanding_bytes.saturating_add(other.outstanding_bytes);
        self.peak_count += other.peak_count;
        self.peak_bytes = self.peak_bytes.saturating_add(other.peak_bytes);
    }

    /// The amounts of a heap, or of all.
    #[must_use]
    pub fn of_totals(totals: &Totals) -> Self {
        Self {
            total_count: totals.alloc_count,
            total_bytes: totals.alloc_bytes,
            realloc_count: totals.realloc_count,
            temporary_count: totals.temporary_count,
            outstanding_count: totals.outstanding_count,
            outstanding_bytes: totals.outstanding_bytes,
            peak_count: totals.peak_count,
            peak_bytes: totals.peak_bytes,
        }
    }

    /// The amounts of a file's stack.
    #[must_use]
    pub fn of(totals: &StackTotals) -> Self {
        Self {
            total_count: totals.total_count,
            total_bytes: totals.total_bytes,
            realloc_count: totals.realloc_count,
            temporary_count: totals.temporary_count,
            outstanding_count: totals.outstanding_count,
            outstanding_bytes: totals.outstanding_bytes,
            peak_count: totals.peak_count,
            peak_bytes: totals.peak_bytes,
        }
    }
}

/// What results are sorted by, greatest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum SortKey {
    /// `so`: outstanding bytes.
    #[default]
    OutstandingBytes,
    /// `soc`: outstanding count.
    OutstandingCount,
    /// `st`: total bytes.
    TotalBytes,
    /// `stc`: total count.
    TotalCount,
    /// `src`: realloc count.
    ReallocCount,
    /// `peak`: bytes at the peak moment.
    PeakBytes,
    /// `temporary`: temporary count.
    TemporaryCount,
}

impl SortKey {
    /// All of them, with the names that the command line uses.
    pub const ALL: [(&'static str, Self); 7] = [
        ("so", Self::OutstandingBytes),
        ("soc", Self::OutstandingCount),
        ("st", Self::TotalBytes),
        ("stc", Self::TotalCount),
        ("src", Self::ReallocCount),
        ("peak", Self::PeakBytes),
        ("temporary", Self::TemporaryCount),
    ];

    /// The key of a name; case does not matter.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|&(_, key)| key)
    }

    /// Its name.
    #[must_use]
    pub fn name(self) -> &'static str {
        Self::ALL.iter().find(|(_, key)| *key == self).map_or("", |(name, _)| name)
    }

    /// The amount that it sorts by.
    #[must_use]
    pub fn of(self, metrics: &Metrics) -> u64 {
        match self {
            Self::OutstandingBytes => metrics.outstanding_bytes,
            Self::OutstandingCount => metrics.outstanding_count,
            Self::TotalBytes => metrics.total_bytes,
            Self::TotalCount => metrics.total_count,
            Self::ReallocCount => metrics.realloc_count,
            Self::PeakBytes => metrics.peak_bytes,
            Self::TemporaryCount => metrics.temporary_count,
        }
    }

    /// Whether the amount is in bytes.
    #[must_use]
    pub fn is_bytes(self) -> bool {
        matches!(self, Self::OutstandingBytes | Self::TotalBytes | Self::PeakBytes)
    }
}
