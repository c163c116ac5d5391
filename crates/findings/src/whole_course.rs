//! What was live at all moments of a file, whether or not it tells whose it was.

use heapr_trace::CourseMoment;

/// Moments without which no growth is seen.
pub(crate) const MOMENTS_MIN: usize = 6;

/// All that was live by moment; stacks may be told at none of them.
#[derive(Debug, Default)]
pub(crate) struct WholeCourse {
    pub(crate) times_ns: Vec<u64>,
    pub(crate) live_bytes: Vec<u64>,
    /// At so many moments it is told whose it was.
    pub(crate) told: usize,
    /// At all at which there was any.
    pub(crate) is_told: bool,
}

impl WholeCourse {
    pub(crate) fn of(moments: &[CourseMoment]) -> Self {
        Self {
            times_ns: moments.iter().map(|moment| moment.time_ns).collect(),
            live_bytes: moments.iter().map(|moment| moment.live_bytes).collect(),
            told: moments.iter().filter(|moment| !moment.rows.is_empty()).count(),
            is_told: moments.iter().all(is_told),
        }
    }

    /// Whether growth would be seen, if there were any.
    pub(crate) fn tells_growth(&self) -> bool {
        self.times_ns.len() >= MOMENTS_MIN
    }

    /// Moments in all.
    pub(crate) fn count(&self) -> usize {
        self.times_ns.len()
    }
}

/// Whether it is told whose it was.
pub(crate) fn is_told(moment: &CourseMoment) -> bool {
    moment.live_bytes == 0 || !moment.rows.is_empty()
}
