//! Figures of earlier readings: growth, rates, and a mark.

use std::collections::{HashMap, VecDeque};

use super::reading::{Figures, Reading};

/// Time over which growth is measured, ns.
const GROWTH_NS: u64 = 60_000_000_000;
/// Time over which rates are measured, ns.
const RATE_NS: u64 = 10_000_000_000;
/// Least time between two moments, ns.
const STEP_NS: u64 = 2_000_000_000;
/// Least time for a statement on growth or a rate, ns.
const SPAN_NS_MIN: u64 = 900_000_000;

/// Figures at one moment.
#[derive(Debug, Clone, Default)]
pub(super) struct Moment {
    time_ns: u64,
    totals: Figures,
    rows: HashMap<String, Figures>,
    /// True if functions are missing in `rows`.
    is_cut: bool,
}

impl Moment {
    pub(super) fn of(reading: &Reading) -> Self {
        let rows = reading.rows.iter().map(|row| (row.key.clone(), row.figures));
        Self {
            time_ns: reading.time_ns,
            totals: reading.totals,
            rows: rows.collect(),
            is_cut: reading.is_cut,
        }
    }

    /// Figures of a function; `None`: unknown. A function that is not listed had allocated nothing.
    fn figures(&self, of: &Of<'_>) -> Option<Figures> {
        match of {
            Of::All => Some(self.totals),
            Of::Function(name) => {
                let nothing = || {
                    let none = Some(super::reading::Amount::default());
                    Figures { live_bytes: none, live_count: none, alloc_count: none, alloc_bytes: none }
                };
                self.rows.get(*name).copied().or_else(|| (!self.is_cut).then(nothing))
            }
        }
    }
}

/// Subject of a figure.
#[derive(Debug, Clone, Copy)]
pub(super) enum Of<'a> {
    All,
    Function(&'a str),
}

/// Change of an amount, and the time in which it happened.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Change {
    pub(super) amount: i128,
    pub(super) span_ns: u64,
}

impl Change {
    /// Change per so many nanoseconds.
    pub(super) fn per(self, span_ns: u64) -> i128 {
        self.amount * i128::from(span_ns) / i128::from(self.span_ns.max(1))
    }
}

/// Earlier readings of the same question, within the last minute.
#[derive(Debug, Default)]
pub(super) struct History {
    moments: VecDeque<Moment>,
    now: Moment,
}

impl History {
    /// Adds a reading.
    pub(super) fn add(&mut self, reading: &Reading) {
        let moment = Moment::of(reading);
        if moment.time_ns < self.now.time_ns {
            // Another session, or the next file of one.
            *self = Self::default();
        }
        if self.moments.back().is_none_or(|last| moment.time_ns >= last.time_ns + STEP_NS) {
            self.moments.push_back(moment.clone());
        }
        self.now = moment;
        // One moment that is older than the span stays, as the beginning of the span.
        while self.moments.get(1).is_some_and(|second| second.time_ns + GROWTH_NS <= self.now.time_ns) {
            self.moments.pop_front();
        }
    }

    /// Growth of the live bytes in the last minute, or since the first reading.
    pub(super) fn growth(&self, of: Of<'_>) -> Option<Change> {
        self.change(self.moments.front()?, &of, |figures| figures.live_bytes)
    }

    /// Allocations in the last seconds.
    pub(super) fn allocations(&self, of: Of<'_>) -> Option<Change> {
        self.change(self.recent()?, &of, |figures| figures.alloc_count)
    }

    /// Allocated bytes in the last seconds.
    pub(super) fn allocated_bytes(&self, of: Of<'_>) -> Option<Change> {
        self.change(self.recent()?, &of, |figures| figures.alloc_bytes)
    }

    /// Growth of the live bytes since a moment.
    pub(super) fn growth_since(&self, mark: &Moment, of: Of<'_>) -> Option<Change> {
        let figure = |moment: &Moment| moment.figures(&of)?.live_bytes;
        let amount = i128::from(figure(&self.now)?.value) - i128::from(figure(mark)?.value);
        Some(Change { amount, span_ns: self.now.time_ns.saturating_sub(mark.time_ns) })
    }

    /// Beginning of the span of rates.
    fn recent(&self) -> Option<&Moment> {
        let is_early = |moment: &&Moment| moment.time_ns + RATE_NS <= self.now.time_ns;
        self.moments.iter().rev().find(is_early).or(self.moments.front())
    }

    fn change(
        &self,
        from: &Moment,
        of: &Of<'_>,
        figure: impl Fn(&Figures) -> Option<super::reading::Amount>,
    ) -> Option<Change> {
        let span_ns = self.now.time_ns.saturating_sub(from.time_ns);
        if span_ns < SPAN_NS_MIN {
            return None;
        }
        let (now, then) = (figure(&self.now.figures(of)?)?, figure(&from.figures(of)?)?);
        Some(Change { amount: i128::from(now.value) - i128::from(then.value), span_ns })
    }
}

#[cfg(test)]
mod tests {
    use super::super::reading::{Amount, Row};
    use super::*;

    fn reading(seconds: u64, live: u64, made: u64) -> Reading {
        let amount = |value| Some(Amount { value, plus_minus: 0 });
        let figures = Figures { live_bytes: amount(live), alloc_count: amount(made), ..Figures::default() };
        let name = "a".to_owned();
        let row = Row { key: name.clone(), name, place: String::new(), stack: None, figures };
        Reading { time_ns: seconds * 1_000_000_000, totals: figures, rows: vec![row], ..Reading::default() }
    }

    #[test]
    fn growth_is_that_of_a_minute_and_rates_those_of_some_seconds() {
        let mut history = History::default();
        history.add(&reading(0, 100, 0));
        assert_eq!(history.growth(Of::All), None, "one reading tells no growth");
        for second in 1..=300 {
            history.add(&reading(second, 100 + 10 * second, 5 * second));
            assert!(history.moments.len() < 40);
        }
        let growth = history.growth(Of::Function("a")).unwrap();
        assert_eq!(growth.per(60_000_000_000), 600);
        assert!((60_000_000_000..64_000_000_000).contains(&growth.span_ns), "{growth:?}");
        let made = history.allocations(Of::All).unwrap();
        assert_eq!(made.per(1_000_000_000), 5);
        assert!(made.span_ns < 13_000_000_000, "{made:?}");
        assert_eq!(history.growth(Of::Function("b")).unwrap().amount, 0);
    }

    #[test]
    fn a_function_that_may_have_been_left_out_has_no_growth() {
        let mut history = History::default();
        history.add(&Reading { is_cut: true, rows: Vec::new(), ..reading(0, 1, 1) });
        history.add(&reading(5, 3, 3));
        assert_eq!(history.growth(Of::Function("a")), None);
        assert_eq!(history.growth(Of::All).unwrap().amount, 2);
    }

    #[test]
    fn growth_since_a_mark_is_exact() {
        let mut history = History::default();
        let marked = reading(100, 70, 1);
        history.add(&marked);
        let mark = Moment::of(&marked);
        history.add(&reading(101, 60, 1));
        assert_eq!(history.growth_since(&mark, Of::Function("a")).unwrap().amount, -10);
    }
}
