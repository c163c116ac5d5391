//! Decides what part of the allocations a session records.

use std::time::Duration;

use heapr_wire::{SAMPLE_ALL, SAMPLE_NOTHING};
use serde::{Deserialize, Serialize};

use crate::Error;

/// Mean period in bytes with which an automatic session begins, and the least and the greatest that
/// it chooses.
const AUTO_BYTES: u64 = 512 << 10;
const AUTO_BYTES_MIN: u64 = 64 << 10;
const AUTO_BYTES_MAX: u64 = 1 << 30;
/// Largest number of samples per second in an automatic session, unless told otherwise.
pub const AUTO_PER_SECOND: u64 = 200;
/// Least mean period in bytes; a smaller one would record nearly all allocations.
const MEAN_BYTES_MIN: u64 = 1 << 10;
/// Greatest mean period in bytes; a larger one is useless.
const MEAN_BYTES_MAX: u64 = 1 << 40;

/// Rate at which allocations are sampled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SampleRate {
    /// All allocations are recorded; the session may sample later.
    All,
    /// No allocation is recorded.
    Off,
    /// Fixed mean period.
    Every {
        /// Mean period in bytes.
        bytes: u64,
    },
    /// Mean period that keeps the samples per second below a limit.
    Auto {
        /// Largest number of samples per second, over all processes.
        per_second: u64,
    },
}

impl SampleRate {
    /// Mean that agents are told at first.
    pub(crate) fn first_mean_bytes(self) -> u64 {
        match self {
            Self::All => SAMPLE_ALL,
            Self::Off => SAMPLE_NOTHING,
            Self::Every { bytes } => bytes,
            Self::Auto { .. } => AUTO_BYTES,
        }
    }

    /// Checks the values.
    ///
    /// # Errors
    /// [`Error::InvalidProperties`], with the possible values.
    pub fn check(self) -> Result<(), Error> {
        let what = match self {
            Self::Every { bytes } if !(MEAN_BYTES_MIN..=MEAN_BYTES_MAX).contains(&bytes) => format!(
                "a sample every {bytes} bytes: from {MEAN_BYTES_MIN} to {MEAN_BYTES_MAX} are possible \
                 (without --sample all is recorded)"
            ),
            Self::Auto { per_second: 0 } => "no sample a second: at least one is possible".to_owned(),
            _ => return Ok(()),
        };
        Err(Error::InvalidProperties { what })
    }

    /// Returns the form of the command line: `all`, `off`, `524288`, `auto`, `auto:100`.
    #[must_use]
    pub fn to_text(self) -> String {
        match self {
            Self::All => "all".to_owned(),
            Self::Off => "off".to_owned(),
            Self::Every { bytes } => bytes.to_string(),
            Self::Auto { per_second: AUTO_PER_SECOND } => "auto".to_owned(),
            Self::Auto { per_second } => format!("auto:{per_second}"),
        }
    }
}

/// Condition on which a sampling session records all allocations for a while.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct FullOnGrowth {
    /// Growth of the live bytes, in percent of their amount when sampling began last.
    pub percent: u64,
    /// Duration of recording all.
    pub duration: Duration,
}

/// Adjusts the sampling of a session by itself, from figures that it gets periodically.
#[derive(Debug)]
pub(crate) struct Steering {
    rate: SampleRate,
    growth: Option<FullOnGrowth>,
    mean_bytes: u64,
    next_ns: u64,
    samples_before: u64,
    /// Live bytes when sampling began last, or a while after the start; `None`: not known yet.
    baseline_bytes: Option<u64>,
    /// Time at which the baseline is read, or at which recording all ends.
    until_ns: u64,
    is_full_for_growth: bool,
}

/// Figures by which a session adjusts its sampling.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures {
    pub(crate) now_ns: u64,
    pub(crate) samples: u64,
    pub(crate) live_bytes: u64,
}

impl Steering {
    const INTERVAL_NS: u64 = 1_000_000_000;

    pub(crate) fn new(rate: SampleRate, growth: Option<FullOnGrowth>) -> Self {
        let after_ns = growth.map_or(0, |growth| nanoseconds(growth.duration));
        Self {
            rate,
            growth,
            mean_bytes: rate.first_mean_bytes(),
            next_ns: Self::INTERVAL_NS,
            samples_before: 0,
            baseline_bytes: None,
            until_ns: after_ns,
            is_full_for_growth: false,
        }
    }

    /// Sets another rate. Returns its mean.
    pub(crate) fn set(&mut self, rate: SampleRate) -> u64 {
        self.rate = rate;
        self.mean_bytes = rate.first_mean_bytes();
        self.is_full_for_growth = false;
        self.mean_bytes
    }

    pub(crate) fn rate(&self) -> SampleRate {
        self.rate
    }

    pub(crate) fn mean_bytes(&self) -> u64 {
        self.mean_bytes
    }

