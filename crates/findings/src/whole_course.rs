//! Live bytes at all moments of a file, including moments without stacks.

use heapr_trace::CourseMoment;

/// Smallest number of moments in which growth can be seen.
pub(crate) const MOMENTS_MIN: usize = 6;

/// Live bytes by moment.
#[derive(Debug, Default)]
pub(crate) struct WholeCourse {
    pub(crate) times_ns: Vec<u64>,
    pub(crate) live_bytes: Vec<u64>,
    /// Number of moments with stacks.
    pub(crate) told: usize,
    /// Whether all moments with live bytes have stacks.
    pub(crate) is_told: bool,
}

impl WholeCourse {
    pub(crate) fn of(moments: &[CourseMoment]) -> Self {
        Self {
            times_ns: moments.iter().map(|moment| moment.time_ns).collect(),
            live_bytes: moments.iter().map(|moment| moment.live_bytes).collect(),
            told: moments.iter().filter(|moment| has_stacks(moment)).count(),
            is_told: moments.iter().all(is_told),
        }
    }

    /// Whether growth would be seen if it existed.
    pub(crate) fn tells_growth(&self) -> bool {
        self.times_ns.len() >= MOMENTS_MIN
    }

    /// Number of moments.
    pub(crate) fn count(&self) -> usize {
        self.times_ns.len()
    }
}

fn has_stacks(moment: &CourseMoment) -> bool {
    !moment.rows.is_empty() || !moment.rests.is_empty()
}

/// Whether the stacks of the live bytes are known.
pub(crate) fn is_told(moment: &CourseMoment) -> bool {
    moment.live_bytes == 0 || has_stacks(moment)
}
