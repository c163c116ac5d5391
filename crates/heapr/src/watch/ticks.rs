//! Moments at which a watch looks: they coincide, so that many groups cost one wake.

use std::time::{Duration, Instant};

/// Clock of a watch. Times between two looks divide each other, and begin together.
#[derive(Debug, Clone, Copy)]
pub(super) struct Ticks {
    begun: Instant,
}

impl Ticks {
    /// Clock that begins now.
    pub(super) fn begin() -> Self {
        Self { begun: Instant::now() }
    }

    /// Next moment, of those that are `every` apart, after `now`.
    pub(super) fn after(self, now: Instant, every: Duration) -> Instant {
        let every_ns = every.as_nanos().max(1);
        let count = now.saturating_duration_since(self.begun).as_nanos() / every_ns + 1;
        self.begun + Duration::from_nanos(u64::try_from(count * every_ns).unwrap_or(u64::MAX))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_of_different_paces_coincide_and_none_waits_longer_than_its_time() {
        let ticks = Ticks::begin();
        let at = |millis| ticks.begun + Duration::from_millis(millis);
        let [often, seldom] = [1, 3].map(Duration::from_secs);
        assert_eq!(ticks.after(at(2_400), often), at(3_000));
        assert_eq!(ticks.after(at(2_400), seldom), at(3_000));
        assert_eq!(ticks.after(at(3_000), seldom), at(6_000));
        assert_eq!(ticks.after(at(0), often), at(1_000));
    }
}
