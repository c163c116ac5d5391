//! Suppressions of known leaks, with a count for each rule.

use std::cell::Cell;
use std::path::PathBuf;

use heapr_filters::read_suppressions;
use heapr_query::{FrameText, FrameView, Suppressions};

/// Rules of files, with counts.
#[derive(Debug, Default)]
pub(crate) struct CountedSuppressions {
    rules: Suppressions,
    /// Number of leaks that each rule matched.
    met: Vec<Cell<u64>>,
}

impl CountedSuppressions {
    /// Reads the rules of files.
    pub(crate) fn read(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let rules = paths
            .iter()
            .try_fold(Suppressions::default(), |all, path| anyhow::Ok(all.and(&read_suppressions(path)?)))?;
        Ok(Self { met: rules.names().map(|_| Cell::new(0)).collect(), rules })
    }

    /// Whether a rule suppresses a stack; adds `count` to that rule.
    pub(crate) fn holds(&self, frames: &[FrameView<'_>], count: u64) -> bool {
        let texts: Vec<FrameText<'_>> = frames.iter().map(FrameText::from).collect();
        let Some(rule) = self.rules.rule_for(&texts) else { return false };
        if let Some(met) = self.met.get(rule) {
            met.set(met.get() + count);
        }
        true
    }

    /// Returns the rules that matched, and how often.
    pub(crate) fn met(&self) -> impl Iterator<Item = (&str, u64)> {
        let met = self.rules.names().zip(self.met.iter().map(Cell::get));
        met.filter(|(_, count)| *count > 0)
    }
}