    /// Returns the mean that agents must be told, if it has changed.
    pub(crate) fn look(&mut self, figures: Figures) -> Option<u64> {
        if figures.now_ns < self.next_ns {
            return None;
        }
        // After a suspend of the machine the interval is longer.
        let since_ns = figures.now_ns.saturating_sub(self.next_ns).saturating_add(Self::INTERVAL_NS);
        self.next_ns = figures.now_ns.saturating_add(Self::INTERVAL_NS);
        let samples = figures.samples.saturating_sub(self.samples_before);
        self.samples_before = figures.samples;
        let before = self.mean_bytes;
        self.follow_growth(figures);
        if let SampleRate::Auto { per_second } = self.rate
            && !self.is_full_for_growth
        {
            let most = u128::from(per_second) * u128::from(since_ns) / u128::from(Self::INTERVAL_NS);
            let samples = u128::from(samples);
            if samples > most {
                self.mean_bytes = self.mean_bytes.saturating_mul(2).min(AUTO_BYTES_MAX);
            } else if samples * 4 < most {
                self.mean_bytes = (self.mean_bytes / 2).max(AUTO_BYTES_MIN);
            }
        }
        (self.mean_bytes != before).then_some(self.mean_bytes)
    }

    fn follow_growth(&mut self, figures: Figures) {
        let Some(growth) = self.growth else { return };
        if matches!(self.rate, SampleRate::All | SampleRate::Off) {
            return;
        }
        let Some(baseline_bytes) = self.baseline_bytes else {
            if figures.now_ns >= self.until_ns {
                self.baseline_bytes = Some(figures.live_bytes);
            }
            return;
        };
        if self.is_full_for_growth {
            if figures.now_ns >= self.until_ns {
                self.is_full_for_growth = false;
                self.mean_bytes = self.rate.first_mean_bytes();
                self.baseline_bytes = Some(figures.live_bytes);
            }
            return;
        }
        let of_growth = u128::from(baseline_bytes) * u128::from(growth.percent) / 100;
        // Growth within the noise of the estimate does not count.
        let noise = ((self.mean_bytes as f64) * (baseline_bytes.max(self.mean_bytes) as f64)).sqrt() * 3.0;
        let grown = u128::from(figures.live_bytes.saturating_sub(baseline_bytes));
        if grown > of_growth && grown as f64 > noise {
            self.is_full_for_growth = true;
            self.mean_bytes = SAMPLE_ALL;
            self.until_ns = figures.now_ns.saturating_add(nanoseconds(growth.duration));
        }
    }
}

fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn at(seconds: u64, samples: u64, live_bytes: u64) -> Figures {
        Figures { now_ns: seconds * SECOND, samples, live_bytes }
    }

    #[test]
    fn a_mean_is_doubled_while_there_are_too_many_samples_and_halved_while_there_are_few() {
        let mut steering = Steering::new(SampleRate::Auto { per_second: 100 }, None);
        assert_eq!(steering.look(Figures { now_ns: 5, samples: 1_000, live_bytes: 0 }), None, "too early");
        assert_eq!(steering.look(at(1, 101, 0)), Some(1 << 20));
        assert_eq!(steering.look(at(2, 201, 0)), None, "as many as allowed");
        assert_eq!(steering.look(at(3, 900, 0)), Some(2 << 20));
        let mut samples = 900;
        for second in 4..20 {
            samples += 10;
            steering.look(at(second, samples, 0));
        }
        assert_eq!(steering.mean_bytes(), AUTO_BYTES_MIN);
        for second in 20..60 {
            samples += 10_000;
            steering.look(at(second, samples, 0));
        }
        assert_eq!(steering.mean_bytes(), AUTO_BYTES_MAX);
    }

    #[test]
    fn growth_has_all_recorded_for_a_while_and_chance_does_not() {
        let growth = FullOnGrowth { percent: 20, duration: Duration::from_secs(10) };
        let mut steering = Steering::new(SampleRate::Every { bytes: 1 << 20 }, Some(growth));
        assert_eq!(steering.look(at(1, 0, 1 << 20)), None, "a program that starts grows");
        assert_eq!(steering.look(at(10, 0, 100 << 20)), None, "the baseline");
        assert_eq!(steering.look(at(11, 0, 115 << 20)), None, "15 percent");
        assert_eq!(steering.look(at(12, 0, 125 << 20)), None, "20 percent, but no more than chance");
        assert_eq!(steering.look(at(13, 0, 140 << 20)), Some(SAMPLE_ALL));
        assert_eq!(steering.look(at(22, 0, 300 << 20)), None);
        assert_eq!(steering.look(at(23, 0, 300 << 20)), Some(1 << 20));
        assert_eq!(steering.look(at(24, 0, 310 << 20)), None, "measured from what is live now");
    }

    #[test]
    fn means_that_say_nothing_are_refused() {
        assert!(SampleRate::Every { bytes: 0 }.check().is_err());
        assert!(SampleRate::Every { bytes: 512 << 10 }.check().is_ok());
        assert!(SampleRate::Auto { per_second: 0 }.check().is_err());
    }
}
