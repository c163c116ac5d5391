//! Intervals of a timeline's curves: for sampled traces each bin has half of its 95 % interval.

use heapr_explore::Timeline;
use heapr_trace::EqualBlocks;
use serde::Serialize;

/// Halves of the 95 % intervals of the curves by bin, if they are estimates.
#[derive(Default, Serialize)]
pub(super) struct TimelineIntervals {
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) live_bytes_plus_minus: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    live_count_plus_minus: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    most_bytes_plus_minus: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alloc_bytes_plus_minus: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    alloc_count_plus_minus: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    free_count_plus_minus: Vec<u64>,
}

impl TimelineIntervals {
    pub(super) fn of(equal: EqualBlocks, course: &Timeline) -> Self {
        let Timeline { live_bytes, live_count, alloc_bytes, alloc_count, .. } = course;
        Self {
            live_bytes_plus_minus: halves_of_bytes(equal, live_bytes, live_count),
            live_count_plus_minus: halves_of_counts(equal, live_count, live_bytes),
            most_bytes_plus_minus: halves_of_bytes(equal, &course.most_bytes, &course.most_count),
            alloc_bytes_plus_minus: halves_of_bytes(equal, alloc_bytes, alloc_count),
            alloc_count_plus_minus: halves_of_counts(equal, alloc_count, alloc_bytes),
            free_count_plus_minus: halves_of_counts(equal, &course.free_count, &course.free_bytes),
        }
    }

    /// Intervals of live bytes at moments, when only bytes and blocks are known.
    pub(super) fn of_live(equal: EqualBlocks, bytes: &[u64], counts: &[u64]) -> Self {
        let live = halves_of_bytes(equal, bytes, counts);
        Self { live_bytes_plus_minus: live.clone(), most_bytes_plus_minus: live, ..Self::default() }
    }
}

/// Halves of the intervals of bytes in `counts` blocks, by bin; empty for exact counts.
pub(super) fn halves_of_bytes(equal: EqualBlocks, bytes: &[u64], counts: &[u64]) -> Vec<u64> {
    halves(equal, bytes, counts, EqualBlocks::half_of_bytes)
}

/// Halves of the intervals of numbers of blocks with `bytes` bytes, by bin; empty for exact counts.
pub(super) fn halves_of_counts(equal: EqualBlocks, counts: &[u64], bytes: &[u64]) -> Vec<u64> {
    halves(equal, counts, bytes, EqualBlocks::half_of_count)
}

fn halves(
    equal: EqualBlocks,
    values: &[u64],
    beside: &[u64],
    half: fn(EqualBlocks, u64, u64) -> u64,
) -> Vec<u64> {
    if equal == EqualBlocks::default() {
        return Vec::new();
    }
    values.iter().zip(beside).map(|(&value, &beside)| half(equal, value, beside)).collect()
}
