//! Times at which another recorder took the place of one that had ended.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

/// Mean time between two replacements, at least: each one attaches to all processes, and what ended
/// the recorder may last.
pub(super) const REPLACED_EVERY: Duration = Duration::from_secs(60);
/// Number of replacements that may follow one another at once.
pub(super) const AT_ONCE: usize = 3;

/// Times of the last replacements, oldest first.
#[derive(Debug, Default)]
pub(super) struct Replacements(VecDeque<Instant>);

impl Replacements {
    /// Earliest time of the next replacement, if it must wait.
    pub(super) fn due(&self, now: Instant) -> Option<Instant> {
        let oldest = self.0.front().filter(|_| self.0.len() == AT_ONCE)?;
        Some(*oldest + REPLACED_EVERY * AT_ONCE as u32).filter(|due| *due > now)
    }

    pub(super) fn note(&mut self, now: Instant) {
        if self.0.len() == AT_ONCE {
            self.0.pop_front();
        }
        self.0.push_back(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn three_replacements_follow_at_once_and_then_one_a_minute() {
        let begin = Instant::now();
        let second = |second: u64| begin + Duration::from_secs(second);
        let mut replacements = Replacements::default();
        for at in [0, 10, 20] {
            assert_eq!(replacements.due(second(at)), None);
            replacements.note(second(at));
        }
        assert_eq!(replacements.due(second(30)), Some(second(180)));
        assert_eq!(replacements.due(second(180)), None);
        replacements.note(second(180));
        assert_eq!(replacements.due(second(181)), Some(second(190)));
    }
}
