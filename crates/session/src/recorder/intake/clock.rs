//! Converts the agents' ticks to nanoseconds since the session's start.
//!
//! Each round reads both clocks. Between two such anchors time is linear. So the conversion is
//! exact at each anchor, never runs backwards, and needs no calibration before the start.

use std::cell::Cell;
use std::collections::VecDeque;

use heapr_proc::machine;
use heapr_ring::sys;

/// Number of anchors stored: an event can be late by this many rounds and still get its exact time.
const ANCHORS_MAX: usize = 512;

/// Clock of the agents' time stamps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockSource {
    /// The processor's time stamp counter.
    Tsc,
    /// CLOCK_MONOTONIC in nanoseconds.
    Monotonic,
}

impl ClockSource {
    /// Chooses the best clock of this machine. The counter is used only if the kernel itself keeps
    /// time by it. The processor must also say that its rate is the same in all power states.
    #[must_use]
    pub fn detect() -> Self {
        let is_counter = machine::is_kept_by_counter() && machine::has_invariant_counter();
        if is_counter { Self::Tsc } else { Self::Monotonic }
    }

    /// Reads the clock, in its own unit.
    #[must_use]
    pub fn now(self) -> u64 {
        match self {
            Self::Tsc => sys::ticks_ordered(),
            Self::Monotonic => sys::monotonic_ns(),
        }
    }

    /// Name in the file.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Tsc => "tsc",
            Self::Monotonic => "monotonic",
        }
    }
}

#[derive(Debug, Clone, Copy)]
struct Anchor {
    ticks: u64,
    ns: u64,
}

/// Converts ticks since the start to nanoseconds since the start.
#[derive(Debug)]
pub(crate) struct Clock {
    source: ClockSource,
    start_ticks: u64,
    start_ns: u64,
    anchors: VecDeque<Anchor>,
    /// Newest pair of anchors, with the scale in ns per tick as 32.32 fixed point.
    current: Segment,
    /// Segment of the last event before the newest pair: leftovers of earlier rounds come in order,
    /// too.
    earlier: Cell<Segment>,
}

#[derive(Debug, Clone, Copy)]
struct Segment {
    from: Anchor,
    to: Anchor,
    scale: u64,
}

impl Segment {
    fn between(from: Anchor, to: Anchor) -> Self {
        let ticks = to.ticks.saturating_sub(from.ticks).max(1);
        let ns = to.ns.saturating_sub(from.ns);
        Self { from, to, scale: ((u128::from(ns) << 32) / u128::from(ticks)) as u64 }
    }

    #[inline(always)]
    fn ns(&self, ticks: u64) -> u64 {
        let since = ticks.saturating_sub(self.from.ticks);
        self.from.ns + ((u128::from(since) * u128::from(self.scale)) >> 32) as u64
    }
}

/// Reader of the clock's ticks, for another thread.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ticks {
    source: ClockSource,
    start_ticks: u64,
}

impl Ticks {
    /// Returns the ticks since the clock's start.
    pub(crate) fn now(self) -> u64 {
        self.source.now().saturating_sub(self.start_ticks)
    }
}

impl Clock {
    /// Starts the clock.
    pub(crate) fn start(source: ClockSource) -> Self {
        let start_ns = sys::monotonic_ns();
        let start_ticks = source.now();
        let zero = Anchor { ticks: 0, ns: 0 };
        let mut anchors = VecDeque::with_capacity(ANCHORS_MAX);
        anchors.push_back(zero);
        let current = Segment::between(zero, zero);
        Self { source, start_ticks, start_ns, anchors, current, earlier: Cell::new(current) }
    }

    /// Returns the source's value at the start.
    pub(crate) fn start_ticks(&self) -> u64 {
        self.start_ticks
    }

    /// Returns the ticks since the start.
    pub(crate) fn now_ticks(&self) -> u64 {
        self.ticks().now()
    }

    /// Returns a reader for another thread.
    pub(crate) fn ticks(&self) -> Ticks {
        Ticks { source: self.source, start_ticks: self.start_ticks }
    }

    /// Returns the nanoseconds since the start.
    pub(crate) fn now_ns(&self) -> u64 {
        sys::monotonic_ns().saturating_sub(self.start_ns)
    }

