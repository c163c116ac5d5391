//! Intervals of a timeline's curves: for sampled traces each bin has half of its 95 % interval.

use heapr_explore::{Timeline, TimelineVariances};
use heapr_trace::half_interval;
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
    pub(super) fn of(course: &Timeline) -> Self {
        let Some(variances) = course.variances.as_deref() else { return Self::default() };
        let TimelineVariances { live_bytes, live_count, alloc_bytes, alloc_count, .. } = variances;
        Self {
            live_bytes_plus_minus: halves(true, live_bytes),
            live_count_plus_minus: halves(false, live_count),
            most_bytes_plus_minus: halves(true, &variances.most_bytes),
            alloc_bytes_plus_minus: halves(true, alloc_bytes),
            alloc_count_plus_minus: halves(false, alloc_count),
            free_count_plus_minus: halves(false, &variances.free_count),
        }
    }

    /// Intervals of live bytes at moments, by the variances of these bytes.
    pub(super) fn of_live(variances: &[u64]) -> Self {
        let live = halves(true, variances);
        Self { live_bytes_plus_minus: live.clone(), most_bytes_plus_minus: live, ..Self::default() }
    }
}

/// Halves of the intervals of values with these variances, by bin.
pub(super) fn halves(is_bytes: bool, variances: &[u64]) -> Vec<u64> {
    variances.iter().map(|&variance| half_interval(is_bytes, variance)).collect()
}