    /// Converts a number of nanoseconds to ticks, roughly.
    pub(crate) fn ticks_in(&self, ns: u64) -> u64 {
        match self.source {
            ClockSource::Monotonic => ns,
            ClockSource::Tsc => {
                let Some(last) = self.anchors.back().filter(|anchor| anchor.ns != 0) else { return ns * 4 };
                (u128::from(ns) * u128::from(last.ticks) / u128::from(last.ns)) as u64
            }
        }
    }

    /// Reads both clocks. Call it after the scan whose events are then converted.
    pub(crate) fn anchor(&mut self) {
        let before = self.now_ticks();
        let ns = self.now_ns();
        let after = self.now_ticks();
        let next = Anchor { ticks: before + (after - before) / 2, ns };
        let Some(&last) = self.anchors.back() else { return };
        if next.ticks <= last.ticks || next.ns < last.ns {
            return;
        }
        if self.anchors.len() >= ANCHORS_MAX {
            self.anchors.pop_front();
        }
        self.anchors.push_back(next);
        self.current = Segment::between(last, next);
    }

    /// Converts the time of something recent, maybe after the last anchor. `ticks` is untrusted: a
    /// time in the future becomes the present.
    pub(crate) fn recent_ns(&self, ticks: u64) -> u64 {
        if ticks <= self.current.to.ticks {
            return self.ns(ticks);
        }
        let now = Anchor { ticks: self.now_ticks(), ns: self.now_ns() };
        Segment::between(self.current.to, now).ns(ticks.min(now.ticks))
    }

    /// Converts the time of an event. `ticks` is untrusted: a time after the last anchor becomes
    /// that anchor's.
    #[inline(always)]
    pub(crate) fn ns(&self, ticks: u64) -> u64 {
        if ticks >= self.current.from.ticks && ticks <= self.current.to.ticks {
            self.current.ns(ticks)
        } else {
            self.earlier_ns(ticks)
        }
    }

    #[cold]
    fn earlier_ns(&self, ticks: u64) -> u64 {
        if ticks > self.current.to.ticks {
            return self.current.to.ns;
        }
        let earlier = self.earlier.get();
        if ticks >= earlier.from.ticks && ticks < earlier.to.ticks {
            return earlier.ns(ticks);
        }
        let place = self.anchors.partition_point(|anchor| anchor.ticks <= ticks);
        match (place.checked_sub(1).and_then(|before| self.anchors.get(before)), self.anchors.get(place)) {
            (Some(&from), Some(&to)) => {
                let segment = Segment::between(from, to);
                self.earlier.set(segment);
                segment.ns(ticks)
            }
            (None, Some(first)) => first.ns,
            (from, None) => from.map_or(0, |anchor| anchor.ns),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_happens_after_the_last_anchor_is_not_put_back_to_it() {
        let mut clock = Clock::start(ClockSource::Monotonic);
        clock.anchor();
        std::thread::sleep(std::time::Duration::from_millis(5));
        // The two clocks are read one after the other, and the thread may lose its processor in
        // between. The time lies between what the anchored clock showed before and after.
        let before_ns = clock.now_ns();
        let ticks = clock.now_ticks();
        let after_ns = clock.now_ns();
        let ns = clock.recent_ns(ticks);
        let slack_ns = 100_000;
        assert!(
            (before_ns - slack_ns..=after_ns + slack_ns).contains(&ns),
            "{ns} outside {before_ns} to {after_ns}"
        );
        assert!(clock.recent_ns(u64::MAX) <= clock.now_ns());
    }

    #[test]
    fn time_is_exact_at_anchors_and_never_runs_backwards() {
        let mut clock = Clock::start(ClockSource::Monotonic);
        for _ in 0..5 {
            std::thread::sleep(std::time::Duration::from_millis(2));
            clock.anchor();
        }
        for anchor in &clock.anchors {
            assert!(clock.ns(anchor.ticks).abs_diff(anchor.ns) <= 1);
        }
        let last = clock.anchors.back().unwrap().ticks;
        let times: Vec<u64> = (0..=last + 1000).step_by(997).map(|ticks| clock.ns(ticks)).collect();
        assert!(times.is_sorted());
    }
}
